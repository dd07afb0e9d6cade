"""NodeName and NodeUnschedulable: the pod names its node; the node takes no new pods."""

from __future__ import annotations

import numpy as np

from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import NodePlugin, NodeRows
from tutti.engine.plugins.verdict import Refusal, Variants
from tutti.kube.objects import Taint
from tutti.kube.taints import tolerates

_CORDON = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class NodeName(NodePlugin):
    """A pod that names a node goes to that node; such a pod is never pending, so there is nothing to filter."""

    name = "NodeName"
    cures = frozenset((Event.NODE_ADDED,))
    refusals = (Refusal("node(s) didn't match the requested node name", resolvable=False),)


class NodeUnschedulable(NodePlugin):
    """A cordoned node takes only pods that bear the cordon."""

    name = "NodeUnschedulable"
    cures = frozenset((Event.NODE_ADDED, Event.NODE_TAINTS))
    refusals = (Refusal("node(s) were unschedulable", resolvable=False),)

    def filter(self, window: NodeRows, spec: SpecClass) -> Variants | None:
        """Refuse cordoned nodes."""
        if any(tolerates(t, _CORDON) for t in spec.tolerations):
            return None
        refused: Variants = window.nodes.unschedulable[window.rows].astype(np.uint8)
        return refused
