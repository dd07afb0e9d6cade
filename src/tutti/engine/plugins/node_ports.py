"""NodePorts: a host port can be taken once per node, address and protocol."""

from __future__ import annotations

import numpy as np

from tutti.cluster.classes import SpecClass
from tutti.engine.plugins.base import RowPlugin, Window
from tutti.engine.verdict import Refusal, Variants


class NodePorts(RowPlugin):
    """Refuse nodes where a wanted host port is taken."""

    name = "NodePorts"
    sees_pods = True
    refusals = (Refusal("node(s) didn't have free ports for the requested pod ports", resolvable=True),)

    def filter(self, window: Window, spec: SpecClass) -> Variants | None:
        """Refuse where a port clashes."""
        if not spec.ports:
            return None
        clashes = window.cluster.occupancy.clashing(spec.ports, window.rows, window.nodes.size)
        return clashes.astype(np.uint8)
