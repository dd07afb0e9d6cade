"""Label classes, pod counters and carried terms.

A label class is a namespace and the labels that some registered selector reads (`watched`). A pod counter counts the
pods that match all of its terms. A carried term counts the pods that carry an affinity term. Counters know their label
classes and label classes know their counters, so moving a pod costs only the counters that count the pod. All
registries only grow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from tutti.cluster.counters.domain_counts import RowCounts
from tutti.cluster.counters.pod_terms import PodTerm, Scope
from tutti.kube.selectors import Selector, equality_pair

T = TypeVar("T")
NamespaceLabels = Callable[[str], Mapping[str, str] | None]


class CounterKey(NamedTuple):
    """The pods that a counter counts: they match every (scope, selector); `live` excludes terminating pods."""

    terms: tuple[tuple[Scope, Selector], ...]
    live: bool


class PodCounter(RowCounts):
    """Matching pods per row."""

    __slots__ = ("key",)

    def __init__(self, key: CounterKey, size: int) -> None:
        super().__init__(size)
        self.key = key


class Role:
    """How a term that a bound pod carries affects an incoming pod."""

    REPELS = "repels"
    """Required anti-affinity: keeps matching pods out of the domain."""
    ATTRACTS = "attracts"
    """Required affinity: raises the score for matching pods, with the profile's hardPodAffinityWeight."""
    PREFERS = "prefers"
    """Preferred affinity or anti-affinity, with the term's own weight."""


class CarriedTermKey(NamedTuple):
    """A term that bound pods carry, its role and its weight."""

    role: str
    term: PodTerm
    weight: int = 0


class CarriedTerm(RowCounts):
    """Pods that carry a term, per row."""

    __slots__ = ("key",)

    def __init__(self, key: CarriedTermKey, size: int) -> None:
        super().__init__(size)
        self.key = key


class LabelClass:
    """Pods of one namespace that no registered selector can tell apart."""

    __slots__ = ("carried_terms", "carried_terms_version", "counters", "labels", "namespace", "number")

    def __init__(self, number: int, namespace: str, labels: dict[str, str]) -> None:
        self.number, self.namespace, self.labels = number, namespace, labels
        self.counters: list[PodCounter] = []
        self.carried_terms: list[CarriedTerm] = []
        self.carried_terms_version = -1


class _PairIndex(Generic[T]):
    """An index of selectors' owners by one label pair that every match must have.

    `candidates` always includes the items whose selectors require no such pair.
    """

    def __init__(self) -> None:
        self._by_pair: dict[tuple[str, str], list[T]] = {}
        self._without_pair: list[T] = []
        self.length = 0

    def add(self, item: T, selectors: Iterable[Selector]) -> None:
        pairs = [pair for pair in map(equality_pair, selectors) if pair is not None]
        if pairs:
            self._by_pair.setdefault(min(pairs, key=lambda p: len(self._by_pair.get(p, ()))), []).append(item)
        else:
            self._without_pair.append(item)
        self.length += 1

    def candidates(self, labels: Mapping[str, str]) -> Iterable[T]:
        yield from self._without_pair
        for pair in labels.items():
            yield from self._by_pair.get(pair, ())


class LabelRegistry:
    """All label classes, pod counters and carried terms."""

    def __init__(self, namespace_labels: NamespaceLabels) -> None:
        self.namespace_labels = namespace_labels
        self.watched: set[str] = set()
        self.classes: list[LabelClass] = []
        self.counters: dict[CounterKey, PodCounter] = {}
        self.carried_terms: dict[CarriedTermKey, CarriedTerm] = {}
        self._carried_index: _PairIndex[CarriedTerm] = _PairIndex()
        self._counter_index: _PairIndex[PodCounter] = _PairIndex()
        self._classes_by_pair: dict[tuple[str, str], list[LabelClass]] = {}
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], LabelClass] = {}
        self.version = 0
        """Changes when the set of carried terms, or the label keys or namespaces that they read, change."""

    # Label classes ----------------------------------------------------------------------------------------------------

    def class_of(self, namespace: str, labels: Mapping[str, str] | None) -> LabelClass:
        """Return the label class of a pod; a new label set gets a new class."""
        watched = self.watched
        pairs = sorted([pair for pair in labels.items() if pair[0] in watched]) if labels else []
        key = (namespace, tuple(pairs))
        label_class = self._known.get(key)
        if label_class is None:
            label_class = self._known[key] = LabelClass(len(self.classes), namespace, dict(pairs))
            self.classes.append(label_class)
            for pair in pairs:
                self._classes_by_pair.setdefault(pair, []).append(label_class)
            label_class.counters = [
                c for c in self._counter_index.candidates(label_class.labels) if self._counts(c.key, label_class)
            ]
        return label_class

    # Counters ---------------------------------------------------------------------------------------------------------

    def counter(
        self, key: CounterKey, *, size: int, fill: Callable[[PodCounter, list[LabelClass]], None]
    ) -> PodCounter:
        """Return the counter of a key; `fill` counts the pods of a new counter. The selectors' label keys must be
        watched.
        """
        counter = self.counters.get(key)
        if counter is None:
            counter = self.counters[key] = PodCounter(key, size)
            self._counter_index.add(counter, (selector for _, selector in key.terms))
            members = [c for c in self._members(key) if self._counts(key, c)]
            for label_class in members:
                label_class.counters.append(counter)
            fill(counter, members)
        return counter

    def _members(self, key: CounterKey) -> Iterable[LabelClass]:
        """Return the label classes that may match: the smallest set that shares a label pair which every match must
        have.
        """
        smallest: list[LabelClass] | None = None
        for _, selector in key.terms:
            pair = equality_pair(selector)
            if pair is not None:
                with_pair = self._classes_by_pair.get(pair, [])
                if smallest is None or len(with_pair) < len(smallest):
                    smallest = with_pair
        return self.classes if smallest is None else smallest

    def _counts(self, key: CounterKey, label_class: LabelClass) -> bool:
        """Return whether the pods of a label class match all terms of a counter."""
        labels, namespace = label_class.labels, label_class.namespace
        return all(
            selector.matches(labels) and scope.contains_existing(namespace, self.namespace_labels(namespace))
            for scope, selector in key.terms
        )

    def namespaces_changed(self, fill: Callable[[PodCounter, list[LabelClass]], None]) -> None:
        """Match again all counters that read the labels of namespaces."""
        self.version += 1
        for counter in self.counters.values():
            if not any(scope.by_labels for scope, _ in counter.key.terms):
                continue
            members = [c for c in self.classes if self._counts(counter.key, c)]
            member_numbers = {c.number for c in members}
            for label_class in self.classes:
                has = counter in label_class.counters
                if has != (label_class.number in member_numbers):
                    (label_class.counters.remove if has else label_class.counters.append)(counter)
            fill(counter, members)

    # Carried terms ----------------------------------------------------------------------------------------------------

    def carried_term(self, key: CarriedTermKey, *, size: int) -> CarriedTerm:
        """Return the counts of the pods that carry a term."""
        carried = self.carried_terms.get(key)
        if carried is None:
            carried = self.carried_terms[key] = CarriedTerm(key, size)
            self._carried_index.add(carried, (key.term.selector,))
            self.version += 1
        return carried

    def carried_terms_matching(self, label_class: LabelClass) -> list[CarriedTerm]:
        """Return the carried terms that select pods of this label class; the count of a term may be 0."""
        if label_class.carried_terms_version != self.version:
            namespace, labels = label_class.namespace, label_class.labels
            label_class.carried_terms = [
                carried
                for carried in self._carried_index.candidates(labels)
                if carried.key.term.selector.matches(labels)
                and carried.key.term.scope.contains(namespace, self.namespace_labels(namespace))
            ]
            label_class.carried_terms_version = self.version
        return label_class.carried_terms

    def copy(self, namespace_labels: NamespaceLabels) -> LabelRegistry:
        """Copy the classes and the counts."""
        clone = LabelRegistry(namespace_labels)
        clone.watched, clone.version = set(self.watched), self.version
        for label_class in self.classes:
            clone.class_of(label_class.namespace, label_class.labels)
        for key, counter in self.counters.items():
            clone.counter(key, size=0, fill=lambda new, _, old=counter: old.copy_to(new))  # type: ignore[misc]
        for carried_key, carried in self.carried_terms.items():
            carried.copy_to(clone.carried_term(carried_key, size=0))
        return clone

    def grow(self, size: int) -> None:
        """Grow all counts to a number of rows."""
        for counts in (*self.counters.values(), *self.carried_terms.values()):
            counts.grow(size)
