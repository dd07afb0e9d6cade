"""Why pods stay pending, and which evictions would help instead of buying.

Contract: pure; the planning cluster stays unchanged. Each reason is one line: the limits that stop a purchase for the
pod, a missing price, or the engine's own message if no offering takes the pod.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from tutti.cluster.edits import Bind
from tutti.cluster.trial import Trial
from tutti.engine.session.schedule import schedule
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.pod_rules import RuleKind
from tutti.recommend.problem.problem import Problem
from tutti.recommend.records.recommendation import Alternative, LeftPod
from tutti.recommend.replay.binding import BoundPurchase
from tutti.recommend.replay.gang_check import incomplete_gangs

_NO_PLAN = "no plan was found that places it together with the other pods (--time-limit gives more time)"
_MAX_POOLS = 3
_MAX_PENDING = 500
"""With more pending pods than this, no evictions are searched for."""


def why_left(
    planning: PlanningCluster, problem: Problem, purchase: BoundPurchase, *, unpriced: Container[int] = ()
) -> list[LeftPod]:
    """Return the reason of every pod that stays pending; `problem` has all offerings, including ineligible ones.

    `unpriced` are the rows of offerings that were left out because only other offerings have a price.
    """
    class_of_pod = problem.class_of_pod
    classes = sorted({class_of_pod[pod] for pod in purchase.left if pod in class_of_pod})
    remaining = _remaining_limits(problem, purchase)
    reasons = {number: _why(problem, number, remaining) for number in classes}
    unknown = [number for number in classes if not reasons[number]]
    if unknown:
        open_rows = [row for row in range(len(problem.offerings)) if _is_open(problem, row, remaining)]
        reasons |= _engine_reasons(
            planning,
            problem,
            purchase,
            classes=unknown,
            priced=[row for row in open_rows if row not in unpriced],
            unpriced=[row for row in open_rows if row in unpriced],
        )
    incomplete = incomplete_gangs(planning, class_of_pod)
    gangs = {
        gang: _lacks(planning, gang) if gang in incomplete else _why_gang(planning, problem, gang)
        for gang in purchase.short
    }
    left_pods = []
    for pod in purchase.left:
        gang = planning.gangs.key_of(planning.cluster.pod_row(pod))
        reason = reasons.get(class_of_pod.get(pod, -1), "")
        if gang is not None and gang in purchase.short:
            reason = f"its gang could not start whole: {gangs[gang] or reason}"
        left_pods.append(LeftPod(pod=pod, reason=reason, gang=gang))
    return left_pods


def _lacks(planning: PlanningCluster, gang: str) -> str:
    """Return how many pods a gang has, and how many it needs."""
    record, rows = planning.gangs.gang(gang), planning.gangs.rows(gang)
    return record.problem or f"{len(rows)} of {record.minimum} pods exist, or a part of the gang lacks pods"


def _why_gang(planning: PlanningCluster, problem: Problem, gang: str) -> str:
    """Return the limits on all offerings that take pods of a gang; empty if an offering has no limit."""
    class_of_pod, pods = problem.class_of_pod, planning.cluster.pods
    rows = [row for row in planning.gangs.rows(gang) if pods.keys[row] in class_of_pod]
    numbers = sorted({class_of_pod[pods.keys[row]] for row in rows})
    offering_rows = np.flatnonzero(problem.allowed[:, numbers].any(axis=1)).tolist()
    reasons: dict[str, None] = {}
    for row in offering_rows:
        reasons_of_row = [limit.reason for limit in problem.limits if limit.takes[row]]
        if not reasons_of_row:
            return ""
        reasons |= dict.fromkeys(reasons_of_row)
    if not reasons:
        return ""
    record = planning.gangs.gang(gang)
    where = f" with one {record.topology.required}" if record.topology.required else ""
    return (
        f"no plan was found that places {len(rows)} pods{where}, besides the pods before it in the queue, "
        "within the limits: " + "; ".join(reasons)
    )


def _remaining_limits(problem: Problem, purchase: BoundPurchase) -> list[int]:
    """Return what each limit still allows after the purchase."""
    index = {id(offering): place for place, offering in enumerate(problem.offerings)}
    remaining = [limit.left for limit in problem.limits]
    for _, offering in purchase.new_nodes:
        for place, limit in enumerate(problem.limits):
            remaining[place] -= int(limit.takes[index[id(offering)]])
    return remaining


def _why(problem: Problem, number: int, remaining: Sequence[int]) -> str:
    """Return the limits that stop a purchase for pods of a class; empty if limits are not the reason."""
    rows = np.flatnonzero(problem.allowed[:, number])
    if not len(rows):
        return ""
    reasons: list[str] = []
    for row in rows.tolist():
        limits = [
            limit.reason + (", and the plan buys the rest" if rest < limit.left else "")
            for limit, rest in zip(problem.limits, remaining, strict=True)
            if limit.takes[row] > rest
        ]
        if not limits:
            return ""
        reasons += limits
    return "; ".join(dict.fromkeys(reasons))


def _engine_reasons(
    planning: PlanningCluster,
    problem: Problem,
    purchase: BoundPurchase,
    *,
    classes: Sequence[int],
    priced: Sequence[int],
    unpriced: Sequence[int],
) -> Mapping[int, str]:
    """Return the engine's reason for one pod of each class, after the purchase.

    One node of every open offering joins. Unpriced offerings join last: a pod that fits only then lacks a price.
    """
    cluster, reasons = planning.cluster, {}
    example_pods = {problem.class_of_pod[pod]: pod for pod in reversed(purchase.left) if pod in problem.class_of_pod}
    with Trial(cluster):
        existing = cluster.nodes.count
        for name, offering in purchase.new_nodes:
            planning.join(offering, name)
        for pod, node in purchase.node_of_pod.items():
            cluster.apply(Bind(pod, node))
        after_purchase = cluster.nodes.count
        planning.join_all([problem.offerings[row] for row in priced])
        for number in classes if unpriced else ():
            if planning.engine.decide(example_pods[number]).node is not None:
                reasons[number] = _NO_PLAN
        planning.join_all([problem.offerings[row] for row in unpriced])
        for number in classes:
            if number in reasons:
                continue
            decision = planning.engine.decide(example_pods[number])
            if decision.node is not None:
                reasons[number] = _missing_price_reason(problem, number, unpriced) or _NO_PLAN
                continue
            verdict = decision.held or decision.refused
            message = ", ".join(verdict.messages) if verdict else decision.error or _counted(decision.reasons)
            open_nodes = cluster.nodes.count - after_purchase
            to_buy = after_purchase - existing + open_nodes
            reasons[number] = f"no node would take it, of {existing} there and {to_buy} to buy: {message}"
    return reasons


def _missing_price_reason(problem: Problem, number: int, unpriced: Sequence[int]) -> str:
    """Return a reason with the unpriced pools that would take pods of a class; empty if there are none."""
    pools = list(dict.fromkeys(problem.offerings[row].pool for row in unpriced if problem.allowed[row, number]))
    if not pools:
        return ""
    names = ", ".join(pools[:_MAX_POOLS]) + (f" and {len(pools) - _MAX_POOLS} more" if len(pools) > _MAX_POOLS else "")
    pool_list = f"{'pool' if len(pools) == 1 else 'pools'} {names}"
    hint = "--prices gives one, --objective nodes needs none"
    return f"only offerings without a known price would take it: {pool_list} ({hint})"


def _is_open(problem: Problem, row: int, remaining: Sequence[int]) -> bool:
    """Return whether limits allow one more node of an offering."""
    return all(limit.takes[row] <= rest for limit, rest in zip(problem.limits, remaining, strict=True))


def _counted(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {message}" for message, count in sorted(reasons.items(), key=lambda each: -each[1]))


def alternatives(planning: PlanningCluster) -> tuple[Alternative, ...]:
    """Return the evictions that kube-scheduler would make for pending pods without a purchase."""
    cluster, pods = planning.cluster, planning.cluster.pods
    if not 0 < len(planning.pending) <= _MAX_PENDING:
        return ()
    running = pods.priority[: pods.length][pods.node[: pods.length] >= 0]
    highest = max(int(pods.priority[cluster.pod_row(pod)]) for pod in planning.pending)
    if not len(running) or highest <= int(running.min()):
        return ()
    with Trial(cluster):
        plan = schedule(cluster, planning.pending, planning.profile)
    victims_by_preemptor: dict[str, list[str]] = {}
    for eviction in plan.evictions:
        victims_by_preemptor.setdefault(eviction.by, []).append(eviction.pod)
    return tuple(
        Alternative(who=preemptor, evicting=tuple(evicted)) for preemptor, evicted in victims_by_preemptor.items()
    )


def spread_notes(planning: PlanningCluster, problem: Problem, purchase: BoundPurchase) -> list[str]:
    """Return notes about topology spreads that hold only because other domains have no node.

    Such a spread may not be what the user meant.
    """
    column_of, notes = planning.cluster.nodes.column, {}
    labels_of_new_node = {name: offering.node.metadata.labels or {} for name, offering in purchase.new_nodes}
    keys = {rule.key for rule in problem.rules.domains}
    multi_domain_keys = {key for key in keys if len({value for value in problem.domain(key) if value is not None}) > 1}
    for rule in problem.rules.domains:
        if rule.kind is not RuleKind.SPREAD or rule.key not in multi_domain_keys or len(rule.counts) > 1:
            continue
        nodes = [purchase.node_of_pod[pod] for pod in problem.classes[rule.holder].pods if pod in purchase.node_of_pod]
        column = column_of(rule.key)
        value_names = {digit: value for value, digit in column.values.items()}
        row_of = planning.cluster.nodes.row_of
        used_values = {
            labels_of_new_node[node].get(rule.key)
            if node in labels_of_new_node
            else value_names.get(int(column.ids[row_of[node]]))
            for node in nodes
        }
        if len(nodes) > 1 and len(used_values) == 1:
            example = problem.classes[rule.holder].pods[0]
            notes[rule.holder] = (
                f"{len(nodes)} pods like {example} spread over {rule.key} and are all in {used_values.pop()}: "
                "kube-scheduler counts only domains that have nodes; set minDomains"
            )
    return list(notes.values())
