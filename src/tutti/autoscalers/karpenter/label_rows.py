"""The labels and taints of nodes or offerings, one row each.

Contract: results are masks over the rows. The mask of a requirement is computed once and cached.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tutti.cluster.columns import Bools, Ints
from tutti.kube.objects import PodSpec, Taint, Toleration
from tutti.kube.selectors import NodeTerm, Requirement, labels_selector, parse_node_selector
from tutti.kube.taints import HARD_EFFECTS, tolerates

HOSTNAME = "kubernetes.io/hostname"


class LabelRows:
    """See the module's contract."""

    def __init__(self, labels: Sequence[Mapping[str, str]], taints: Sequence[Sequence[Taint]]) -> None:
        self.labels = labels
        self.count = len(labels)
        self._meeting: dict[Requirement, Bools] = {}
        numbers: dict[tuple[Taint, ...], int] = {}
        self._taints: Ints = np.array([numbers.setdefault(tuple(each), len(numbers)) for each in taints], np.int64)
        self._taint_sets = list(numbers)

    def meeting(self, requirement: Requirement) -> Bools:
        """Return the rows whose labels meet a requirement."""
        known = self._meeting.get(requirement)
        if known is None:
            key = requirement.key
            known = np.fromiter((requirement.holds(each.get(key)) for each in self.labels), bool, self.count)
            self._meeting[requirement] = known
        return known

    def meeting_all(self, requirements: Iterable[Requirement]) -> Bools:
        """Return the rows whose labels meet all requirements."""
        mask: Bools = np.ones(self.count, dtype=bool)
        for requirement in requirements:
            mask &= self.meeting(requirement)
        return mask

    def tolerated(self, tolerations: Sequence[Toleration], *, hard_only: bool) -> Bools:
        """Return the rows whose taints are all tolerated; `hard_only` ignores PreferNoSchedule taints."""
        tolerated_sets = [
            all(
                any(tolerates(each, taint) for each in tolerations)
                for taint in taints
                if not hard_only or taint.effect in HARD_EFFECTS
            )
            for taints in self._taint_sets
        ]
        return np.array(tolerated_sets, dtype=bool)[self._taints] if self.count else np.zeros(0, dtype=bool)

    @property
    def has_soft_taints(self) -> bool:
        """Whether any row has a PreferNoSchedule taint."""
        return any(taint.effect not in HARD_EFFECTS for taints in self._taint_sets for taint in taints)


def selected_by(spec: PodSpec, rows: LabelRows) -> Bools:
    """Return the rows that match a pod's node selector and at least one of its required node affinity terms."""
    mask = rows.meeting_all(labels_selector(spec.node_selector or {}).requirements)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    terms = parse_node_selector(affinity.required) if affinity is not None else None
    return mask if terms is None else mask & any_term(terms, rows)


def any_term(terms: Iterable[NodeTerm], rows: LabelRows) -> Bools:
    """Return the rows whose labels match at least one term."""
    mask: Bools = np.zeros(rows.count, dtype=bool)
    for term in terms:
        if not term.is_invalid:
            mask |= rows.meeting_all(term.labels)
    return mask
