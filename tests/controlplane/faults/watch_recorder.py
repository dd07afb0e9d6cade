"""A recorder of what really happened: watches of pods, nodes and leases directly at the API server.

`start` returns when the lists are read and the watches are open, which must be before the first create of the workload.
Each change that a check can see becomes a record of the history; status noise of kubelets does not.

Contract: records of one kind are in the order of the API server; their times are those of arrival. `pods` is the newest
state of each pod that exists. If a watch cannot be continued without a gap, `run` raises.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import aiohttp
from msgspec.structs import replace

from tests.controlplane.faults.checks.history import LeaseChange, NodeChange, PodChange, Record
from tests.controlplane.faults.direct_client import DirectClient
from tests.support.builders import COSCHEDULING_LABEL
from tutti.kube.quantity import milli, value

_PATHS = {
    "Pod": "/api/v1/pods",
    "Node": "/api/v1/nodes",
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases",
}


class WatchRecorder:
    """See the module's docstring; `record` gets each record."""

    def __init__(self, client: DirectClient, record: Callable[[Record], None]) -> None:
        self._client, self._record = client, record
        self.pods: dict[str, PodChange] = {}
        self.nodes: dict[str, NodeChange] = {}
        self.holders: dict[str, str] = {}
        """Who holds each lease."""
        self.binds = 0
        self.changed = asyncio.Condition()
        """Notified after each change of a pod."""
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Read the lists and follow them."""
        for kind, path in _PATHS.items():
            listed = await self._client.send("GET", path)
            assert listed is not None
            for item in listed["items"]:
                self._see(kind, "ADDED", item)
            version = listed["metadata"]["resourceVersion"]
            self._tasks.append(asyncio.create_task(self._follow(kind, path, version)))

    async def stop(self) -> None:
        """End the watches; raise what a watch raised."""
        for task in self._tasks:
            task.cancel()
        for outcome in await asyncio.gather(*self._tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    def check(self) -> None:
        """Raise what a watch raised."""
        for task in self._tasks:
            if task.done():
                task.result()

    async def _follow(self, kind: str, path: str, version: str) -> None:
        while True:
            try:
                async for event in self._client.follow(path, version):
                    item = event["object"]
                    if event["type"] == "ERROR":
                        raise RuntimeError(f"the recorder's watch of {path} has a gap: {item}")
                    version = item["metadata"]["resourceVersion"]
                    if event["type"] != "BOOKMARK":
                        self._see(kind, event["type"], item)
                        if kind == "Pod":
                            async with self.changed:
                                self.changed.notify_all()
            except aiohttp.ClientConnectionError:
                await asyncio.sleep(0.1)

    def _see(self, kind: str, event: str, item: dict[str, Any]) -> None:
        now, gone = time.time(), event == "DELETED"
        if kind == "Pod":
            self._see_pod(now, item, gone)
        elif kind == "Node":
            self._see_node(now, item, gone)
        elif not gone:
            name, holder = item["metadata"]["name"], item["spec"].get("holderIdentity") or ""
            before = self.holders.get(name)
            if holder != before:
                self.holders[name] = holder
                self._record(LeaseChange(now, name, holder))

    def _see_pod(self, now: float, item: dict[str, Any], gone: bool) -> None:
        pod = pod_change(now, item, gone=gone)
        before = self.pods.get(pod.uid)
        if before is not None and replace(before, time=now) == pod:
            return
        self.binds += bool(pod.node) and (before is None or not before.node)
        self._record(pod)
        if gone:
            self.pods.pop(pod.uid, None)
        else:
            self.pods[pod.uid] = pod

    def _see_node(self, now: float, item: dict[str, Any], gone: bool) -> None:
        room = item.get("status", {}).get("allocatable") or {}
        name = item["metadata"]["name"]
        cpu, memory = milli(room.get("cpu", 0)), value(room.get("memory", 0))
        node = NodeChange(now, name, cpu, memory, value(room.get("pods", 0)), gone)
        before = self.nodes.get(name)
        if before is None or replace(before, time=now) != node:
            self.nodes[name] = node
            self._record(node)


def pod_change(now: float, item: dict[str, Any], *, gone: bool) -> PodChange:
    """Return what the checks need of a pod's JSON."""
    metadata, spec, status = item["metadata"], item["spec"], item.get("status", {})
    conditions = {each["type"]: each for each in status.get("conditions") or ()}
    scheduled = conditions.get("PodScheduled", {})
    target = conditions.get("DisruptionTarget", {})
    disruption = target if target.get("status") == "True" else {}
    waits = scheduled.get("status") == "False"
    requests = [each.get("resources", {}).get("requests", {}) for each in spec["containers"]]
    labels = metadata.get("labels") or {}
    group = (spec.get("schedulingGroup") or {}).get("podGroupName") or labels.get(COSCHEDULING_LABEL, "")
    owners = metadata.get("ownerReferences") or [{}]
    return PodChange(
        time=now,
        uid=metadata["uid"],
        name=metadata["name"],
        gang=group,
        node=spec.get("nodeName") or "",
        phase=status.get("phase") or "Pending",
        deleting="deletionTimestamp" in metadata,
        gone=gone,
        owner=owners[0].get("name", ""),
        priority=spec.get("priority") or 0,
        cpu=sum(milli(each.get("cpu", 0)) for each in requests),
        memory=sum(value(each.get("memory", 0)) for each in requests),
        nominated=status.get("nominatedNodeName") or "",
        reason=scheduled.get("reason", "") if waits else "",
        message=scheduled.get("message", "") if waits else "",
        disruption=disruption.get("reason", ""),
        disruption_message=disruption.get("message", ""),
    )
