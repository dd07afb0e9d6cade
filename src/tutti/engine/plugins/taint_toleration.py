"""TaintToleration: NoSchedule and NoExecute taints refuse pods, PreferNoSchedule taints lower the score.

Nodes with the same taints share one result, so each distinct set of taints is evaluated once.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Ints
from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import NodePlugin, NodeRows
from tutti.engine.plugins.verdict import Refusal, StatusCodes
from tutti.kube.objects import Taint, Toleration
from tutti.kube.taints import first_untolerated, tolerates


class TaintToleration(NodePlugin):
    """kube-scheduler's TaintToleration: filter and score."""

    name = "TaintToleration"
    events_to_register = frozenset((Event.NODE_ADDED, Event.NODE_TAINTS))
    normalization = "down"
    refusals = (Refusal("node(s) had untolerated taint(s)", resolvable=False),)

    def filter(self, node_rows: NodeRows, spec: SpecClass) -> StatusCodes | None:
        """Refuse nodes with a NoSchedule or NoExecute taint that the pod does not tolerate."""
        return node_rows.nodes.by_taints(
            node_rows.rows, lambda taints: first_untolerated(taints, spec.tolerations) is not None, np.uint8
        )

    def score(self, node_rows: NodeRows, spec: SpecClass) -> Ints | None:
        """Count the PreferNoSchedule taints that the pod does not tolerate; fewer is better."""
        soft = tuple(t for t in spec.tolerations if t.effect in (None, "", "PreferNoSchedule"))
        return node_rows.nodes.by_taints(node_rows.rows, lambda taints: _count_untolerated(taints, soft), np.int64)


def _count_untolerated(taints: tuple[Taint, ...], tolerations: tuple[Toleration, ...]) -> int:
    return sum(t.effect == "PreferNoSchedule" and not any(tolerates(o, t) for o in tolerations) for t in taints)
