"""NodePorts: a host port is available once per node, address and protocol."""

from __future__ import annotations

import numpy as np

from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.base import NodeRows, PodPlugin, SpecColumns
from tutti.engine.plugins.verdict import Refusal, StatusCodes


class NodePorts(PodPlugin):
    """kube-scheduler's NodePorts: filter only."""

    name = "NodePorts"
    events_to_register = frozenset((Event.NODE_ADDED, Event.POD_REMOVED))
    refusals = (Refusal("node(s) didn't have free ports for the requested pod ports", resolvable=True),)

    def columns_key(self, spec: SpecClass) -> tuple[tuple[str, str, int], ...]:
        """Return the host ports: specs with the same ports are evaluated together."""
        return spec.ports

    def skips_filter(self, spec: SpecClass) -> bool:
        """Return whether the pod has no host ports."""
        return not spec.ports

    def filter(self, node_rows: NodeRows, specs: SpecColumns) -> StatusCodes | None:
        """Refuse nodes where one of the pod's host ports is in use."""
        ports = specs.members[0].ports
        if not ports:
            return None
        conflicts = node_rows.cluster.occupancy.port_conflicts(ports, node_rows.rows, node_rows.nodes.size)
        return np.repeat(conflicts.astype(np.uint8)[:, np.newaxis], len(specs), axis=1)
