"""Acceptance cases of gang schedulers, run to their end: a cluster state in, a required outcome out.

Contract: a case is one line with nodes, groups, pods and what must come of it; the outcome is the settled state, in
which nobody is terminating any more. Where a suite's answer is one of several that are equally right, the case says
so, and each of them is accepted. Groups are read as PodGroups of the coscheduling dialect with Tutti's own
annotations.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Remove
from tutti.engine.session.schedule import schedule
from tutti.exceptions import InputError
from tutti.kube.gangs import tutti_annotations as additions
from tutti.kube.objects import (
    CoschedulingPodGroup,
    CoschedulingSpec,
    Node,
    Object,
    ObjectMeta,
    Pod,
    PodDisruptionBudget,
)

Counted = dict[str, Any]
Found = dict[str, tuple[Any, Any]]
"""What was recorded and what came out, for the parts of an expectation that do not hold."""


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


class _Shared(msgspec.Struct, frozen=True):
    pods: tuple[str, ...]
    key: str


class _Expect(msgspec.Struct, frozen=True, rename="camel"):
    evicted: tuple[str, ...] | Counted = ()
    bound: dict[str, str | tuple[str, ...] | None] = {}
    pending: tuple[str, ...] = ()
    bound_count: Counted | tuple[Counted, ...] = ()
    same_topology: tuple[_Shared, ...] = ()


class GangCase(msgspec.Struct, frozen=True, rename="camel"):
    """One case."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    expect: _Expect
    name: str = ""
    behavior: str = "?"
    pod_groups: tuple[_Group, ...] = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()


def read_gang_case(path: str, number: int, line: bytes) -> GangCase:
    """Read one line of a file."""
    try:
        return msgspec.json.decode(line, type=GangCase)
    except msgspec.DecodeError as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from None


def outcome(case: GangCase) -> Found:
    """Run a case; give what came out otherwise than it must."""
    cluster = Cluster((*case.nodes, *case.pod_disruption_budgets, *map(_group, case.pod_groups), *case.pods))
    evicted: list[str] = []
    while True:
        plan = schedule(cluster, consolidation=case.behavior == "consolidation")
        evicted += [each.pod for each in plan.evictions]
        leaving = [pod.key for pod in case.pods if pod.metadata.deletion_timestamp and pod.key in cluster.pods.row_of]
        if not leaving:
            break
        for key in leaving:
            cluster.apply(Remove(Pod.KIND, key))
    names = cluster.pods.node_names
    bound = {key: node for key, row in cluster.pods.row_of.items() if (node := names[row]) is not None}
    return _compare(case, cluster, evicted=evicted, bound=bound)


def _group(group: _Group) -> Object:
    """A PodGroup that says what a case says."""
    said = {additions.DISRUPTION: group.disruption}
    topology = group.topology or _Topology()
    if topology.required:
        said[additions.REQUIRED] = topology.required
    if topology.preferred:
        said[additions.PREFERRED] = topology.preferred
    if group.sub_groups:
        parts = [
            {"name": each.name, "minMember": each.min_member, "topology": _near(each.topology)}
            for each in group.sub_groups
        ]
        said[additions.SUB_GROUPS] = msgspec.json.encode(parts).decode()
    meta = ObjectMeta(name=group.name, namespace=group.namespace, annotations=said)
    return CoschedulingPodGroup(metadata=meta, spec=CoschedulingSpec(min_member=group.min_member))


def _near(topology: _Topology | None) -> dict[str, str]:
    topology = topology or _Topology()
    return {name: key for name, key in (("required", topology.required), ("preferred", topology.preferred)) if key}


def _compare(case: GangCase, cluster: Cluster, *, evicted: list[str], bound: dict[str, str]) -> Found:
    expect, found = case.expect, Found()
    if not _counted_or_exact(expect.evicted, evicted):
        found["evicted"] = expect.evicted, sorted(evicted)
    wrong = {pod: bound.get(pod) for pod, node in expect.bound.items() if not _there(bound.get(pod), node)}
    if wrong:
        found["bound"] = {pod: expect.bound[pod] for pod in wrong}, wrong
    running = {pod: bound[pod] for pod in expect.pending if pod in bound}
    if running:
        found["pending"] = sorted(running), running
    counts = (expect.bound_count,) if isinstance(expect.bound_count, dict) else expect.bound_count
    for each in counts:
        number = sum(pod in bound for pod in each["from"])
        if number != each["count"]:
            found["boundCount"] = each, number
    for shared in expect.same_topology:
        values = {_label(cluster, bound[pod], shared.key) for pod in shared.pods if pod in bound}
        if len(values) > 1 or None in values:
            found["sameTopology"] = shared.key, sorted(map(str, values))
    stayed = {pod.key: pod.spec.node_name for pod in case.pods if pod.spec.node_name and not _ended(pod)}
    moved = {pod: bound.get(pod) for pod, node in stayed.items() if pod not in evicted and bound.get(pod) != node}
    if moved:
        found["running"] = {pod: stayed[pod] for pod in moved}, moved
    return found


def _ended(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed") or pod.metadata.deletion_timestamp is not None


def _counted_or_exact(expected: tuple[str, ...] | Counted, got: Iterable[str]) -> bool:
    if isinstance(expected, dict):
        names = list(got)
        return len(names) == expected["count"] and set(names) <= set(expected["from"])
    return sorted(expected) == sorted(got)


def _there(node: str | None, expected: str | tuple[str, ...] | None) -> bool:
    if node is None or expected is None:
        return node is not None
    return node == expected if isinstance(expected, str) else node in expected


def _label(cluster: Cluster, node: str, key: str) -> str | None:
    obj = cluster.nodes.objects[cluster.node_row(node)]
    return (obj.metadata.labels or {}).get(key) if obj is not None else None
