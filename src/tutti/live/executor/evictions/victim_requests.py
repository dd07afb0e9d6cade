"""Evictions: the requests by which the victims of a plan leave their nodes.

As in kube-scheduler, a victim first gets the condition DisruptionTarget, by which a Job's podFailurePolicy knows it,
and is then deleted with its own grace period. With `respects_budgets` victims are evicted through the eviction API
instead: all victims of one preemptor are first tried in a dry run, and a refusal of one of them stops the rest.

Contract: `submit` never waits. A victim that the server does not let go is put in the inbox as refused, and
`on_refused` gets the server's words; a victim that is gone needs nothing. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable

from tutti.client.access.missing_rights import is_missing_right
from tutti.client.api_client import ApiClient
from tutti.client.backoff import Backoff
from tutti.client.pod_writes import PodWrites
from tutti.engine.session.plan import Eviction
from tutti.exceptions import ApiError
from tutti.live.background_tasks import BackgroundTasks
from tutti.live.executor.evictions.disruption_target import disruption_target
from tutti.live.inbox import Inbox, RefusedEviction
from tutti.live.newest_objects import NewestObjects

_WIDTH = 8
_TRANSIENT = frozenset((0, 408, 409, 429, 500, 502, 503, 504))
"""Statuses after which a request is repeated; 409 is a conflict with another write, or another pod has the name."""
_RETRY_FOR = 10.0


class VictimRequests:
    """See the module's docstring; `now` returns the server's time in microseconds."""

    def __init__(
        self,
        client: ApiClient,
        inbox: Inbox,
        newest: NewestObjects,
        *,
        scheduler_name: str,
        may_write: Callable[[], bool],
        on_evicted: Callable[[Eviction], None],
        on_refused: Callable[[Eviction, ApiError], None],
        now: Callable[[], int],
        monotonic: Callable[[], float],
        draw: random.Random,
        respects_budgets: bool = False,
    ) -> None:
        self._respects_budgets = respects_budgets
        self._inbox, self._newest, self._writes = inbox, newest, PodWrites(client)
        self._scheduler_name, self._may_write = scheduler_name, may_write
        self._on_evicted, self._on_refused = on_evicted, on_refused
        self._now, self._monotonic, self._draw = now, monotonic, draw
        self._preemptions: deque[list[Eviction]] = deque()
        """The victims of each preemptor that are not begun yet."""
        self.tasks = BackgroundTasks()
        self.evicted_count = self.refused_count = 0

    @property
    def waiting(self) -> int:
        """How many evictions are not answered yet."""
        return sum(map(len, self._preemptions)) + len(self.tasks)

    def submit(self, evictions: Iterable[Eviction]) -> None:
        """Evict the victims of a plan."""
        by_preemptor: dict[str, list[Eviction]] = {}
        for eviction in evictions:
            by_preemptor.setdefault(eviction.by, []).append(eviction)
        self._preemptions.extend(by_preemptor.values())
        for _ in range(min(_WIDTH - len(self.tasks), len(self._preemptions))):
            self.tasks.start(self._work())

    async def finish(self) -> None:
        """Stop: preemptions that have begun are finished, others are given up."""
        self._preemptions.clear()
        await self.tasks.finish()

    async def close(self) -> None:
        """Give up all requests."""
        self._preemptions.clear()
        await self.tasks.cancel()

    async def _work(self) -> None:
        while self._preemptions:
            evictions = self._preemptions.popleft()
            if self._respects_budgets and not await self._is_allowed(evictions):
                continue
            for start in range(0, len(evictions), _WIDTH):
                done = await asyncio.gather(*map(self._evict, evictions[start : start + _WIDTH]))
                if self._respects_budgets and not all(done):
                    for eviction in evictions[start + _WIDTH :]:
                        self._refuse(eviction, "another victim of the same preemption was refused")
                    break

    async def _is_allowed(self, evictions: list[Eviction]) -> bool:
        """Ask whether the budgets allow each eviction; refuse all if one is not allowed."""
        for eviction in evictions:
            error = await self._try_dry_run(eviction)
            if error is not None:
                self._on_refused(eviction, error)
                for each in evictions:
                    self._refuse(each, f"{eviction.pod} cannot be evicted: {error}")
                return False
        return True

    async def _try_dry_run(self, eviction: Eviction) -> ApiError | None:
        """Return why an eviction is not allowed; ask a busy server again."""
        backoff, give_up = Backoff(self._draw, first=0.1, longest=2.0), self._monotonic() + _RETRY_FOR
        while True:
            try:
                await self._writes.evict(eviction.pod, eviction.uid or "", dry_run=True, timeout=5.0)
            except ApiError as error:
                if error.status == 404:
                    return None
                if _is_final(error) or self._monotonic() >= give_up:
                    return error
                await asyncio.sleep(backoff.next(error.retry_after))
                continue
            return None

    async def _evict(self, eviction: Eviction) -> bool:
        """Let a victim leave; return whether it does."""
        backoff = Backoff(self._draw, first=0.1, longest=2.0)
        give_up = self._monotonic() + _RETRY_FOR
        has_condition = False
        while True:
            pod = self._newest.pod(eviction.pod)
            if pod is None or pod.metadata.uid != eviction.uid or pod.metadata.deletion_timestamp is not None:
                return True  # the watch has reported that it leaves
            if not self._may_write():
                self._refuse(eviction, "this process does not lead any more")
                return False
            try:
                if not has_condition:
                    await self._mark_disrupted(eviction)
                    has_condition = True
                remove = self._writes.evict if self._respects_budgets else self._writes.delete
                await remove(eviction.pod, eviction.uid or "", timeout=5.0)
            except ApiError as error:
                if error.status == 404:
                    return True
                if _is_final(error) or (error.status and self._monotonic() >= give_up):
                    self._on_refused(eviction, error)
                    self._refuse(eviction, str(error))
                    return False
                await asyncio.sleep(backoff.next(error.retry_after))
                continue
            self.evicted_count += 1
            self._on_evicted(eviction)
            return True

    async def _mark_disrupted(self, eviction: Eviction) -> None:
        condition = disruption_target(eviction, scheduler_name=self._scheduler_name, now=self._now())
        await self._writes.patch_status(eviction.pod, eviction.uid or "", {"conditions": [condition]}, timeout=5.0)

    def _refuse(self, eviction: Eviction, problem: str) -> None:
        self.refused_count += 1
        self._inbox.put((RefusedEviction(eviction.pod, eviction.uid, eviction.by, problem),))


def _is_final(error: ApiError) -> bool:
    """Return whether the same request would be refused again."""
    if "DisruptionBudget" in error.causes:
        return True
    return error.status not in _TRANSIENT and not is_missing_right(error)
