"""The status of waiting pods: the PodScheduled condition and the nominated node.

Contract: `tell`, `nominate` and `clear` never wait; of several changes of one pod that wait to be written, the newest
counts. Only changes are written: the same reason and message are not written again. `settle` drops what waits for a pod
and returns a future if a write of it is under way, so that no write of an old state follows a binding. A write that
the server refuses is dropped, and counted: the next attempt of the pod writes again; a missing right is a refusal only
after some seconds (`missing_rights`). A write that gets no answer is repeated until it does, after those of other pods.
Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tutti.client.access.missing_rights import is_missing_right
from tutti.client.api_client import ApiClient
from tutti.client.pod_writes import PodWrites
from tutti.exceptions import ApiError
from tutti.kube.objects import Condition, Pod
from tutti.kube.times import timestamp
from tutti.live.executor.waiting_reasons import Waiting
from tutti.live.newest_objects import NewestObjects

_WIDTH = 4
_AGAIN = frozenset((0, 408, 409, 429, 500, 502, 503, 504))
_ATTEMPTS = 5


class StatusWriter:
    """See the module's docstring; `now` returns the server's time in microseconds."""

    def __init__(
        self, client: ApiClient, newest: NewestObjects, *, now: Callable[[], int], may_write: Callable[[], bool]
    ) -> None:
        self._writes, self._newest, self._now, self._may_write = PodWrites(client), newest, now, may_write
        self._wanted: dict[str, tuple[str, dict[str, Any]]] = {}
        """The uid and the new status of pods that wait to be written."""
        self._under_way: dict[str, asyncio.Future[None]] = {}
        self._written: dict[str, tuple[str, str]] = {}
        """Reason and message as last written, by uid; the watch may not have reported them yet."""
        self._nominated: dict[str, str | None] = {}
        """The nominated node as last written, by uid."""
        self._workers: set[asyncio.Task[None]] = set()
        self.failed = 0

    @property
    def waiting(self) -> int:
        """How many pods wait to be written."""
        return len(self._wanted) + len(self._under_way)

    @property
    def told_count(self) -> int:
        """How many pods the writer remembers."""
        return len(self._written.keys() | self._nominated.keys())

    def tell(self, waiting: Waiting) -> bool:
        """Say why a pod waits; return whether that is new."""
        pod = self._newest.pod(waiting.pod)
        if pod is None or pod.spec.node_name or pod.spec.scheduling_gates or not pod.metadata.uid:
            return False
        known = _scheduled_condition(pod)
        last = self._written.get(pod.metadata.uid)
        if last is None and known is not None and known.status == "False":
            last = known.reason or "", known.message or ""
        if last == (waiting.reason, waiting.message):
            return False
        self._written[pod.metadata.uid] = waiting.reason, waiting.message
        condition = {
            "type": "PodScheduled",
            "status": "False",
            "reason": waiting.reason,
            "message": waiting.message,
        }
        if known is None or known.status != "False":
            condition["lastTransitionTime"] = timestamp(self._now() // 1_000_000 * 1_000_000)
        self._want(pod, {"conditions": [condition]})
        return True

    def nominate(self, pod_key: str, node: str | None) -> None:
        """Set or clear the node that a pod is nominated to."""
        pod = self._newest.pod(pod_key)
        if pod is None or pod.spec.node_name or not pod.metadata.uid:
            return
        if node != self._nominated.get(pod.metadata.uid, pod.status.nominated_node_name):
            self._nominated[pod.metadata.uid] = node
            self._want(pod, {"nominatedNodeName": node})

    def forget(self, uid: str) -> None:
        """Forget a pod that is gone or bound."""
        self._written.pop(uid, None)
        self._nominated.pop(uid, None)

    def settle(self, pod_key: str) -> asyncio.Future[None] | None:
        """Drop what waits for a pod; return a future that ends with the write that is under way, if there is one."""
        self._wanted.pop(pod_key, None)
        return self._under_way.get(pod_key)

    async def close(self) -> None:
        """Give up all requests."""
        self._wanted.clear()
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    def _want(self, pod: Pod, status: dict[str, Any]) -> None:
        uid = pod.metadata.uid or ""
        before = self._wanted.get(pod.key)
        if before is not None and before[0] == uid:
            status = before[1] | status
        self._wanted[pod.key] = uid, status
        if len(self._workers) < _WIDTH:
            worker = asyncio.create_task(self._work())
            self._workers.add(worker)
            worker.add_done_callback(self._workers.discard)

    async def _work(self) -> None:
        while pod := next((pod for pod in self._wanted if pod not in self._under_way), None):
            uid, status = self._wanted.pop(pod)
            ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._under_way[pod] = ended
            try:
                await self._write(pod, uid, status)
            finally:
                del self._under_way[pod]
                ended.set_result(None)

    async def _write(self, pod: str, uid: str, status: dict[str, Any]) -> None:
        for attempt in range(_ATTEMPTS):
            newest = self._newest.pod(pod)
            if newest is None or newest.metadata.uid != uid or newest.spec.node_name or not self._may_write():
                self.forget(uid)
                return
            try:
                await self._writes.patch_status(pod, uid, status, timeout=10.0)
            except ApiError as error:
                is_last = attempt == _ATTEMPTS - 1
                if error.status not in _AGAIN and (is_last or not is_missing_right(error)):
                    break
                await asyncio.sleep(error.retry_after or 0.2 * 2**attempt)
                continue
            return
        else:
            newer = self._wanted.get(pod, (uid, {}))
            if newer[0] == uid:
                self._wanted[pod] = uid, status | newer[1]
            return
        self.failed += 1
        self.forget(uid)


def _scheduled_condition(pod: Pod) -> Condition | None:
    return next((each for each in pod.status.conditions or () if each.type == "PodScheduled"), None)
