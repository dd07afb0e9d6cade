"""The status of Kubernetes' own PodGroups: that the pods which a group needs were scheduled.

kube-scheduler writes the condition PodGroupInitiallyScheduled for the groups of its pods, and nobody does for ours.
After a restart the condition says that a gang which lacks pods ran whole once, so that it is not undone.

Contract: only `close` waits. The condition is written once, when the last planned binding of a gang that starts has
succeeded; `take_over` writes what a process before this one could not write any more. A group that has the condition,
or whose kind the server lacks, is left alone. A write that fails is dropped; while this process may not write, writes
wait. `coscheduling_status` writes the status of scheduler-plugins' groups; those of other dialects have controllers of
their own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from tutti.client.api_client import STRATEGIC_MERGE_PATCH, ApiClient
from tutti.client.resources import Resource
from tutti.engine.session.plan import Bound, Plan
from tutti.exceptions import ApiError, InputError
from tutti.kube.gangs.native import INITIALLY_SCHEDULED, Native, whole_since
from tutti.kube.gangs.native_policy import completed_spec, minimum_of
from tutti.kube.gangs.reader import membership
from tutti.kube.objects import Pod
from tutti.kube.times import timestamp
from tutti.live.background_tasks import BackgroundTasks
from tutti.live.executor.groups.gang_completion import GangCompletion
from tutti.live.newest_objects import NewestObjects

_ATTEMPTS = 4
_AGAIN = frozenset((0, 409, 429, 500, 502, 503, 504))
_LOOK_EVERY = 0.2
"""Seconds between two looks whether this process may write."""


class NativeStatusWriter:
    """See the module's docstring; `resource` returns how the server serves PodGroups, None if it does not."""

    def __init__(
        self,
        client: ApiClient,
        newest: NewestObjects,
        *,
        scheduler_name: str,
        resource: Callable[[], Resource | None],
        may_write: Callable[[], bool],
        now: Callable[[], int],
    ) -> None:
        self._client, self._newest, self._resource = client, newest, resource
        self._scheduler_name, self._may_write, self._now = scheduler_name, may_write, now
        self._completion = GangCompletion(Native.NAME)
        self.tasks = BackgroundTasks()

    def expect(self, plan: Plan) -> None:
        """Note the gangs that a plan starts."""
        self._completion.expect(plan)

    def note_bound(self, bound: Bound) -> None:
        """Note that a pod is bound; write the status of its group if it was the last one."""
        gang = self._completion.note_bound(bound)
        if gang is not None:
            self.tasks.start(self._write(gang.gang))

    def note_gone(self, pod: str) -> None:
        """Note that a pod is gone."""
        self._completion.note_gone(pod)

    def take_over(self) -> None:
        """Write the status of groups whose pods are bound by now, however that came; costs the number of pods."""
        members: dict[str, list[Pod]] = {}
        for pod in self._newest.pods():
            is_ours = pod.spec.scheduler_name == self._scheduler_name
            found = membership(pod) if is_ours and pod.spec.scheduling_group is not None else None
            if found is not None:
                members.setdefault(found.group, []).append(pod)
        for key, pods in members.items():
            if self._is_whole(key, pods):
                self.tasks.start(self._write(key))

    def _is_whole(self, key: str, pods: list[Pod]) -> bool:
        """Return whether the minimum of a group of its own is bound."""
        group = self._newest.pod_group(key)
        if group is None or group.spec.parent_composite_pod_group_name:
            return False
        try:
            minimum = minimum_of(completed_spec(group, self._newest.find))
        except InputError:
            return False
        return sum(bool(pod.spec.node_name) for pod in pods) >= minimum

    async def close(self) -> None:
        """Give up all writes."""
        await self.tasks.cancel()

    async def _write(self, key: str) -> None:
        group, resource = self._newest.pod_group(key), self._resource()
        if group is None or resource is None or whole_since(group) is not None:
            return
        condition = {
            "type": INITIALLY_SCHEDULED,
            "status": "True",
            "reason": "Scheduled",
            "message": "",
            "lastTransitionTime": timestamp(self._now() // 1_000_000 * 1_000_000),
        }
        body = msgspec.json.encode({"metadata": {"uid": group.metadata.uid}, "status": {"conditions": [condition]}})
        path = resource.path(group.metadata.namespace or "", group.metadata.name, "status")
        for attempt in range(_ATTEMPTS):
            while not self._may_write():
                await asyncio.sleep(_LOOK_EVERY)
            try:
                await self._client.request("PATCH", path, body, content_type=STRATEGIC_MERGE_PATCH, timeout=10.0)
            except ApiError as error:
                if error.status not in _AGAIN:
                    return
                await asyncio.sleep(error.retry_after or 0.5 * 2**attempt)
                continue
            return
