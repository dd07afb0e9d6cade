"""NodeResourcesFit: does the pod fit into what is free, and how full would the node be.

The filter takes real requests; a request of zero is never checked. The score takes the non-zero sums, so that pods
without requests do not all go to one node. Scores are integers, divided as kube-scheduler divides them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import CPU, MEMORY, NONZERO_CPU, NONZERO_MEMORY, PODS, Bools, Floats, Ints, Rows
from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.engine.plugins.base import MAX_SCORE, IncomingPod, NodeRow, NodeRows, PodPlugin, SpecColumns
from tutti.engine.plugins.verdict import Reason, Refusal, Variants

_NONZERO = {"cpu": NONZERO_CPU, "memory": NONZERO_MEMORY}
NATIVE = ("cpu", "memory", "ephemeral-storage")
Shape = tuple[tuple[int, int], ...]
Places = slice | list[int]
"""Which of the stacked columns."""


class ScoringStrategy(NamedTuple):
    """How fullness is scored: the type, the resources with their weights, and the curve of RequestedToCapacityRatio."""

    type: str = "LeastAllocated"
    resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    shape: Shape = ()
    """Points (utilisation, score), both from 0 to 100."""


_DEFAULT = ScoringStrategy()


class NodeResourcesFit(PodPlugin):
    """Room for the pod, and the score of a strategy."""

    name = "NodeResourcesFit"
    cures = frozenset((Event.NODE_ADDED, Event.NODE_ROOM, Event.POD_GONE))
    refusals = (Refusal("Insufficient resources", resolvable=True),)

    def __init__(
        self, strategy: ScoringStrategy = _DEFAULT, *, ignored: Sequence[str] = (), ignored_groups: Sequence[str] = ()
    ) -> None:
        self._strategy = strategy
        self._ignored, self._ignored_groups = frozenset(ignored), frozenset(ignored_groups)
        self._rooms: AttachedCache[Cluster, dict[int, list[tuple[int, int]]]] = AttachedCache(lambda _: {})
        """By the number of a spec: what `room` gives."""
        self._amounts: AttachedCache[SpecColumns, _Amounts] = AttachedCache(lambda _: _Amounts())

    def shape(self, spec: SpecClass) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Specs that want the same resources, whatever the amounts."""
        return tuple(self._checked(spec)), tuple(name for name, _ in self._scored(spec))

    # Filter -----------------------------------------------------------------------------------------------------------

    def _checked(self, spec: SpecClass) -> list[str]:
        """Give the resources that are checked, in a fixed order; the number of pods is one of them."""
        return sorted(n for n, amount in spec.requests.items() if amount > 0 and not self._ignores(n))

    def _ignores(self, name: str) -> bool:
        domain, slash, _ = name.partition("/")
        # Only extended resources can be ignored, and a name with this in it is none.
        if not slash or "kubernetes.io/" in name:
            return False
        return name in self._ignored or domain in self._ignored_groups

    def _wanted(self, window: NodeRows, specs: SpecColumns) -> tuple[Places, Ints]:
        """Give the places of the checked resources, and how much each spec wants of them."""
        known = self._amounts.of(specs)
        stack = known.wanted
        if stack is None:
            names = sorted(self._checked(specs.members[0]), key=window.cluster.resources.place)
            stack = known.wanted = RequestStack(window, names)
        return stack.places, stack.amounts(specs, lambda spec: spec.requests)

    def filter(self, window: NodeRows, specs: SpecColumns) -> Variants | None:
        """Refuse nodes that have not enough left of everything that is wanted."""
        lacking: Bools = np.logical_or.reduce(self._lacking(window, specs))
        return lacking.view(np.uint8)

    def room(self, cluster: Cluster, spec: SpecClass) -> list[tuple[int, int]]:
        """Give the places of everything that is wanted, with the amounts."""
        known = self._rooms.of(cluster)
        if spec.number not in known:
            place = cluster.resources.place
            known[spec.number] = [(place(n), spec.requests[n]) for n in self._checked(spec)]
        return known[spec.number]

    def fits(self, node: NodeRow, spec: SpecClass) -> bool:
        """Say whether enough is left of everything that is wanted."""
        try:
            wanted = self._rooms.of(node.cluster)[spec.number]  # `room` would be another call, on the hottest path
        except KeyError:
            wanted = self.room(node.cluster, spec)
        alloc, used = node.alloc, node.used
        for place, amount in wanted:  # noqa: SIM110 - a generator costs as much as the whole check
            if alloc[place] - used[place] < amount:
                return False
        return True

    def _lacking(self, window: NodeRows, specs: SpecColumns) -> Bools:
        """Say for each resource, row and spec whether too little is left."""
        places, amounts = self._wanted(window, specs)
        left = window.alloc[places] - window.used[places]
        lacking: Bools = left[:, :, np.newaxis] < amounts
        return lacking

    def _short(self, incoming: IncomingPod, rows: Rows) -> list[tuple[str, Bools]]:
        """Say for each resource which of the rows have not enough left."""
        window, specs = NodeRows(incoming.cluster, rows), SpecColumns(incoming.spec)
        short = self._lacking(window, specs)[:, :, 0]
        names = incoming.cluster.resources.names
        numbers = np.arange(len(names))[self._wanted(window, specs)[0]].tolist()
        return list(zip((shortage(names, n) for n in numbers), short, strict=True))

    def reason(self, incoming: IncomingPod, row: int, variant: int) -> Reason:
        """Name every resource that the node lacks."""
        rows = np.array([row])
        messages = tuple(message for message, lacks in self._short(incoming, rows) if lacks[0])
        return Reason(self.name, messages, bool(self.resolvable(incoming, rows, variant)[0]))

    def tally(self, incoming: IncomingPod, rows: Rows, variant: int) -> dict[str, int]:
        """Count the nodes that lack each resource."""
        return {message: int(lacks.sum()) for message, lacks in self._short(incoming, rows) if lacks.any()}

    def resolvable(self, incoming: IncomingPod, rows: Rows, variant: int) -> Bools:
        """Evictions cannot help where the whole node is too small."""
        window = NodeRows(incoming.cluster, rows)
        places, amounts = self._wanted(window, SpecColumns(incoming.spec))
        too_small = window.alloc[places] < amounts[:, :, 0]
        too_small[np.arange(len(incoming.cluster.resources))[places] == PODS] = False
        hopeless: Bools = np.logical_or.reduce(too_small)
        return ~hopeless

    # Score ------------------------------------------------------------------------------------------------------------

    def _scored(self, spec: SpecClass) -> list[tuple[str, int]]:
        """Give the scored resources and their weights; a scalar one that the pod does not want is not scored."""
        return [(n, w) for n, w in self._strategy.resources if n in NATIVE or spec.scored_requests.get(n, 0)]

    def score(self, window: NodeRows, specs: SpecColumns) -> Ints | None:
        """Score how full the node would be."""
        known = self._amounts.of(specs)
        scored = known.scored
        if scored is None:
            scored = known.scored = self._prepare_score(window, specs)
        floats = window.floats if scored.plain else None
        if floats is not None:
            return _least_allocated(*floats, scored.hundredfold.amounts(specs, lambda spec: spec.scored_requests))
        amounts = scored.stack.amounts(specs, lambda spec: spec.scored_requests)
        capacity = window.alloc[scored.stack.places][:, :, np.newaxis]
        requested = window.used[scored.used][:, :, np.newaxis] + amounts
        return self._weigh(np.broadcast_to(capacity, requested.shape), requested, scored.weights)

    def points(self, node: NodeRow, spec: SpecClass) -> int:
        """Score how full one node would be."""
        if self._strategy != _DEFAULT or not (node.alloc[CPU] and node.alloc[MEMORY]):
            return super().points(node, spec)
        cpu, memory = node.alloc[CPU], node.alloc[MEMORY]
        amounts = spec.scored_requests
        cpu_left = cpu - node.used[NONZERO_CPU] - amounts.get("cpu", 0)
        memory_left = memory - node.used[NONZERO_MEMORY] - amounts.get("memory", 0)
        total = (cpu_left * MAX_SCORE // cpu if cpu_left > 0 else 0) + (
            memory_left * MAX_SCORE // memory if memory_left > 0 else 0
        )
        return total >> 1

    def _prepare_score(self, window: NodeRows, specs: SpecColumns) -> _Scored:
        counted = self._scored(specs.members[0])
        weights = np.array([w for _, w in counted], dtype=np.int64).reshape(len(counted), 1, 1)
        numbers = [_NONZERO.get(n, window.cluster.resources.place(n)) for n, _ in counted]
        plain = self._strategy == _DEFAULT
        names = [n for n, _ in counted]
        hundredfold = RequestStack(window, names, dtype=np.float64, times=MAX_SCORE)
        return _Scored(RequestStack(window, names), hundredfold, _places(numbers), weights, plain)

    def _weigh(self, capacity: Ints, requested: Ints, weights: Ints) -> Ints:
        """Average the scores of the resources; one that a node lacks does not count there."""
        ratio = self._strategy.type == "RequestedToCapacityRatio"
        there = capacity != 0
        scores = self._one(requested, np.where(there, capacity, 1))
        counted = there & (scores > 0) if ratio else there
        total = np.where(counted, scores * weights, 0).sum(axis=0)
        weight = np.maximum(np.where(counted, weights, 0).sum(axis=0), 1)
        # This strategy alone rounds, half away from zero.
        average: Ints = np.floor(total / weight + 0.5).astype(np.int64) if ratio else total // weight
        return average

    def _one(self, requested: Ints, capacity: Ints) -> Ints:
        """Score one resource; positive integers divide as in Go."""
        scores: Ints
        match self._strategy.type:
            case "LeastAllocated":
                scores = np.maximum(capacity - requested, 0) * MAX_SCORE // capacity
            case "MostAllocated":
                scores = np.minimum(requested, capacity) * MAX_SCORE // capacity
            case _:
                used = np.where(requested > capacity, MAX_SCORE, requested * MAX_SCORE // capacity)
                scores = broken_line(self._strategy.shape)[used]
        return scores


def shortage(names: list[str], place: int) -> str:
    """Say what a node lacks."""
    return "Too many pods" if place == PODS else f"Insufficient {names[place]}"


class _Amounts:
    """How much some specs want and how they are scored, once that is known."""

    __slots__ = ("scored", "wanted")

    def __init__(self) -> None:
        self.wanted: RequestStack | None = None
        self.scored: _Scored | None = None


class _Scored(NamedTuple):
    """What is scored: how much each spec adds, to which sums, and how much each resource weighs."""

    stack: RequestStack
    hundredfold: RequestStack
    used: Places
    weights: Ints
    plain: bool
    """Whether it is the default strategy, which is scored in floats."""


def _least_allocated(capacity: Floats, used: Floats, amounts: Floats) -> Ints:
    """Score by the default strategy: cpu and memory, least allocated, of equal weight; amounts come a hundredfold.

    Floats hold these integers exactly, and a rounded quotient of such integers has the same whole part.
    """
    left = (capacity - used[NONZERO_CPU : NONZERO_MEMORY + 1]) * MAX_SCORE
    scaled: Floats = left[:, :, np.newaxis] - amounts
    np.maximum(scaled, 0.0, out=scaled)
    scaled /= capacity[:, :, np.newaxis]
    np.floor(scaled, out=scaled)
    scores: Ints = (scaled[0] + scaled[1]).astype(np.int64)
    scores >>= 1
    return scores


def _places(numbers: list[int]) -> Places:
    """Give a slice for neighbouring places: a slice of the columns costs no copy."""
    first = numbers[0] if numbers else 0
    if numbers == list(range(first, first + len(numbers))):
        return slice(first, first + len(numbers))
    return numbers


class RequestStack:
    """How much specs want of some resources, as an array that grows with the specs.

    The specs are the last axis (resources, rows, specs): numpy is fast along the last one, and where there are few rows
    there are many specs.
    """

    def __init__(
        self, window: NodeRows, names: list[str], *, dtype: type[np.generic] = np.int64, times: int = 1
    ) -> None:
        cluster = window.cluster
        self._names, self._times = names, times
        self.places = _places([cluster.resources.place(name) for name in names])
        cluster.fit_resources()
        self._amounts: Any = np.zeros((len(names), 1, 0), dtype=dtype)

    def amounts(self, specs: SpecColumns, of: Callable[[SpecClass], dict[str, int]]) -> Any:
        """Give the amounts of all specs; those that joined since the last time are looked at now."""
        known = self._amounts.shape[2]
        if known < len(specs.members):
            new = [[of(spec).get(name, 0) * self._times for spec in specs.members[known:]] for name in self._names]
            column = np.array(new, dtype=self._amounts.dtype).reshape(len(self._names), 1, len(specs.members) - known)
            self._amounts = np.concatenate((self._amounts, column), axis=2)
        return self._amounts[:, :, specs.chosen]


def broken_line(shape: Shape) -> Ints:
    """Give the value of a line through points (x, y) for every x from 0 to 100, divided as Go divides integers."""
    values = []
    for x in range(MAX_SCORE + 1):
        for i, (right, high) in enumerate(shape):
            if x <= right:
                if i == 0:
                    values.append(high)
                else:
                    left, low = shape[i - 1]
                    rise = (high - low) * (x - left)
                    step = abs(rise) // (right - left)
                    values.append(low + (step if rise >= 0 else -step))
                break
        else:
            values.append(shape[-1][1])
    return np.array(values, dtype=np.int64)
