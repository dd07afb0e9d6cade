"""NodeResourcesFit: does the pod fit into the free resources, and how full is the node with the pod?

The filter compares real requests and never checks a request of zero. The score uses the non-zero sums, so that pods
without requests do not all go to one node. Scores use the same integer division as kube-scheduler.
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
from tutti.engine.plugins.device_classes import device_class_of, needs_device
from tutti.engine.plugins.verdict import Reason, Refusal, StatusCodes
from tutti.kube.objects import DeviceClass

_NONZERO = {"cpu": NONZERO_CPU, "memory": NONZERO_MEMORY}
NATIVE = ("cpu", "memory", "ephemeral-storage")
FunctionShape = tuple[tuple[int, int], ...]
ColumnSelector = slice | list[int]
"""The selected columns of a stack, by resource index."""


class ScoringStrategy(NamedTuple):
    """The scoring strategy: its type, the resources with weights, and the shape of RequestedToCapacityRatio."""

    type: str = "LeastAllocated"
    resources: tuple[tuple[str, int], ...] = (("cpu", 1), ("memory", 1))
    shape: FunctionShape = ()
    """Points (utilization, score), both from 0 to 100."""


_DEFAULT = ScoringStrategy()
_MAX_SPECS = 20_000
"""Largest number of specs whose required resources are remembered."""


class NodeResourcesFit(PodPlugin):
    """kube-scheduler's NodeResourcesFit: filter and score."""

    name = "NodeResourcesFit"
    events_to_register = frozenset((Event.NODE_ADDED, Event.NODE_ALLOCATABLE, Event.POD_REMOVED))
    refusals = (Refusal("Insufficient resources", resolvable=True),)

    def __init__(
        self, strategy: ScoringStrategy = _DEFAULT, *, ignored: Sequence[str] = (), ignored_groups: Sequence[str] = ()
    ) -> None:
        self._strategy = strategy
        self._ignored, self._ignored_groups = frozenset(ignored), frozenset(ignored_groups)
        self._required: AttachedCache[Cluster, dict[int, list[tuple[int, int]]]] = AttachedCache(lambda _: {})
        """Spec number -> result of `required_resources`."""
        self._amounts: AttachedCache[SpecColumns, _Amounts] = AttachedCache(lambda _: _Amounts())

    def columns_key(self, spec: SpecClass) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the checked and the scored resource names: specs with equal names are evaluated together."""
        return tuple(self._checked(spec)), tuple(name for name, _ in self._scored(spec))

    # Filter -----------------------------------------------------------------------------------------------------------

    def _checked(self, spec: SpecClass) -> list[str]:
        """Return the names of the checked resources, sorted; `pods` is one of them."""
        return sorted(n for n, amount in spec.requests.items() if amount > 0 and not self._ignores(n))

    def _ignores(self, name: str) -> bool:
        domain, slash, _ = name.partition("/")
        # Only extended resources can be ignored; names with kubernetes.io/ are native resources.
        if not slash or "kubernetes.io/" in name:
            return False
        return name in self._ignored or domain in self._ignored_groups

    def _requested(self, node_rows: NodeRows, specs: SpecColumns) -> tuple[ColumnSelector, Ints]:
        """Return the indices of the checked resources, and the requested amounts per spec."""
        known = self._amounts.of(specs)
        stack = known.requested
        if stack is None:
            names = sorted(self._checked(specs.members[0]), key=node_rows.cluster.resources.index)
            stack = known.requested = RequestStack(node_rows, names)
        return stack.indices, stack.amounts(specs, lambda spec: spec.requests)

    def filter(self, node_rows: NodeRows, specs: SpecColumns) -> StatusCodes | None:
        """Refuse nodes with too little of a requested resource."""
        lacking: Bools = np.logical_or.reduce(self._lacking(node_rows, specs))
        return lacking.view(np.uint8)

    def required_resources(self, cluster: Cluster, spec: SpecClass) -> list[tuple[int, int]]:
        """Return the index and amount of every checked resource."""
        known = self._required.of(cluster)
        if spec.number not in known:
            if len(known) >= _MAX_SPECS:
                known.clear()
            index = cluster.resources.index
            known[spec.number] = [(index(n), spec.requests[n]) for n in self._checked(spec)]
        return known[spec.number]

    def fits(self, node: NodeRow, spec: SpecClass) -> bool:
        """Return whether the node has enough of every checked resource."""
        try:
            # No call of `required_resources` here: this is the hottest path.
            requested = self._required.of(node.cluster)[spec.number]
        except KeyError:
            requested = self.required_resources(node.cluster, spec)
        alloc, used = node.alloc, node.used
        for index, amount in requested:  # noqa: SIM110 - a generator costs as much as the whole check
            if alloc[index] - used[index] < amount:
                return False
        return True

    def _lacking(self, node_rows: NodeRows, specs: SpecColumns) -> Bools:
        """Return for each resource, row and spec whether too little is free."""
        indices, amounts = self._requested(node_rows, specs)
        free = node_rows.alloc[indices] - node_rows.used[indices]
        lacking: Bools = free[:, :, np.newaxis] < amounts
        return lacking

    def _shortages(self, incoming: IncomingPod, rows: Rows) -> list[tuple[str, Bools]]:
        """Return the messages of each checked resource, with a mask of the rows that have too little."""
        node_rows, specs, cluster = incoming.node_rows(rows), incoming.columns, incoming.cluster
        lacking = self._lacking(node_rows, specs)[:, :, 0]
        names = cluster.resources.names
        shortages: list[tuple[str, Bools]] = []
        for number, lacks in zip(
            np.arange(len(names))[self._requested(node_rows, specs)[0]].tolist(), lacking, strict=True
        ):
            device_class = device_class_of(cluster, names[number]) if cluster.objects[DeviceClass.KIND] else None
            if device_class is not None:
                has_none = node_rows.alloc[number] == 0
                shortages.append((needs_device(device_class, names[number]), lacks & has_none))
                lacks = lacks & ~has_none
            shortages.append((shortage(names, number), lacks))
        return shortages

    def reason(self, incoming: IncomingPod, row: int, code: int) -> Reason:
        """Return one message for every resource that the node lacks."""
        rows = np.array([row])
        messages = tuple(message for message, lacks in self._shortages(incoming, rows) if lacks[0])
        return Reason(self.name, messages, bool(self.resolvable(incoming, rows, code)[0]))

    def count_messages(self, incoming: IncomingPod, rows: Rows, code: int) -> dict[str, int]:
        """Return how many nodes lack each resource."""
        return {message: int(lacks.sum()) for message, lacks in self._shortages(incoming, rows) if lacks.any()}

    def resolvable(self, incoming: IncomingPod, rows: Rows, code: int) -> Bools:
        """Return False for nodes whose allocatable amount is below the request: preemption cannot help there."""
        node_rows = NodeRows(incoming.cluster, rows)
        indices, amounts = self._requested(node_rows, incoming.columns)
        too_small = node_rows.alloc[indices] < amounts[:, :, 0]
        too_small[np.arange(len(incoming.cluster.resources))[indices] == PODS] = False
        unresolvable: Bools = np.logical_or.reduce(too_small)
        return ~unresolvable

    # Score ------------------------------------------------------------------------------------------------------------

    def _scored(self, spec: SpecClass) -> list[tuple[str, int]]:
        """Return the scored resources and their weights; a scalar resource is scored only if the pod requests it."""
        return [(n, w) for n, w in self._strategy.resources if n in NATIVE or spec.scored_requests.get(n, 0)]

    def score(self, node_rows: NodeRows, specs: SpecColumns) -> Ints | None:
        """Score the utilization of the node with the pod."""
        known = self._amounts.of(specs)
        scored = known.scored
        if scored is None:
            scored = known.scored = self._prepare_score(node_rows, specs)
        floats = node_rows.floats if scored.is_default else None
        if floats is not None:
            return _least_allocated(*floats, scored.percent_stack.amounts(specs, lambda spec: spec.scored_requests))
        amounts = scored.stack.amounts(specs, lambda spec: spec.scored_requests)
        capacity = node_rows.alloc[scored.stack.indices][:, :, np.newaxis]
        requested = node_rows.used[scored.used][:, :, np.newaxis] + amounts
        return self._weighted_average(np.broadcast_to(capacity, requested.shape), requested, scored.weights)

    def score_row(self, node: NodeRow, spec: SpecClass) -> int:
        """Score the utilization of one node with the pod."""
        if self._strategy != _DEFAULT or not (node.alloc[CPU] and node.alloc[MEMORY]):
            return super().score_row(node, spec)
        cpu, memory = node.alloc[CPU], node.alloc[MEMORY]
        amounts = spec.scored_requests
        cpu_left = cpu - node.used[NONZERO_CPU] - amounts.get("cpu", 0)
        memory_left = memory - node.used[NONZERO_MEMORY] - amounts.get("memory", 0)
        total = (cpu_left * MAX_SCORE // cpu if cpu_left > 0 else 0) + (
            memory_left * MAX_SCORE // memory if memory_left > 0 else 0
        )
        return total >> 1

    def _prepare_score(self, node_rows: NodeRows, specs: SpecColumns) -> _Scored:
        counted = self._scored(specs.members[0])
        weights = np.array([w for _, w in counted], dtype=np.int64).reshape(len(counted), 1, 1)
        numbers = [_NONZERO.get(n, node_rows.cluster.resources.index(n)) for n, _ in counted]
        is_default = self._strategy == _DEFAULT
        names = [n for n, _ in counted]
        percent_stack = RequestStack(node_rows, names, dtype=np.float64, times=MAX_SCORE)
        return _Scored(RequestStack(node_rows, names), percent_stack, _column_selector(numbers), weights, is_default)

    def _weighted_average(self, capacity: Ints, requested: Ints, weights: Ints) -> Ints:
        """Return the weighted average of the resources' scores; a resource that a node lacks does not count there."""
        ratio = self._strategy.type == "RequestedToCapacityRatio"
        has_capacity = capacity != 0
        scores = self._score_resources(requested, np.where(has_capacity, capacity, 1))
        counted = has_capacity & (scores > 0) if ratio else has_capacity
        total = np.where(counted, scores * weights, 0).sum(axis=0)
        weight = np.maximum(np.where(counted, weights, 0).sum(axis=0), 1)
        # Only RequestedToCapacityRatio rounds, half away from zero.
        average: Ints = np.floor(total / weight + 0.5).astype(np.int64) if ratio else total // weight
        return average

    def _score_resources(self, requested: Ints, capacity: Ints) -> Ints:
        """Score each resource by itself; positive integers divide as in Go."""
        scores: Ints
        match self._strategy.type:
            case "LeastAllocated":
                scores = np.maximum(capacity - requested, 0) * MAX_SCORE // capacity
            case "MostAllocated":
                scores = np.minimum(requested, capacity) * MAX_SCORE // capacity
            case _:
                used = np.where(requested > capacity, MAX_SCORE, requested * MAX_SCORE // capacity)
                scores = broken_linear_function(self._strategy.shape)[used]
        return scores


def shortage(names: list[str], index: int) -> str:
    """Return kube-scheduler's message for a node that lacks the resource."""
    return "Too many pods" if index == PODS else f"Insufficient {names[index]}"


class _Amounts:
    """Cached request stacks of one `SpecColumns`."""

    __slots__ = ("requested", "scored")

    def __init__(self) -> None:
        self.requested: RequestStack | None = None
        self.scored: _Scored | None = None


class _Scored(NamedTuple):
    """The request stacks for scoring, the columns in use, and the weights."""

    stack: RequestStack
    percent_stack: RequestStack
    used: ColumnSelector
    weights: Ints
    is_default: bool
    """Whether the strategy is the default strategy, which is computed in floats."""


def _least_allocated(capacity: Floats, used: Floats, amounts: Floats) -> Ints:
    """Score by the default strategy: least allocated cpu and memory, equal weights; `amounts` are multiplied by 100.

    Floats represent these integers exactly, and the rounded quotient of such integers has the same integer part.
    """
    free = (capacity - used[NONZERO_CPU : NONZERO_MEMORY + 1]) * MAX_SCORE
    scaled: Floats = free[:, :, np.newaxis] - amounts
    np.maximum(scaled, 0.0, out=scaled)
    scaled /= capacity[:, :, np.newaxis]
    np.floor(scaled, out=scaled)
    scores: Ints = (scaled[0] + scaled[1]).astype(np.int64)
    scores >>= 1
    return scores


def _column_selector(numbers: list[int]) -> ColumnSelector:
    """Return a slice for consecutive indices: a slice of the columns costs no copy."""
    first = numbers[0] if numbers else 0
    if numbers == list(range(first, first + len(numbers))):
        return slice(first, first + len(numbers))
    return numbers


class RequestStack:
    """The requested amounts of some resources per spec, as an array that grows with the specs.

    The specs are the last axis (resources, rows, specs): numpy is fastest along the last axis, and calls with few rows
    have many specs.
    """

    def __init__(
        self, node_rows: NodeRows, names: list[str], *, dtype: type[np.generic] = np.int64, times: int = 1
    ) -> None:
        cluster = node_rows.cluster
        self._names, self._times = names, times
        self.indices = _column_selector([cluster.resources.index(name) for name in names])
        cluster.fit_resources()
        self._amounts: Any = np.zeros((len(names), 1, 0), dtype=dtype)

    def amounts(self, specs: SpecColumns, of: Callable[[SpecClass], dict[str, int]]) -> Any:
        """Return the amounts of the selected specs; add the columns of new specs first."""
        known = self._amounts.shape[2]
        if known < len(specs.members):
            new = [[of(spec).get(name, 0) * self._times for spec in specs.members[known:]] for name in self._names]
            column = np.array(new, dtype=self._amounts.dtype).reshape(len(self._names), 1, len(specs.members) - known)
            self._amounts = np.concatenate((self._amounts, column), axis=2)
        return self._amounts[:, :, specs.selected]


def broken_linear_function(shape: FunctionShape) -> Ints:
    """Return the value of the function through points (x, y) for every x from 0 to 100, with Go's integer division."""
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
