"""Label classes, and the tallies that select pods by their labels.

A label class is a namespace with those labels that some registered selector looks at (`watched`). A counter tallies
the pods that match all of its terms together; a held term tallies the pods that carry a term. Counters know which
label classes match them and label classes know their counters, so that moving a pod costs the counters that it is in
and no others. Both registries only grow.
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
    """What a counter counts: pods that match every (scope, selector); `live` leaves out those that are terminating."""

    terms: tuple[tuple[Scope, Selector], ...]
    live: bool


class PodCounter(RowCounts):
    """Pods that match, per row."""

    __slots__ = ("key",)

    def __init__(self, key: CounterKey, size: int) -> None:
        super().__init__(size)
        self.key = key


class Role:
    """Why a placed pod's term concerns a newcomer."""

    REPELS = "repels"
    """Required anti-affinity: keeps matching pods out of the domain."""
    ATTRACTS = "attracts"
    """Required affinity: draws matching pods, with the profile's weight."""
    PREFERS = "prefers"
    """Preferred affinity or anti-affinity, with its own weight."""


class CarriedTermKey(NamedTuple):
    """A term that placed pods carry."""

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

    __slots__ = ("counters", "held", "held_version", "labels", "namespace", "number")

    def __init__(self, number: int, namespace: str, labels: dict[str, str]) -> None:
        self.number, self.namespace, self.labels = number, namespace, labels
        self.counters: list[PodCounter] = []
        self.held: list[CarriedTerm] = []
        self.held_version = -1


class _ByPair(Generic[T]):
    """Things found by a label pair that whoever matches them must have; those without such a pair are always found."""

    def __init__(self) -> None:
        self._by_pair: dict[tuple[str, str], list[T]] = {}
        self._rest: list[T] = []
        self.length = 0

    def add(self, thing: T, selectors: Iterable[Selector]) -> None:
        pairs = [pair for pair in map(equality_pair, selectors) if pair is not None]
        if pairs:
            self._by_pair.setdefault(min(pairs, key=lambda p: len(self._by_pair.get(p, ()))), []).append(thing)
        else:
            self._rest.append(thing)
        self.length += 1

    def candidates(self, labels: Mapping[str, str]) -> Iterable[T]:
        yield from self._rest
        for pair in labels.items():
            yield from self._by_pair.get(pair, ())


class LabelRegistry:
    """All label classes, counters and held terms."""

    def __init__(self, namespace_labels: NamespaceLabels) -> None:
        self.namespace_labels = namespace_labels
        self.watched: set[str] = set()
        self.classes: list[LabelClass] = []
        self.counters: dict[CounterKey, PodCounter] = {}
        self.held: dict[CarriedTermKey, CarriedTerm] = {}
        self._held_index: _ByPair[CarriedTerm] = _ByPair()
        self._counter_index: _ByPair[PodCounter] = _ByPair()
        self._classes_by_pair: dict[tuple[str, str], list[LabelClass]] = {}
        self._known: dict[tuple[str, tuple[tuple[str, str], ...]], LabelClass] = {}
        self.version = 0
        """Moves when the terms that placed pods carry, or what they look at, have changed."""

    # Label classes ----------------------------------------------------------------------------------------------------

    def of(self, namespace: str, labels: Mapping[str, str] | None) -> LabelClass:
        """Give the label class of a pod, a new one if no pod like it has been seen."""
        watched = self.watched
        seen = sorted([pair for pair in labels.items() if pair[0] in watched]) if labels else []
        key = (namespace, tuple(seen))
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = LabelClass(len(self.classes), namespace, dict(seen))
            self.classes.append(known)
            for pair in seen:
                self._classes_by_pair.setdefault(pair, []).append(known)
            known.counters = [c for c in self._counter_index.candidates(known.labels) if self._counts(c.key, known)]
        return known

    # Counters ---------------------------------------------------------------------------------------------------------

    def counter(
        self, key: CounterKey, *, size: int, fill: Callable[[PodCounter, list[LabelClass]], None]
    ) -> PodCounter:
        """Give the counter of a key; a new one is filled by the given function. Its labels must be watched already."""
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
        """Give the label classes that could match: those with a pair that every match must have."""
        found: list[LabelClass] | None = None
        for _, selector in key.terms:
            pair = equality_pair(selector)
            if pair is not None:
                with_pair = self._classes_by_pair.get(pair, [])
                if found is None or len(with_pair) < len(found):
                    found = with_pair
        return self.classes if found is None else found

    def _counts(self, key: CounterKey, label_class: LabelClass) -> bool:
        labels, namespace = label_class.labels, label_class.namespace
        return all(
            selector.matches(labels) and scope.holds_known(namespace, self.namespace_labels(namespace))
            for scope, selector in key.terms
        )

    def namespaces_changed(self, fill: Callable[[PodCounter, list[LabelClass]], None]) -> None:
        """Match again whatever looks at the labels of namespaces."""
        self.version += 1
        for counter in self.counters.values():
            if not any(scope.by_labels for scope, _ in counter.key.terms):
                continue
            members = [c for c in self.classes if self._counts(counter.key, c)]
            chosen = {c.number for c in members}
            for label_class in self.classes:
                has = counter in label_class.counters
                if has != (label_class.number in chosen):
                    (label_class.counters.remove if has else label_class.counters.append)(counter)
            fill(counter, members)

    # Held terms -------------------------------------------------------------------------------------------------------

    def held_term(self, key: CarriedTermKey, *, size: int) -> CarriedTerm:
        """Give the tally of the pods that carry a term."""
        held = self.held.get(key)
        if held is None:
            held = self.held[key] = CarriedTerm(key, size)
            self._held_index.add(held, (key.term.selector,))
            self.version += 1
        return held

    def held_against(self, label_class: LabelClass) -> list[CarriedTerm]:
        """Give the carried terms that concern a pod of this label class; some may be carried by nobody now."""
        if label_class.held_version != self.version:
            namespace, labels = label_class.namespace, label_class.labels
            label_class.held = [
                held
                for held in self._held_index.candidates(labels)
                if held.key.term.selector.matches(labels)
                and held.key.term.scope.holds(namespace, self.namespace_labels(namespace))
            ]
            label_class.held_version = self.version
        return label_class.held

    def copy(self, namespace_labels: NamespaceLabels) -> LabelRegistry:
        """Copy the classes and the counts."""
        twin = LabelRegistry(namespace_labels)
        twin.watched, twin.version = set(self.watched), self.version
        for label_class in self.classes:
            twin.of(label_class.namespace, label_class.labels)
        for key, counter in self.counters.items():
            twin.counter(key, size=0, fill=lambda new, _, old=counter: old.copy_to(new))  # type: ignore[misc]
        for held_key, held in self.held.items():
            held.copy_to(twin.held_term(held_key, size=0))
        return twin

    def grow(self, size: int) -> None:
        """Make room for more rows in every tally."""
        for tally in (*self.counters.values(), *self.held.values()):
            tally.grow(size)
