"""Counting for topology spread: like pods per domain, and the scores that follow from the counts."""

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
_FEW = 64
_MOST_CELLS = 4096
"""Combinations of counts up to which scores are worked out per combination and not per node."""


def counted_view(incoming: IncomingPod, constraint: SpreadConstraint, keys: tuple[str, ...]) -> DomainView:
    """Give the counts per domain over the nodes that a constraint counts."""
    spec = incoming.spec
    eligible = Eligibility(
        keys=keys,
        labels=spec.node_labels if constraint.honor_affinity else (),
        terms=spec.node_terms if constraint.honor_affinity else None,
        tolerations=spec.tolerations if constraint.honor_taints else None,
    )
    tally = matching(incoming, constraint.selector)
    return tally.view(constraint.topology_key, incoming.cluster.nodes, eligible=eligible)


def matching(incoming: IncomingPod, selector: Selector) -> RowCounts:
    """Give the tally of live pods of the pod's namespace that a constraint counts; an empty selector counts none."""
    counted = NOTHING if selector == EVERYTHING else selector
    scope = Scope(frozenset((incoming.labels.namespace,)))
    return incoming.cluster.pod_counters.counter(CounterKey(((scope, counted),), live=True))


def soft_scores(incoming: IncomingPod, constraints: list[SpreadConstraint], rows: Selection, *, strict: bool) -> Ints:
    """Score feasible nodes from 0 to 100 by their counts; `strict` leaves out nodes that lack one of the labels."""
    nodes = incoming.cluster.nodes
    keys = tuple(sorted({c.topology_key for c in constraints})) if strict else ()
    lacking = [key for key in keys if not nodes.domains(key).everywhere]
    if lacking:
        has_all = np.ones(len(nodes.on[rows]), dtype=bool)
        for key in lacking:
            has_all &= nodes.column(key).ids[rows] >= 0
        scores = np.zeros(len(has_all), dtype=np.int64)
        some = np.arange(nodes.size)[rows][has_all]
        if len(some):
            scores[has_all] = _scores(incoming, constraints, some, keys)
        return scores
    return _scores(incoming, constraints, rows, keys)


def _scores(incoming: IncomingPod, constraints: list[SpreadConstraint], rows: Selection, keys: tuple[str, ...]) -> Ints:
    if isinstance(rows, slice) and len(constraints) == 2:
        scores = _sparse_scores(incoming, constraints, rows, keys)
        if scores is not None:
            return scores
    parts = [_part(incoming, constraint, rows, keys) for constraint in constraints]
    cells = math.prod(len(part.values) for part in parts)
    if cells > _MOST_CELLS:
        raw = sum((part.values[part.digits] for part in parts), start=np.zeros(len(parts[0].digits)))
        return _favour_low(_round(raw))
    # Nodes with the same counts have the same score: it is worked out once per combination that there is.
    index = parts[0].digits
    for part in parts[1:]:
        index = index * len(part.values) + part.digits
    there = np.bincount(index, minlength=cells) > 0
    # The sum in the order of the constraints, as kube-scheduler adds them.
    raw = parts[0].values
    for part in parts[1:]:
        raw = np.add.outer(raw, part.values).ravel()
    table = np.zeros(cells, dtype=np.int64)
    table[there] = _favour_low(_round(raw[there]))
    return table.take(index, mode="clip")


def _sparse_scores(
    incoming: IncomingPod, constraints: list[SpreadConstraint], rows: slice, keys: tuple[str, ...]
) -> Ints | None:
    """Score by host and one more label when all nodes are feasible and few have any of the pods.

    Nodes without any have the score of their domain; the others are scored one by one, in plain numbers.
    """
    host, other = constraints if constraints[0].topology_key == HOSTNAME else reversed(constraints)
    if host.topology_key != HOSTNAME or other.topology_key == HOSTNAME:
        return None
    nodes, busy = incoming.cluster.nodes, matching(incoming, host.selector).some
    domains = nodes.domains(other.topology_key)
    if len(busy) > _FEW or len(domains.nodes_in) > _FEW or not nodes.domains(HOSTNAME).everywhere:
        return None
    digits = domains.digits[rows]
    weight = math.log(np.count_nonzero(domains.nodes_in) + 2)
    extra = other.max_skew - 1
    values = [0.0, *(count * weight + extra for count in counted_view(incoming, other, keys).counts.tolist())]
    weight, extra = math.log(len(digits) + 2), host.max_skew - 1
    # Floats add the same in either order, so the order of the two constraints does not matter.
    where = np.fromiter(busy, np.intp, len(busy))
    idle = domains.nodes_in.tolist()
    raw = []
    for count, digit in zip(busy.values(), digits[where].tolist(), strict=True):
        raw.append(_half_up((count * weight + extra) + values[digit]))
        idle[digit] -= 1
    per_domain = [_half_up(value + extra) if number else None for value, number in zip(values, idle, strict=True)]
    there = [value for value in per_domain if value is not None] + raw
    top, low = max(there), min(there)
    table = np.array([0 if value is None else _favour(value, top, low) for value in per_domain])
    result: Ints = table.take(digits, mode="clip")
    result[where] = [_favour(value, top, low) for value in raw]
    return result


def _half_up(raw: float) -> int:
    """Round a number that is not negative, halves up."""
    whole = int(raw)
    return whole + 1 if raw - whole >= 0.5 else whole


def _favour(raw: int, top: int, low: int) -> int:
    """Turn a count into a score from 0 to 100, the lowest best."""
    return MAX_SCORE * (top + low - raw) // top if top else MAX_SCORE


class _Part(NamedTuple):
    """One soft constraint: a small number per node (its count, or its domain), and what each number scores."""

    digits: Rows
    values: NDArray[np.float64]


def _part(incoming: IncomingPod, constraint: SpreadConstraint, rows: Selection, keys: tuple[str, ...]) -> _Part:
    """Score counts times the logarithm of the number of domains, plus the skew; without the label nothing."""
    nodes = incoming.cluster.nodes
    extra = constraint.max_skew - 1
    domains = nodes.domains(constraint.topology_key)
    digits = domains.digits[rows]
    if constraint.topology_key == HOSTNAME:
        # Pods on the node itself, whatever the policies say.
        tally = matching(incoming, constraint.selector)
        counts = tally.column[rows]
        most = tally.total if tally.total < _FEW else int(counts.max())
        values: NDArray[np.float64] = np.arange(most + 2, dtype=np.float64) * math.log(len(counts) + 2) + extra
        values[-1] = 0.0
        if domains.everywhere:
            return _Part(counts, values)
        return _Part(np.where(digits == 0, most + 1, counts), values)
    view = counted_view(incoming, constraint, keys)
    if isinstance(rows, slice):
        number = np.count_nonzero(domains.nodes_in)
    else:
        there = np.zeros(len(domains.nodes_in), dtype=bool)
        there[digits] = True
        number = np.count_nonzero(there)
    # Nodes without the label are one more domain.
    values = np.zeros(len(domains.nodes_in))
    values[1:] = view.counts * math.log(number + 2) + extra
    return _Part(digits, values)


def _round(raw: NDArray[np.float64]) -> Ints:
    """Round half away from zero, exactly: adding a half first would round 0.49999999999999994 up."""
    whole = np.floor(raw)
    whole += raw - whole >= 0.5
    return whole.astype(np.int64)


def _favour_low(raw: Ints) -> Ints:
    """Turn raw counts into scores from 0 to 100, the lowest count best."""
    if not len(raw):
        return raw
    top, low = int(raw.max()), int(raw.min())
    if top == 0:
        return np.full(len(raw), MAX_SCORE, dtype=np.int64)
    return MAX_SCORE * (top + low - raw) // top
