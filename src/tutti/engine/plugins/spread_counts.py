"""Counting for topology spread: like pods per domain, and the scores that follow from the counts."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tutti.cluster.classes import SpreadConstraint
from tutti.cluster.columns import Ints
from tutti.cluster.labels import CounterKey
from tutti.cluster.tallies import DomainView, Eligibility, Tally
from tutti.cluster.terms import Scope
from tutti.engine.plugins.base import MAX_SCORE, Asked, Selection
from tutti.kube.selectors import EVERYTHING, NOTHING, Selector

HOSTNAME = "kubernetes.io/hostname"
_MOST_CELLS = 4096
"""Combinations of counts up to which scores are worked out per combination and not per node."""
Numbers = NDArray[np.integer]


def counted_view(asked: Asked, constraint: SpreadConstraint, keys: tuple[str, ...]) -> DomainView:
    spec = asked.spec
    eligible = Eligibility(
        keys=keys,
        labels=spec.node_labels if constraint.honor_affinity else (),
        terms=spec.node_terms if constraint.honor_affinity else None,
        tolerations=spec.tolerations if constraint.honor_taints else None,
    )
    tally = matching(asked, constraint.selector)
    return tally.view(constraint.topology_key, asked.cluster.nodes, eligible=eligible)


def matching(asked: Asked, selector: Selector) -> Tally:
    """Give the tally of live pods of the pod's namespace that a constraint counts; an empty selector counts none."""
    counted = NOTHING if selector == EVERYTHING else selector
    scope = Scope(frozenset((asked.labels.namespace,)))
    return asked.cluster.counter(CounterKey(((scope, counted),), live=True))


def soft_scores(asked: Asked, constraints: list[SpreadConstraint], rows: Selection, *, strict: bool) -> Ints:
    """Score feasible nodes from 0 to 100 by their counts; `strict` leaves out nodes that lack one of the labels."""
    nodes = asked.cluster.nodes
    keys = tuple(sorted({c.topology_key for c in constraints})) if strict else ()
    if strict:
        has_all = np.ones(len(nodes.on[rows]), dtype=bool)
        for key in keys:
            has_all &= nodes.column(key).ids[rows] >= 0
        if not has_all.all():
            scores = np.zeros(len(has_all), dtype=np.int64)
            some = np.arange(nodes.size)[rows][has_all]
            if len(some):
                scores[has_all] = _scores(asked, constraints, some, keys)
            return scores
    return _scores(asked, constraints, rows, keys)


def _scores(asked: Asked, constraints: list[SpreadConstraint], rows: Selection, keys: tuple[str, ...]) -> Ints:
    parts = [_Part(asked, constraint, rows, keys) for constraint in constraints]
    cells = math.prod(part.size for part in parts)
    if cells > _MOST_CELLS:
        return _favour_low(_round(sum((part.values()[part.ids] for part in parts), start=np.zeros(len(parts[0].ids)))))
    # Nodes with the same counts have the same score: it is worked out once per combination that there is.
    index: Numbers = parts[0].ids
    for part in parts[1:]:
        index = index * part.size + part.ids
    there = np.zeros(cells, dtype=bool)
    there[index] = True
    combinations = np.flatnonzero(there)
    raw = np.zeros(len(combinations))
    rest = combinations
    digits = []
    for part in reversed(parts):
        rest, digit = np.divmod(rest, part.size)
        digits.append(digit)
    for part, digit in zip(parts, reversed(digits), strict=True):
        raw += part.values()[digit]
    table = np.zeros(cells, dtype=np.int64)
    table[combinations] = _favour_low(_round(raw))
    return table[index]


class _Part:
    """One soft constraint: a small number per node (its count, or its domain), and what each number scores."""

    __slots__ = ("_values", "ids", "size")

    def __init__(self, asked: Asked, constraint: SpreadConstraint, rows: Selection, keys: tuple[str, ...]) -> None:
        extra = constraint.max_skew - 1
        ids = asked.cluster.nodes.column(constraint.topology_key).ids[rows]
        if constraint.topology_key == HOSTNAME:
            # Pods on the node itself, whatever the policies say; nodes without the label score nothing.
            counts = matching(asked, constraint.selector).column[rows]
            lacking = ids < 0
            if lacking.any():
                counts = np.where(lacking, -1, counts)
            self.ids: Numbers = counts + 1
            self.size = int(counts.max()) + 2 if len(counts) else 1
            self._values = np.arange(-1.0, self.size - 1) * math.log(len(ids) + 2) + extra
        else:
            view = counted_view(asked, constraint, keys)
            self.ids = ids + 1
            self.size = len(view.counts) + 1
            there = np.zeros(self.size, dtype=bool)
            there[self.ids] = True
            # Nodes without the label are one more domain; they score nothing themselves.
            weight = math.log(int(there.sum()) + 2)
            self._values = np.zeros(self.size)
            self._values[1:] = view.counts * weight + extra
        self._values[0] = 0.0

    def values(self) -> NDArray[np.float64]:
        """Give what each number scores: count times the logarithm of the number of domains, plus the skew."""
        return self._values


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
