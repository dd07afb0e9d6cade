"""Counts and scores of PodTopologySpread: matching pods per domain, and the scores of soft constraints."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tutti.cluster.columns import Ints, Rows
from tutti.cluster.counters.domain_counts import DomainView, Eligibility, RowCounts
from tutti.cluster.counters.label_classes import CounterKey
from tutti.cluster.counters.pod_terms import Scope
from tutti.cluster.spec_classes import SpreadConstraint
from tutti.engine.plugins.base import MAX_SCORE, IncomingPod, Selection
from tutti.kube.selectors import EVERYTHING, NOTHING, Selector

HOSTNAME = "kubernetes.io/hostname"
_MAX_SPARSE = 64
_MAX_COMBINATIONS = 4096
"""Up to this many combinations of counts, scores are computed per combination and not per node."""


def counted_view(incoming: IncomingPod, constraint: SpreadConstraint, keys: tuple[str, ...]) -> DomainView:
    """Return the counts per domain over the nodes that a constraint counts."""
    spec = incoming.spec
    eligible = Eligibility(
        keys=keys,
        labels=spec.node_labels if constraint.honor_affinity else (),
        terms=spec.node_terms if constraint.honor_affinity else None,
        tolerations=spec.tolerations if constraint.honor_taints else None,
    )
    counter = matching_pods(incoming, constraint.selector)
    return counter.view(constraint.topology_key, incoming.cluster.nodes, eligible=eligible)


def matching_pods(incoming: IncomingPod, selector: Selector) -> RowCounts:
    """Return the counter of live pods in the namespace that a constraint selects; an empty selector selects none."""
    counted = NOTHING if selector == EVERYTHING else selector
    scope = Scope(frozenset((incoming.labels.namespace,)))
    return incoming.cluster.pod_counters.counter(CounterKey(((scope, counted),), live=True), incoming.spec)


def soft_scores(incoming: IncomingPod, constraints: list[SpreadConstraint], rows: Selection, *, strict: bool) -> Ints:
    """Score feasible nodes from 0 to 100 by their counts; `strict` gives 0 to nodes that lack one of the labels."""
    nodes = incoming.cluster.nodes
    keys = tuple(sorted({c.topology_key for c in constraints})) if strict else ()
    lacking = [key for key in keys if not nodes.domains(key).is_on_every_node]
    if lacking:
        has_all = np.ones(len(nodes.on[rows]), dtype=bool)
        for key in lacking:
            has_all &= nodes.column(key).ids[rows] >= 0
        scores = np.zeros(len(has_all), dtype=np.int64)
        selected = np.arange(nodes.size)[rows][has_all]
        if len(selected):
            scores[has_all] = _scores(incoming, constraints, selected, keys)
        return scores
    return _scores(incoming, constraints, rows, keys)


def _scores(incoming: IncomingPod, constraints: list[SpreadConstraint], rows: Selection, keys: tuple[str, ...]) -> Ints:
    """Score rows that have all required labels."""
    if isinstance(rows, slice) and len(constraints) == 2:
        scores = _sparse_scores(incoming, constraints, rows, keys)
        if scores is not None:
            return scores
    parts = [_part(incoming, constraint, rows, keys) for constraint in constraints]
    cells = math.prod(len(part.values) for part in parts)
    if cells > _MAX_COMBINATIONS:
        raw = sum((part.values[part.indices] for part in parts), start=np.zeros(len(parts[0].indices)))
        return _normalize_low(_round_half_up(raw))
    # Nodes with the same counts have the same score: compute it once per existing combination.
    index = parts[0].indices
    for part in parts[1:]:
        index = index * len(part.values) + part.indices
    present = np.bincount(index, minlength=cells) > 0
    # Add in the order of the constraints, as kube-scheduler does.
    raw = parts[0].values
    for part in parts[1:]:
        raw = np.add.outer(raw, part.values).ravel()
    table = np.zeros(cells, dtype=np.int64)
    table[present] = _normalize_low(_round_half_up(raw[present]))
    return table.take(index, mode="clip")


def _sparse_scores(
    incoming: IncomingPod, constraints: list[SpreadConstraint], rows: slice, keys: tuple[str, ...]
) -> Ints | None:
    """Score by hostname and one more label if all nodes are feasible and few nodes have matching pods.

    Nodes without matching pods get the score of their domain; the other nodes are scored one by one, in plain numbers.
    Returns None if the method does not apply.
    """
    host, other = constraints if constraints[0].topology_key == HOSTNAME else reversed(constraints)
    if host.topology_key != HOSTNAME or other.topology_key == HOSTNAME:
        return None
    nodes, pods_by_row = incoming.cluster.nodes, matching_pods(incoming, host.selector).nonzero
    domains = nodes.domains(other.topology_key)
    if (
        len(pods_by_row) > _MAX_SPARSE
        or len(domains.nodes_in) > _MAX_SPARSE
        or not nodes.domains(HOSTNAME).is_on_every_node
    ):
        return None
    indices = domains.indices[rows]
    weight = math.log(np.count_nonzero(domains.nodes_in) + 2)
    skew_term = other.max_skew - 1
    values = [0.0, *(count * weight + skew_term for count in counted_view(incoming, other, keys).counts.tolist())]
    weight, skew_term = math.log(len(indices) + 2), host.max_skew - 1
    # Adding two floats is commutative, so the order of the two constraints does not matter.
    rows_with_pods = np.fromiter(pods_by_row, np.intp, len(pods_by_row))
    nodes_without_pods = domains.nodes_in.tolist()
    raw = []
    for count, index in zip(pods_by_row.values(), indices[rows_with_pods].tolist(), strict=True):
        raw.append(_half_up((count * weight + skew_term) + values[index]))
        nodes_without_pods[index] -= 1
    per_domain = [
        _half_up(value + skew_term) if number else None
        for value, number in zip(values, nodes_without_pods, strict=True)
    ]
    present = [value for value in per_domain if value is not None] + raw
    top, low = max(present), min(present)
    table = np.array([0 if value is None else _normalize_one(value, top, low) for value in per_domain])
    result: Ints = table.take(indices, mode="clip")
    result[rows_with_pods] = [_normalize_one(value, top, low) for value in raw]
    return result


def _half_up(raw: float) -> int:
    """Round a non-negative number, halves up."""
    whole = int(raw)
    return whole + 1 if raw - whole >= 0.5 else whole


def _normalize_one(raw: int, top: int, low: int) -> int:
    """Return the score from 0 to 100 of one raw value; the lowest raw value is best."""
    return MAX_SCORE * (top + low - raw) // top if top else MAX_SCORE


class _Part(NamedTuple):
    """One soft constraint: an index per node (its count, or its domain), and the raw score of each index."""

    indices: Rows
    values: NDArray[np.float64]


def _part(incoming: IncomingPod, constraint: SpreadConstraint, rows: Selection, keys: tuple[str, ...]) -> _Part:
    """Compute a constraint's raw scores: count * log(domains + 2) + maxSkew - 1; 0 without the label."""
    nodes = incoming.cluster.nodes
    skew_term = constraint.max_skew - 1
    domains = nodes.domains(constraint.topology_key)
    indices = domains.indices[rows]
    if constraint.topology_key == HOSTNAME:
        # For hostname, kube-scheduler counts the pods on the node and ignores the policies.
        counter = matching_pods(incoming, constraint.selector)
        counts = counter.column[rows]
        most = counter.total if counter.total < _MAX_SPARSE else int(counts.max())
        values: NDArray[np.float64] = np.arange(most + 2, dtype=np.float64) * math.log(len(counts) + 2) + skew_term
        values[-1] = 0.0
        if domains.is_on_every_node:
            return _Part(counts, values)
        return _Part(np.where(indices == 0, most + 1, counts), values)
    view = counted_view(incoming, constraint, keys)
    if isinstance(rows, slice):
        number = np.count_nonzero(domains.nodes_in)
    else:
        present = np.zeros(len(domains.nodes_in), dtype=bool)
        present[indices] = True
        number = np.count_nonzero(present)
    # Index 0 is for nodes without the label.
    values = np.zeros(len(domains.nodes_in))
    values[1:] = view.counts * math.log(number + 2) + skew_term
    return _Part(indices, values)


def _round_half_up(raw: NDArray[np.float64]) -> Ints:
    """Round half away from zero, exactly: adding 0.5 first would round 0.49999999999999994 up."""
    whole = np.floor(raw)
    whole += raw - whole >= 0.5
    return whole.astype(np.int64)


def _normalize_low(raw: Ints) -> Ints:
    """NormalizeScore: turn raw scores into scores from 0 to 100; the lowest raw score is best."""
    if not len(raw):
        return raw
    top, low = int(raw.max()), int(raw.min())
    if top == 0:
        return np.full(len(raw), MAX_SCORE, dtype=np.int64)
    return MAX_SCORE * (top + low - raw) // top
