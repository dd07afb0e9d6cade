"""NodeResourcesFit: does the pod fit into what is free, and how full would the node be.

The filter takes real requests; a request of zero is never checked. The score takes the non-zero sums, so that pods
without requests do not all go to one node. Scores are integers, divided as kube-scheduler divides them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.classes import SpecClass
from tutti.cluster.columns import CPU, MEMORY, NONZERO_CPU, NONZERO_MEMORY, PODS, Ints, Rows
from tutti.engine.plugins.base import MAX_SCORE, Asked, RowPlugin, Window
from tutti.engine.verdict import Reason, Refusal, Variants

_NONZERO = {"cpu": NONZERO_CPU, "memory": NONZERO_MEMORY}
_NATIVE = ("cpu", "memory", "ephemeral-storage")
Shape = tuple[tuple[int, int], ...]


class Strategy(NamedTuple):
    """How fullness is scored: the type, the resources with their weights, and the curve of RequestedToCapacityRatio."""

    type: str = "LeastAllocated"
    resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    shape: Shape = ()
    """Points (utilisation, score), both from 0 to 100."""


class NodeResourcesFit(RowPlugin):
    """Room for the pod, and the score of a strategy."""

    name = "NodeResourcesFit"
    sees_pods = True
    refusals = (Refusal("Insufficient resources", resolvable=True), Refusal("Insufficient resources", resolvable=False))

    def __init__(self, strategy: Strategy = Strategy(), *, ignored: Sequence[str] = (), ignored_groups: Sequence[str] = ()) -> None:
        self._strategy = strategy
        self._ignored, self._ignored_groups = frozenset(ignored), frozenset(ignored_groups)
        self._asked: dict[int, list[tuple[int, int]]] = {}

    # Filter -----------------------------------------------------------------------------------------------------------

    def _checked(self, window: Window, spec: SpecClass) -> list[tuple[int, int]]:
        """Give the places and amounts that are checked; number of pods included."""
        asked = self._asked.get(spec.number)
        if asked is None:
            names = window.cluster.resources
            asked = [(names.place(n), amount) for n, amount in spec.requests.items() if amount > 0 and not self._ignores(n)]
            window.nodes.fit_resources()
            window.cluster.usages.fit_resources()
            self._asked[spec.number] = asked
        return asked

    def _ignores(self, name: str) -> bool:
        return "/" in name and (name in self._ignored or name.split("/", 1)[0] in self._ignored_groups)

    def filter(self, window: Window, spec: SpecClass) -> Variants | None:
        """Refuse nodes that are too full (1) or too small (2)."""
        checked = self._checked(window, spec)
        alloc, used = window.alloc, window.used
        place, amount = checked[0]
        short = used[place] + amount > alloc[place]
        for place, amount in checked[1:]:
            short |= used[place] + amount > alloc[place]
        answers: Variants = short.view(np.uint8)
        if answers.any():
            for place, amount in checked:
                if place != PODS:
                    answers[amount > alloc[place]] = 2
        return answers

    def _short(self, asked: Asked, rows: Rows) -> list[tuple[str, Ints]]:
        """Give for each resource which of the rows lack it."""
        window = Window(asked.cluster, rows)
        names = asked.cluster.resources.names
        found = []
        for place, amount in self._checked(window, asked.spec):
            message = "Too many pods" if place == PODS else f"Insufficient {names[place]}"
            found.append((message, (window.used[place] + amount > window.alloc[place]).astype(np.int64)))
        return found

    def reason(self, asked: Asked, row: int, variant: int) -> Reason:
        """Name every resource that the node lacks."""
        short = self._short(asked, np.array([row], dtype=np.int32))
        return Reason(self.name, tuple(message for message, lacks in short if lacks[0]), self.resolvable(variant))

    def tally(self, asked: Asked, rows: Rows, variant: int) -> dict[str, int]:
        """Count the nodes that lack each resource."""
        return {message: int(lacks.sum()) for message, lacks in self._short(asked, rows) if lacks.any()}

    # Score ------------------------------------------------------------------------------------------------------------

    def score(self, window: Window, spec: SpecClass) -> Ints | None:
        """Score how full the node would be."""
        parts = []
        for name, weight in self._strategy.resources:
            amount = spec.scored_requests.get(name, 0)
            if amount == 0 and name not in _NATIVE:
                continue  # a scalar resource that the pod does not ask for is not scored
            place = window.cluster.resources.place(name)
            window.nodes.fit_resources()
            capacity = window.alloc[place]
            parts.append((weight, capacity, window.used[_NONZERO.get(name, place)] + amount))
        return self._weigh(parts, len(window))

    def _weigh(self, parts: list[tuple[int, Ints, Ints]], length: int) -> Ints:
        ratio = self._strategy.type == "RequestedToCapacityRatio"
        total = np.zeros(length, dtype=np.int64)
        weights: Ints | int = 0
        for weight, capacity, requested in parts:
            some = capacity != 0
            every = bool(some.all())
            score = self._one(requested, capacity if every else np.where(some, capacity, 1))
            counted = some & (score > 0) if ratio else some
            if every and not ratio:
                total += score * weight if weight != 1 else score
                weights = weights + weight
            else:
                total += np.where(counted, score * weight, 0)
                weights = weights + np.where(counted, weight, 0)
        if ratio:
            # The ratio alone is rounded, half away from zero.
            return np.floor(total / np.maximum(weights, 1) + 0.5).astype(np.int64)
        return total // (max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1))

    def _one(self, requested: Ints, capacity: Ints) -> Ints:
        match self._strategy.type:
            case "LeastAllocated":
                # Negative (overfull) is 0; the quotient of positive integers is exact.
                return np.maximum(capacity - requested, 0) * MAX_SCORE // capacity
            case "MostAllocated":
                return np.minimum(requested, capacity) * MAX_SCORE // capacity
            case _:
                used = np.where(requested > capacity, MAX_SCORE, requested * MAX_SCORE // capacity)
                return broken_line(self._strategy.shape)[used]


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


class NodeResourcesBalancedAllocation(RowPlugin):
    """Prefer nodes whose resources stay, or become, evenly used: scores the change that the pod makes."""

    name = "NodeResourcesBalancedAllocation"
    sees_pods = True

    def __init__(self, resources: tuple[str, ...] = ("cpu", "memory")) -> None:
        self._resources = resources

    def score(self, window: Window, spec: SpecClass) -> Ints | None:
        """Score 75 for no change, up to 100 for a better balance, down to 50 for a worse one."""
        asked = [(name, spec.balanced_requests.get(name, 0)) for name in self._resources]
        if not any(amount for _, amount in asked):
            return None
        parts = []
        for name, amount in asked:
            if amount == 0 and name not in _NATIVE:
                continue
            place = window.cluster.resources.place(name)
            window.nodes.fit_resources()
            parts.append((window.alloc[place], window.used[place], amount))
        before = _balance([(used, capacity) for capacity, used, _ in parts])
        after = _balance([(used + amount if amount else used, capacity) for capacity, used, amount in parts])
        # 50 + (50 + after - before) / 2 without the fraction; the sum is never negative.
        return 50 + ((50 + after - before) >> 1)


def _balance(parts: list[tuple[Ints, Ints]]) -> Ints:
    """Give 100 for evenly used resources, less for uneven ones."""
    if len(parts) == 2 and parts[0][1].all() and parts[1][1].all():
        (first, first_capacity), (second, second_capacity) = parts
        spread = np.minimum(first / first_capacity, 1.0)
        spread -= np.minimum(second / second_capacity, 1.0)
        # Halving is exact, so |a - b| / 2 is (a - b) / 2 without its sign.
        spread *= 0.5
        np.abs(spread, out=spread)
    else:
        spread = _deviation(parts)
    np.subtract(1.0, spread, out=spread)
    spread *= float(MAX_SCORE)
    return spread.astype(np.int64)


def _deviation(parts: list[tuple[Ints, Ints]]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Give the standard deviation of the fractions; a resource that a node lacks does not count there."""
    fractions = np.zeros((len(parts), len(parts[0][0]))) if parts else np.zeros((0, 0))
    counted = np.zeros(fractions.shape, dtype=bool)
    for i, (used, capacity) in enumerate(parts):
        counted[i] = capacity != 0
        fractions[i] = np.where(counted[i], np.minimum(used / np.where(capacity == 0, 1, capacity), 1.0), 0.0)
    number = counted.sum(axis=0)
    # Sums in the order of the resources, as kube-scheduler adds them.
    mean = np.zeros(fractions.shape[1])
    for fraction in fractions:
        mean += fraction
    mean /= np.maximum(number, 1)
    squares = np.zeros(fractions.shape[1])
    for i, fraction in enumerate(fractions):
        squares += np.where(counted[i], (fraction - mean) * (fraction - mean), 0.0)
    many = np.sqrt(squares / np.maximum(number, 1))
    # Of two fractions the deviation is half their distance, computed so; of fewer it is nothing.
    first = np.where(counted, fractions, -np.inf).max(axis=0, initial=0.0)
    second = np.where(counted, fractions, np.inf).min(axis=0, initial=2.0)
    return np.where(number > 2, many, np.where(number == 2, np.abs(first - second) / 2, 0.0))
