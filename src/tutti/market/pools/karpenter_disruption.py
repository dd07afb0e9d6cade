"""What a Karpenter NodePool says of the end of its nodes.

Contract: pure. A NodePool that says nothing of budgets has Karpenter's own, a tenth of its nodes; an empty list is no
budget at all. What Karpenter would not take is refused with the field. Budgets for other reasons than emptiness and
too little use (``Drifted``) are left out: nothing here goes for these.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tutti.exceptions import InputError
from tutti.kube.cron import parse_cron
from tutti.kube.durations import parse_duration
from tutti.kube.objects import DisruptionBudget, KarpenterPool
from tutti.market.offerings import EMPTY, UNDERUTILIZED, DownRules, NodeBudget

_TENTH = "10%"
"""What Karpenter takes where a budget, or a pool, does not say it."""
_NODES = re.compile(r"(?:100|[0-9]{1,2})%|[0-9]{1,9}")
_REASONS = ("Underutilized", "Empty", "Drifted")
_POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized", "WhenUnderutilized")
"""Those of v1, and the one of v1beta1 that v1 has another word for."""
_SECOND = 1_000_000


def down_rules(pool: KarpenterPool) -> DownRules:
    """When the pool's nodes go, and how many at a time."""
    said = pool.spec.disruption
    if said is None:
        return DownRules(budgets=_budgets(None, pool))
    policy = said.consolidation_policy
    if policy is not None and policy not in _POLICIES:
        raise _fault(f'there is no policy "{policy}" (want {", ".join(_POLICIES)})', pool, "consolidationPolicy")
    if said.consolidate_after == "Never":
        return DownRules(disabled=True)
    try:
        unneeded = parse_duration(said.consolidate_after) // _SECOND if said.consolidate_after else 0
    except InputError as error:
        raise _fault(error.problem, pool, "consolidateAfter") from None
    return DownRules(
        unneeded=unneeded,
        empty_only=policy == "WhenEmpty",
        budgets=_budgets(said.budgets, pool),
    )


def _budgets(said: Sequence[DisruptionBudget] | None, pool: KarpenterPool) -> tuple[NodeBudget, ...]:
    if said is None:
        return (NodeBudget(nodes=_TENTH),)
    read = [_budget(each, pool, f"budgets[{place}]") for place, each in enumerate(said)]
    return tuple(each for each in read if each.reasons)


def _budget(said: DisruptionBudget, pool: KarpenterPool, where: str) -> NodeBudget:
    nodes = str(said.nodes) if said.nodes is not None else _TENTH
    if _NODES.fullmatch(nodes) is None:
        raise _fault(f'"{nodes}" is neither a number of nodes nor a percentage of them', pool, f"{where}.nodes")
    reasons = said.reasons if said.reasons is not None else _REASONS
    for reason in reasons:
        if reason not in _REASONS:
            raise _fault(f'there is no reason "{reason}" (want {", ".join(_REASONS)})', pool, f"{where}.reasons")
    if (said.schedule is None) != (said.duration is None):
        missing = "duration" if said.duration is None else "schedule"
        raise _fault("schedule and duration go together", pool, f"{where}.{missing}")
    return NodeBudget(
        nodes=nodes,
        reasons=tuple(reason for reason in (EMPTY, UNDERUTILIZED) if reason in reasons),
        schedule=_schedule(said, pool, where),
        duration=_duration(said, pool, where),
    )


def _schedule(said: DisruptionBudget, pool: KarpenterPool, where: str) -> str:
    if said.schedule is None:
        return ""
    try:
        parse_cron(said.schedule)
    except InputError as error:
        raise _fault(error.problem, pool, f"{where}.schedule") from None
    return said.schedule


def _duration(said: DisruptionBudget, pool: KarpenterPool, where: str) -> int:
    if said.duration is None:
        return 0
    try:
        return parse_duration(said.duration) // _SECOND
    except InputError as error:
        raise _fault(error.problem, pool, f"{where}.duration") from None


def _fault(problem: str, pool: KarpenterPool, field: str) -> InputError:
    return InputError(problem, obj=f"nodepool {pool.metadata.name}", field=f"spec.disruption.{field}")
