"""Drafts made real: the nodes join the picture, and the engine puts the pods where the draft says.

Contract: the engine has the last word. A pod goes to its node only if the engine's filters let it in there at that
moment; where the order matters (a spread), pods take turns until nobody moves any more. What a draft promised and the
engine refuses is tried on every node; what then still waits is left. The picture is changed: use a `Trial`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from tutti.cluster.edits import Bind
from tutti.cluster.node_edits import node_of
from tutti.engine.plugins.base import Area
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.pod_rules import UNLIMITED, DomainRule, RuleKind
from tutti.recommend.problem.problem import Problem
from tutti.recommend.records.draft import Draft, DraftNode

Wanted = dict[str, list[str]]
"""Pods by the node that they shall go to."""


class PlacedDraft(NamedTuple):
    """How a draft came out."""

    nodes: tuple[tuple[str, int], ...]
    """The new nodes: names and the numbers of their offerings."""
    where: dict[str, str]
    """The node of every pod that has one now."""
    left: tuple[str, ...]


def realise(planning: PlanningCluster, problem: Problem, draft: Draft) -> PlacedDraft:
    """Buy what a draft buys, and place its pods."""
    names = planning.join_all([problem.offerings[each.offering] for each in draft.bought])
    wanted: Wanted = {}
    for pod, home in draft.on_existing:
        wanted.setdefault(home, []).append(pod)
    for name, each in zip(names, draft.bought, strict=True):
        wanted.setdefault(name, []).extend(each.pods)
    _follow(planning, problem, wanted, dict(zip(names, draft.bought, strict=True)))
    names_of, row_of = planning.cluster.pods.node_names, planning.cluster.pods.row_of
    known = problem.class_of_pod
    rest = [pod for pod in planning.pending if pod in known and names_of[row_of[pod]] is None]
    rest = [pod for pod in rest if problem.classes[known[pod]].gang is None]  # those that must be near go nowhere else
    if rest:
        rest = anywhere(planning, rest)
    where = {pod: node for pod in known if (node := names_of[row_of[pod]]) is not None}
    return PlacedDraft(tuple(zip(names, (each.offering for each in draft.bought), strict=True)), where, tuple(rest))


def _follow(planning: PlanningCluster, problem: Problem, wanted: Wanted, bought: dict[str, DraftNode]) -> None:
    """Put pods on their nodes: first those that look at others, class by class until nobody moves, then the rest."""
    looks, number_of = problem.rules.affected, problem.class_of_pod
    quiet: Wanted = {}
    lookers: dict[int, list[tuple[str, str]]] = {}
    for node, pods in wanted.items():
        for pod in pods:
            number = number_of[pod]
            if looks[number]:
                lookers.setdefault(number, []).append((pod, node))
            else:
                quiet.setdefault(node, []).append(pod)
    spreads = {rule.holder: rule for rule in reversed(problem.rules.domains) if rule.kind is RuleKind.SPREAD}
    picky, holds = problem.rules.host.max_per_node < UNLIMITED, problem.rules.holders

    def turn(number: int) -> tuple[bool, bool, bool, int]:
        """Who watches others spread without taking part goes before those come, then who is picky about nodes."""
        rule = spreads.get(number)
        bystander = rule is not None and not rule.matched[number]
        return not bystander, not picky[number], not holds[number], number

    moved = True
    while moved and lookers:
        moved = False
        for number in sorted(lookers, key=turn):
            left = _deal(planning, spreads.get(number), lookers[number])
            moved |= len(left) < len(lookers[number])
            lookers[number] = left
        lookers = {number: pods for number, pods in lookers.items() if pods}
    _fill(planning, problem, quiet, bought, alike=not looks.any())


def _fill(
    planning: PlanningCluster, problem: Problem, wanted: Wanted, bought: dict[str, DraftNode], *, alike: bool
) -> None:
    """Put pods that look at nobody on their nodes; nodes with the same pods are asked about once."""
    cluster, table = planning.cluster, planning.cluster.pods
    alike = alike and not cluster.held_on
    alike = alike and not any(
        cluster.spec_of(cluster.pod_row(each.pods[0])).volumes for each in problem.classes if each.pods
    )
    known: set[tuple[int, tuple[int, ...]]] = set()
    for node, pods in wanted.items():
        look: tuple[int, tuple[int, ...]] | None = None
        if alike and node in bought:
            look = (bought[node].offering, tuple(sorted(table.spec[[table.row_of[pod] for pod in pods]].tolist())))
        if look is not None and look in known:
            for pod in pods:  # the engine has let the very same pods into the very same node
                cluster.apply(Bind(pod, node))
        elif not into(planning, node, pods) and look is not None:
            known.add(look)


def _deal(planning: PlanningCluster, rule: DomainRule | None, pods: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Put pods of a class on their nodes, the domain that has fewest first; give those that do not get in."""
    labels = {node: node_of(planning.cluster, node).metadata.labels or {} for _, node in pods}
    queues: dict[str, deque[tuple[str, str]]] = {}
    for pod, node in pods:
        queues.setdefault(labels[node].get(rule.key, "") if rule else "", deque()).append((pod, node))
    placed = {value: rule.counts.get(value, 0) if rule else 0 for value in queues}
    refused: list[tuple[str, str]] = []
    shut: set[str] = set()
    while any(queues.values()):
        ready = sorted((placed[value], value) for value, queue in queues.items() if queue and value not in shut)
        if not ready:
            break
        value = ready[0][1]
        pod, node = queues[value][0]
        if not into(planning, node, [pod]):
            queues[value].popleft()
            placed[value] += 1
            shut.clear()
        elif rule is not None and len(queues) > 1:
            shut.add(value)  # until another domain has taken one
        else:
            refused.append(queues[value].popleft())
    return refused + [each for queue in queues.values() for each in queue]


def into(planning: PlanningCluster, node: str, pods: Sequence[str]) -> list[str]:
    """Place pods on one node; give those that do not get in."""
    cluster = planning.cluster
    row = cluster.nodes.row_of.get(node)
    if row is None:
        return list(pods)
    area = Area.of_row(row, cluster.nodes.size)
    left: list[str] = []
    todo = list(pods)
    while todo:
        done = planning.engine.place(todo, area, give_up=True)
        if done and done[-1].node is None:
            left.append(todo[len(done) - 1])
        todo = todo[len(done) :]
    return left


def anywhere(planning: PlanningCluster, pods: Iterable[str], *, patient: bool = True) -> list[str]:
    """Place pods on any node, in rounds until nobody moves; give those that stay.

    Without patience the first that stays ends it.
    """
    rest = list(pods)
    while rest:
        left: list[str] = []
        for like in _alike(planning, rest):
            done = planning.engine.place(like, give_up=True)
            if done and done[-1].node is None:  # what one of them cannot have, the others cannot have either
                left += like[len(done) - 1 :]
                if not patient:
                    return left
        if len(left) == len(rest):
            break
        rest = left
    return rest


def _alike(planning: PlanningCluster, pods: Sequence[str]) -> Iterable[list[str]]:
    """The pods in groups that the engine cannot tell apart, by their first."""
    table = planning.cluster.pods
    groups: dict[tuple[int, int], list[str]] = {}
    for pod in pods:
        row = table.row_of[pod]
        groups.setdefault((int(table.spec[row]), int(table.labels[row])), []).append(pod)
    return groups.values()
