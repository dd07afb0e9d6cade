"""NodeDeclaredFeatures: a node must declare the features that the pod needs."""

from __future__ import annotations

import numpy as np

from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import NodePlugin, NodeRows
from tutti.engine.plugins.verdict import Refusal, StatusCodes
from tutti.kube.objects import Node


class NodeDeclaredFeatures(NodePlugin):
    """kube-scheduler's NodeDeclaredFeatures: filter only."""

    name = "NodeDeclaredFeatures"
    events_to_register = frozenset((Event.NODE_ADDED, Event.NODE_FEATURES))
    refusals = (Refusal("node(s) didn't match Pod's required features", resolvable=False),)

    def filter(self, node_rows: NodeRows, spec: SpecClass) -> StatusCodes | None:
        """Refuse nodes that do not declare all required features; hardly any pod requires one."""
        required = frozenset(spec.required_features)
        if not required:
            return None
        objects, rows = node_rows.nodes.objects, np.arange(node_rows.nodes.size)[node_rows.rows]
        refused = [not required <= _declared(objects[row]) for row in rows.tolist()]
        return np.array(refused, dtype=np.uint8)


def _declared(node: Node | None) -> frozenset[str]:
    return frozenset(node.status.declared_features or ()) if node is not None else frozenset()
