"""The last plans in short: what was decided, for whom, and how long it took.

Contract: belongs to the event loop. Sessions that decided nothing are not kept. A plan is kept as counts by namespace
and a bounded number of evictions, so that the history stays small however large plans are.
"""

from __future__ import annotations

from collections import Counter, deque
from typing import NamedTuple

from tutti.engine.session.plan import Eviction, Plan
from tutti.kube.times import timestamp
from tutti.live.introspection.state_query import StateQuery
from tutti.wire.scheduler_state import EvictionSummary, PlanSummary

_PLANS = 50
_EVICTIONS = 100
"""How many evictions are kept of a plan."""


class _Decided(NamedTuple):
    time: int
    seconds: float
    binds: Counter[str]
    nominated: Counter[str]
    started: Counter[str]
    evicted: Counter[str]
    waiting: Counter[tuple[str, str]]
    """By namespace and what pods wait for."""
    evictions: tuple[Eviction, ...]


class PlanHistory:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._plans: deque[_Decided] = deque(maxlen=_PLANS)

    def note(self, plan: Plan, *, now: int, seconds: float) -> None:
        """Keep a plan that decided something."""
        if not (plan.binds or plan.evictions or plan.nominated or plan.unschedulable):
            return
        self._plans.appendleft(
            _Decided(
                now,
                seconds,
                Counter(_namespace(each.pod) for each in plan.binds),
                Counter(_namespace(each.pod) for each in plan.nominated),
                Counter(_namespace(each.gang) for each in plan.gangs if each.placed and each.starts),
                Counter(_namespace(each.pod) for each in plan.evictions),
                Counter((_namespace(each.pod), each.waits_for) for each in plan.unschedulable),
                plan.evictions[:_EVICTIONS],
            )
        )

    def shown(self, query: StateQuery) -> tuple[PlanSummary, ...]:
        """Return the plans that concern the namespace of a query, the newest first."""
        found = (_summary(decided, query) for decided in self._plans)
        return tuple(plan for plan in found if plan.binds or plan.evicted or plan.nominated or plan.waiting)


def _summary(decided: _Decided, query: StateQuery) -> PlanSummary:
    waiting: Counter[str] = Counter()
    for (namespace, waits_for), count in decided.waiting.items():
        if query.namespace in ("", namespace):
            waiting[waits_for] += count
    evictions = tuple(
        EvictionSummary(
            pod=query.shown_key(each.pod), node=each.node, by=query.shown_key(each.by) if each.by else "",
            reason=each.reason if query.has(each.pod) else "",
        )
        for each in decided.evictions
        if query.has(each.pod) or (each.by and query.has(each.by))
    )  # fmt: skip
    return PlanSummary(
        time=timestamp(decided.time),
        milliseconds=round(decided.seconds * 1_000, 1),
        binds=_count(decided.binds, query),
        nominated=_count(decided.nominated, query),
        evicted=max(_count(decided.evicted, query), len(evictions)),
        evictions=evictions,
        waiting=dict(waiting),
        gangs_started=_count(decided.started, query),
    )


def _count(by_namespace: Counter[str], query: StateQuery) -> int:
    return by_namespace[query.namespace] if query.namespace else by_namespace.total()


def _namespace(key: str) -> str:
    return key.partition("/")[0]
