"""Rules between pods as arrays over pod classes: which classes can share a node, and which can share a zone.

Contract: pure; derived from the specs of the pending pods and from the running pods. Only required rules are here:
hard spread constraints, required affinity and anti-affinity, host ports. The rules guide the search; the engine decides
when it places the pods. A rule over the label `kubernetes.io/hostname` becomes a part of `HostRules`; a rule over any
other node label is a `DomainRule`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Ints
from tutti.cluster.counters.domain_counts import DomainView
from tutti.cluster.counters.label_classes import CounterKey
from tutti.cluster.counters.pod_terms import PodTerm, Scope
from tutti.cluster.spec_classes import SpreadConstraint
from tutti.engine.plugins.base import IncomingPod
from tutti.engine.plugins.spread_counts import counted_view
from tutti.kube.selectors import EVERYTHING, Selector, labels_selector

HOSTNAME = "kubernetes.io/hostname"
UNLIMITED = 1 << 40


class RuleKind(Enum):
    """What a domain rule demands of the pods of its holder."""

    SPREAD = "spread"
    """The counts of matched pods differ by at most `skew` between domains."""
    AFFINITY = "affinity"
    """The pods run in a domain that has a matched pod."""
    ANTI_AFFINITY = "anti-affinity"
    """The pods run in no domain that has a matched pod, and matched pods in no domain that has one of these pods."""


class DomainRule(NamedTuple):
    """A rule over the domains of a node label."""

    kind: RuleKind
    holder: int
    """The class that has the rule."""
    key: str
    matched: Bools
    """Which classes the rule's selector matches."""
    counts: Mapping[str, int]
    """How many running pods match the rule's selector, for each domain that has a node."""
    skew: int = 0
    min_domains: int = 1


class HostRules(NamedTuple):
    """The rules within one node."""

    max_per_node: Ints
    """How many pods of each class one node takes, whatever its size, while some other node has none."""
    has_spread: Bools
    """Whether `max_per_node` comes from a spread over nodes: the maximum rises when every node has a pod."""
    spread_matched: Bools
    """Class x class: which classes the spread over nodes of the first class counts."""
    spread_nodes: Ints
    """How many existing nodes the spread over nodes counts."""
    spread_pods: Ints
    """How many running pods the spread over nodes counts."""
    conflicts: Bools
    """Class x class: which classes cannot share a node (anti-affinity, or the same host port)."""
    group_limits: tuple[tuple[Bools, int], ...]
    """Groups of classes, each with the total number of pods of the group that one node takes at most."""
    affinity: tuple[tuple[int, Bools], ...]
    """A class, and the classes of which one pod must be on the same node."""


class PodRules(NamedTuple):
    """All rules of the pending pods."""

    host: HostRules
    domains: tuple[DomainRule, ...]
    affected: Bools
    """Which classes hold a rule about other pods, or match the selector of such a rule."""
    holders: Bools
    """Which classes hold a rule about other pods."""


def read_rules(cluster: Cluster, classes: Sequence[IncomingPod]) -> PodRules:
    """Return the rules of pod classes, each class given by one of its pods."""
    return _RuleReader(cluster, classes).read()


class _RuleReader:
    """Reads the rules class by class into arrays."""

    def __init__(self, cluster: Cluster, classes: Sequence[IncomingPod]) -> None:
        self.cluster, self.classes = cluster, classes
        count = len(classes)
        self.max_per_node: Ints = np.full(count, UNLIMITED, dtype=np.int64)
        self.has_spread: Bools = np.zeros(count, dtype=bool)
        self.spread_matched: Bools = np.zeros((count, count), dtype=bool)
        self.spread_nodes: Ints = np.zeros(count, dtype=np.int64)
        self.spread_pods: Ints = np.zeros(count, dtype=np.int64)
        self.conflicts: Bools = np.zeros((count, count), dtype=bool)
        self.affected: Bools = np.zeros(count, dtype=bool)
        self.holders: Bools = np.zeros(count, dtype=bool)
        self.group_limits: list[tuple[Bools, int]] = []
        self.affinity: list[tuple[int, Bools]] = []
        self.domains: list[DomainRule] = []
        self._labels = [incoming.labels.number for incoming in classes]
        self._pod_by_labels = {incoming.labels.number: incoming for incoming in classes}
        self._match_cache: dict[tuple[Scope, Selector], Bools] = {}
        self._spread_groups: dict[tuple[bytes, int], list[int]] = {}

    def read(self) -> PodRules:
        """Return the rules of all classes."""
        for number, incoming in enumerate(self.classes):
            hard = [constraint for constraint in incoming.spec.spread if constraint.hard]
            keys = tuple(sorted({constraint.topology_key for constraint in hard}))
            for constraint in hard:
                self._read_spread(number, constraint, keys)
            for term in incoming.spec.anti_affinity:
                self._read_anti_affinity(number, term)
            for term in incoming.spec.affinity:
                self._read_affinity(number, term)
        for (_, skew), holders in self._spread_groups.items():
            if len(holders) > 1:  # a class that only matches the selector has no limit of its own
                group = np.zeros(len(self.classes), dtype=bool)
                group[holders] = True
                self.group_limits.append((group, skew))
        self._read_ports()
        self.max_per_node[self.conflicts.diagonal()] = 1
        np.fill_diagonal(self.conflicts, False)
        host = HostRules(
            self.max_per_node,
            self.has_spread,
            self.spread_matched,
            self.spread_nodes,
            self.spread_pods,
            self.conflicts,
            tuple(self.group_limits),
            tuple(self.affinity),
        )
        return PodRules(host, tuple(self.domains), self.affected, self.holders)

    def _read_spread(self, number: int, constraint: SpreadConstraint, keys: tuple[str, ...]) -> None:
        """Read a hard spread constraint: over nodes into host rules, over another label into a domain rule."""
        incoming = self.classes[number]
        labels, key = incoming.own_labels, constraint.topology_key
        extra_labels = {name: labels[name] for name in constraint.extra_keys if name in labels}
        constraint = constraint._replace(
            selector=constraint.selector.with_requirements(labels_selector(extra_labels).requirements)
        )
        if constraint.selector == EVERYTHING:  # kube-scheduler counts no pod for an empty selector
            matched = np.zeros(len(self.classes), dtype=bool)
        else:
            scope = Scope(frozenset((incoming.spec.namespace,)))
            matched = self._matched_classes(PodTerm(scope, constraint.selector, key))
        self._mark_affected(number, matched)
        if key != HOSTNAME:
            counts = self._counts_by_value(counted_view(incoming, constraint, keys))
            rule = DomainRule(
                RuleKind.SPREAD, number, key, matched, counts, constraint.max_skew, constraint.min_domains
            )
            self.domains.append(rule)
        elif matched[number]:
            self.max_per_node[number] = min(int(self.max_per_node[number]), constraint.max_skew)
            self.has_spread[number], self.spread_matched[number] = True, self.spread_matched[number] | matched
            view = counted_view(incoming, constraint, keys)
            self.spread_nodes[number], self.spread_pods[number] = int((view.nodes_in > 0).sum()), int(view.counts.sum())
            self._spread_groups.setdefault((matched.tobytes(), constraint.max_skew), []).append(number)

    def _read_anti_affinity(self, number: int, term: PodTerm) -> None:
        """Read a required anti-affinity term."""
        matched = self._matched_classes(term)
        self._mark_affected(number, matched)
        if term.topology_key == HOSTNAME:
            self.conflicts[number] |= matched
            self.conflicts[:, number] |= matched
        else:
            self.domains.append(
                DomainRule(RuleKind.ANTI_AFFINITY, number, term.topology_key, matched, self._running_pods(term))
            )

    def _read_affinity(self, number: int, term: PodTerm) -> None:
        """Read a required affinity term."""
        matched = self._matched_classes(term)
        self._mark_affected(number, matched)
        if term.topology_key == HOSTNAME:
            self.affinity.append((number, matched))
        else:
            self.domains.append(
                DomainRule(RuleKind.AFFINITY, number, term.topology_key, matched, self._running_pods(term))
            )

    def _read_ports(self) -> None:
        """Mark classes with conflicting host ports."""
        ports_of = [incoming.spec.ports for incoming in self.classes]
        users = [number for number, ports in enumerate(ports_of) if ports]
        for first in users:
            for second in users:
                if any(_ports_conflict(a, b) for a in ports_of[first] for b in ports_of[second]):
                    self.conflicts[first, second] = True

    def _mark_affected(self, number: int, matched: Bools) -> None:
        """Mark the holder of a rule and the classes that the rule matches."""
        self.affected |= matched
        self.affected[number] = self.holders[number] = True

    def _matched_classes(self, term: PodTerm) -> Bools:
        """Return which classes a term matches. Classes with the same labels are matched once; results are cached."""
        key = (term.scope, term.selector)
        mask = self._match_cache.get(key)
        if mask is None:
            answers: dict[int, bool] = {}
            for incoming in self._pod_by_labels.values():
                namespace = incoming.spec.namespace
                in_scope = term.scope.contains_existing(namespace, self.cluster.namespace_labels(namespace))
                answers[incoming.labels.number] = in_scope and term.selector.matches(incoming.own_labels)
            mask = self._match_cache[key] = np.array([answers[number] for number in self._labels], dtype=bool)
        return mask

    def _running_pods(self, term: PodTerm) -> dict[str, int]:
        """Return how many running pods match a term, for each domain that has such a pod."""
        counter = self.cluster.pod_counters.counter(CounterKey(((term.scope, term.selector),), live=False))
        counts = self._counts_by_value(counter.view(term.topology_key, self.cluster.nodes))
        return {value: count for value, count in counts.items() if count}

    def _counts_by_value(self, view: DomainView) -> dict[str, int]:
        """Return the counts of a view by label value, for the domains that have a node."""
        values = self.cluster.nodes.column(view.key).values
        return {v: int(view.counts[d]) for v, d in values.items() if d < len(view.counts) and view.nodes_in[d]}


def _ports_conflict(first: tuple[str, str, int], second: tuple[str, str, int]) -> bool:
    """Return whether two host ports (address, protocol, port) cannot both be used on one node."""
    any_address = ("0.0.0.0", "", "::")
    same_address = first[0] == second[0] or first[0] in any_address or second[0] in any_address
    return same_address and first[1:] == second[1:]
