"""Why a pod waits, as the reason of its PodScheduled condition.

Autoscalers buy nodes for pods with the reason Unschedulable, so only pods have it that another node could help.

Contract: pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tutti.engine.reasons.visible_names import visible_pods
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
    is_repeated: bool = False
    """Whether an earlier message with this reason says more: a pod whose victims are leaving was tried again."""


def waiting_pods(plan: Plan) -> Iterator[Waiting]:
    """Yield the pods that a plan leaves waiting, with the reason."""
    for pod in plan.unschedulable:
        yield Waiting(pod.pod, _REASONS[pod.waits_for], pod.message, is_repeated=pod.waits_for == "victims")
    if plan.nominated:
        victims: dict[str, list[str]] = {}
        for eviction in plan.evictions:
            victims.setdefault(eviction.by, []).append(eviction.pod)
        for nominated in plan.nominated:
            yield Waiting(nominated.pod, _REASONS["victims"], _wait_for_victims(nominated, victims))


def _wait_for_victims(nominated: Nominated, victims: dict[str, list[str]]) -> str:
    leaving = victims.get(nominated.gang or nominated.pod, ())
    shown = visible_pods(leaving, reader=nominated.pod) or "terminating pods"
    return f"room is held on node {nominated.node} until {shown} {'has' if len(leaving) == 1 else 'have'} left"
