"""The census: pods counted by what their labels match and by the terms that they carry, row by row.

Contract: a counter that was asked for once is kept up by every pod that comes or goes. Pods are told apart by the
labels that somebody looks at; when a new label is watched, they are sorted anew.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tutti.cluster.counters.label_classes import (
    CarriedTerm,
    CarriedTermKey,
    CounterKey,
    LabelClass,
    LabelRegistry,
    PodCounter,
    Role,
)
from tutti.cluster.node_table import NodeTable
from tutti.cluster.pod_table import PodTable
from tutti.cluster.spec_classes import SpecRegistry


class PodCounters:
    """See the module's contract."""

    def __init__(self, nodes: NodeTable, pods: PodTable, specs: SpecRegistry, *, labels: LabelRegistry) -> None:
        self._nodes, self._pods, self._specs, self.labels = nodes, pods, specs, labels
        self._held_terms: dict[int, list[tuple[CarriedTerm, int]]] = {}
        self._watched_specs: set[int] = set()

    def copy(self, nodes: NodeTable, pods: PodTable, *, labels: LabelRegistry) -> PodCounters:
        """Give the census of a copied cluster, with its counts."""
        twin = PodCounters(nodes, pods, self._specs, labels=labels)
        twin._watched_specs = set(self._watched_specs)
        return twin

    def move(self, pod: int, row: int, number: int) -> None:
        """Count a pod on a row (1), or no longer (-1)."""
        pods = self._pods
        live = not pods.terminating[pod]
        for counter in self.labels.classes[pods.labels[pod]].counters:
            if live or not counter.key.live:
                counter.add(row, number)
        for term, times in self._terms_held_by(int(pods.spec[pod])):
            carried = term.total > 0
            term.add(row, number * times)
            if carried != (term.total > 0):
                self.labels.version += 1

    def _terms_held_by(self, spec_number: int) -> list[tuple[CarriedTerm, int]]:
        held = self._held_terms.get(spec_number)
        if held is None:
            spec = self._specs.classes[spec_number]
            keys = [CarriedTermKey(Role.REPELS, t) for t in spec.anti_affinity]
            keys += [CarriedTermKey(Role.ATTRACTS, t) for t in spec.affinity]
            keys += [CarriedTermKey(Role.PREFERS, w.term, w.weight) for w in spec.preferred_pods]
            for key in keys:
                self.watch(key.term.selector.keys)
            counted = {key: keys.count(key) for key in keys}
            held = [(self.labels.held_term(k, size=self._nodes.size), n) for k, n in counted.items()]
            self._held_terms[spec_number] = held
        return held

    def label_class_of(self, pod: int) -> LabelClass:
        """Give the label class of the pod in a row, with the labels that its own spec looks at."""
        spec = self._pods.spec[pod]
        if spec not in self._watched_specs:
            self.watch(self._specs.classes[spec].watched_keys)
            self._watched_specs.add(int(spec))
        label_class: LabelClass = self.labels.classes[self._pods.labels[pod]]
        return label_class

    def watch(self, keys: Iterable[str]) -> None:
        """Tell pods apart by these labels from now on."""
        new = set(keys) - self.labels.watched
        if not new:
            return
        self.labels.watched |= new
        for row in range(self._pods.length):
            pod = self._pods.objects[row]
            if pod is not None and pod.metadata.labels and not new.isdisjoint(pod.metadata.labels):
                label_class = self.labels.of(pod.metadata.namespace or "default", pod.metadata.labels)
                self._pods.labels[row] = label_class.number

    def counter(self, key: CounterKey) -> PodCounter:
        """Give the tally of the pods that match, counted now if nobody has asked before."""
        known = self.labels.counters.get(key)
        if known is not None:
            return known
        self.watch({k for _, selector in key.terms for k in selector.keys})
        return self.labels.counter(key, size=self._nodes.size, fill=self.fill)

    def fill(self, counter: PodCounter, members: list[LabelClass]) -> None:
        """Count the pods of some label classes from scratch."""
        pods, length = self._pods, self._pods.length
        chosen = np.zeros(len(self.labels.classes), dtype=bool)
        chosen[[member.number for member in members]] = True
        counted = chosen[pods.labels[:length]] & (pods.node[:length] >= 0)
        if counter.key.live:
            counted &= ~pods.terminating[:length]
        counter.fill(np.bincount(pods.node[:length][counted], minlength=self._nodes.size))
