"""The status of waiting pods: the PodScheduled condition and the nominated node.

Contract: `tell` and `nominate` never wait; of several changes of one pod that wait to be written, the newest
counts. Only changes are written: the same reason and message are not written again. `settle` drops what waits for a pod
and returns a future if a write of it is under way, so that no write of an old state follows a binding; that future ends
within `_TIMEOUT`, because such a write is not repeated. A write that the server refuses is dropped, and counted: the
next attempt of the pod writes again; a missing right is a refusal only after some seconds (`missing_rights`). A write
that gets no answer is repeated until it does, after those of other pods. While this process may not write, writes wait.
Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, NamedTuple

from tutti.client.access.missing_rights import is_missing_right
from tutti.client.api_client import ApiClient
from tutti.client.pod_writes import PodWrites
from tutti.exceptions import ApiError
from tutti.kube.objects import Condition, Pod
from tutti.kube.times import timestamp
from tutti.live.background_tasks import BackgroundTasks
from tutti.live.executor.waiting_reasons import Waiting
from tutti.live.newest_objects import NewestObjects

_WIDTH = 4
_AGAIN = frozenset((0, 408, 409, 429, 500, 502, 503, 504))
_ATTEMPTS = 5
_TIMEOUT = 2.0
"""Seconds that a write may take: a binding may wait for it."""
_LOOK_EVERY = 0.2
"""Seconds between two looks whether this process may write."""


class _Change(NamedTuple):
    """New values of the status of a pod: `told` is a reason and a message, `node` the nominated node."""

    uid: str
    values: dict[str, Any]


class _Write:
    """A write that is under way."""

    def __init__(self) -> None:
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.is_last = asyncio.Event()
        """Whether the write must not be repeated."""

    async def pause(self, seconds: float) -> None:
        """Wait before the write is repeated, as long as it may be."""
        try:
            await asyncio.wait_for(self.is_last.wait(), seconds)
        except TimeoutError:
            return


class StatusWriter:
    """See the module's docstring; `now` returns the server's time in microseconds."""

    def __init__(
        self, client: ApiClient, newest: NewestObjects, *, now: Callable[[], int], may_write: Callable[[], bool]
    ) -> None:
        self._writes, self._newest, self._now, self._may_write = PodWrites(client), newest, now, may_write
        self._wanted: dict[str, _Change] = {}
        """What waits to be written, by pod."""
        self._under_way: dict[str, _Write] = {}
        self._written: dict[str, dict[str, Any]] = {}
        """The values that were last written, by uid; the watch may not have reported them yet."""
        self.tasks = BackgroundTasks()
        self.failed = 0

    @property
    def waiting(self) -> int:
        """How many pods wait to be written."""
        return len(self._wanted) + len(self._under_way)

    @property
    def told_count(self) -> int:
        """How many pods the writer remembers."""
        return len(self._written)

    def tell(self, waiting: Waiting) -> bool:
        """Say why a pod waits; return whether that is new."""
        pod = self._newest.pod(waiting.pod)
        if pod is None or pod.spec.node_name or pod.spec.scheduling_gates or not pod.metadata.uid:
            return False
        told = self._latest(pod).get("told")
        if told is None:
            known = _scheduled_condition(pod)
            told = (known.reason or "", known.message or "") if known is not None and known.status == "False" else None
        if told is not None and told[0] == waiting.reason and (waiting.is_repeated or told[1] == waiting.message):
            return False
        self._want(pod, {"told": (waiting.reason, waiting.message)})
        return True

    def nominate(self, pod_key: str, node: str | None) -> None:
        """Set or clear the node that a pod is nominated to."""
        pod = self._newest.pod(pod_key)
        if pod is None or pod.spec.node_name or not pod.metadata.uid:
            return
        if node != self._latest(pod).get("node", pod.status.nominated_node_name):
            self._want(pod, {"node": node})

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone or bound."""
        self._written.pop(uid, None)

    def settle(self, pod_key: str) -> asyncio.Future[None] | None:
        """Drop what waits for a pod; return a future that ends with the write that is under way, if there is one."""
        self._wanted.pop(pod_key, None)
        write = self._under_way.get(pod_key)
        if write is None:
            return None
        write.is_last.set()
        return write.ended

    async def finish(self) -> None:
        """Stop: wait for the answers to what is under way, and give up the rest."""
        for pod in [*self._wanted, *self._under_way]:
            self.settle(pod)
        await self.tasks.finish()

    async def close(self) -> None:
        """Give up all requests."""
        self._wanted.clear()
        await self.tasks.cancel()

    def _latest(self, pod: Pod) -> dict[str, Any]:
        """Return the values that a pod has or will have by what is written and waits to be written."""
        uid = pod.metadata.uid or ""
        written, wanted = self._written.get(uid, {}), self._wanted.get(pod.key)
        return written | wanted.values if wanted is not None and wanted.uid == uid else written

    def _want(self, pod: Pod, values: dict[str, Any]) -> None:
        uid = pod.metadata.uid or ""
        before = self._wanted.get(pod.key)
        if before is not None and before.uid == uid:
            values = before.values | values
        self._wanted[pod.key] = _Change(uid, values)
        if len(self.tasks) < _WIDTH:
            self.tasks.start(self._work())

    async def _work(self) -> None:
        while pod := next((pod for pod in self._wanted if pod not in self._under_way), None):
            change, write = self._wanted.pop(pod), _Write()
            self._under_way[pod] = write
            try:
                await self._write(pod, change, write)
            finally:
                del self._under_way[pod]
                write.ended.set_result(None)

    async def _write(self, key: str, change: _Change, write: _Write) -> None:
        """Write a change until the server takes or refuses it, or it must not be repeated."""
        uid = change.uid
        self._written[uid] = self._written.get(uid, {}) | change.values
        for attempt in range(_ATTEMPTS):
            while not self._may_write() and not write.is_last.is_set():
                await write.pause(_LOOK_EVERY)
            pod = self._newest.pod(key)
            if pod is None or pod.metadata.uid != uid or pod.spec.node_name or write.is_last.is_set():
                self.forget(uid)
                return
            try:
                await self._writes.patch_status(key, uid, self._status(pod, change.values), timeout=_TIMEOUT)
            except ApiError as error:
                is_last = attempt == _ATTEMPTS - 1
                if error.status not in _AGAIN and (is_last or not is_missing_right(error)):
                    break
                await write.pause(error.retry_after or 0.2 * 2**attempt)
                continue
            return
        else:
            self.forget(uid)
            newer = self._wanted.get(key, _Change(uid, {}))
            if newer.uid == uid and not write.is_last.is_set():
                self._wanted[key] = _Change(uid, change.values | newer.values)
            return
        self.failed += 1
        self.forget(uid)

    def _status(self, pod: Pod, values: dict[str, Any]) -> dict[str, Any]:
        """Return the change of a pod's status as the API wants it."""
        status: dict[str, Any] = {}
        if "node" in values:
            status["nominatedNodeName"] = values["node"]
        if "told" in values:
            reason, message = values["told"]
            condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
            known = _scheduled_condition(pod)
            if known is None or known.status != "False":
                condition["lastTransitionTime"] = timestamp(self._now() // 1_000_000 * 1_000_000)
            status["conditions"] = [condition]
        return status


def _scheduled_condition(pod: Pod) -> Condition | None:
    return next((each for each in pod.status.conditions or () if each.type == "PodScheduled"), None)
