"""Why pods stay pending, and what would do instead of buying.

Contract: pure; the picture is left as it was. Reasons are one line each: the limits that bind where a pod could be
bought for, a price that is missing, the engine's own words where no offering takes it.
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
from tutti.recommend.replay.gang_check import gangs_lacking

_NO_PLAN = "no plan was found that places it beside the others (--time-limit gives more time)"
_POOLS = 3
_MANY = 500
"""Above so many waiting pods nobody is looked for who could be evicted."""


def why_left(
    planning: PlanningCluster, problem: Problem, outcome: BoundPurchase, *, unpriced: Container[int] = ()
) -> list[LeftPod]:
    """Why each pod that is left stays pending; `problem` has all offerings, those that cannot be bought included.

    `unpriced` are the rows of offerings that were left out because only others have a price.
    """
    number_of = problem.class_of_pod
    classes = sorted({number_of[pod] for pod in outcome.left if pod in number_of})
    left = _left(problem, outcome)
    reasons = {number: _why(problem, number, left) for number in classes}
    unknown = [number for number in classes if not reasons[number]]
    if unknown:
        is_open = [row for row in range(len(problem.offerings)) if _is_open(problem, row, left)]
        reasons |= _in_the_engines_words(
            planning,
            problem,
            outcome,
            classes=unknown,
            offered=[row for row in is_open if row not in unpriced],
            unpriced=[row for row in is_open if row in unpriced],
        )
    lacking = gangs_lacking(planning, number_of)
    gangs = {
        gang: _lacks(planning, gang) if gang in lacking else _why_gang(planning, problem, gang)
        for gang in outcome.short
    }
    found = []
    for pod in outcome.left:
        gang = planning.gangs.key_of(planning.cluster.pod_row(pod))
        reason = reasons.get(number_of.get(pod, -1), "")
        if gang is not None and gang in outcome.short:
            reason = f"its gang could not start whole: {gangs[gang] or reason}"
        found.append(LeftPod(pod=pod, reason=reason, gang=gang))
    return found


def _lacks(planning: PlanningCluster, gang: str) -> str:
    """How many pods a gang has, and how many it needs."""
    record, rows = planning.gangs.gang(gang), planning.gangs.rows(gang)
    return record.problem or f"{len(rows)} of {record.minimum} pods are there, or a part of it lacks some"


def _why_gang(planning: PlanningCluster, problem: Problem, gang: str) -> str:
    """The limits on everything that could be bought for a gang; empty when something has none."""
    number_of, pods = problem.class_of_pod, planning.cluster.pods
    rows = [row for row in planning.gangs.rows(gang) if pods.keys[row] in number_of]
    numbers = sorted({number_of[pods.keys[row]] for row in rows})
    offered = np.flatnonzero(problem.allowed[:, numbers].any(axis=1)).tolist()
    reasons: dict[str, None] = {}
    for row in offered:
        mine = [limit.reason for limit in problem.limits if limit.takes[row]]
        if not mine:
            return ""
        reasons |= dict.fromkeys(mine)
    if not reasons:
        return ""
    record = planning.gangs.gang(gang)
    where = f" with one {record.topology.required}" if record.topology.required else ""
    return (
        f"no plan was found that places {len(rows)} pods{where}, beside those before it, within the limits: "
        + "; ".join(reasons)
    )


def _left(problem: Problem, outcome: BoundPurchase) -> list[int]:
    """How much of each limit is left after the purchase."""
    index = {id(offering): place for place, offering in enumerate(problem.offerings)}
    left = [limit.left for limit in problem.limits]
    for _, offering in outcome.bought:
        for place, limit in enumerate(problem.limits):
            left[place] -= int(limit.takes[index[id(offering)]])
    return left


def _why(problem: Problem, number: int, left: Sequence[int]) -> str:
    """The limits that keep pods of a class from being bought for; empty when it is not limits."""
    rows = np.flatnonzero(problem.allowed[:, number])
    if not len(rows):
        return ""
    binding: list[str] = []
    for row in rows.tolist():
        limits = [
            limit.reason + (", and the plan buys the rest" if rest < limit.left else "")
            for limit, rest in zip(problem.limits, left, strict=True)
            if limit.takes[row] > rest
        ]
        if not limits:
            return ""
        binding += limits
    return "; ".join(dict.fromkeys(binding))


def _in_the_engines_words(
    planning: PlanningCluster,
    problem: Problem,
    outcome: BoundPurchase,
    *,
    classes: Sequence[int],
    offered: Sequence[int],
    unpriced: Sequence[int],
) -> Mapping[int, str]:
    """Ask the engine about one pod of each class when the plan is carried out and all that is left could be bought.

    What has no price joins after the rest: whoever is taken only then waits for a price.
    """
    cluster, found = planning.cluster, {}
    mine = {problem.class_of_pod[pod]: pod for pod in reversed(outcome.left) if pod in problem.class_of_pod}
    with Trial(cluster):
        before = cluster.nodes.count
        for name, offering in outcome.bought:
            planning.join(offering, name)
        for pod, node in outcome.where.items():
            cluster.apply(Bind(pod, node))
        there = cluster.nodes.count
        planning.join_all([problem.offerings[row] for row in offered])
        for number in classes if unpriced else ():
            if planning.engine.decide(mine[number]).node is not None:
                found[number] = _NO_PLAN
        planning.join_all([problem.offerings[row] for row in unpriced])
        for number in classes:
            if number in found:
                continue
            decision = planning.engine.decide(mine[number])
            if decision.node is not None:
                found[number] = _for_want_of_a_price(problem, number, unpriced) or _NO_PLAN
                continue
            said = decision.held or decision.refused
            text = ", ".join(said.messages) if said else decision.error or _counted(decision.reasons)
            more = cluster.nodes.count - there
            found[number] = f"no node would take it, of {before} there and {there - before + more} to buy: {text}"
    return found


def _for_want_of_a_price(problem: Problem, number: int, unpriced: Sequence[int]) -> str:
    """Which pools would take pods of a class if they had a price; empty if none would."""
    pools = list(dict.fromkeys(problem.offerings[row].pool for row in unpriced if problem.allowed[row, number]))
    if not pools:
        return ""
    names = ", ".join(pools[:_POOLS]) + (f" and {len(pools) - _POOLS} more" if len(pools) > _POOLS else "")
    whose = f"{'pool' if len(pools) == 1 else 'pools'} {names}"
    return f"only what has no price would take it: {whose} (--prices gives one, --objective nodes needs none)"


def _is_open(problem: Problem, row: int, left: Sequence[int]) -> bool:
    """Whether one more node of an offering could be bought."""
    return all(limit.takes[row] <= rest for limit, rest in zip(problem.limits, left, strict=True))


def _counted(reasons: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {message}" for message, count in sorted(reasons.items(), key=lambda each: -each[1]))


def alternatives(planning: PlanningCluster) -> tuple[Alternative, ...]:
    """Who could be evicted for the pods that wait, by whom: what the scheduler would do without a purchase."""
    cluster, pods = planning.cluster, planning.cluster.pods
    if not 0 < len(planning.pending) <= _MANY:
        return ()
    running = pods.priority[: pods.length][pods.node[: pods.length] >= 0]
    highest = max(int(pods.priority[cluster.pod_row(pod)]) for pod in planning.pending)
    if not len(running) or highest <= int(running.min()):
        return ()
    with Trial(cluster):
        plan = schedule(cluster, planning.pending, planning.profile)
    by: dict[str, list[str]] = {}
    for eviction in plan.evictions:
        by.setdefault(eviction.by, []).append(eviction.pod)
    return tuple(Alternative(who=who, evicting=tuple(evicted)) for who, evicted in by.items())


def spread_notes(planning: PlanningCluster, problem: Problem, outcome: BoundPurchase) -> list[str]:
    """Spreads that hold only because other domains have no node: the user may have meant otherwise."""
    column_of, notes = planning.cluster.nodes.column, {}
    offered = {name: offering.node.metadata.labels or {} for name, offering in outcome.bought}
    keys = {rule.key for rule in problem.rules.domains}
    several = {key for key in keys if len({value for value in problem.domain(key) if value is not None}) > 1}
    for rule in problem.rules.domains:
        if rule.kind is not RuleKind.SPREAD or rule.key not in several or len(rule.counts) > 1:
            continue
        nodes = [outcome.where[pod] for pod in problem.classes[rule.holder].pods if pod in outcome.where]
        column = column_of(rule.key)
        names = {digit: value for value, digit in column.values.items()}
        rows = planning.cluster.nodes.row_of
        used = {
            offered[node].get(rule.key) if node in offered else names.get(int(column.ids[rows[node]])) for node in nodes
        }
        if len(nodes) > 1 and len(used) == 1:
            first = problem.classes[rule.holder].pods[0]
            notes[rule.holder] = (
                f"{len(nodes)} pods like {first} spread over {rule.key} and are all in {used.pop()}: "
                "to kube-scheduler only those count that have a node (minDomains asks for more)"
            )
    return list(notes.values())
