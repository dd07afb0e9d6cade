"""A recommendation as text: scale-ups, cost and bound, pods that stay pending, unusable pools, alternative evictions.

Contract: pure text, parts separated by an empty line; empty parts are left out. Pending pods with the same reason share
a line. `wide` adds every node that takes pods, with these pods counted by owner.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tutti.kube.objects import Node, Pod
from tutti.kube.workloads.owners import controller_of
from tutti.market.instance_types import INSTANCE_TYPE, ZONE
from tutti.market.money import HOURS_A_MONTH, NANO
from tutti.market.pool_context import label_of
from tutti.market.pool_labels import pool_of
from tutti.market.price_book import ON_DEMAND
from tutti.present.plan_rows import split_key
from tutti.present.tables import NONE, counted, table, without_columns
from tutti.recommend.records.request import Binder, Objective

if TYPE_CHECKING:
    from tutti.engine.session.plan import NotConsidered
    from tutti.recommend.records.new_nodes import ScaleUp
    from tutti.recommend.records.recommendation import Alternative, LeftPod, Recommendation
    from tutti.recommend.records.request import Request

_HEADERS = ("ZONE", "TYPE", "CAPACITY", "NODES", "PRICE/MONTH", "COST/MONTH")
_MAX_ALTERNATIVES = 5
_MAX_NAMES = 3
_TOLERANCE = 1e-6
"""A smaller gap is a rounding error of the solver."""
REMAINING_PODS = "for the pods that remain after kube-scheduler binds those that fit existing nodes"
"""The pods for which a bound holds, if kube-scheduler binds pods to existing nodes before nodes are bought."""
_ORDINAL = re.compile(r"(-[0-9]+)+$")


def recommendation_text(
    answer: Recommendation, request: Request, others: Sequence[NotConsidered], *, wide: bool
) -> str:
    """Return the whole text; `others` are the pods that were not considered."""
    parts = [
        scale_ups_table(answer.scale_up),
        _nodes_table(answer, request) if wide else "",
        "\n".join(_summary(answer, others)),
    ]
    parts += [
        _pending_table(answer.left),
        _pools_table(answer, wide=wide),
        "\n".join(_eviction_lines(answer.alternatives)),
    ]
    return "\n\n".join(filter(None, parts))


def scale_ups_table(scale_up: Sequence[ScaleUp], first: str = "POOL") -> str:
    """Return a line for each scale-up, or an empty text; `first` is the heading of the pool column."""
    rows = [
        (
            each.pool,
            each.zone or NONE,
            each.instance_type or NONE,
            each.capacity_type,
            f"+{each.increment:,}",
            monthly_text(each.price),
            monthly_text(None if each.price is None else each.price * each.increment),
        )
        for each in scale_up
    ]
    plain = all(each.capacity_type == ON_DEMAND for each in scale_up)
    return without_columns((first, *_HEADERS), rows, ("CAPACITY",) if plain else ()) if rows else ""


# Summary --------------------------------------------------------------------------------------------------------------


def _summary(answer: Recommendation, others: Sequence[NotConsidered]) -> Iterator[str]:
    on_new = sum(len(node.pods) for node in answer.nodes)
    on_existing = answer.placed - on_new
    where = [f"{on_existing:,} on existing nodes"] if on_existing else []
    where += [f"{on_new:,} on {counted(len(answer.nodes), 'new node')}"] if answer.nodes else []
    verb = "gets" if answer.placed == 1 else "get"
    placed = f"{answer.placed:,} of {counted(answer.pods, 'pending pod')} {verb} a node"
    yield f"{placed}: {', '.join(where)}" if where else placed
    if answer.nodes:
        yield _cost(answer)
        if answer.minimal:
            yield "every new node is needed: without any one of them some pod would wait"
        else:
            yield "did not check whether every new node is needed"
    elif answer.placed:
        yield "nothing has to be bought"
    if others:
        causes = ", ".join(f"{number:,} {cause}" for cause, number in Counter(o.cause for o in others).most_common())
        yield f"{len(others):,} not considered: {causes}"


def _cost(answer: Recommendation) -> str:
    """Return the cost and the lower bound; the number of nodes comes first if the objective is nodes."""
    by_nodes = answer.objective == Objective.NODES
    cost = "cost unknown" if answer.cost is None else f"cost {_monthly_and_hourly(answer.cost)}"
    if by_nodes:
        cost = f"{counted(len(answer.nodes), 'new node')} ({cost})"
    if answer.bound is None:
        return f"{cost}, chosen by {answer.strategy}: how much better a plan could be is not known"
    if not answer.bound and (by_nodes or answer.cost):
        return f"{cost}; how much better a plan could be is not known: the search reached --time-limit first"
    if answer.gap is None or answer.gap < _TOLERANCE:
        return f"{cost}; proved: {bound_statement(answer, 'has fewer' if by_nodes else 'costs less')}"
    least = f"has fewer than {answer.bound:,}" if by_nodes else f"costs less than {monthly_text(answer.bound)}"
    hint = (
        "; more time may close the gap, unless spread constraints cause it"
        if answer.binder == Binder.KUBE_SCHEDULER
        else ""
    )
    return f"{cost}; {bound_statement(answer, least)} (gap {100 * answer.gap:.2f} %{hint})"


def bound_excludes_bound_pods(answer: Recommendation) -> bool:
    """Return whether the bound leaves out pods that kube-scheduler binds to existing nodes before nodes are bought."""
    return answer.binder == Binder.KUBE_SCHEDULER and bool(answer.on_existing)


def bound_statement(answer: Recommendation, better: str) -> str:
    """Return that no plan or purchase is better; `better` is, for example, ``costs less``."""
    if bound_excludes_bound_pods(answer):
        return f"no purchase {better} {REMAINING_PODS}"
    return f"no plan for these pods {better}"


def _monthly_and_hourly(nano: int) -> str:
    return f"{monthly_text(nano)} a month (${nano / NANO:,.4f} an hour)"


def monthly_text(nano: int | None) -> str:
    """Return an hourly price as a price per month."""
    return "<unknown>" if nano is None else f"${nano * HOURS_A_MONTH / NANO:,.2f}"


# Pending pods, pools and evictions ------------------------------------------------------------------------------------


def _pending_table(left: Sequence[LeftPod]) -> str:
    """Return the pods that stay pending, with a line for each reason."""
    groups: dict[tuple[str, str], list[LeftPod]] = {}
    for each in left:
        groups.setdefault((each.gang or "", each.reason), []).append(each)
    if not groups:
        return ""
    rows = []
    for (gang, reason), members in groups.items():
        namespace, name = split_key(gang or members[0].pod)
        rows.append((f"{len(members):,}", namespace, f"gang/{name}" if gang else name, reason))
    stay = "stays" if len(left) == 1 else "stay"
    return f"{counted(len(left), 'pod')} {stay} pending:\n{table(('PODS', 'NAMESPACE', 'EXAMPLE', 'REASON'), rows)}"


def _pools_table(answer: Recommendation, *, wide: bool) -> str:
    """Return the pools that could not be used, if pods stay pending; `wide` always lists them, with remarks."""
    if not (wide or answer.left):
        return ""
    rows = [(each.pool, each.reason) for each in answer.pools if not each.eligible]
    rows += [(each.pool, each.reason) for each in answer.pools if each.eligible and each.reason and wide]
    return table(("POOL", "NOT USED BECAUSE" if not wide else "REMARK"), rows) if rows else ""


def _eviction_lines(alternatives: Sequence[Alternative]) -> Iterator[str]:
    """Yield lines on evictions that make a purchase unnecessary."""
    for each in alternatives[:_MAX_ALTERNATIVES]:
        names = ", ".join(each.evicting[:_MAX_NAMES])
        more = f" and {len(each.evicting) - _MAX_NAMES:,} more" if len(each.evicting) > _MAX_NAMES else ""
        yield f"instead of buying for {each.who}, evicting {names}{more} would do"
    if len(alternatives) > _MAX_ALTERNATIVES:
        yield f"evictions would do for {len(alternatives) - _MAX_ALTERNATIVES:,} others, too (-o json names them)"


# Nodes ----------------------------------------------------------------------------------------------------------------


def _nodes_table(answer: Recommendation, request: Request) -> str:
    """Return a line for every node that takes pods, new nodes first."""
    pods = {obj.key: obj for obj in request.objects if isinstance(obj, Pod)}
    rows: list[Sequence[object]] = [
        (
            each.name,
            "New",
            each.pool,
            each.zone or NONE,
            each.instance_type or NONE,
            f"{len(each.pods):,}",
            _pods_by_owner(each.pods, pods),
        )
        for each in answer.nodes
    ]
    on_existing: dict[str, list[str]] = {}
    for placement in answer.on_existing:
        on_existing.setdefault(placement.node, []).append(placement.pod)
    known = {obj.metadata.name: obj for obj in request.objects if isinstance(obj, Node)}
    for name, taken in sorted(on_existing.items()):
        node = known[name]
        pool = (pool_of(node) or ("", ""))[1] or NONE
        zone, kind = label_of(node, ZONE) or NONE, label_of(node, INSTANCE_TYPE) or NONE
        rows.append((name, "There", pool, zone, kind, f"{len(taken):,}", _pods_by_owner(taken, pods)))
    return table(("NODE", "STATUS", "POOL", "ZONE", "TYPE", "PODS", "TAKES"), rows) if rows else ""


def _pods_by_owner(keys: Sequence[str], pods: dict[str, Pod]) -> str:
    """Return pods counted by owner, or by the common part of their names: ``3 web-7c9d, 1 db``."""
    counts = Counter(_owner_name(pods[key]) for key in keys)
    shown = [f"{number:,} {name}" for name, number in counts.most_common(_MAX_NAMES)]
    rest = sum(counts.values()) - sum(number for _, number in counts.most_common(_MAX_NAMES))
    return ", ".join(shown) + (f", {rest:,} others" if rest else "")


def _owner_name(pod: Pod) -> str:
    owner = controller_of(pod)
    return owner.name if owner is not None else _ORDINAL.sub("", pod.metadata.name)
