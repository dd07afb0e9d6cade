"""NodePorts: a host port can be taken once per node, address and protocol."""

from __future__ import annotations

import numpy as np

from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import NodeRows, PodPlugin, SpecColumns
from tutti.engine.plugins.verdict import Refusal, Variants


class NodePorts(PodPlugin):
    """Refuse nodes where a wanted host port is taken."""

    name = "NodePorts"
    cures = frozenset((Event.NODE_ADDED, Event.POD_GONE))
    refusals = (Refusal("node(s) didn't have free ports for the requested pod ports", resolvable=True),)

    def shape(self, spec: SpecClass) -> tuple[tuple[str, str, int], ...]:
        """Specs with the same ports."""
        return spec.ports

    def idle(self, spec: SpecClass) -> bool:
        """Only pods with ports need to be looked at."""
        return not spec.ports

    def filter(self, window: NodeRows, specs: SpecColumns) -> Variants | None:
        """Refuse where a port clashes."""
        ports = specs.members[0].ports
        if not ports:
            return None
        clashes = window.cluster.occupancy.clashing(ports, window.rows, window.nodes.size)
        return np.repeat(clashes.astype(np.uint8)[:, np.newaxis], len(specs), axis=1)
