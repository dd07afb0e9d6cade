"""The disruption rules of a Karpenter NodePool.

Contract: pure. A NodePool without budgets has Karpenter's default, a tenth of its nodes; an empty list means no budget.
Values that Karpenter would refuse raise `InputError` with the field. Budgets for other reasons than Empty and
Underutilized (``Drifted``) are left out: Tutti removes no node for these reasons.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tutti.exceptions import InputError
from tutti.kube.cron import parse_cron
from tutti.kube.durations import parse_duration
from tutti.kube.objects import DisruptionBudget, KarpenterPool
from tutti.market.offerings import EMPTY, UNDERUTILIZED, DownRules, NodeBudget

_DEFAULT_BUDGET = "10%"
"""Karpenter's default for a pool without budgets and a budget without nodes."""
_NODES = re.compile(r"(?:100|[0-9]{1,2})%|[0-9]{1,9}")
_REASONS = ("Underutilized", "Empty", "Drifted")
_POLICIES = ("WhenEmpty", "WhenEmptyOrUnderutilized", "WhenUnderutilized")
"""The policies of v1, and the one of v1beta1 that has another name in v1."""
_SECOND = 1_000_000


def down_rules(pool: KarpenterPool) -> DownRules:
    """Return when nodes of the pool may be removed, and how many at a time."""
    disruption = pool.spec.disruption
    if disruption is None:
        return DownRules(budgets=_budgets(None, pool))
    policy = disruption.consolidation_policy
    if policy is not None and policy not in _POLICIES:
        raise _fault(f'there is no policy "{policy}" (want {", ".join(_POLICIES)})', pool, "consolidationPolicy")
    if disruption.consolidate_after == "Never":
        return DownRules(disabled=True)
    try:
        unneeded = parse_duration(disruption.consolidate_after) // _SECOND if disruption.consolidate_after else 0
    except InputError as error:
        raise _fault(error.problem, pool, "consolidateAfter") from None
    return DownRules(
        unneeded=unneeded,
        empty_only=policy == "WhenEmpty",
        budgets=_budgets(disruption.budgets, pool),
    )


def _budgets(budgets: Sequence[DisruptionBudget] | None, pool: KarpenterPool) -> tuple[NodeBudget, ...]:
    if budgets is None:
        return (NodeBudget(nodes=_DEFAULT_BUDGET),)
    read = [_budget(each, pool, f"budgets[{place}]") for place, each in enumerate(budgets)]
    return tuple(each for each in read if each.reasons)


def _budget(budget: DisruptionBudget, pool: KarpenterPool, where: str) -> NodeBudget:
    nodes = str(budget.nodes) if budget.nodes is not None else _DEFAULT_BUDGET
    if _NODES.fullmatch(nodes) is None:
        raise _fault(f'"{nodes}" is neither a number of nodes nor a percentage of them', pool, f"{where}.nodes")
    reasons = budget.reasons if budget.reasons is not None else _REASONS
    for reason in reasons:
        if reason not in _REASONS:
            raise _fault(f'there is no reason "{reason}" (want {", ".join(_REASONS)})', pool, f"{where}.reasons")
    if (budget.schedule is None) != (budget.duration is None):
        missing = "duration" if budget.duration is None else "schedule"
        raise _fault("schedule and duration go together", pool, f"{where}.{missing}")
    return NodeBudget(
        nodes=nodes,
        reasons=tuple(reason for reason in (EMPTY, UNDERUTILIZED) if reason in reasons),
        schedule=_schedule(budget, pool, where),
        duration=_duration(budget, pool, where),
    )


def _schedule(budget: DisruptionBudget, pool: KarpenterPool, where: str) -> str:
    if budget.schedule is None:
        return ""
    try:
        parse_cron(budget.schedule)
    except InputError as error:
        raise _fault(error.problem, pool, f"{where}.schedule") from None
    return budget.schedule


def _duration(budget: DisruptionBudget, pool: KarpenterPool, where: str) -> int:
    if budget.duration is None:
        return 0
    try:
        return parse_duration(budget.duration) // _SECOND
    except InputError as error:
        raise _fault(error.problem, pool, f"{where}.duration") from None


def _fault(problem: str, pool: KarpenterPool, field: str) -> InputError:
    return InputError(problem, obj=f"nodepool {pool.metadata.name}", field=f"spec.disruption.{field}")
