"""Which nodes a topology spread constraint counts: Karpenter's node filter of a topology group."""

from __future__ import annotations

from typing import NamedTuple

from tutti.autoscalers.karpenter.label_rows import LabelRows, any_term
from tutti.cluster.columns import Bools
from tutti.kube.objects import Toleration
from tutti.kube.selectors import NodeTerm, Requirement


class TopologyNodeFilter(NamedTuple):
    """Requirements on nodes; without any, all nodes count."""

    labels: tuple[Requirement, ...] = ()
    terms: tuple[NodeTerm, ...] | None = None
    """Alternatives; None where the pod's node affinity does not matter."""
    tolerations: tuple[Toleration, ...] | None = None
    """None where taints do not matter."""

    def matching(self, rows: LabelRows) -> Bools:
        """The rows that count."""
        mask = rows.meeting_all(self.labels)
        if self.terms is not None:
            mask &= any_term(self.terms, rows)
        if self.tolerations is not None:
            mask &= rows.tolerated(self.tolerations, hard_only=False)
        return mask
