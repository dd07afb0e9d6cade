"""How many nodes of a pool may be going at a time: Karpenter's disruption budgets at one moment.

Contract: pure. A plan is carried out at one moment, so what a budget allows at a time is what the plan may take away.
Of the budgets for a reason the tightest in force counts. A percentage is of all nodes that the pool has and that have
come up, rounded up. Nodes that are not ready, or on their way out, take from it first: they are being
disrupted already. A schedule needs a clock: without one every budget is taken to be in force, which keeps more nodes.
One with a schedule that never comes is always in force, as Karpenter has it.
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
"""The taint of a node that Karpenter takes away: today's, and that of v1beta1."""
_SECOND = 1_000_000


class AllowedDisruptions(msgspec.Struct, frozen=True, gc=False):
    """How many nodes may go for a reason, and why no more."""

    number: int
    message: str


def paces(pools: Iterable[NodePool], cluster: Cluster, *, now: int | None) -> dict[tuple[str, str], AllowedDisruptions]:
    """What the budgets in force of pools allow, by pool and reason; what is not there is not limited."""
    found: dict[tuple[str, str], AllowedDisruptions] = {}
    for pool in pools:
        budgets = [each for each in pool.down_rules.budgets if _is_in_force(each, now)]
        if not budgets:
            continue
        nodes = [node for node in _nodes(pool, cluster) if _is_up(node)]
        going = sum(map(_is_going, nodes))
        for reason in (EMPTY, UNDERUTILIZED):
            mine = [each for each in budgets if reason in each.reasons]
            if mine:
                tightest = min(mine, key=lambda each: _most(each, len(nodes)))
                found[pool.name, reason] = _allowed(
                    tightest, pool.name, there=len(nodes), going=going, dated=now is not None
                )
    return found


def undated(pools: Iterable[NodePool], *, now: int | None) -> list[str]:
    """A note about schedules that there is no clock for."""
    names = [pool.name for pool in pools if any(each.schedule for each in pool.down_rules.budgets)]
    if now is not None or not names:
        return []
    whose = f"{'pool' if len(names) == 1 else 'pools'} {', '.join(sorted(names))}"
    return [
        f"disruption budgets of {whose} have a schedule, and nobody says what time it is: they are taken to be in force"
    ]


def _is_in_force(budget: NodeBudget, now: int | None) -> bool:
    if not budget.schedule or now is None:
        return True
    cron = parse_cron(budget.schedule)
    return cron.never_fires or cron.fires_between(after=now - budget.duration * _SECOND, until=now)


def _most(budget: NodeBudget, there: int) -> int:
    if budget.nodes.endswith("%"):
        return -(-int(budget.nodes.removesuffix("%")) * there // 100)
    return int(budget.nodes)


def _allowed(budget: NodeBudget, pool: str, *, there: int, going: int, dated: bool) -> AllowedDisruptions:
    most = _most(budget, there)
    said = f"its disruption budget of {budget.nodes}{'' if budget.nodes.endswith('%') else ' nodes'}"
    if budget.nodes == "1":
        said = "its disruption budget of 1 node"
    if len(budget.reasons) == 1:
        said += f" for {budget.reasons[0]}"
    if budget.schedule:
        said += _scheduled(budget, dated=dated)
    how_many = f"{most} of its {there} nodes go at a time" if most else "no node go"
    message = f"pool {pool} lets {how_many}, by {said}"
    if going and most:
        message += f", and {going} {'is' if going == 1 else 'are'} not ready or going already"
    return AllowedDisruptions(max(most - going, 0), message)


def _scheduled(budget: NodeBudget, *, dated: bool) -> str:
    """By what schedule a budget is in force."""
    schedule = " ".join(budget.schedule.split())
    if parse_cron(budget.schedule).never_fires:
        return f", always in force as its schedule {schedule} never comes"
    when = f"schedule {schedule} for {_span(budget.duration)}"
    return f", in force now by its {when}" if dated else f" with the {when}"


def _span(seconds: int) -> str:
    """A time as a NodePool has it: ``1h30m``."""
    parts = ((seconds // 3600, "h"), (seconds // 60 % 60, "m"), (seconds % 60, "s"))
    return "".join(f"{number}{unit}" for number, unit in parts if number) or "0s"


def _nodes(pool: NodePool, cluster: Cluster) -> Iterator[Node]:
    for member in pool.members:
        row = cluster.nodes.row_of.get(member.node)
        node = cluster.nodes.objects[row] if row is not None else None
        if node is not None:
            yield node


def _is_up(node: Node) -> bool:
    """Whether a node has come up as far as Karpenter tells; one without its labels has."""
    labels = node.metadata.labels or {}
    return _REGISTERED not in labels or _INITIALIZED in labels


def _is_going(node: Node) -> bool:
    if node.metadata.deletion_timestamp is not None:
        return True
    if any(taint.key in _DISRUPTED for taint in node.spec.taints or ()):
        return True
    return any(each.type == "Ready" and each.status != "True" for each in node.status.conditions or ())
