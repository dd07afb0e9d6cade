"""NodeUnschedulable: a cordoned node accepts only pods that tolerate the cordon taint."""

from __future__ import annotations

import numpy as np

from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import NodePlugin, NodeRows
from tutti.engine.plugins.verdict import Refusal, StatusCodes
from tutti.kube.objects import Taint
from tutti.kube.taints import tolerates

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeUnschedulable(NodePlugin):
    """kube-scheduler's NodeUnschedulable: filter only."""

    name = "NodeUnschedulable"
    events_to_register = frozenset((Event.NODE_ADDED, Event.NODE_TAINTS))
    refusals = (Refusal("node(s) were unschedulable", resolvable=False),)

    def filter(self, node_rows: NodeRows, spec: SpecClass) -> StatusCodes | None:
        """Refuse nodes with `spec.unschedulable`, unless the pod tolerates the cordon taint."""
        if any(tolerates(t, _CORDON) for t in spec.tolerations):
            return None
        refused: StatusCodes = node_rows.nodes.unschedulable[node_rows.rows].astype(np.uint8)
        return refused
