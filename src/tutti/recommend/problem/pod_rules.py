"""The rules between pods, as numbers over pod classes: who can share a node, and who a zone.

Contract: derived from the specs of the waiting pods and from who runs; pure. Only hard rules are here. They guide the
search; what counts in the end is what the engine says when it places the pods. A rule that keeps pods within one node
is one of `HostRules`; a rule over any other node label is a `DomainRule`.
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
from tutti.kube.selectors import EVERYTHING, Selector, equal_to

HOSTNAME = "kubernetes.io/hostname"
UNLIMITED = 1 << 40


class RuleKind(Enum):
    """What a rule over domains says of the pods that hold it."""

    SPREAD = "spread"
    """Like pods differ by at most `skew` between domains."""
    TOGETHER = "together"
    """They run in a domain with a pod that they look for."""
    APART = "apart"
    """They run in no domain with a pod that they look for, nor the other way round."""


class DomainRule(NamedTuple):
    """A rule over the values of a node label."""

    kind: RuleKind
    holder: int
    """The class that has the rule."""
    key: str
    matched: Bools
    """Which classes it looks for."""
    counts: Mapping[str, int]
    """How many running pods it looks for are in each domain that has a node."""
    skew: int = 0
    min_domains: int = 1


class HostRules(NamedTuple):
    """The rules within one node."""

    most: Ints
    """How many pods of each class a node takes, whatever its size, as long as some node has none."""
    skewed: Bools
    """Whether that is because of a spread: then it is more once every node has one."""
    like: Bools
    """For those, which classes the spread looks for,"""
    hosts: Ints
    """how many nodes there are already that it counts,"""
    running: Ints
    """and how many pods on them that it looks for."""
    apart: Bools
    """Which classes cannot share a node."""
    shared: tuple[tuple[Bools, int], ...]
    """Classes of which a node takes so many together."""
    together: tuple[tuple[int, Bools], ...]
    """A class, and those of which one must be on the same node."""


class PodRules(NamedTuple):
    """All rules of the waiting pods."""

    host: HostRules
    domains: tuple[DomainRule, ...]
    looks: Bools
    """Which classes look at other pods, or are looked at: the others only look at room."""
    holds: Bools
    """Which classes look at other pods."""


def rules_of(cluster: Cluster, classes: Sequence[IncomingPod]) -> PodRules:
    """Read the rules of pod classes, each given by one of its pods."""
    return _Reader(cluster, classes).rules()


class _Reader:
    def __init__(self, cluster: Cluster, classes: Sequence[IncomingPod]) -> None:
        self.cluster, self.classes = cluster, classes
        count = len(classes)
        self.most: Ints = np.full(count, UNLIMITED, dtype=np.int64)
        self.skewed: Bools = np.zeros(count, dtype=bool)
        self.like: Bools = np.zeros((count, count), dtype=bool)
        self.hosts: Ints = np.zeros(count, dtype=np.int64)
        self.running: Ints = np.zeros(count, dtype=np.int64)
        self.apart: Bools = np.zeros((count, count), dtype=bool)
        self.looks: Bools = np.zeros(count, dtype=bool)
        self.holds: Bools = np.zeros(count, dtype=bool)
        self.shared: list[tuple[Bools, int]] = []
        self.together: list[tuple[int, Bools]] = []
        self.domains: list[DomainRule] = []
        self._labels = [incoming.labels.number for incoming in classes]
        self._of_labels = {incoming.labels.number: incoming for incoming in classes}
        self._known: dict[tuple[Scope, Selector], Bools] = {}
        self._hosted: dict[tuple[bytes, int], list[int]] = {}

    def rules(self) -> PodRules:
        for number, incoming in enumerate(self.classes):
            hard = [constraint for constraint in incoming.spec.spread if constraint.hard]
            keys = tuple(sorted({constraint.topology_key for constraint in hard}))
            for constraint in hard:
                self._spread(number, constraint, keys)
            for term in incoming.spec.anti_affinity:
                self._anti(number, term)
            for term in incoming.spec.affinity:
                self._affinity(number, term)
        for (_, skew), holders in self._hosted.items():
            if len(holders) > 1:  # those that are only looked at may join later
                group = np.zeros(len(self.classes), dtype=bool)
                group[holders] = True
                self.shared.append((group, skew))
        self._ports()
        self.most[self.apart.diagonal()] = 1
        np.fill_diagonal(self.apart, False)
        host = HostRules(
            self.most,
            self.skewed,
            self.like,
            self.hosts,
            self.running,
            self.apart,
            tuple(self.shared),
            tuple(self.together),
        )
        return PodRules(host, tuple(self.domains), self.looks, self.holds)

    def _spread(self, number: int, constraint: SpreadConstraint, keys: tuple[str, ...]) -> None:
        incoming = self.classes[number]
        labels, key = incoming.own_labels, constraint.topology_key
        extra = {name: labels[name] for name in constraint.extra_keys if name in labels}
        constraint = constraint._replace(selector=constraint.selector.narrowed(equal_to(extra).requirements))
        if constraint.selector == EVERYTHING:  # an empty selector counts nobody
            matched = np.zeros(len(self.classes), dtype=bool)
        else:
            scope = Scope(frozenset((incoming.spec.namespace,)))
            matched = self._matched(PodTerm(scope, constraint.selector, key))
        self._looks_at(number, matched)
        if key != HOSTNAME:
            counts = self._by_value(counted_view(incoming, constraint, keys))
            rule = DomainRule(
                RuleKind.SPREAD, number, key, matched, counts, constraint.max_skew, constraint.min_domains
            )
            self.domains.append(rule)
        elif matched[number]:
            self.most[number] = min(int(self.most[number]), constraint.max_skew)
            self.skewed[number], self.like[number] = True, self.like[number] | matched
            view = counted_view(incoming, constraint, keys)
            self.hosts[number], self.running[number] = int((view.nodes_in > 0).sum()), int(view.counts.sum())
            self._hosted.setdefault((matched.tobytes(), constraint.max_skew), []).append(number)

    def _anti(self, number: int, term: PodTerm) -> None:
        matched = self._matched(term)
        self._looks_at(number, matched)
        if term.topology_key == HOSTNAME:
            self.apart[number] |= matched
            self.apart[:, number] |= matched
        else:
            self.domains.append(DomainRule(RuleKind.APART, number, term.topology_key, matched, self._running(term)))

    def _affinity(self, number: int, term: PodTerm) -> None:
        matched = self._matched(term)
        self._looks_at(number, matched)
        if term.topology_key == HOSTNAME:
            self.together.append((number, matched))
        else:
            self.domains.append(DomainRule(RuleKind.TOGETHER, number, term.topology_key, matched, self._running(term)))

    def _ports(self) -> None:
        taken = [incoming.spec.ports for incoming in self.classes]
        users = [number for number, ports in enumerate(taken) if ports]
        for one in users:
            for other in users:
                if any(_clash(a, b) for a in taken[one] for b in taken[other]):
                    self.apart[one, other] = True

    def _looks_at(self, number: int, matched: Bools) -> None:
        self.looks |= matched
        self.looks[number] = self.holds[number] = True

    def _matched(self, term: PodTerm) -> Bools:
        """Which classes a term looks for; those with the same labels, as far as anybody looks, are asked about once."""
        key = (term.scope, term.selector)
        known = self._known.get(key)
        if known is None:
            answers: dict[int, bool] = {}
            for incoming in self._of_labels.values():
                namespace = incoming.spec.namespace
                in_scope = term.scope.contains_existing(namespace, self.cluster.namespace_labels(namespace))
                answers[incoming.labels.number] = in_scope and term.selector.matches(incoming.own_labels)
            known = self._known[key] = np.array([answers[number] for number in self._labels], dtype=bool)
        return known

    def _running(self, term: PodTerm) -> dict[str, int]:
        """How many running pods a term looks for in each domain that has some."""
        counter = self.cluster.pod_counters.counter(CounterKey(((term.scope, term.selector),), live=False))
        counts = self._by_value(counter.view(term.topology_key, self.cluster.nodes))
        return {value: count for value, count in counts.items() if count}

    def _by_value(self, view: DomainView) -> dict[str, int]:
        """The counts of a view by label value, for the domains that have a node."""
        values = self.cluster.nodes.column(view.key).values
        return {v: int(view.counts[d]) for v, d in values.items() if d < len(view.counts) and view.nodes_in[d]}


def _clash(one: tuple[str, str, int], other: tuple[str, str, int]) -> bool:
    """Whether two host ports (address, protocol, port) cannot be had on one node."""
    everywhere = ("0.0.0.0", "", "::")
    same_address = one[0] == other[0] or one[0] in everywhere or other[0] in everywhere
    return same_address and one[1:] == other[1:]
