"""Existing nodes as columns: the free resources of each node, and the nodes with room for a pod.

Contract: nodes are numbered in the order of their names. Free resources only shrink during a pass, so a node without
room for a pod never has room again; `PodData.nodes` caches the nodes that are left.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tutti.autoscalers.karpenter.hostportusage import Port, ports_conflict
from tutti.autoscalers.karpenter.label_rows import HOSTNAME, LabelRows, selected_by
from tutti.autoscalers.karpenter.poddata import PodData
from tutti.autoscalers.karpenter.state import RunningPod
from tutti.cluster.columns import Bools, Ints
from tutti.kube.objects import DaemonSet, Node, Pod, Taint
from tutti.kube.resources import allocatable, host_ports, incoming_requests, placed_requests
from tutti.kube.workloads.daemon_sets import daemon_tolerations
from tutti.kube.workloads.owners import controller_of

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class ExistingNodes:
    """See the module's contract."""

    def __init__(self, nodes: Sequence[Node], pods: Sequence[RunningPod], *, resources: Sequence[str]) -> None:
        ordered = sorted(nodes, key=lambda node: node.metadata.name)
        self.names = [node.metadata.name for node in ordered]
        self.number_of = {name: number for number, name in enumerate(self.names)}
        labels = [{HOSTNAME: node.metadata.name, **(node.metadata.labels or {})} for node in ordered]
        self.rows = LabelRows(labels, [_taints(node) for node in ordered])
        amounts = [allocatable(node) for node in ordered]
        self.free: Ints = np.array([[each.get(name, 0) for each in amounts] for name in resources], dtype=np.int64)
        self.free = self.free.reshape(len(resources), len(ordered))
        self._ports: list[list[Port]] = [[] for _ in ordered]
        self._daemon_requests: Ints = np.zeros_like(self.free)
        for each in pods:
            if (number := self.number_of.get(each.node)) is not None:
                self._add_running(each.pod, number, resources)

    def _add_running(self, pod: Pod, number: int, resources: Sequence[str]) -> None:
        requests = placed_requests(pod).requests
        amounts = np.array([1 if name == "pods" else requests.get(name, 0) for name in resources], dtype=np.int64)
        self.free[:, number] -= amounts
        self._ports[number] += host_ports(pod)
        owner = controller_of(pod) or next(iter(pod.metadata.owner_references or ()), None)
        if owner is not None and owner.kind == "DaemonSet":
            self._daemon_requests[:, number] += amounts

    def keep_room(self, daemon_sets: Sequence[DaemonSet], resources: Sequence[str]) -> None:
        """Subtract the requests of daemons that a node should run and does not run yet."""
        expected = np.zeros_like(self.free)
        for each in daemon_sets:
            spec = each.spec.template.spec
            mask = selected_by(spec, self.rows) & self.rows.tolerated(daemon_tolerations(spec), hard_only=True)
            requests = {**incoming_requests(Pod(spec=spec)), "pods": 1}
            expected += np.array([requests.get(name, 0) for name in resources], dtype=np.int64)[:, None] * mask
        self.free -= np.maximum(expected - self._daemon_requests, 0)

    def with_room_for(self, data: PodData) -> list[int]:
        """Return the nodes with room for a pod, in the order of their names, and cache them in the pod's data."""
        nodes = data.nodes
        if nodes is None:
            nodes = np.flatnonzero(data.node_mask(self.rows, self.names))
        if len(nodes):
            fits: Bools = np.ones(len(nodes), dtype=bool)
            for resource, amount in data.pod_class.requests:
                fits &= self.free[resource][nodes] >= amount
            if data.pod_class.ports:
                fits &= [not ports_conflict(data.pod_class.ports, self._ports[number]) for number in nodes.tolist()]
            nodes = nodes[fits]
        data.nodes = nodes
        numbers: list[int] = nodes.tolist()
        return numbers

    def add(self, number: int, data: PodData) -> None:
        """Place a pod on a node."""
        self.free[:, number] -= data.pod_class.column[:, 0]
        self._ports[number] += data.pod_class.ports


def _taints(node: Node) -> list[Taint]:
    taints = list(node.spec.taints or ())
    if node.spec.unschedulable and not any(taint.key == _CORDONED.key for taint in taints):
        taints.append(_CORDONED)
    return taints
