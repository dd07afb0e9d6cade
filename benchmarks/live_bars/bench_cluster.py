"""A control plane with hand-made nodes, and a watch that notes when pods are bound and when their events come.

Contract: the watches are open before the first pod is created. Times are those of the client's monotonic clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from tests.controlplane.cluster_setup import create_all, make_nodes, make_pods, make_service_account, open_client, send
from tests.controlplane.component_flags import ControlPlaneOptions
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.manifests import new_pod, ready_node

from tutti.client.api_client import ApiClient
from tutti.client.resources import EVENTS, PODS, Resource
from tutti.client.watch_events import split_lines
from tutti.exceptions import ApiError

NATIVE_GROUPS = Resource("scheduling.k8s.io", "v1beta1", "podgroups", True, "PodGroup")
ALL_RIGHTS = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
)


class _Meta(msgspec.Struct, frozen=True, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, frozen=True, rename="camel"):
    node_name: str = ""


class _Object(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    spec: _Spec = _Spec()
    regarding: _Meta = _Meta()
    reason: str = ""


class _List(msgspec.Struct, frozen=True):
    metadata: _Meta = _Meta()
    items: list[_Object] | None = None


class _Event(msgspec.Struct, frozen=True):
    type: str
    object: _Object


_DECODER = msgspec.json.Decoder(_Event)


class BenchCluster:
    """See the module's docstring."""

    def __init__(self, plane: ControlPlane, client: ApiClient, *, scheduler_kubeconfig: Path) -> None:
        self.plane, self.client, self.scheduler_kubeconfig = plane, client, scheduler_kubeconfig
        self.bound: dict[str, float] = {}
        """When a pod was first reported with a node."""
        self.told: dict[str, float] = {}
        """When the event Scheduled of a pod was reported."""
        self.moved: set[str] = set()
        """Pods that were reported on two nodes: names are never used twice."""
        self._nodes: dict[str, str] = {}
        self._rounds = 0

    async def make_gangs(self, count: int, size: int, scheduler: str) -> list[str]:
        """Create native gangs and their pods; return the names of the pods."""
        self._rounds += 1
        groups = [f"g{self._rounds}-{number:05}" for number in range(count)]
        policy = {"schedulingPolicy": {"gang": {"minCount": size}}}
        made = [{"metadata": {"name": group, "namespace": "default"}, "spec": policy} for group in groups]
        await create_all(self.client, NATIVE_GROUPS, made)
        pods = [
            new_pod(f"{group}-{place}", scheduler=scheduler, schedulingGroup={"podGroupName": group})
            for group in groups
            for place in range(size)
        ]
        await make_pods(self.client, pods)
        return [pod["metadata"]["name"] for pod in pods]

    async def make_plain_pods(self, count: int, scheduler: str) -> list[str]:
        """Create pods; return their names."""
        self._rounds += 1
        pods = [new_pod(f"p{self._rounds}-{number:05}", scheduler=scheduler) for number in range(count)]
        await make_pods(self.client, pods)
        return [pod["metadata"]["name"] for pod in pods]

    async def until(self, times: dict[str, float], pods: Iterable[str], *, patience: float) -> float | None:
        """Wait until all pods have a time; return the last one, None if that takes too long."""
        wanted, end = set(pods), time.monotonic() + patience
        while not wanted <= times.keys():
            if time.monotonic() > end:
                return None
            await asyncio.sleep(0.05)
        return max(times[pod] for pod in wanted)

    async def clear(self) -> None:
        """Delete all pods and events, and wait until the pods are gone; groups need a controller for that, and stay."""
        for resource in (PODS, EVENTS):
            query = {"gracePeriodSeconds": "0"} if resource is PODS else {}
            await self.client.request("DELETE", resource.path("default"), query=query, timeout=300)
        while (await send(self.client, "GET", PODS.path("default"), query={"limit": "1"}))["items"]:
            await asyncio.sleep(0.1)
        self.bound.clear()
        self.told.clear()
        self._nodes.clear()

    async def watch(self, resource: Resource, ready: asyncio.Event) -> None:
        """Note bindings, or events, until cancelled."""
        while True:
            try:
                await self._watch(resource, ready)
            except ApiError as error:
                print(f"  a watch of the benchmark begins again: {error}", flush=True)

    async def _watch(self, resource: Resource, ready: asyncio.Event) -> None:
        # All of them, also after a watch that the server ended: what happened in between has the time of the list.
        listed = msgspec.json.decode(await self.client.request("GET", resource.path("default")), type=_List)
        for item in listed.items or ():
            self._note(item, time.monotonic())
        version = listed.metadata.resource_version
        query = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "3600"}
        async with self.client.stream(resource.path("default"), query=query, timeout=3600, silence=3600) as pieces:
            ready.set()
            async for lines in split_lines(pieces):
                now = time.monotonic()
                for line in lines:
                    self._note(_DECODER.decode(line).object, now)

    def _note(self, obj: _Object, now: float) -> None:
        if obj.reason == "Scheduled":
            self.told.setdefault(obj.regarding.name, now)
        elif obj.spec.node_name:
            self.bound.setdefault(obj.metadata.name, now)
            if self._nodes.setdefault(obj.metadata.name, obj.spec.node_name) != obj.spec.node_name:
                self.moved.add(obj.metadata.name)


@asynccontextmanager
async def bench_cluster(
    nodes: int, *, api_server_flags: tuple[str, ...] = (), **options: Any
) -> AsyncIterator[BenchCluster]:
    """Start a control plane with nodes, and a service account for the schedulers."""
    flags = ("--delete-collection-workers=16", *api_server_flags)  # to clear the cluster quickly
    with ControlPlane(ControlPlaneOptions(native_gangs=True, api_server_flags=flags, **options)) as plane:
        async with open_client(plane.kubeconfig, connections=200) as client:
            path = plane.folder / "scheduler.kubeconfig"
            await make_service_account(client, "bench", kubeconfig=plane.kubeconfig, path=path, rules=ALL_RIGHTS)
            await make_nodes(client, bench_nodes(nodes), width=64)
            cluster = BenchCluster(plane, client, scheduler_kubeconfig=path)
            tasks, opened = [], []
            for resource in (PODS, EVENTS):
                opened.append(asyncio.Event())
                tasks.append(asyncio.create_task(cluster.watch(resource, opened[-1])))
            for each in opened:
                await each.wait()
            try:
                yield cluster
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)


def bench_nodes(count: int) -> Sequence[dict[str, Any]]:
    """Return nodes in three zones."""
    return [ready_node(f"node-{number:05}", memory="256Gi", zone=f"z{number % 3}") for number in range(count)]
