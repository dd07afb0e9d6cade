"""Why a pod waits, as the reason of its PodScheduled condition.

Autoscalers buy nodes for pods with the reason Unschedulable, so only pods have it that another node could help.

Contract: pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tutti.engine.session.plan import Nominated, Plan, WaitsFor

REFUSED = "SchedulerError"
"""The reason of a pod that the server does not let us bind, or whose victims it does not let us evict."""
BUDGET = "WaitingForBudget"
"""The reason of a pod whose victims a disruption budget protects."""
_REASONS: dict[WaitsFor, str] = {
    "room": "Unschedulable",
    "members": "WaitingForGang",
    "victims": "WaitingForPreemption",
    "budgets": BUDGET,
    "correction": "SchedulerError",
}


class Waiting(NamedTuple):
    """What a pod that waits is told."""

    pod: str
    reason: str
    message: str


def waiting_pods(plan: Plan) -> Iterator[Waiting]:
    """Yield the pods that a plan leaves waiting, with the reason."""
    for pod in plan.unschedulable:
        yield Waiting(pod.pod, _REASONS[pod.waits_for], pod.message)
    if plan.nominated:
        victims: dict[str, list[str]] = {}
        for eviction in plan.evictions:
            victims.setdefault(eviction.by, []).append(eviction.pod)
        for nominated in plan.nominated:
            yield Waiting(nominated.pod, _REASONS["victims"], _wait_for_victims(nominated, victims))


def _wait_for_victims(nominated: Nominated, victims: dict[str, list[str]]) -> str:
    names = victims.get(nominated.gang or nominated.pod, [])
    shown = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"room is held on node {nominated.node} until {shown or 'terminating pods'} have left"
