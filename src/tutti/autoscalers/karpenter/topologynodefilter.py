"""Karpenter's node filter of a topology group: the nodes that a topology spread constraint counts."""

from __future__ import annotations

from typing import NamedTuple

from tutti.autoscalers.karpenter.label_rows import LabelRows, any_term
from tutti.cluster.columns import Bools
from tutti.kube.objects import Toleration
from tutti.kube.selectors import NodeTerm, Requirement


class TopologyNodeFilter(NamedTuple):
    """Requirements on nodes; without requirements, all nodes count."""

    labels: tuple[Requirement, ...] = ()
    terms: tuple[NodeTerm, ...] | None = None
    """Alternatives; None if nodeAffinityPolicy ignores the pod's node affinity, or the pod has none."""
    tolerations: tuple[Toleration, ...] | None = None
    """None if nodeTaintsPolicy ignores taints."""

    def matching(self, rows: LabelRows) -> Bools:
        """Return the rows whose pods are counted."""
        mask = rows.meeting_all(self.labels)
        if self.terms is not None:
            mask &= any_term(self.terms, rows)
        if self.tolerations is not None:
            mask &= rows.tolerated(self.tolerations, hard_only=False)
        return mask
