"""The executor of a dry run: logs what a plan would do, and writes nothing.

The cluster in memory assumes what a plan does, so that the next plan goes on from there. What really happens, because
another scheduler places the pods, replaces the assumptions as the watches report it. What has not happened after a
while is taken back, so that the cluster in memory stays near the truth, and is planned again.

Contract: `carry_out` never waits, and calls `on_bound` for each pod that would be bound; `run` ends only by
cancellation. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable

from tutti.engine.session.plan import Bound, Plan
from tutti.live.executor.waiting_reasons import waiting_pods
from tutti.live.inbox import Entry, Inbox, RefusedEviction, TakenBackBinding

_LOG = logging.getLogger("tutti.live")
_ASSUMED_FOR = 30.0
"""Seconds after which what has not happened is taken back."""


class ShadowExecutor:
    """See the module's docstring; `monotonic` returns seconds."""

    def __init__(self, inbox: Inbox, *, on_bound: Callable[[Bound], object], monotonic: Callable[[], float]) -> None:
        self._inbox, self._on_bound, self._monotonic = inbox, on_bound, monotonic
        self._assumed: deque[tuple[float, list[Entry]]] = deque()

    def carry_out(self, plan: Plan) -> None:
        """Log what a plan would do."""
        for eviction in plan.evictions:
            _LOG.info("would evict %s from %s for %s", eviction.pod, eviction.node, eviction.by)
        for bound in plan.binds:
            _LOG.info("would bind %s to %s", bound.pod, bound.node)
            self._on_bound(bound)
        for waiting in waiting_pods(plan):
            _LOG.info("%s waits (%s): %s", waiting.pod, waiting.reason, waiting.message)
        entries: list[Entry] = [TakenBackBinding(bound.pod, bound.uid) for bound in plan.binds]
        entries += [
            RefusedEviction(each.pod, each.uid, each.by, "dry run", spares_victim=False) for each in plan.evictions
        ]
        if entries:
            self._assumed.append((self._monotonic() + _ASSUMED_FOR, entries))

    async def run(self) -> None:
        """Take back what has not happened."""
        while True:
            await asyncio.sleep(1.0)
            while self._assumed and self._assumed[0][0] <= self._monotonic():
                self._inbox.put(self._assumed.popleft()[1])
