"""Assignments: which pods are on which node, with the sums and counters of every node.

Contract: a pod is on at most one node. The sums (`NodeTable.used`), the pod counters, host ports and volumes of a row
always include exactly the pods on that row. A pod that is bound to a node which is not in the cluster counts nowhere
until the node is added. Only the cluster's edits call this module.
"""

from __future__ import annotations

from tutti.cluster.columns import RowLog
from tutti.cluster.counters.pod_counters import PodCounters
from tutti.cluster.edits import SetArrivalOrder
from tutti.cluster.events import Event
from tutti.cluster.indexes.occupancy import Occupancy
from tutti.cluster.node_table import NodeTable
from tutti.cluster.pod_table import PodTable, UsageTable
from tutti.cluster.spec_classes import SpecRegistry
from tutti.cluster.undo_log import UndoLog


class Assignments:
    """See the module's docstring."""

    def __init__(
        self,
        nodes: NodeTable,
        pods: PodTable,
        *,
        usages: UsageTable,
        specs: SpecRegistry,
        pod_counters: PodCounters,
        occupancy: Occupancy,
        touched: RowLog,
        events: list[int],
        undo: UndoLog,
    ) -> None:
        self._nodes, self._pods, self._usages, self._specs = nodes, pods, usages, specs
        self._pod_counters, self._occupancy = pod_counters, occupancy
        self._touched, self._events, self._undo = touched, events, undo
        self.pods_on_row: list[set[int]] = []
        """The pod rows on each node row."""
        self.pods_on_missing_nodes: dict[str, set[int]] = {}
        """Node name -> rows of pods bound to a node that is not in the cluster."""
        self._arrivals = 0

    def copy_from(self, other: Assignments) -> None:
        """Take over the assignments of the cluster from which this cluster is copied."""
        self.pods_on_row = [set(pods) for pods in other.pods_on_row]
        self.pods_on_missing_nodes = {node: set(pods) for node, pods in other.pods_on_missing_nodes.items()}
        self._arrivals = other._arrivals

    def fit_resources(self) -> None:
        """Grow all columns to the number of known resources."""
        self._nodes.fit_resources()
        self._usages.fit_resources()

    def assign(self, pod: int, node: str) -> None:
        """Put the pod in a row on a node."""
        self._pods.node_names[pod] = node
        self._pods.touched.add(pod)
        row = self._nodes.row_of.get(node)
        if row is None:
            self.pods_on_missing_nodes.setdefault(node, set()).add(pod)
        else:
            self._add_to_row(pod, row)

    def unassign(self, pod: int) -> None:
        """Remove the pod in a row from its node."""
        name = self._pods.node_names[pod]
        if self._pods.node[pod] >= 0:
            self._remove_from_row(pod)
        elif name is not None:
            pods = self.pods_on_missing_nodes[name]
            pods.discard(pod)
            if not pods:
                del self.pods_on_missing_nodes[name]
        self._pods.node_names[pod] = None
        self._pods.touched.add(pod)

    def node_added(self, name: str, row: int) -> None:
        """Count the pods that were bound to a node before the node was added."""
        for _ in range(self._nodes.size - len(self.pods_on_row)):
            self.pods_on_row.append(set())
        for pod in sorted(self.pods_on_missing_nodes.pop(name, ())):
            self._add_to_row(pod, row)
            self._pods.touched.add(pod)  # it runs now, which its gang must know

    def node_removed(self, name: str, row: int) -> None:
        """Count the pods of a node nowhere, because the node is removed."""
        for pod in sorted(self.pods_on_row[row]):
            self._remove_from_row(pod)
            self._pods.touched.add(pod)
            self.pods_on_missing_nodes.setdefault(name, set()).add(pod)

    def _add_to_row(self, pod: int, row: int) -> None:
        self._pods.node[pod] = row
        self.pods_on_row[row].add(pod)
        self._arrivals += 1
        self._pods.order[pod] = self._arrivals
        self._events[Event.POD_PLACED] += 1
        self.count(pod, row, 1)

    def _remove_from_row(self, pod: int) -> None:
        row = int(self._pods.node[pod])
        if self._undo.marks:
            self._undo.add_to_front(SetArrivalOrder(self._pods.keys[pod], int(self._pods.order[pod])))
        self._pods.node[pod] = -1
        self._events[Event.POD_REMOVED] += 1
        self.pods_on_row[row].discard(pod)
        self.count(pod, row, -1)

    def count(self, pod: int, row: int, number: int) -> None:
        """Add a pod to (1) or remove it from (-1) all usage sums and counters of a row."""
        pods = self._pods
        usage = self._usages.matrix[pods.usage[pod]]
        if number > 0:
            self._nodes.used[:, row] += usage
        else:
            self._nodes.used[:, row] -= usage
        self._pod_counters.move(pod, row, number)
        spec = self._specs.classes[pods.spec.item(pod)]
        if spec.ports or spec.volumes:
            if self._undo.marks and spec.ports:
                for edit in self._occupancy.port_edits(row, spec):
                    self._undo.add_to_front(edit)
            self._occupancy.move(row, pod, spec, number)
        self._touched.add(row)
