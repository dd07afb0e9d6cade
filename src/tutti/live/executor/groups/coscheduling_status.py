"""The status of the PodGroups of scheduler-plugins: that and how many pods were scheduled, if no controller says it.

scheduler-plugins' controller writes the status of these groups, from Pending to Finished. Where it does not run, groups
would have no status at all. A scheduler can say one thing truthfully: the phase Scheduled with the number of pods, once
the minimum is bound. The controller goes on from that phase if it is started later.

Contract: a status has one writer. A group is left alone if its status has fields of another manager, or a phase that
this scheduler did not write; a new group is left to its controller for some seconds. `expect` and `note_bound` never
wait. Groups are read and written one after the other, while no bindings wait. A write that fails is dropped. The phase
is not taken back when pods leave. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import msgspec

from tutti.client.access.missing_rights import is_missing_right
from tutti.client.api_client import MERGE_PATCH, ApiClient
from tutti.client.resources import Resource
from tutti.engine.session.plan import Bound, Plan
from tutti.exceptions import ApiError
from tutti.kube.gangs.coscheduling import Coscheduling
from tutti.kube.times import micros
from tutti.live.background_tasks import BackgroundTasks
from tutti.live.executor.groups.gang_completion import GangCompletion

_LOG = logging.getLogger("tutti.live")
_ATTEMPTS = 4
_AGAIN = frozenset((0, 408, 409, 429, 500, 502, 503, 504))
_PAUSE = 0.1
"""Seconds between two looks whether bindings wait."""
_MOST_PAUSES = 150


class _ManagedFields(msgspec.Struct, frozen=True):
    manager: str = ""
    subresource: str = ""


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    creation_timestamp: str = ""
    managed_fields: list[_ManagedFields] | None = None


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""
    scheduled: int = 0


class _Group(msgspec.Struct, frozen=True):
    """What of a PodGroup decides who writes its status."""

    metadata: _Metadata = _Metadata()
    status: _Status | None = None

    def is_written_by_others(self, manager: str) -> bool:
        """Return whether somebody else than this manager writes the status."""
        managers = {each.manager for each in self.metadata.managed_fields or () if each.subresource == "status"}
        has_phase = self.status is not None and bool(self.status.phase)
        return bool(managers - {manager}) or (has_phase and manager not in managers)


_GROUP = msgspec.json.Decoder(_Group)


class CoschedulingStatusWriter:
    """See the module's docstring; `resource` returns how the server serves these groups, None if it does not.

    `manager` is the name of this scheduler in managedFields, and `left_for` how many seconds a new group is left to its
    controller.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        manager: str,
        resource: Callable[[], Resource | None],
        may_write: Callable[[], bool],
        is_busy: Callable[[], bool],
        now: Callable[[], int],
        left_for: float = 5.0,
    ) -> None:
        self._client, self._manager, self._resource = client, manager, resource
        self._may_write, self._is_busy, self._now, self._left_for = may_write, is_busy, now, left_for
        self._completion = GangCompletion(Coscheduling.NAME)
        self._wanted: dict[str, int] = {}
        """The number of scheduled pods of groups that are to be written, by key."""
        self.tasks = BackgroundTasks()

    def expect(self, plan: Plan) -> None:
        """Note the gangs that a plan starts or enlarges."""
        self._completion.expect(plan)

    def note_bound(self, bound: Bound) -> None:
        """Note that a pod is bound; write the status of its group if it was the last one."""
        gang = self._completion.note_bound(bound)
        if gang is None:
            return
        self._wanted[gang.gang] = gang.running + gang.placed
        if not self.tasks:
            self.tasks.start(self._write_all())

    def note_gone(self, pod: str) -> None:
        """Note that a pod is gone."""
        self._completion.note_gone(pod)

    async def close(self) -> None:
        """Give up all writes."""
        await self.tasks.cancel()

    async def _write_all(self) -> None:
        while self._wanted and self._may_write():
            key = next(iter(self._wanted))
            count = self._wanted.pop(key)
            error = await self._try_to_write(key, count)
            if error is not None and is_missing_right(error):
                _LOG.warning("the status of PodGroups cannot be written: %s", error)
                self._wanted.clear()

    async def _try_to_write(self, key: str, count: int) -> ApiError | None:
        """Write the status of a group; return why the server does not take it."""
        problem: ApiError | None = None
        for attempt in range(_ATTEMPTS):
            for _ in range(_MOST_PAUSES if self._is_busy() else 0):
                await asyncio.sleep(_PAUSE)
                if not self._is_busy():
                    break
            try:
                await self._write(key, count)
            except ApiError as error:
                problem = error
                if error.status not in _AGAIN and not is_missing_right(error):
                    break
                await asyncio.sleep(error.retry_after or 0.5 * 2**attempt)
            except msgspec.DecodeError:
                return None
            else:
                return None
        return problem

    async def _write(self, key: str, count: int) -> None:
        """Write the status of a group, unless somebody else does."""
        resource = self._resource()
        if resource is None:
            return
        namespace, _, name = key.partition("/")
        path = resource.path(namespace, name)
        group = _GROUP.decode(await self._client.request("GET", path, timeout=10.0))
        due = micros(group.metadata.creation_timestamp) + int(self._left_for * 1_000_000)
        if due > self._now():
            await asyncio.sleep((due - self._now()) / 1_000_000)
            group = _GROUP.decode(await self._client.request("GET", path, timeout=10.0))
        if group.is_written_by_others(self._manager) or not self._may_write():
            return
        status = {"phase": "Scheduled", "scheduled": count}
        if group.status is not None and (group.status.phase, group.status.scheduled) == ("Scheduled", count):
            return
        # The version keeps this write from following one of a controller that has just started.
        precondition = {"uid": group.metadata.uid, "resourceVersion": group.metadata.resource_version}
        body = msgspec.json.encode({"metadata": precondition, "status": status})
        path, query = resource.path(namespace, name, "status"), {"fieldManager": self._manager}
        await self._client.request("PATCH", path, body, query=query, content_type=MERGE_PATCH, timeout=10.0)
