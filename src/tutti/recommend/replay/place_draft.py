"""Place a draft: its nodes join the planning cluster, and the engine places its pods where the draft says.

Contract: the engine decides. A pod goes to its node only if the engine's filters allow that at that moment; where the
order matters (a spread), pods are tried in rounds until a round places none. Pods that the engine refuses are tried on
every node; pods that still have no node are left. The planning cluster is changed: use a `Trial`.
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

PodsByNode = dict[str, list[str]]
"""Pods by the node that they are drafted for."""


class PlacedDraft(NamedTuple):
    """The result of placing a draft."""

    nodes: tuple[tuple[str, int], ...]
    """The new nodes: names, and the numbers of their offerings."""
    where: dict[str, str]
    """The node of every pod that has one now."""
    left: tuple[str, ...]


def place_draft(planning: PlanningCluster, problem: Problem, draft: Draft) -> PlacedDraft:
    """Join the nodes of a draft, and place its pods."""
    names = planning.join_all([problem.offerings[each.offering] for each in draft.nodes])
    pods_of_node: PodsByNode = {}
    for pod, home in draft.on_existing:
        pods_of_node.setdefault(home, []).append(pod)
    for name, each in zip(names, draft.nodes, strict=True):
        pods_of_node.setdefault(name, []).extend(each.pods)
    _place_on_drafted_nodes(planning, problem, pods_of_node, dict(zip(names, draft.nodes, strict=True)))
    names_of, row_of = planning.cluster.pods.node_names, planning.cluster.pods.row_of
    class_of_pod = problem.class_of_pod
    rest = [pod for pod in planning.pending if pod in class_of_pod and names_of[row_of[pod]] is None]
    # Pods of gangs that must share a domain are not placed elsewhere.
    rest = [pod for pod in rest if problem.classes[class_of_pod[pod]].gang is None]
    if rest:
        rest = place_anywhere(planning, rest)
    where = {pod: node for pod in class_of_pod if (node := names_of[row_of[pod]]) is not None}
    return PlacedDraft(tuple(zip(names, (each.offering for each in draft.nodes), strict=True)), where, tuple(rest))


def _place_on_drafted_nodes(
    planning: PlanningCluster, problem: Problem, pods_of_node: PodsByNode, bought: dict[str, DraftNode]
) -> None:
    """Place pods on their nodes: classes with rules about other pods first, in rounds, then all other pods."""
    has_rules, class_of_pod = problem.rules.affected, problem.class_of_pod
    unruled: PodsByNode = {}
    ruled: dict[int, list[tuple[str, str]]] = {}
    for node, pods in pods_of_node.items():
        for pod in pods:
            number = class_of_pod[pod]
            if has_rules[number]:
                ruled.setdefault(number, []).append((pod, node))
            else:
                unruled.setdefault(node, []).append(pod)
    spreads = {rule.holder: rule for rule in reversed(problem.rules.domains) if rule.kind is RuleKind.SPREAD}
    is_limited_per_node, holds = problem.rules.host.max_per_node < UNLIMITED, problem.rules.holders

    def order(number: int) -> tuple[bool, bool, bool, int]:
        """Return the sort key of a class: its turn in every round."""
        # A spread that does not count its own pods is easiest before the counted pods arrive.
        rule = spreads.get(number)
        counts_others_only = rule is not None and not rule.matched[number]
        return not counts_others_only, not is_limited_per_node[number], not holds[number], number

    moved = True
    while moved and ruled:
        moved = False
        for number in sorted(ruled, key=order):
            left = _place_class(planning, spreads.get(number), ruled[number])
            moved |= len(left) < len(ruled[number])
            ruled[number] = left
        ruled = {number: pods for number, pods in ruled.items() if pods}
    _place_unruled(planning, problem, unruled, bought, may_reuse=not has_rules.any())


def _place_unruled(
    planning: PlanningCluster,
    problem: Problem,
    pods_of_node: PodsByNode,
    bought: dict[str, DraftNode],
    *,
    may_reuse: bool,
) -> None:
    """Place pods without rules about other pods; nodes with the same pods are evaluated once."""
    cluster, table = planning.cluster, planning.cluster.pods
    may_reuse = may_reuse and not cluster.held_on
    may_reuse = may_reuse and not any(
        cluster.spec_of(cluster.pod_row(each.pods[0])).volumes for each in problem.classes if each.pods
    )
    placed_contents: set[tuple[int, tuple[int, ...]]] = set()
    for node, pods in pods_of_node.items():
        content: tuple[int, tuple[int, ...]] | None = None
        if may_reuse and node in bought:
            content = (bought[node].offering, tuple(sorted(table.spec[[table.row_of[pod] for pod in pods]].tolist())))
        if content is not None and content in placed_contents:
            for pod in pods:  # the engine has placed the same pods on an equal node
                cluster.apply(Bind(pod, node))
        elif not place_on_node(planning, node, pods) and content is not None:
            placed_contents.add(content)


def _place_class(
    planning: PlanningCluster, rule: DomainRule | None, pods: Sequence[tuple[str, str]]
) -> list[tuple[str, str]]:
    """Place pods of one class on their nodes, the domain with the fewest pods first; return pods that do not fit."""
    labels = {node: node_of(planning.cluster, node).metadata.labels or {} for _, node in pods}
    queues: dict[str, deque[tuple[str, str]]] = {}
    for pod, node in pods:
        queues.setdefault(labels[node].get(rule.key, "") if rule else "", deque()).append((pod, node))
    placed = {value: rule.counts.get(value, 0) if rule else 0 for value in queues}
    refused: list[tuple[str, str]] = []
    blocked: set[str] = set()
    while any(queues.values()):
        open_domains = sorted(
            (placed[value], value) for value, queue in queues.items() if queue and value not in blocked
        )
        if not open_domains:
            break
        value = open_domains[0][1]
        pod, node = queues[value][0]
        if not place_on_node(planning, node, [pod]):
            queues[value].popleft()
            placed[value] += 1
            blocked.clear()
        elif rule is not None and len(queues) > 1:
            blocked.add(value)  # until another domain has got a pod
        else:
            refused.append(queues[value].popleft())
    return refused + [each for queue in queues.values() for each in queue]


def place_on_node(planning: PlanningCluster, node: str, pods: Sequence[str]) -> list[str]:
    """Place pods on one node; return the pods that do not fit."""
    cluster = planning.cluster
    row = cluster.nodes.row_of.get(node)
    if row is None:
        return list(pods)
    area = Area.of_row(row, cluster.nodes.size)
    left: list[str] = []
    remaining = list(pods)
    while remaining:
        decisions = planning.engine.place(remaining, area, give_up=True)
        if decisions and decisions[-1].node is None:
            left.append(remaining[len(decisions) - 1])
        remaining = remaining[len(decisions) :]
    return left


def place_anywhere(planning: PlanningCluster, pods: Iterable[str], *, patient: bool = True) -> list[str]:
    """Place pods on any node, in rounds until a round places none; return the pods that are left.

    If not `patient`, stop at the first pod that does not fit.
    """
    rest = list(pods)
    while rest:
        left: list[str] = []
        for group in _group_equal_pods(planning, rest):
            decisions = planning.engine.place(group, give_up=True)
            if decisions and decisions[-1].node is None:  # equal pods do not fit either
                left += group[len(decisions) - 1 :]
                if not patient:
                    return left
        if len(left) == len(rest):
            break
        rest = left
    return rest


def _group_equal_pods(planning: PlanningCluster, pods: Sequence[str]) -> Iterable[list[str]]:
    """Return the pods in groups that the engine cannot distinguish, in order of their first pod."""
    table = planning.cluster.pods
    groups: dict[tuple[int, int], list[str]] = {}
    for pod in pods:
        row = table.row_of[pod]
        groups.setdefault((int(table.spec[row]), int(table.labels[row])), []).append(pod)
    return groups.values()
