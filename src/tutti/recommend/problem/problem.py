"""The problem in numbers: pod classes, offerings, and who can go where.

Contract: `pose` asks the engine about every class on every offering, each as a node of its own with its daemons, and on
every node that is there, in one pass; the cluster is left as it was. Amounts are the engine's: rows of `requests` and
`free` are over `resources`, and `pods` is one of them. What can be bought where nothing runs is `free`; limits say how
often. Classes are in the order of the queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import NONZERO_CPU, NONZERO_MEMORY, PODS, Bools, Ints, Rows
from tutti.cluster.groups import NO_GROUP
from tutti.cluster.node_edits import node_of
from tutti.cluster.spec_classes import SpecClass
from tutti.cluster.trial import Trial
from tutti.engine.placement.evaluator import FilterResult
from tutti.engine.plugins.base import ClusterPlugin, IncomingPod
from tutti.engine.plugins.verdict import Reason
from tutti.market.offerings import Catalogue, Offering, takes
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.pod_rules import DomainRule, PodRules, RuleKind, rules_of

_LOOKERS = ("PodTopologySpread", "InterPodAffinity")
"""Plugins that look at other pods: what they say changes while pods are placed."""


class PendingClass(NamedTuple):
    """Pods that cannot be told apart, in the order of the queue."""

    pods: tuple[str, ...]
    priority: int
    gang: str | None = None
    """The gang that all of them belong to, where they must run near to each other."""


class LimitRow(NamedTuple):
    """A limit, as how much of it a node of each offering takes."""

    takes: Ints
    left: int
    reason: str


class Problem(NamedTuple):
    """See the module's contract."""

    classes: tuple[PendingClass, ...]
    resources: tuple[str, ...]
    requests: Ints
    """Class x resource."""
    demand: Ints
    offerings: tuple[Offering, ...]
    free: Ints
    """Offering x resource: what a new node has left beside its daemons."""
    allowed: Bools
    """Offering x class: whether an empty node takes a pod of the class."""
    limits: tuple[LimitRow, ...]
    nodes: tuple[str, ...]
    """The nodes that are there and could take a pod."""
    node_labels: tuple[Mapping[str, str], ...]
    room: Ints
    """Node x resource: what is free there."""
    welcome: Bools
    """Node x class: whether the node takes a pod of the class now."""
    roomy: Bools
    """Node x class: whether it would, whatever other pods there are."""
    rules: PodRules

    def domain(self, key: str) -> list[str | None]:
        """The value of a label on a node of each offering."""
        return [(offering.node.metadata.labels or {}).get(key) for offering in self.offerings]

    def only(self, mask: Bools) -> Problem:
        """The same with some of the offerings."""
        rows = np.flatnonzero(mask)
        limits = tuple(limit._replace(takes=limit.takes[rows]) for limit in self.limits)
        return self._replace(
            offerings=tuple(self.offerings[row] for row in rows.tolist()),
            free=self.free[rows],
            allowed=self.allowed[rows],
            limits=tuple(limit for limit in limits if limit.takes.any()),
        )

    @property
    def of_pod(self) -> dict[str, int]:
        """The class of each pod."""
        return {pod: number for number, each in enumerate(self.classes) for pod in each.pods}


def pose(planning: PlanningCluster, catalogue: Catalogue, pods: Sequence[str] | None = None) -> Problem:
    """State the problem of some waiting pods (all of them if none are named)."""
    offerings = tuple(offering for pool in catalogue.pools for offering in pool.offerings)
    classes = _classes(planning, planning.pending if pods is None else pods)
    evaluator, cluster = planning.engine.evaluator, planning.cluster
    incoming = [evaluator.incoming_pod(cluster.pod_row(each.pods[0])) for each in classes]
    rules = rules_of(cluster, incoming)
    rules = rules._replace(domains=(*rules.domains, *_near_rules(planning, classes)))
    known, room, welcome, roomy = _existing(planning, incoming)
    with Trial(cluster):
        names = [f"template-{number}" for number in range(len(offerings))]
        for offering, name in zip(offerings, names, strict=True):
            planning.join(offering, name)
        rows = np.array([cluster.node_row(name) for name in names], dtype=np.intp)
        allowed = _allowed(planning, incoming, rows)
        places = _places(cluster.usages.matrix, [int(cluster.pods.usage[each.row]) for each in incoming])
        free = (cluster.nodes.alloc[places][:, rows] - cluster.nodes.used[places][:, rows]).T
        requests = np.array(
            [_requests(each.spec, cluster.resources.names, places) for each in incoming], dtype=np.int64
        )
        resources = tuple(cluster.resources.names[place] for place in places)
        room = room[:, places]
    return Problem(
        classes=tuple(classes),
        resources=resources,
        requests=requests.reshape(len(classes), len(places)),
        demand=np.array([len(each.pods) for each in classes], dtype=np.int64),
        offerings=offerings,
        free=np.maximum(free, 0),
        allowed=allowed,
        limits=_limits(catalogue, offerings),
        nodes=known,
        node_labels=tuple(node_of(cluster, name).metadata.labels or {} for name in known),
        room=room,
        welcome=welcome,
        roomy=roomy,
        rules=rules,
    )


def pose_again(planning: PlanningCluster, problem: Problem, pods: Sequence[str]) -> Problem:
    """The problem of some of its pods as the picture stands now; offerings and limits are as they were."""
    evaluator, cluster, number_of = planning.engine.evaluator, planning.cluster, problem.of_pod
    classes = _classes(planning, pods)
    incoming = [evaluator.incoming_pod(cluster.pod_row(each.pods[0])) for each in classes]
    rules = rules_of(cluster, incoming)
    known, room, welcome, roomy = _existing(planning, incoming)
    before = [number_of[each.pods[0]] for each in classes]
    places = [cluster.resources.index(name) for name in problem.resources]
    return problem._replace(
        classes=tuple(classes),
        requests=problem.requests[before],
        demand=np.array([len(each.pods) for each in classes], dtype=np.int64),
        allowed=problem.allowed[:, before],
        nodes=known,
        node_labels=tuple(node_of(cluster, name).metadata.labels or {} for name in known),
        room=room[:, places],
        welcome=welcome,
        roomy=roomy,
        rules=rules._replace(domains=(*rules.domains, *_near_rules(planning, classes))),
    )


def _classes(planning: PlanningCluster, pods: Sequence[str]) -> list[PendingClass]:
    cluster, table = planning.cluster, planning.cluster.pods
    rows = [cluster.pod_row(pod) for pod in pods]
    for number in dict.fromkeys(table.spec[rows].tolist()):  # labels that any of them looks at are told apart
        cluster.pod_counters.watch(cluster.specs.classes[number].watched_keys)
    near = _near(planning)
    members: dict[tuple[int, int, int, int], list[str]] = {}
    for pod, row in zip(pods, rows, strict=True):
        group = int(table.group[row])
        key = (
            int(table.spec[row]),
            int(table.labels[row]),
            int(table.priority[row]),
            group if group in near else NO_GROUP,
        )
        members.setdefault(key, []).append(pod)
    return [PendingClass(tuple(each), key[2], near.get(key[3])) for key, each in members.items()]


def _near(planning: PlanningCluster) -> dict[int, str]:
    """The groups whose pods must share a node label, with the gang's name."""
    found: dict[int, str] = {}
    for number, root in enumerate(planning.gangs.roots()):
        if root is not None:
            gang = planning.gangs.gang(root)
            if gang.topology.required or any(part.topology.required for part in gang.parts):
                found[number] = root
    return found


def _near_rules(planning: PlanningCluster, classes: Sequence[PendingClass]) -> list[DomainRule]:
    """What gangs whose pods must share a node label ask of their classes."""
    cluster, found = planning.cluster, []
    for gang in dict.fromkeys(each.gang for each in classes if each.gang is not None):
        record = planning.gangs.gang(gang)
        wanted = (record.topology.required, *(part.topology.required for part in record.parts))
        key = next(each for each in wanted if each)
        matched = np.array([each.gang == gang for each in classes], dtype=bool)
        column = cluster.nodes.column(key)
        values = {number: value for value, number in column.values.items()}
        at = cluster.pods.node[list(planning.gangs.standing(gang, ()).running)]
        counts = Counter(values[number] for number in column.ids[at].tolist() if number in values)
        found += [DomainRule(RuleKind.TOGETHER, n, key, matched, counts) for n in np.flatnonzero(matched).tolist()]
    return found


def _existing(planning: PlanningCluster, incoming: Sequence[IncomingPod]) -> tuple[tuple[str, ...], Ints, Bools, Bools]:
    """The nodes that are there and could take some class: names, free amounts, who gets in now, who ever could."""
    cluster, evaluator = planning.cluster, planning.engine.evaluator
    there = np.flatnonzero(cluster.nodes.on[: cluster.nodes.length])
    could = _allowed(planning, incoming, there)
    rows, could = there[could.any(axis=1)], could[could.any(axis=1)]
    takes = np.zeros(could.shape, dtype=bool)
    for number, each in enumerate(incoming):
        found = evaluator.filter(each) if could[:, number].any() else None
        if isinstance(found, FilterResult):
            takes[:, number] = found.feasible[rows]
    room = (cluster.nodes.alloc[:, rows] - cluster.nodes.used[:, rows]).T.copy()
    names = tuple(cluster.nodes.names[row] for row in rows.tolist())
    return names, np.maximum(room, 0), takes, could | takes


def _allowed(planning: PlanningCluster, incoming: Sequence[IncomingPod], rows: Rows) -> Bools:
    """Whether an empty node of each offering takes a pod of each class, whatever other pods there are."""
    evaluator, plugins = planning.engine.evaluator, planning.engine.profile.plugins
    allowed = np.zeros((len(rows), len(incoming)), dtype=bool)
    for number, each in enumerate(incoming):
        table = evaluator.row_table(each)
        allowed[:, number] = table.keys(each.spec)[rows] >= 0
        if not allowed[:, number].any() or not each.spec.volumes:
            continue
        for plugin in (enabled.plugin for enabled in plugins if enabled.filters):
            if not isinstance(plugin, ClusterPlugin) or plugin.name in _LOOKERS or not plugin.applies_to(each):
                continue
            state = plugin.pre_filter(each)
            if isinstance(state, Reason):  # no node will do
                allowed[:, number] = False
            elif state is not None:
                allowed[:, number] &= state.filter(rows) == 0
    return allowed


def _places(usages: Ints, numbers: Sequence[int]) -> list[int]:
    """The resources that some class asks for, cpu, memory and pods always."""
    used: Bools = np.zeros(usages.shape[1], dtype=bool)
    for number in numbers:
        used |= usages[number] > 0
    used[:3] = True
    used[[NONZERO_CPU, NONZERO_MEMORY]] = False
    return [int(place) for place in np.flatnonzero(used)]


def _requests(spec: SpecClass, names: Sequence[str], places: Sequence[int]) -> list[int]:
    wanted = spec.requests
    return [1 if place == PODS else wanted.get(names[place], 0) for place in places]


def _limits(catalogue: Catalogue, offerings: Sequence[Offering]) -> tuple[LimitRow, ...]:
    found = []
    pooled = [(pool.name, limit) for pool in catalogue.pools for limit in pool.limits]
    for pool, limit in [*pooled, *((None, limit) for limit in catalogue.limits)]:
        taken = [takes(limit, each) if pool in (None, each.pool) else 0 for each in offerings]
        if any(taken):
            found.append(LimitRow(np.array(taken, dtype=np.int64), limit.left, limit.reason))
    return tuple(found)
