"""Evictions: the requests by which the victims of a plan leave their nodes.

As in kube-scheduler, a victim first gets the condition DisruptionTarget, by which a Job's podFailurePolicy knows it,
and is then deleted with its own grace period; if the server does not let it go, the condition is taken back. With
`respects_budgets` victims are evicted through the eviction API instead: all victims of one preemptor are first tried in
a dry run, then evicted one by one, and the first refusal stops the rest. The eviction API writes the condition itself,
without a word about the preemptor, so that ours follows.

Contract: `submit` never waits. Nobody is evicted for a preemptor that does not wait any more. A victim that the server
does not let go is put in the inbox as refused, and `on_refused` gets the server's words; a victim that is gone needs
nothing. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from tutti.client.access.missing_rights import is_missing_right
from tutti.client.api_client import ApiClient
from tutti.client.backoff import Backoff
from tutti.client.pod_writes import PodWrites
from tutti.engine.session.plan import Eviction
from tutti.exceptions import ApiError
from tutti.live.background_tasks import BackgroundTasks
from tutti.live.executor.evictions.disruption_target import disruption_target, not_disrupted
from tutti.live.executor.evictions.preemptors import Preemptor
from tutti.live.inbox import Inbox, RefusedEviction
from tutti.live.leadership import WritePermission
from tutti.live.newest_objects import NewestObjects

_WIDTH = 8
_TRANSIENT = frozenset((0, 408, 409, 429, 500, 502, 503, 504))
"""Statuses after which a request is repeated; 409 is a conflict with another write, or another pod has the name."""
_RETRY_FOR = 10.0
_NO_PREEMPTORS: Mapping[str, Preemptor] = {}


class _Victim(NamedTuple):
    eviction: Eviction
    preemptor: Preemptor | None
    """None if the pod does not make room for others."""


class VictimRequests:
    """See the module's docstring; `now` returns the server's time in microseconds."""

    def __init__(
        self,
        client: ApiClient,
        inbox: Inbox,
        newest: NewestObjects,
        *,
        scheduler_name: str,
        permission: WritePermission,
        on_evicted: Callable[[Eviction], None],
        on_refused: Callable[[Eviction, ApiError], None],
        now: Callable[[], int],
        monotonic: Callable[[], float],
        draw: random.Random,
        respects_budgets: bool = False,
    ) -> None:
        self._respects_budgets = respects_budgets
        self._inbox, self._newest, self._writes = inbox, newest, PodWrites(client)
        self._scheduler_name, self._permission = scheduler_name, permission
        self._on_evicted, self._on_refused = on_evicted, on_refused
        self._now, self._monotonic, self._draw = now, monotonic, draw
        self._preemptions: deque[list[_Victim]] = deque()
        """The victims of each preemptor that are not begun yet."""
        self.tasks = BackgroundTasks()
        self.evicted_count = self.refused_count = 0

    @property
    def waiting(self) -> int:
        """How many evictions are not answered yet."""
        return sum(map(len, self._preemptions)) + len(self.tasks)

    def submit(self, evictions: Iterable[Eviction], preemptors: Mapping[str, Preemptor] = _NO_PREEMPTORS) -> None:
        """Evict the victims of a plan for its preemptors, by key."""
        by_preemptor: dict[str, list[_Victim]] = {}
        for eviction in evictions:
            preemptor = None if eviction.reason else preemptors.get(eviction.by)
            by_preemptor.setdefault(eviction.by, []).append(_Victim(eviction, preemptor))
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
            victims = self._preemptions.popleft()
            if self._respects_budgets:
                await self._evict_one_by_one(victims)
                continue
            for start in range(0, len(victims), _WIDTH):
                await asyncio.gather(*map(self._evict, victims[start : start + _WIDTH]))

    async def _evict_one_by_one(self, victims: list[_Victim]) -> None:
        """Evict victims through the eviction API, if it allows the eviction of each, until one is refused."""
        if not await self._is_allowed(victims):
            return
        for number, victim in enumerate(victims, start=1):
            if not await self._evict(victim):
                for other in victims[number:]:
                    self._refuse(other, "another victim of the same preemption was refused")
                return

    async def _is_allowed(self, victims: list[_Victim]) -> bool:
        """Ask whether the budgets allow each eviction; refuse all if one is not allowed."""
        for victim in victims:
            error = await self._try_dry_run(victim.eviction)
            if error is not None:
                self._on_refused(victim.eviction, error)
                for each in victims:
                    problem = f"{victim.eviction.pod} cannot be evicted: {error}"
                    self._refuse(each, problem, spares_victim=each is victim)
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

    async def _evict(self, victim: _Victim) -> bool:
        """Let a victim leave; return whether it does."""
        eviction, is_marked, is_asked = victim.eviction, False, False
        backoff, give_up = Backoff(self._draw, first=0.1, longest=2.0), self._monotonic() + _RETRY_FOR
        while True:
            pod = self._newest.pod(eviction.pod)
            if pod is None or pod.metadata.uid != eviction.uid:
                return True
            if pod.metadata.deletion_timestamp is not None:  # the watch has reported that it leaves
                break
            problem = self._problem(victim)
            if problem is not None:
                await self._spare(victim, problem, is_marked=is_marked)
                return False
            try:
                if self._respects_budgets:
                    is_asked = True
                    await self._writes.evict(eviction.pod, eviction.uid or "", timeout=self._permission.write_timeout)
                else:
                    if not is_marked:
                        await self._patch_condition(eviction, self._disruption_target(victim))
                        is_marked = True
                    await self._writes.delete(eviction.pod, eviction.uid or "", timeout=self._permission.write_timeout)
            except ApiError as error:
                if error.status == 404:
                    return True
                if _is_final(error) or (error.status and self._monotonic() >= give_up):
                    self._on_refused(eviction, error)
                    await self._spare(victim, str(error), is_marked=is_marked, spares_victim=True)
                    return False
                await asyncio.sleep(backoff.next(error.retry_after))
                continue
            self.evicted_count += 1
            self._on_evicted(eviction)
            break
        if is_asked:
            await self._write_condition(eviction, self._disruption_target(victim))
        return True

    def _problem(self, victim: _Victim) -> str | None:
        """Return why a victim must not be evicted by now."""
        if not self._permission.may_write:
            return "this process does not lead any more"
        if victim.preemptor is not None and not victim.preemptor.still_waits(self._newest):
            return "the pods that need the room do not wait any more"
        return None

    async def _spare(self, victim: _Victim, problem: str, *, is_marked: bool, spares_victim: bool = False) -> None:
        """Let a victim live."""
        self._refuse(victim, problem, spares_victim=spares_victim)
        if is_marked:
            condition = not_disrupted(scheduler_name=self._scheduler_name, now=self._now())
            await self._write_condition(victim.eviction, condition)

    def _disruption_target(self, victim: _Victim) -> dict[str, str]:
        uid = victim.preemptor.uid if victim.preemptor is not None else ""
        return disruption_target(victim.eviction, uid, scheduler_name=self._scheduler_name, now=self._now())

    async def _write_condition(self, eviction: Eviction, condition: dict[str, str]) -> None:
        """Write a condition on which nothing depends, unless the pod has gone."""
        backoff, give_up = Backoff(self._draw, first=0.1, longest=2.0), self._monotonic() + _RETRY_FOR
        while self._permission.may_write:
            try:
                await self._patch_condition(eviction, condition)
            except ApiError as error:
                if error.status in _TRANSIENT and self._monotonic() < give_up:
                    await asyncio.sleep(backoff.next(error.retry_after))
                    continue
            return

    async def _patch_condition(self, eviction: Eviction, condition: dict[str, str]) -> None:
        status, timeout = {"conditions": [condition]}, self._permission.write_timeout
        await self._writes.patch_status(eviction.pod, eviction.uid or "", status, timeout=timeout)

    def _refuse(self, victim: _Victim, problem: str, *, spares_victim: bool = False) -> None:
        eviction = victim.eviction
        self.refused_count += 1
        self._inbox.put((RefusedEviction(eviction.pod, eviction.uid, eviction.by, problem, spares_victim),))


def _is_final(error: ApiError) -> bool:
    """Return whether the same request would be refused again."""
    if "DisruptionBudget" in error.causes:
        return True
    return error.status not in _TRANSIENT and not is_missing_right(error)
