"""The purchase problem in numbers: pod classes, offerings, existing nodes, and which class fits where.

Contract: `build_problem` asks the engine once about every class on every offering (one empty node with its daemons) and
on every existing node; the cluster is left as it was. Amounts are in the engine's units: rows of `requests`, `free` and
`node_free` are over `resources`, and `pods` is one of the resources. `free` is the room of an empty new node; `limits`
say how many nodes can be bought. Classes are in the order of the queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import NONZERO_CPU, NONZERO_MEMORY, PODS, Bools, Ints, Rows
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.cluster.node_edits import node_of
from tutti.cluster.spec_classes import SpecClass
from tutti.cluster.trial import Trial
from tutti.engine.placement.evaluator import FilterResult
from tutti.engine.plugins.base import ClusterPlugin, IncomingPod
from tutti.engine.plugins.verdict import Reason
from tutti.market.offerings import Catalogue, Offering, takes
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.pod_rules import DomainRule, PodRules, RuleKind, read_rules

_POD_RULE_PLUGINS = ("PodTopologySpread", "InterPodAffinity")
"""Plugins whose answers depend on other pods, and so change while pods are placed."""


class PendingClass(NamedTuple):
    """Pending pods that the scheduler cannot tell apart, in the order of the queue."""

    pods: tuple[str, ...]
    priority: int
    gang: str | None = None
    """The gang of all these pods, if the gang's pods must share a node label; None otherwise."""


class LimitRow(NamedTuple):
    """A limit, and how much of the limit one node of each offering takes."""

    takes: Ints
    """How much of the limit one node of each offering takes."""
    left: int
    """How much of the limit is left."""
    reason: str


class Problem(NamedTuple):
    """See the module's contract."""

    classes: tuple[PendingClass, ...]
    resources: tuple[str, ...]
    requests: Ints
    """Class x resource."""
    demand: Ints
    """Number of pods of each class."""
    offerings: tuple[Offering, ...]
    free: Ints
    """Offering x resource: the free amounts of a new node with its daemons."""
    allowed: Bools
    """Offering x class: whether an empty node takes a pod of the class."""
    limits: tuple[LimitRow, ...]
    nodes: tuple[str, ...]
    """The existing nodes that can take a pod of some class."""
    node_labels: tuple[Mapping[str, str], ...]
    node_free: Ints
    """Existing node x resource: the free amounts."""
    node_feasible: Bools
    """Existing node x class: whether the node takes a pod of the class now, by all filters."""
    node_allowed: Bools
    """Existing node x class: whether the node takes a pod of the class when rules between pods are ignored."""
    rules: PodRules

    def domain(self, key: str) -> list[str | None]:
        """Return the value of a node label on a node of each offering."""
        return [(offering.node.metadata.labels or {}).get(key) for offering in self.offerings]

    def with_offerings(self, mask: Bools) -> Problem:
        """Return the problem with the offerings of a mask only."""
        rows = np.flatnonzero(mask)
        limits = tuple(limit._replace(takes=limit.takes[rows]) for limit in self.limits)
        return self._replace(
            offerings=tuple(self.offerings[row] for row in rows.tolist()),
            free=self.free[rows],
            allowed=self.allowed[rows],
            limits=tuple(limit for limit in limits if limit.takes.any()),
        )

    @property
    def class_of_pod(self) -> dict[str, int]:
        """The class number of each pod."""
        return {pod: number for number, each in enumerate(self.classes) for pod in each.pods}


def build_problem(planning: PlanningCluster, catalogue: Catalogue, pods: Sequence[str] | None = None) -> Problem:
    """Build the problem of some pending pods; of all pending pods if `pods` is None."""
    offerings = tuple(offering for pool in catalogue.pools for offering in pool.offerings)
    classes = _classes(planning, planning.pending if pods is None else pods)
    evaluator, cluster = planning.engine.evaluator, planning.cluster
    incoming = [evaluator.incoming_pod(cluster.pod_row(each.pods[0])) for each in classes]
    rules = read_rules(cluster, incoming)
    rules = rules._replace(domains=(*rules.domains, *_gang_topology_rules(planning, classes)))
    node_names, node_free, node_feasible, node_allowed = _existing_nodes(planning, incoming)
    with Trial(cluster):
        names = [f"template-{number}" for number in range(len(offerings))]
        for offering, name in zip(offerings, names, strict=True):
            planning.join(offering, name)
        rows = np.array([cluster.node_row(name) for name in names], dtype=np.intp)
        allowed = _allowed_classes(planning, incoming, rows)
        columns = _resource_columns(cluster.usages.matrix, [int(cluster.pods.usage[each.row]) for each in incoming])
        free = (cluster.nodes.alloc[columns][:, rows] - cluster.nodes.used[columns][:, rows]).T
        requests = np.array(
            [_request_row(each.spec, cluster.resources.names, columns) for each in incoming], dtype=np.int64
        )
        resources = tuple(cluster.resources.names[column] for column in columns)
        node_free = node_free[:, columns]
    return Problem(
        classes=tuple(classes),
        resources=resources,
        requests=requests.reshape(len(classes), len(columns)),
        demand=np.array([len(each.pods) for each in classes], dtype=np.int64),
        offerings=offerings,
        free=np.maximum(free, 0),
        allowed=allowed,
        limits=_limit_rows(catalogue, offerings),
        nodes=node_names,
        node_labels=tuple(node_of(cluster, name).metadata.labels or {} for name in node_names),
        node_free=node_free,
        node_feasible=node_feasible,
        node_allowed=node_allowed,
        rules=rules,
    )


def rebuild_problem(planning: PlanningCluster, problem: Problem, pods: Sequence[str]) -> Problem:
    """Return the problem of some of its pods on the planning cluster as it is now; keep offerings and limits."""
    evaluator, cluster, class_of_pod = planning.engine.evaluator, planning.cluster, problem.class_of_pod
    classes = _classes(planning, pods)
    incoming = [evaluator.incoming_pod(cluster.pod_row(each.pods[0])) for each in classes]
    rules = read_rules(cluster, incoming)
    node_names, node_free, node_feasible, node_allowed = _existing_nodes(planning, incoming)
    old_numbers = [class_of_pod[each.pods[0]] for each in classes]
    columns = [cluster.resources.index(name) for name in problem.resources]
    return problem._replace(
        classes=tuple(classes),
        requests=problem.requests[old_numbers],
        demand=np.array([len(each.pods) for each in classes], dtype=np.int64),
        allowed=problem.allowed[:, old_numbers],
        nodes=node_names,
        node_labels=tuple(node_of(cluster, name).metadata.labels or {} for name in node_names),
        node_free=node_free[:, columns],
        node_feasible=node_feasible,
        node_allowed=node_allowed,
        rules=rules._replace(domains=(*rules.domains, *_gang_topology_rules(planning, classes))),
    )


def _classes(planning: PlanningCluster, pods: Sequence[str]) -> list[PendingClass]:
    """Return the pod classes of some pods, in the order of the queue."""
    cluster, table = planning.cluster, planning.cluster.pods
    rows = [cluster.pod_row(pod) for pod in pods]
    # Pods that differ in a label that some pod's rules select are different classes.
    for number in dict.fromkeys(table.spec[rows].tolist()):
        cluster.pod_counters.watch(cluster.specs.classes[number].watched_keys)
    gang_of_group = _gangs_by_group(planning)
    members: dict[tuple[int, int, int, int], list[str]] = {}
    for pod, row in zip(pods, rows, strict=True):
        group = int(table.group[row])
        key = (
            int(table.spec[row]),
            int(table.labels[row]),
            int(table.priority[row]),
            group if group in gang_of_group else NO_GROUP,
        )
        members.setdefault(key, []).append(pod)
    return [PendingClass(tuple(each), key[2], gang_of_group.get(key[3])) for key, each in members.items()]


def _gangs_by_group(planning: PlanningCluster) -> dict[int, str]:
    """Return the groups whose pods must share a node label, with the gang's name."""
    gang_of_group: dict[int, str] = {}
    for number, root in enumerate(planning.gangs.roots()):
        if root is not None:
            gang = planning.gangs.gang(root)
            if gang.topology.required or any(part.topology.required for part in gang.parts):
                gang_of_group[number] = root
    return gang_of_group


def _gang_topology_rules(planning: PlanningCluster, classes: Sequence[PendingClass]) -> list[DomainRule]:
    """Return the affinity rules of gangs whose pods must share a node label."""
    cluster, rules = planning.cluster, []
    for gang in dict.fromkeys(each.gang for each in classes if each.gang is not None):
        record = planning.gangs.gang(gang)
        keys = (record.topology.required, *(part.topology.required for part in record.parts))
        key = next(each for each in keys if each)
        matched = np.array([each.gang == gang for each in classes], dtype=bool)
        column = cluster.nodes.column(key)
        values = {number: value for value, number in column.values.items()}
        node_rows = cluster.pods.node[list(planning.gangs.state(gang, ()).running)]
        counts = Counter(values[number] for number in column.ids[node_rows].tolist() if number in values)
        rules += [DomainRule(RuleKind.AFFINITY, n, key, matched, counts) for n in np.flatnonzero(matched).tolist()]
    return rules


def _existing_nodes(
    planning: PlanningCluster, incoming: Sequence[IncomingPod]
) -> tuple[tuple[str, ...], Ints, Bools, Bools]:
    """Return the existing nodes that can take some class: names, free amounts, `node_feasible`, `node_allowed`."""
    cluster, evaluator = planning.cluster, planning.engine.evaluator
    node_rows = np.flatnonzero(cluster.nodes.on[: cluster.nodes.length])
    allowed = _allowed_classes(planning, incoming, node_rows)
    rows, allowed = node_rows[allowed.any(axis=1)], allowed[allowed.any(axis=1)]
    feasible = np.zeros(allowed.shape, dtype=bool)
    for number, each in enumerate(incoming):
        result = evaluator.filter(each) if allowed[:, number].any() else None
        if isinstance(result, FilterResult):
            feasible[:, number] = result.feasible[rows]
    node_free = (cluster.nodes.alloc[:, rows] - cluster.nodes.used[:, rows]).T.copy()
    names = tuple(cluster.nodes.names[row] for row in rows.tolist())
    return names, np.maximum(node_free, 0), feasible, allowed | feasible


def _allowed_classes(planning: PlanningCluster, incoming: Sequence[IncomingPod], rows: Rows) -> Bools:
    """Return whether each node takes a pod of each class, when rules between pods are ignored."""
    evaluator, plugins = planning.engine.evaluator, planning.engine.profile.plugins
    allowed = np.zeros((len(rows), len(incoming)), dtype=bool)
    for number, each in enumerate(incoming):
        table = evaluator.row_cache(each)
        allowed[:, number] = table.keys(each.spec)[rows] >= 0
        if not allowed[:, number].any() or not each.spec.volumes:
            continue
        for plugin in (enabled.plugin for enabled in plugins if enabled.filters):
            if not isinstance(plugin, ClusterPlugin) or plugin.name in _POD_RULE_PLUGINS or not plugin.applies_to(each):
                continue
            state = plugin.pre_filter(each)
            if isinstance(state, Reason):  # the plugin refuses every node
                allowed[:, number] = False
            elif state is not None:
                allowed[:, number] &= state.filter(rows) == 0
    return allowed


def _resource_columns(usages: Ints, numbers: Sequence[int]) -> list[int]:
    """Return the columns of the resources that some class requests; cpu, memory and pods are always included."""
    used: Bools = np.zeros(usages.shape[1], dtype=bool)
    for number in numbers:
        used |= usages[number] > 0
    used[:3] = True
    used[[NONZERO_CPU, NONZERO_MEMORY]] = False
    return [int(column) for column in np.flatnonzero(used)]


def _request_row(spec: SpecClass, names: Sequence[str], columns: Sequence[int]) -> list[int]:
    """Return the requests of a class in the columns of some resources."""
    requests = spec.requests
    return [1 if column == PODS else requests.get(names[column], 0) for column in columns]


def _limit_rows(catalogue: Catalogue, offerings: Sequence[Offering]) -> tuple[LimitRow, ...]:
    """Return the limits of pools and of the whole catalogue that some offering counts for."""
    rows = []
    pooled = [(pool.name, limit) for pool in catalogue.pools for limit in pool.limits]
    for pool, limit in [*pooled, *((None, limit) for limit in catalogue.limits)]:
        taken = [takes(limit, each) if pool in (None, each.pool) else 0 for each in offerings]
        if any(taken):
            rows.append(LimitRow(np.array(taken, dtype=np.int64), limit.left, limit.reason))
    return tuple(rows)
