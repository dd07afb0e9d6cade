"""Acceptance cases of gang schedulers: a cluster, and the outcome that a gang scheduler must reach.

Contract: a case is one line with nodes, groups, pods and an expected outcome. The case runs until no pod is
terminating any more, and then its outcome is compared. Where several outcomes are equally right, the case lists them,
and each is accepted. Groups become PodGroups of the coscheduling dialect with Tutti's own annotations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Remove
from tutti.engine.session.schedule import schedule
from tutti.exceptions import InputError
from tutti.kube.gangs import tutti_annotations
from tutti.kube.objects import (
    CoschedulingPodGroup,
    CoschedulingSpec,
    Node,
    Object,
    ObjectMeta,
    Pod,
    PodDisruptionBudget,
)

CountOfPods = dict[str, Any]
"""``count`` pods out of those in ``from``."""
GangDifferences = dict[str, tuple[Any, Any]]
"""By part of an expectation that does not hold: the expected and the actual value."""


class _Topology(msgspec.Struct, frozen=True):
    required: str | None = None
    preferred: str | None = None


class _SubGroup(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    min_member: int = 0
    topology: _Topology | None = None


class _Group(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    namespace: str = "default"
    min_member: int = 1
    priority: int | None = None
    topology: _Topology | None = None
    disruption: str = "single"
    sub_groups: tuple[_SubGroup, ...] = ()


class _SameTopology(msgspec.Struct, frozen=True):
    pods: tuple[str, ...]
    key: str


class _Expect(msgspec.Struct, frozen=True, rename="camel"):
    evicted: tuple[str, ...] | CountOfPods = ()
    bound: dict[str, str | tuple[str, ...] | None] = {}
    pending: tuple[str, ...] = ()
    bound_count: CountOfPods | tuple[CountOfPods, ...] = ()
    same_topology: tuple[_SameTopology, ...] = ()


class GangCase(msgspec.Struct, frozen=True, rename="camel"):
    """One acceptance case."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    expect: _Expect
    name: str = ""
    behavior: str = "?"
    pod_groups: tuple[_Group, ...] = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()


def read_gang_case(path: str, number: int, line: bytes) -> GangCase:
    """Decode one line of a file."""
    try:
        return msgspec.json.decode(line, type=GangCase)
    except msgspec.DecodeError as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from None


def run_gang_case(case: GangCase) -> GangDifferences:
    """Run a case, and return the differences from its expectation."""
    cluster = Cluster((*case.nodes, *case.pod_disruption_budgets, *map(_pod_group, case.pod_groups), *case.pods))
    evicted: list[str] = []
    while True:
        plan = schedule(cluster, consolidation=case.behavior == "consolidation")
        evicted += [each.pod for each in plan.evictions]
        present = cluster.pods.row_of
        terminating = [pod.key for pod in case.pods if pod.metadata.deletion_timestamp and pod.key in present]
        if not terminating:
            break
        for key in terminating:
            cluster.apply(Remove(Pod.KIND, key))
    names = cluster.pods.node_names
    bound = {key: node for key, row in cluster.pods.row_of.items() if (node := names[row]) is not None}
    return _compare(case, cluster, evicted=evicted, bound=bound)


def _pod_group(group: _Group) -> Object:
    """Return a PodGroup with the minimum, topology, disruption and sub-groups of a case's group."""
    annotations = {tutti_annotations.DISRUPTION: group.disruption}
    topology = group.topology or _Topology()
    if topology.required:
        annotations[tutti_annotations.REQUIRED] = topology.required
    if topology.preferred:
        annotations[tutti_annotations.PREFERRED] = topology.preferred
    if group.sub_groups:
        parts = [
            {"name": each.name, "minMember": each.min_member, "topology": _topology_tree(each.topology)}
            for each in group.sub_groups
        ]
        annotations[tutti_annotations.SUB_GROUPS] = msgspec.json.encode(parts).decode()
    meta = ObjectMeta(name=group.name, namespace=group.namespace, annotations=annotations)
    return CoschedulingPodGroup(metadata=meta, spec=CoschedulingSpec(min_member=group.min_member))


def _topology_tree(topology: _Topology | None) -> dict[str, str]:
    topology = topology or _Topology()
    return {name: key for name, key in (("required", topology.required), ("preferred", topology.preferred)) if key}


def _compare(case: GangCase, cluster: Cluster, *, evicted: list[str], bound: dict[str, str]) -> GangDifferences:
    expect, differences = case.expect, GangDifferences()
    if not _are_expected_pods(expect.evicted, evicted):
        differences["evicted"] = expect.evicted, sorted(evicted)
    wrong = {pod: bound.get(pod) for pod, node in expect.bound.items() if not _is_expected_node(bound.get(pod), node)}
    if wrong:
        differences["bound"] = {pod: expect.bound[pod] for pod in wrong}, wrong
    running = {pod: bound[pod] for pod in expect.pending if pod in bound}
    if running:
        differences["pending"] = sorted(running), running
    counts = (expect.bound_count,) if isinstance(expect.bound_count, dict) else expect.bound_count
    for each in counts:
        number = sum(pod in bound for pod in each["from"])
        if number != each["count"]:
            differences["boundCount"] = each, number
    for same in expect.same_topology:
        values = {_label(cluster, bound[pod], same.key) for pod in same.pods if pod in bound}
        if len(values) > 1 or None in values:
            differences["sameTopology"] = same.key, sorted(map(str, values))
    node_before = {pod.key: pod.spec.node_name for pod in case.pods if pod.spec.node_name and not _has_ended(pod)}
    moved = {pod: bound.get(pod) for pod, node in node_before.items() if pod not in evicted and bound.get(pod) != node}
    if moved:
        differences["running"] = {pod: node_before[pod] for pod in moved}, moved
    return differences


def _has_ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed") or pod.metadata.deletion_timestamp is not None


def _are_expected_pods(expected: tuple[str, ...] | CountOfPods, pods: Iterable[str]) -> bool:
    if isinstance(expected, dict):
        names = list(pods)
        return len(names) == expected["count"] and set(names) <= set(expected["from"])
    return sorted(expected) == sorted(pods)


def _is_expected_node(node: str | None, expected: str | tuple[str, ...] | None) -> bool:
    """Return whether a pod's node is one of the expected nodes; None expects any node."""
    if node is None or expected is None:
        return node is not None
    return node == expected if isinstance(expected, str) else node in expected


def _label(cluster: Cluster, node: str, key: str) -> str | None:
    obj = cluster.nodes.objects[cluster.node_row(node)]
    return (obj.metadata.labels or {}).get(key) if obj is not None else None
