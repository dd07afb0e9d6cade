"""InterPodAffinity: pods that must, or prefer to, be near to or away from other pods.

Terms work both ways: the incoming pod's terms select bound pods, and the terms that bound pods carry select the
incoming pod. Pods are counted per domain of a term's topology key; the result of a node is a lookup by its domains.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Ints
from tutti.cluster.counters.domain_counts import DomainView, RowCounts
from tutti.cluster.counters.label_classes import CounterKey, Role
from tutti.cluster.counters.pod_terms import PodTerm
from tutti.cluster.events import Event
from tutti.cluster.node_table import NodeTable
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import MAX_SCORE, ClusterPlugin, IncomingPod, PreFilterState, Selection
from tutti.engine.plugins.verdict import Refusal, StatusCodes
from tutti.kube.objects import Pod

Counts = dict[str, Ints]
"""Pod counts per domain, by topology key."""


class InterPodAffinity(ClusterPlugin):
    """kube-scheduler's InterPodAffinity: PreFilter, filter and score."""

    name = "InterPodAffinity"
    events_to_register = frozenset(
        (Event.NODE_ADDED, Event.NODE_LABELS, Event.POD_PLACED, Event.POD_REMOVED, Event.OBJECTS)
    )
    refusals = (
        Refusal("node(s) didn't match pod affinity rules", resolvable=False),
        Refusal("node(s) didn't match pod anti-affinity rules", resolvable=True),
        Refusal("node(s) didn't satisfy existing pods anti-affinity rules", resolvable=True),
    )

    def __init__(self, *, hard_weight: int = 1, ignore_existing: bool = False) -> None:
        self._hard_pod_affinity_weight, self._ignore_existing = hard_weight, ignore_existing

    def applies_to(self, incoming: IncomingPod) -> bool:
        """Return whether the pod has terms, or terms of bound pods select the pod."""
        spec = incoming.spec
        if spec.affinity or spec.anti_affinity or spec.preferred_pods:
            return True
        return any(carried.total for carried in incoming.cluster.labels.carried_terms_matching(incoming.labels))

    def pre_filter(self, incoming: IncomingPod) -> PreFilterState | None:
        """Count the pods that the incoming pod's terms select, and the pods whose anti-affinity selects the incoming
        pod.
        """
        spec, nodes = incoming.spec, incoming.cluster.nodes
        existing_anti_affinity: Counts = {}
        for carried in incoming.cluster.labels.carried_terms_matching(incoming.labels):
            if carried.key.role == Role.REPELS and carried.total:
                _add_counts(existing_anti_affinity, carried.view(carried.key.term.topology_key, nodes))
        existing_anti_affinity = {key: counts for key, counts in existing_anti_affinity.items() if counts.any()}
        if not existing_anti_affinity and not spec.affinity and not spec.anti_affinity:
            return None
        anti_affinity: Counts = {}
        for term in spec.anti_affinity:
            _add_counts(anti_affinity, _counter(incoming, (term,)).view(term.topology_key, nodes))
        affinity: Counts = {}
        if spec.affinity:
            counter = _counter(incoming, spec.affinity)
            affinity = {t.topology_key: counter.view(t.topology_key, nodes).counts for t in spec.affinity}
        return _AffinityState(incoming, affinity, anti_affinity, existing_anti_affinity)

    def score(self, incoming: IncomingPod, state: PreFilterState | None, rows: Selection) -> Ints | None:
        """Sum the weights of all matching terms per node and scale the sums to 0..100."""
        spec, nodes = incoming.spec, incoming.cluster.nodes
        if self._ignore_existing and not spec.preferred_pods:
            return None
        weights: dict[str, Ints] = {}
        for weight, term in spec.preferred_pods:
            _weigh(weights, _counter(incoming, (term,)), term.topology_key, weight, nodes)
        for carried in incoming.cluster.labels.carried_terms_matching(incoming.labels):
            role, term, weight = carried.key
            if role == Role.ATTRACTS:
                weight = self._hard_pod_affinity_weight
            if role != Role.REPELS and weight and carried.total:
                _weigh(weights, carried, term.topology_key, weight, nodes)
        if not weights:
            return None
        if len(weights) == 1:
            # With one topology key, all nodes of a domain have the same score: compute it once per domain.
            ((key, table),) = weights.items()
            domains = nodes.domains(key)
            indices = domains.indices[rows]
            if isinstance(rows, slice):
                has_nodes = domains.nodes_in > 0
            else:
                has_nodes = np.zeros(len(table), dtype=bool)
                has_nodes[indices] = True
            scaled = np.zeros(len(table), dtype=np.int64)
            scaled[has_nodes] = _scaled(table[has_nodes])
            return scaled[indices]
        raw = np.zeros(len(nodes.on[rows]), dtype=np.int64)
        for key, table in weights.items():
            raw += table[nodes.domains(key).indices[rows]]
        return _scaled(raw)


def _scaled(raw: Ints) -> Ints:
    """NormalizeScore: scale sums of weights to 0..100; equal sums give 0."""
    low, high = int(raw.min()), int(raw.max())
    if high == low:
        return np.zeros(len(raw), dtype=np.int64)
    return (float(MAX_SCORE) * ((raw - low) / float(high - low))).astype(np.int64)


def _counter(incoming: IncomingPod, terms: tuple[PodTerm, ...]) -> RowCounts:
    """Return the counter of the pods that match all terms."""
    key = CounterKey(tuple((t.scope, t.selector) for t in terms), live=False)
    return incoming.cluster.pod_counters.counter(key, incoming.spec)


def _add_counts(counts_by_key: Counts, view: DomainView) -> None:
    """Add the counts of a view to the total of its topology key."""
    total = counts_by_key.get(view.key)
    counts_by_key[view.key] = view.counts if total is None else total + view.counts


def _weigh(weights: dict[str, Ints], counter: RowCounts, key: str, weight: int, nodes: NodeTable) -> None:
    """Add the term's weight for every counted pod, per domain; index 0 is for nodes without the label."""
    if not counter.total:
        return
    counts = counter.view(key, nodes).counts
    if not counts.any():
        return
    table = weights.get(key)
    if table is None:
        table = weights[key] = np.zeros(len(counts) + 1, dtype=np.int64)
    table[1:] += weight * counts


class _AffinityState(PreFilterState):
    """The pod counts per domain for the three checks of the filter."""

    def __init__(
        self, incoming: IncomingPod, affinity: Counts, anti_affinity: Counts, existing_anti_affinity: Counts
    ) -> None:
        self._incoming = incoming
        self._affinity, self._anti_affinity, self._existing_anti_affinity = (
            affinity,
            anti_affinity,
            existing_anti_affinity,
        )

    def filter(self, rows: Selection) -> StatusCodes:
        """Refuse nodes by the affinity (1) and anti-affinity (2) of the pod, and by the anti-affinity of existing pods
        (3).
        """
        result: StatusCodes | None = None
        for key, table in self._tables().items():
            codes = table[self._incoming.cluster.nodes.domains(key).indices[rows]]
            if result is None:
                result = codes
            else:
                # The lower code is the earlier check; 0 passes.
                both = np.minimum(result, codes)
                result = np.where(both == 0, np.maximum(result, codes), both)
        assert result is not None
        return result

    def _tables(self) -> dict[str, StatusCodes]:
        """Return the status code per domain, by topology key; index 0 is for nodes without the label."""
        tables: dict[str, StatusCodes] = {}
        for counts_by_key, code in ((self._existing_anti_affinity, 3), (self._anti_affinity, 2)):
            for key, counts in counts_by_key.items():
                table = tables.setdefault(key, np.zeros(len(counts) + 1, dtype=np.uint8))
                table[1:][counts > 0] = code
        may_be_first = (
            bool(self._affinity) and not any(counts.any() for counts in self._affinity.values()) and self._is_first()
        )
        for key, counts in self._affinity.items():
            table = tables.setdefault(key, np.zeros(len(counts) + 1, dtype=np.uint8))
            table[0] = 1
            if not may_be_first:
                table[1:][counts <= 0] = 1
        return tables

    def _is_first(self) -> bool:
        """Return whether the pod matches its own affinity terms, so that it may be the first of its group."""
        incoming = self._incoming
        return all(
            _term_matches(incoming, term, incoming.pod, incoming.labels.namespace) for term in incoming.spec.affinity
        )

    def clone(self) -> _AffinityState:
        """Copy the counts."""
        return _AffinityState(
            self._incoming,
            *(
                {key: counts.copy() for key, counts in counts_by_key.items()}
                for counts_by_key in (self._affinity, self._anti_affinity, self._existing_anti_affinity)
            ),
        )

    def update_with_pod(self, pod: Pod, spec: SpecClass, row: int, number: int) -> None:
        """Add (1) or remove (-1) a pod on a row."""
        incoming, namespace = self._incoming, spec.namespace
        namespace_labels = incoming.cluster.namespace_labels(incoming.labels.namespace)
        for term in spec.anti_affinity:
            if term.selector.matches(incoming.own_labels) and term.scope.contains(
                incoming.labels.namespace, namespace_labels
            ):
                self._count(self._existing_anti_affinity, term.topology_key, row, number)
        own = incoming.spec
        if own.affinity and all(_term_matches(incoming, term, pod, namespace) for term in own.affinity):
            for key in {term.topology_key for term in own.affinity}:
                self._count(self._affinity, key, row, number)
        for term in own.anti_affinity:
            if _term_matches(incoming, term, pod, namespace):
                self._count(self._anti_affinity, term.topology_key, row, number)

    def is_affected_by(self, pod: Pod, spec: SpecClass) -> bool:
        """Return whether a term of the pod selects the incoming pod, or a term of the incoming pod selects the pod."""
        incoming, own, namespace = self._incoming, self._incoming.spec, spec.namespace
        namespace_labels = incoming.cluster.namespace_labels(incoming.labels.namespace)
        return (
            any(
                term.selector.matches(incoming.own_labels)
                and term.scope.contains(incoming.labels.namespace, namespace_labels)
                for term in spec.anti_affinity
            )
            or any(_term_matches(incoming, term, pod, namespace) for term in own.anti_affinity)
            or (bool(own.affinity) and all(_term_matches(incoming, term, pod, namespace) for term in own.affinity))
        )

    def _count(self, counts: Counts, key: str, row: int, number: int) -> None:
        column = self._incoming.cluster.nodes.column(key)
        domain = column.ids[row]
        if domain < 0:
            return
        per_domain = counts.get(key)
        if per_domain is None:
            per_domain = counts[key] = np.zeros(len(column.values), dtype=np.int64)
        per_domain[domain] += number


def _term_matches(incoming: IncomingPod, term: PodTerm, pod: Pod, namespace: str) -> bool:
    """Return whether a term of the incoming pod selects another pod."""
    return term.selector.matches(pod.metadata.labels or {}) and term.scope.contains_existing(
        namespace, incoming.cluster.namespace_labels(namespace)
    )
