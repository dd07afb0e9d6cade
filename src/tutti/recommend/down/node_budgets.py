"""Karpenter's disruption budgets at one moment: how many nodes of a pool a plan may remove.

Contract: pure. A plan is carried out at one moment, so a budget limits the whole plan. Of the budgets in force for a
reason the tightest counts. A percentage refers to all initialised nodes of the pool, rounded up. Nodes that are not
ready or already being disrupted are subtracted first. A schedule needs a clock: without one, every budget counts as in
force, which keeps more nodes. A budget whose schedule never matches is always in force, as in Karpenter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.kube.cron import parse_cron
from tutti.kube.objects import Node
from tutti.market.offerings import EMPTY, UNDERUTILIZED, NodeBudget, NodePool

_REGISTERED, _INITIALIZED = "karpenter.sh/registered", "karpenter.sh/initialized"
_DISRUPTED = ("karpenter.sh/disrupted", "karpenter.sh/disruption")
"""The taint of a node that Karpenter disrupts: today's, and that of v1beta1."""
_SECOND = 1_000_000


class AllowedDisruptions(msgspec.Struct, frozen=True, gc=False):
    """The number of nodes that may be removed for a reason, and why no more."""

    number: int
    message: str


def allowed_disruptions(
    pools: Iterable[NodePool], cluster: Cluster, *, now: int | None
) -> dict[tuple[str, str], AllowedDisruptions]:
    """Return what the budgets in force allow, by pool and reason; a missing entry means no limit."""
    result: dict[tuple[str, str], AllowedDisruptions] = {}
    for pool in pools:
        budgets = [each for each in pool.down_rules.budgets if _is_in_force(each, now)]
        if not budgets:
            continue
        nodes = [node for node in _nodes(pool, cluster) if _is_initialized(node)]
        disrupted = sum(map(_is_disrupted, nodes))
        for reason in (EMPTY, UNDERUTILIZED):
            budgets_for_reason = [each for each in budgets if reason in each.reasons]
            if budgets_for_reason:
                tightest = min(budgets_for_reason, key=lambda each: _budget_size(each, len(nodes)))
                result[pool.name, reason] = _allowed(
                    tightest, pool.name, node_count=len(nodes), disrupted=disrupted, has_clock=now is not None
                )
    return result


def schedule_notes(pools: Iterable[NodePool], *, now: int | None) -> list[str]:
    """Return a note about budgets with a schedule, if the current time is unknown."""
    names = [pool.name for pool in pools if any(each.schedule for each in pool.down_rules.budgets)]
    if now is not None or not names:
        return []
    pool_list = f"{'pool' if len(names) == 1 else 'pools'} {', '.join(sorted(names))}"
    return [
        f"disruption budgets of {pool_list} have a schedule, but the current time is unknown: they count as in force"
    ]


def _is_in_force(budget: NodeBudget, now: int | None) -> bool:
    if not budget.schedule or now is None:
        return True
    cron = parse_cron(budget.schedule)
    return cron.never_fires or cron.fires_between(after=now - budget.duration * _SECOND, until=now)


def _budget_size(budget: NodeBudget, node_count: int) -> int:
    if budget.nodes.endswith("%"):
        return -(-int(budget.nodes.removesuffix("%")) * node_count // 100)
    return int(budget.nodes)


def _allowed(budget: NodeBudget, pool: str, *, node_count: int, disrupted: int, has_clock: bool) -> AllowedDisruptions:
    size = _budget_size(budget, node_count)
    budget_text = f"its disruption budget of {budget.nodes}{'' if budget.nodes.endswith('%') else ' nodes'}"
    if budget.nodes == "1":
        budget_text = "its disruption budget of 1 node"
    if len(budget.reasons) == 1:
        budget_text += f" for {budget.reasons[0]}"
    if budget.schedule:
        budget_text += _scheduled(budget, has_clock=has_clock)
    allowed_text = f"{size} of its {node_count} nodes go at a time" if size else "no node go"
    message = f"pool {pool} lets {allowed_text}, by {budget_text}"
    if disrupted and size:
        message += f", and {disrupted} {'is' if disrupted == 1 else 'are'} not ready or going already"
    return AllowedDisruptions(max(size - disrupted, 0), message)


def _scheduled(budget: NodeBudget, *, has_clock: bool) -> str:
    """Return the schedule by which a budget is in force, as text."""
    schedule = " ".join(budget.schedule.split())
    if parse_cron(budget.schedule).never_fires:
        return f", always in force as its schedule {schedule} never comes"
    when = f"schedule {schedule} for {_duration_text(budget.duration)}"
    return f", in force now by its {when}" if has_clock else f" with the {when}"


def _duration_text(seconds: int) -> str:
    """Return a duration as a NodePool has it: ``1h30m``."""
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def _nodes(pool: NodePool, cluster: Cluster) -> Iterator[Node]:
    for member in pool.members:
        row = cluster.nodes.row_of.get(member.node)
        node = cluster.nodes.objects[row] if row is not None else None
        if node is not None:
            yield node


def _is_initialized(node: Node) -> bool:
    """Return whether a node is initialised; a node without Karpenter's labels counts as initialised."""
    labels = node.metadata.labels or {}
    return _REGISTERED not in labels or _INITIALIZED in labels


def _is_disrupted(node: Node) -> bool:
    if node.metadata.deletion_timestamp is not None:
        return True
    if any(taint.key in _DISRUPTED for taint in node.spec.taints or ()):
        return True
    return any(each.type == "Ready" and each.status != "True" for each in node.status.conditions or ())
