"""NodeResourcesBalancedAllocation: use a node's resources evenly."""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import CPU, MEMORY, Floats, Ints
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.engine.plugins.base import MAX_SCORE, NodeRow, NodeRows, PodPlugin, SpecColumns
from tutti.engine.plugins.node_resources_fit import NATIVE, Places, RequestStack

_PLAIN = slice(CPU, MEMORY + 1)
_DEFAULT = ("cpu", "memory")


class NodeResourcesBalancedAllocation(PodPlugin):
    """Prefer nodes whose resources stay, or become, evenly used: scores the change that the pod makes."""

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, resources: tuple[str, ...] = _DEFAULT) -> None:
        self._resources = resources
        self._amounts: AttachedCache[SpecColumns, _Amounts] = AttachedCache(lambda _: _Amounts())

    def shape(self, spec: SpecClass) -> tuple[str, ...]:
        """Specs for which the same resources count; none for a pod that asks for nothing."""
        asked = {name: spec.balanced_requests.get(name, 0) for name in self._resources}
        return tuple(n for n, amount in asked.items() if amount or n in NATIVE) if any(asked.values()) else ()

    def score(self, window: NodeRows, specs: SpecColumns) -> Ints | None:
        """Score 75 for no change, up to 100 for a better balance, down to 50 for a worse one."""
        known = self._amounts.of(specs)
        stack = known.stack
        if stack is None:
            names = list(self.shape(specs.members[0]))
            stack = known.stack = RequestStack(window, names, dtype=np.float64)
        places, amounts = stack.places, stack.amounts(specs, lambda spec: spec.balanced_requests)
        if not len(amounts):
            return None
        floats = window.floats if places == _PLAIN else None
        before, after = (
            _half_distances(*floats, amounts) if floats is not None else _deviations(window, places, amounts)
        )
        # 50 + (50 + after - before) / 2 without the fraction; the sum is never negative.
        balance = _whole(after)
        balance -= _whole(before) - 150
        balance >>= 1
        return balance

    def points(self, node: NodeRow, spec: SpecClass) -> int:
        """Score the change on one node."""
        cpu, memory = node.alloc[CPU], node.alloc[MEMORY]
        if self._resources != _DEFAULT or not (cpu and memory):
            return super().points(node, spec)
        amounts = spec.balanced_requests
        more_cpu, more_memory = amounts.get("cpu", 0), amounts.get("memory", 0)
        if not (more_cpu or more_memory):
            return 0
        used_cpu, used_memory = node.used[CPU], node.used[MEMORY]
        before = node.balance
        if before is None:
            before = node.balance = _balance(used_cpu / cpu, used_memory / memory)
        return 75 + ((_balance((used_cpu + more_cpu) / cpu, (used_memory + more_memory) / memory) - before) >> 1)


class _Amounts:
    """How much some specs want, once that is known."""

    __slots__ = ("stack",)

    def __init__(self) -> None:
        self.stack: RequestStack | None = None


def _balance(first: float, second: float) -> int:
    """Give 100 for equal parts and less for unequal ones."""
    if first > 1.0:
        first = 1.0
    if second > 1.0:
        second = 1.0
    return int((1.0 - abs((first - second) / 2)) * MAX_SCORE)


def _whole(deviation: Floats) -> Ints:
    """Give 100 for no deviation and less for more, without the fraction."""
    np.subtract(1.0, deviation, out=deviation)
    deviation *= float(MAX_SCORE)
    return deviation.astype(np.int64)


def _half_distances(capacity: Floats, used: Floats, amounts: Floats) -> tuple[Floats, Floats]:
    """Give the deviation of the used parts of cpu and memory, without and with the pod: half their distance."""
    there = used[: MEMORY + 1]
    with_pod = there[:, :, np.newaxis] + amounts
    with_pod /= capacity[:, :, np.newaxis]
    return _half_distance(there / capacity)[:, np.newaxis], _half_distance(with_pod)


def _half_distance(parts: Floats) -> Floats:
    np.minimum(parts, 1.0, out=parts)
    distance: Floats = parts[0] - parts[1]
    np.abs(distance, out=distance)
    distance *= 0.5
    return distance


def _deviations(window: NodeRows, places: Places, amounts: Floats) -> tuple[Floats, Floats]:
    """Give the standard deviation of the used parts of any resources, without and with the pod."""
    capacity, used = window.alloc[places], window.used[places]
    with_pod = [_deviation(used + amounts[:, :, i], capacity) for i in range(amounts.shape[2])]
    return _deviation(used, capacity)[:, np.newaxis], np.stack(with_pod, axis=1)


def _deviation(used: Ints | Floats, capacity: Ints) -> Floats:
    """Give the standard deviation of the fractions; a resource that a node lacks does not count there."""
    there = capacity != 0
    fractions = np.where(there, np.minimum(used / np.where(there, capacity, 1), 1.0), 0.0)
    number = there.sum(axis=0)
    # Sums in the order of the resources, as kube-scheduler adds them.
    mean = sum(fractions, start=np.zeros(fractions.shape[1])) / np.maximum(number, 1)
    squares = np.zeros(fractions.shape[1])
    for fraction, counts in zip(fractions, there, strict=True):
        squares += np.where(counts, (fraction - mean) * (fraction - mean), 0.0)
    many = np.sqrt(squares / np.maximum(number, 1))
    # Of two fractions the deviation is half their distance, computed so; of fewer it is nothing.
    most = np.where(there, fractions, -1.0).max(axis=0, initial=-1.0)
    least = np.where(there, fractions, 2.0).min(axis=0, initial=2.0)
    return np.where(number > 2, many, np.where(number == 2, np.abs(most - least) / 2, 0.0))
