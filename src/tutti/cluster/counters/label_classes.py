"""Label classes, pod counters and carried terms.

A label class is a namespace and the labels that some registered selector reads (`watched`). A pod counter counts the
pods that match all of its terms. A carried term counts the pods that carry an affinity term. Label classes know their
counters, so moving a pod costs only the counters that count the pod. A rollback does not change the registries; only
`collection` takes out what nobody uses. The number of a label class is never used again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from tutti.cluster.counters.domain_counts import RowCounts
from tutti.cluster.counters.pod_terms import PodTerm, Scope
from tutti.kube.selectors import Selector, equality_pair

K = TypeVar("K")
T = TypeVar("T")
V = TypeVar("V")
NamespaceLabels = Callable[[str], Mapping[str, str] | None]


class CounterKey(NamedTuple):
    """The pods that a counter counts: they match every (scope, selector); `live` excludes terminating pods."""

    terms: tuple[tuple[Scope, Selector], ...]
    live: bool


class PodCounter(RowCounts):
    """Matching pods per row."""

    __slots__ = ("key", "specs")

    def __init__(self, key: CounterKey, size: int) -> None:
        super().__init__(size)
        self.key = key
        self.specs: set[int] = set()
        """The numbers of the spec classes whose pods asked for the counter."""


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

    __slots__ = ("key", "spec_count")

    def __init__(self, key: CarriedTermKey, size: int) -> None:
        super().__init__(size)
        self.key = key
        self.spec_count = 0
        """How many spec classes have the term."""


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
        self._by_pair: dict[tuple[str, str], dict[T, None]] = {}
        self._without_pair: dict[T, None] = {}
        self._pair_of: dict[T, tuple[str, str]] = {}

    def add(self, item: T, selectors: Iterable[Selector]) -> None:
        pairs = [pair for pair in map(equality_pair, selectors) if pair is not None]
        if pairs:
            pair = self._pair_of[item] = min(pairs, key=lambda p: len(self._by_pair.get(p, ())))
            self._by_pair.setdefault(pair, {})[item] = None
        else:
            self._without_pair[item] = None

    def remove(self, item: T) -> None:
        pair = self._pair_of.pop(item, None)
        if pair is None:
            del self._without_pair[item]
        else:
            _remove_from(self._by_pair, pair, item)

    def candidates(self, labels: Mapping[str, str]) -> Iterable[T]:
        yield from self._without_pair
        for pair in labels.items():
            yield from self._by_pair.get(pair, ())


def _remove_from(index: dict[K, dict[T, V]], key: K, item: T) -> None:
    """Remove an item from an index of dictionaries, and its dictionary if it is empty."""
    items = index[key]
    del items[item]
    if not items:
        del index[key]


class LabelRegistry:
    """All label classes, pod counters and carried terms."""

    def __init__(self, namespace_labels: NamespaceLabels) -> None:
        self.namespace_labels = namespace_labels
        self.watched: set[str] = set()
        self.classes: dict[int, LabelClass] = {}
        self.counters: dict[CounterKey, PodCounter] = {}
        self.carried_terms: dict[CarriedTermKey, CarriedTerm] = {}
        self._carried_index: _PairIndex[CarriedTerm] = _PairIndex()
        self._counter_index: _PairIndex[PodCounter] = _PairIndex()
        self._classes_by_pair: dict[tuple[str, str], dict[int, LabelClass]] = {}
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], LabelClass] = {}
        self._next_number = 0
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
            label_class = LabelClass(self._next_number, namespace, dict(pairs))
            self._next_number += 1
            self._register(label_class)
        return label_class

    def _register(self, label_class: LabelClass) -> None:
        number, pairs = label_class.number, tuple(label_class.labels.items())
        self._known[label_class.namespace, pairs] = self.classes[number] = label_class
        for pair in pairs:
            self._classes_by_pair.setdefault(pair, {})[number] = label_class
        label_class.counters = [
            c for c in self._counter_index.candidates(label_class.labels) if self._counts(c.key, label_class)
        ]

    def drop_classes(self, numbers: Iterable[int]) -> None:
        """Give back label classes that no pod has."""
        for number in numbers:
            label_class = self.classes.pop(number)
            pairs = tuple(label_class.labels.items())
            del self._known[label_class.namespace, pairs]
            for pair in pairs:
                _remove_from(self._classes_by_pair, pair, number)

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
            members = [c for c in self._members(key).values() if self._counts(key, c)]
            for label_class in members:
                label_class.counters.append(counter)
            fill(counter, members)
        return counter

    def drop_counters(self, counters: Collection[PodCounter]) -> None:
        """Give back counters that no spec class uses."""
        classes: dict[int, LabelClass] = {}
        for counter in counters:
            del self.counters[counter.key]
            self._counter_index.remove(counter)
            if len(classes) < len(self.classes):
                classes.update(self._members(counter.key))
        dropped = set(counters)
        for label_class in classes.values():
            if not dropped.isdisjoint(label_class.counters):
                label_class.counters = [c for c in label_class.counters if c not in dropped]

    def _members(self, key: CounterKey) -> dict[int, LabelClass]:
        """Return the label classes that may match: the smallest set that shares a label pair which every match must
        have.
        """
        smallest: dict[int, LabelClass] | None = None
        for _, selector in key.terms:
            pair = equality_pair(selector)
            if pair is not None:
                with_pair = self._classes_by_pair.get(pair, {})
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
            members = [c for c in self.classes.values() if self._counts(counter.key, c)]
            member_numbers = {c.number for c in members}
            for label_class in self.classes.values():
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

    def drop_carried_terms(self, carried_terms: Collection[CarriedTerm]) -> None:
        """Give back terms that no spec class has."""
        for carried in carried_terms:
            del self.carried_terms[carried.key]
            self._carried_index.remove(carried)
        self.version += 1

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
        clone._next_number = self._next_number
        for c in self.classes.values():
            clone._register(LabelClass(c.number, c.namespace, c.labels))
        for key, counter in self.counters.items():
            copied = clone.counter(key, size=0, fill=lambda new, _, old=counter: old.copy_to(new))  # type: ignore[misc]
            copied.specs = set(counter.specs)
        for carried_key, carried in self.carried_terms.items():
            carried.copy_to(clone.carried_term(carried_key, size=0))
        return clone

    def grow(self, size: int) -> None:
        """Grow all counts to a number of rows."""
        for counts in (*self.counters.values(), *self.carried_terms.values()):
            counts.grow(size)
