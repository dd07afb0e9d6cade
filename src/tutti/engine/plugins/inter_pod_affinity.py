"""InterPodAffinity: pods that must, or would rather, be near to or far from other pods.

Terms work both ways: the pod's own terms look at placed pods, and the terms that placed pods carry look at the pod.
Everything is counted per domain of a term's topology key; a node's answer is looked up by its domains.
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
from tutti.engine.plugins.base import MAX_SCORE, ClusterPlugin, IncomingPod, PreparedPlugin, Selection
from tutti.engine.plugins.verdict import Refusal, Variants
from tutti.kube.objects import Pod

Counts = dict[str, Ints]
"""Counts per domain, by topology key."""


class InterPodAffinity(ClusterPlugin):
    """See the module."""

    name = "InterPodAffinity"
    cures = frozenset((Event.NODE_ADDED, Event.NODE_LABELS, Event.POD_PLACED, Event.POD_GONE, Event.OBJECTS))
    refusals = (
        Refusal("node(s) didn't match pod affinity rules", resolvable=False),
        Refusal("node(s) didn't match pod anti-affinity rules", resolvable=True),
        Refusal("node(s) didn't satisfy existing pods anti-affinity rules", resolvable=True),
    )

    def __init__(self, *, hard_weight: int = 1, ignore_existing: bool = False) -> None:
        self._hard_weight, self._ignore_existing = hard_weight, ignore_existing

    def concerns(self, incoming: IncomingPod) -> bool:
        """Only pods with terms, and pods that the terms of placed pods look at."""
        spec = incoming.spec
        if spec.affinity or spec.anti_affinity or spec.preferred_pods:
            return True
        return any(held.total for held in incoming.cluster.labels.held_against(incoming.labels))

    def prepare(self, incoming: IncomingPod) -> PreparedPlugin | None:
        """Count what attracts and what repels the pod."""
        spec, nodes = incoming.spec, incoming.cluster.nodes
        repelled: Counts = {}
        for held in incoming.cluster.labels.held_against(incoming.labels):
            if held.key.role == Role.REPELS and held.total:
                _pool(repelled, held.view(held.key.term.topology_key, nodes))
        repelled = {key: counts for key, counts in repelled.items() if counts.any()}
        if not repelled and not spec.affinity and not spec.anti_affinity:
            return None
        avoided: Counts = {}
        for term in spec.anti_affinity:
            _pool(avoided, _counter(incoming, (term,)).view(term.topology_key, nodes))
        sought: Counts = {}
        if spec.affinity:
            tally = _counter(incoming, spec.affinity)
            sought = {t.topology_key: tally.view(t.topology_key, nodes).counts for t in spec.affinity}
        return _Affinity(incoming, sought, avoided, repelled)

    def score(self, incoming: IncomingPod, prepared: PreparedPlugin | None, rows: Selection) -> Ints | None:
        """Score the feasible nodes by the weights of all terms that hold there."""
        spec, nodes = incoming.spec, incoming.cluster.nodes
        if self._ignore_existing and not spec.preferred_pods:
            return None
        weights: dict[str, Ints] = {}
        for weight, term in spec.preferred_pods:
            _weigh(weights, _counter(incoming, (term,)), term.topology_key, weight, nodes)
        for held in incoming.cluster.labels.held_against(incoming.labels):
            role, term, weight = held.key
            if role == Role.ATTRACTS:
                weight = self._hard_weight
            if role != Role.REPELS and weight and held.total:
                _weigh(weights, held, term.topology_key, weight, nodes)
        if not weights:
            return None
        if len(weights) == 1:
            # One topology key: nodes of one domain have the same score, which is worked out once per domain.
            ((key, table),) = weights.items()
            domains = nodes.domains(key)
            digits = domains.digits[rows]
            if isinstance(rows, slice):
                there = domains.nodes_in > 0
            else:
                there = np.zeros(len(table), dtype=bool)
                there[digits] = True
            scaled = np.zeros(len(table), dtype=np.int64)
            scaled[there] = _scaled(table[there])
            return scaled[digits]
        raw = np.zeros(len(nodes.on[rows]), dtype=np.int64)
        for key, table in weights.items():
            raw += table[nodes.domains(key).digits[rows]]
        return _scaled(raw)


def _scaled(raw: Ints) -> Ints:
    """Scale sums of weights to 0..100; all equal is 0."""
    low, high = int(raw.min()), int(raw.max())
    if high == low:
        return np.zeros(len(raw), dtype=np.int64)
    return (float(MAX_SCORE) * ((raw - low) / float(high - low))).astype(np.int64)


def _counter(incoming: IncomingPod, terms: tuple[PodTerm, ...]) -> RowCounts:
    return incoming.cluster.pod_counters.counter(CounterKey(tuple((t.scope, t.selector) for t in terms), live=False))


def _pool(pool: Counts, view: DomainView) -> None:
    """Add the counts of a view to those of the same topology key."""
    pooled = pool.get(view.key)
    pool[view.key] = view.counts if pooled is None else pooled + view.counts


def _weigh(weights: dict[str, Ints], tally: RowCounts, key: str, weight: int, nodes: NodeTable) -> None:
    """Add a term's weight for every pod, per domain; the first entry is for nodes without the label."""
    if not tally.total:
        return
    counts = tally.view(key, nodes).counts
    if not counts.any():
        return
    table = weights.get(key)
    if table is None:
        table = weights[key] = np.zeros(len(counts) + 1, dtype=np.int64)
    table[1:] += weight * counts


class _Affinity(PreparedPlugin):
    """What attracts and repels one pod, per domain."""

    def __init__(self, incoming: IncomingPod, sought: Counts, avoided: Counts, repelled: Counts) -> None:
        self._incoming = incoming
        self._sought, self._avoided, self._repelled = sought, avoided, repelled

    def filter(self, rows: Selection) -> Variants:
        """Refuse nodes without wanted pods near (1), near avoided pods (2), or near pods that avoid this one (3)."""
        answers: Variants | None = None
        for key, table in self._tables().items():
            said = table[self._incoming.cluster.nodes.domains(key).digits[rows]]
            if answers is None:
                answers = said
            else:
                # The lower answer is the earlier check; 0 is none.
                both = np.minimum(answers, said)
                answers = np.where(both == 0, np.maximum(answers, said), both)
        assert answers is not None
        return answers

    def _tables(self) -> dict[str, Variants]:
        """Give the answer per domain, by topology key; first, the one for nodes without the label."""
        tables: dict[str, Variants] = {}
        for pool, answer in ((self._repelled, 3), (self._avoided, 2)):
            for key, counts in pool.items():
                table = tables.setdefault(key, np.zeros(len(counts) + 1, dtype=np.uint8))
                table[1:][counts > 0] = answer
        first = bool(self._sought) and not any(counts.any() for counts in self._sought.values()) and self._is_first()
        for key, counts in self._sought.items():
            table = tables.setdefault(key, np.zeros(len(counts) + 1, dtype=np.uint8))
            table[0] = 1
            if not first:
                table[1:][counts <= 0] = 1
        return tables

    def _is_first(self) -> bool:
        """Say whether the pod, the first of its kind, matches its own terms."""
        incoming = self._incoming
        return all(
            _concerns(incoming, term, incoming.pod, incoming.labels.namespace) for term in incoming.spec.affinity
        )

    def fork(self) -> _Affinity:
        """Copy the counts, with room for terms that only a moved pod carries."""
        return _Affinity(
            self._incoming,
            *(
                {key: counts.copy() for key, counts in pool.items()}
                for pool in (self._sought, self._avoided, self._repelled)
            ),
        )

    def moved(self, pod: Pod, spec: SpecClass, row: int, number: int) -> None:
        """Count a pod in or out."""
        incoming, namespace = self._incoming, spec.namespace
        labels_there = incoming.cluster.namespace_labels(incoming.labels.namespace)
        for term in spec.anti_affinity:
            if term.selector.matches(incoming.own_labels) and term.scope.holds(incoming.labels.namespace, labels_there):
                self._count(self._repelled, term.topology_key, row, number)
        own = incoming.spec
        if own.affinity and all(_concerns(incoming, term, pod, namespace) for term in own.affinity):
            for key in {term.topology_key for term in own.affinity}:
                self._count(self._sought, key, row, number)
        for term in own.anti_affinity:
            if _concerns(incoming, term, pod, namespace):
                self._count(self._avoided, term.topology_key, row, number)

    def _count(self, counts: Counts, key: str, row: int, number: int) -> None:
        column = self._incoming.cluster.nodes.column(key)
        domain = column.ids[row]
        if domain < 0:
            return
        per_domain = counts.get(key)
        if per_domain is None:
            per_domain = counts[key] = np.zeros(len(column.values), dtype=np.int64)
        per_domain[domain] += number


def _concerns(incoming: IncomingPod, term: PodTerm, pod: Pod, namespace: str) -> bool:
    """Say whether a term of the asked pod matches another pod."""
    return term.selector.matches(pod.metadata.labels or {}) and term.scope.holds_known(
        namespace, incoming.cluster.namespace_labels(namespace)
    )
