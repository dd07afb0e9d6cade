"""NodeResourcesBalancedAllocation: prefer nodes whose resources are used in equal proportions."""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import CPU, MEMORY, Floats, Ints
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.engine.plugins.base import MAX_SCORE, NodeRow, NodeRows, PodPlugin, SpecColumns
from tutti.engine.plugins.node_resources_fit import NATIVE, ColumnSelector, RequestStack

_CPU_AND_MEMORY = slice(CPU, MEMORY + 1)
_DEFAULT = ("cpu", "memory")


class NodeResourcesBalancedAllocation(PodPlugin):
    """kube-scheduler's NodeResourcesBalancedAllocation: score only. It scores how the pod changes the balance."""

    name = "NodeResourcesBalancedAllocation"

    def __init__(self, resources: tuple[str, ...] = _DEFAULT) -> None:
        self._resources = resources
        self._amounts: AttachedCache[SpecColumns, _Amounts] = AttachedCache(lambda _: _Amounts())

    def columns_key(self, spec: SpecClass) -> tuple[str, ...]:
        """Return the resources that count for the spec; none for a pod without requests, which is not scored."""
        requested = {name: spec.balanced_requests.get(name, 0) for name in self._resources}
        return tuple(n for n, amount in requested.items() if amount or n in NATIVE) if any(requested.values()) else ()

    def score(self, node_rows: NodeRows, specs: SpecColumns) -> Ints | None:
        """Score 75 for an unchanged balance, up to 100 for a better balance, down to 50 for a worse balance."""
        known = self._amounts.of(specs)
        stack = known.stack
        if stack is None:
            names = list(self.columns_key(specs.members[0]))
            stack = known.stack = RequestStack(node_rows, names, dtype=np.float64)
        indices, amounts = stack.indices, stack.amounts(specs, lambda spec: spec.balanced_requests)
        if not len(amounts):
            return None
        floats = node_rows.floats if indices == _CPU_AND_MEMORY else None
        before, after = (
            _half_distances(*floats, amounts) if floats is not None else _deviations(node_rows, indices, amounts)
        )
        # 50 + (50 + after - before) / 2, truncated; the sum is never negative.
        balance = _whole(after)
        balance -= _whole(before) - 150
        balance >>= 1
        return balance

    def score_row(self, node: NodeRow, spec: SpecClass) -> int:
        """Score the change of balance on one node."""
        cpu, memory = node.alloc[CPU], node.alloc[MEMORY]
        if self._resources != _DEFAULT or not (cpu and memory):
            return super().score_row(node, spec)
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
    """Cached request stack of one `SpecColumns`."""

    __slots__ = ("stack",)

    def __init__(self) -> None:
        self.stack: RequestStack | None = None


def _balance(first: float, second: float) -> int:
    """Return 100 for equal fractions and less for unequal fractions."""
    if first > 1.0:
        first = 1.0
    if second > 1.0:
        second = 1.0
    return int((1.0 - abs((first - second) / 2)) * MAX_SCORE)


def _whole(deviation: Floats) -> Ints:
    """Return 100 for no deviation and less for more, as an integer; overwrite the argument."""
    np.subtract(1.0, deviation, out=deviation)
    deviation *= float(MAX_SCORE)
    return deviation.astype(np.int64)


def _half_distances(capacity: Floats, used: Floats, amounts: Floats) -> tuple[Floats, Floats]:
    """Return the deviation of the used fractions of cpu and memory, without and with the pod: half their difference."""
    without_pod = used[: MEMORY + 1]
    with_pod = without_pod[:, :, np.newaxis] + amounts
    with_pod /= capacity[:, :, np.newaxis]
    return _half_distance(without_pod / capacity)[:, np.newaxis], _half_distance(with_pod)


def _half_distance(fractions: Floats) -> Floats:
    np.minimum(fractions, 1.0, out=fractions)
    distance: Floats = fractions[0] - fractions[1]
    np.abs(distance, out=distance)
    distance *= 0.5
    return distance


def _deviations(node_rows: NodeRows, indices: ColumnSelector, amounts: Floats) -> tuple[Floats, Floats]:
    """Return the standard deviation of the used fractions of any resources, without and with the pod."""
    capacity, used = node_rows.alloc[indices], node_rows.used[indices]
    with_pod = [_deviation(used + amounts[:, :, i], capacity) for i in range(amounts.shape[2])]
    return _deviation(used, capacity)[:, np.newaxis], np.stack(with_pod, axis=1)


def _deviation(used: Ints | Floats, capacity: Ints) -> Floats:
    """Return the standard deviation of the fractions; a resource that a node lacks does not count there."""
    has_capacity = capacity != 0
    fractions = np.where(has_capacity, np.minimum(used / np.where(has_capacity, capacity, 1), 1.0), 0.0)
    number = has_capacity.sum(axis=0)
    # Add in the order of the resources, as kube-scheduler does.
    mean = sum(fractions, start=np.zeros(fractions.shape[1])) / np.maximum(number, 1)
    squares = np.zeros(fractions.shape[1])
    for fraction, counts in zip(fractions, has_capacity, strict=True):
        squares += np.where(counts, (fraction - mean) * (fraction - mean), 0.0)
    standard = np.sqrt(squares / np.maximum(number, 1))
    # As in kube-scheduler: two fractions deviate by half their difference, fewer by 0.
    most = np.where(has_capacity, fractions, -1.0).max(axis=0, initial=-1.0)
    least = np.where(has_capacity, fractions, 2.0).min(axis=0, initial=2.0)
    return np.where(number > 2, standard, np.where(number == 2, np.abs(most - least) / 2, 0.0))
