"""Pod counters: bound pods counted by matching selector and by carried term, per row.

Contract: every edit that moves a pod updates every counter. Pods are classified by the watched labels; watching a new
label key classifies the pods again. `collection` gives counters back that no spec class uses, and stops watching label
keys that no selector reads; a counter that is requested again counts its pods from scratch.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tutti.cluster.columns import Bools
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
from tutti.cluster.spec_classes import SpecClass, SpecRegistry


class PodCounters:
    """Keeps all counters of a cluster current; see the module's contract."""

    def __init__(self, nodes: NodeTable, pods: PodTable, specs: SpecRegistry, *, labels: LabelRegistry) -> None:
        self._nodes, self._pods, self._specs, self.labels = nodes, pods, specs, labels
        self._carried_terms: dict[int, list[tuple[CarriedTerm, int]]] = {}
        self._watched_specs: set[int] = set()

    def copy(self, nodes: NodeTable, pods: PodTable, specs: SpecRegistry, *, labels: LabelRegistry) -> PodCounters:
        """Return the counters of a copied cluster, with the same counts."""
        clone = PodCounters(nodes, pods, specs, labels=labels)
        clone._watched_specs = set(self._watched_specs)
        return clone

    def move(self, pod: int, row: int, number: int) -> None:
        """Add a pod to a row (1) or remove it (-1)."""
        pods = self._pods
        live = not pods.terminating[pod]
        for counter in self.labels.classes[pods.labels.item(pod)].counters:
            if live or not counter.key.live:
                counter.add(row, number)
        for term, times in self._terms_carried_by(pods.spec.item(pod)):
            was_carried = term.total > 0
            term.add(row, number * times)
            if was_carried != (term.total > 0):
                self.labels.version += 1

    def _terms_carried_by(self, spec_number: int) -> list[tuple[CarriedTerm, int]]:
        carried_terms = self._carried_terms.get(spec_number)
        if carried_terms is None:
            spec = self._specs.classes[spec_number]
            keys = [CarriedTermKey(Role.REPELS, t) for t in spec.anti_affinity]
            keys += [CarriedTermKey(Role.ATTRACTS, t) for t in spec.affinity]
            keys += [CarriedTermKey(Role.PREFERS, w.term, w.weight) for w in spec.preferred_pods]
            for key in keys:
                self.watch(key.term.selector.keys)
            times_by_key = {key: keys.count(key) for key in keys}
            carried_terms = [(self.labels.carried_term(k, size=self._nodes.size), n) for k, n in times_by_key.items()]
            for carried, _ in carried_terms:
                carried.spec_count += 1
            self._carried_terms[spec_number] = carried_terms
        return carried_terms

    def label_class_of(self, pod: int) -> LabelClass:
        """Return the label class of the pod in a row; first watch the labels that the pod's own spec reads."""
        spec = self._pods.spec.item(pod)
        if spec not in self._watched_specs:
            self.watch(self._specs.classes[spec].watched_keys)
            self._watched_specs.add(spec)
        return self.labels.classes[self._pods.labels.item(pod)]

    def watch(self, keys: Iterable[str]) -> None:
        """Classify pods by these label keys from now on."""
        new = set(keys) - self.labels.watched
        if not new:
            return
        self.labels.watched |= new
        self._classify_again(new)

    def _classify_again(self, changed: set[str]) -> None:
        """Find the label classes of the pods that have one of the label keys which are now watched, or no longer."""
        for row in range(self._pods.length):
            pod = self._pods.objects[row]
            if pod is not None and pod.metadata.labels and not changed.isdisjoint(pod.metadata.labels):
                label_class = self.labels.class_of(pod.metadata.namespace or "default", pod.metadata.labels)
                self._pods.labels[row] = label_class.number

    def counter(self, key: CounterKey, spec: SpecClass | None = None) -> PodCounter:
        """Return the counter of a key; count the pods of a new counter now.

        The counter is kept while the cluster has pods of a spec class that asked for it.
        """
        counter = self.labels.counters.get(key)
        if counter is None:
            self.watch({k for _, selector in key.terms for k in selector.keys})
            counter = self.labels.counter(key, size=self._nodes.size, fill=self.fill)
        if spec is not None:
            counter.specs.add(spec.number)
        return counter

    def fill(self, counter: PodCounter, members: list[LabelClass]) -> None:
        """Count the pods of some label classes from scratch."""
        pods, length = self._pods, self._pods.length
        is_member: Bools = np.isin(pods.labels[:length], [member.number for member in members])
        counted = is_member & (pods.node[:length] >= 0)
        if counter.key.live:
            counted &= ~pods.terminating[:length]
        counter.fill(np.bincount(pods.node[:length][counted], minlength=self._nodes.size))

    # Collection -------------------------------------------------------------------------------------------------------

    def drop_specs(self, dropped: Iterable[int], live: set[int]) -> int:
        """Give back the counters and terms that only dropped spec classes used; return how many."""
        labels = self.labels
        for number in dropped:
            self._watched_specs.discard(number)
            for carried, _ in self._carried_terms.pop(number, ()):
                carried.spec_count -= 1
        counters = []
        for counter in labels.counters.values():
            counter.specs &= live
            if not counter.specs:
                counters.append(counter)
        # A copy of a cluster counts the spec classes of a term anew, so the pods that carry the term decide as well.
        terms = [carried for carried in labels.carried_terms.values() if not carried.spec_count and not carried.total]
        if counters:
            labels.drop_counters(counters)
        if terms:
            labels.drop_carried_terms(terms)
        return len(counters) + len(terms)

    def stop_watching(self, service_keys: Iterable[str]) -> int:
        """Stop to classify pods by label keys that neither selectors nor Services read; return how many."""
        needed = set(service_keys)
        for key in self.labels.counters:
            needed.update(*(selector.keys for _, selector in key.terms))
        needed.update(*(key.term.selector.keys for key in self.labels.carried_terms))
        needed.update(*(self._specs.classes[number].watched_keys for number in self._watched_specs))
        unread = self.labels.watched - needed
        if unread:
            self.labels.watched -= unread
            self.labels.version += 1 + len(unread)
            self._classify_again(unread)
        return len(unread)
