"""Where Karpenter's model puts pods: nodes that are there, and claims, which have no type until the end.

Contract: a claim holds every offering of its pool that could still take all of its pods. It only ever shrinks, and so
does the room on a node: what once had no room for a pod has none later, which is remembered per step of a ladder.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np

from tutti.autoscalers.karpenter.instancetypes import HOSTNAME, LabelRows, Port, Shelf, clash, selected_by
from tutti.autoscalers.karpenter.preferences import Ask, Sorting
from tutti.autoscalers.karpenter.state import RunningPod
from tutti.autoscalers.karpenter.topologygroup import Running
from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.counters.pod_terms import PodTerm
from tutti.kube.objects import DaemonSet, Node, Pod, Taint
from tutti.kube.resources import allocatable, host_ports, incoming_requests, placed_requests
from tutti.kube.workloads.daemon_sets import daemon_tolerations
from tutti.kube.workloads.owners import controller_of, is_active

_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


class Nodes:
    """The nodes that are there, by name."""

    def __init__(self, nodes: Sequence[Node], pods: Sequence[RunningPod], *, resources: Sequence[str]) -> None:
        known = sorted(nodes, key=lambda node: node.metadata.name)
        self.names = [node.metadata.name for node in known]
        self.place = {name: place for place, name in enumerate(self.names)}
        labels = [{HOSTNAME: node.metadata.name, **(node.metadata.labels or {})} for node in known]
        self.rows = LabelRows(labels, [_taints(node) for node in known])
        room = [allocatable(node) for node in known]
        self.free: Ints = np.array([[each.get(name, 0) for each in room] for name in resources], dtype=np.int64)
        self.free = self.free.reshape(len(resources), len(known))
        self.ports: list[list[Port]] = [[] for _ in known]
        self._daemons: Ints = np.zeros_like(self.free)
        for each in pods:
            if (place := self.place.get(each.node)) is not None:
                self._run(each.pod, place, resources)

    def _run(self, pod: Pod, place: int, resources: Sequence[str]) -> None:
        requests = placed_requests(pod).requests
        taken = np.array([1 if name == "pods" else requests.get(name, 0) for name in resources], dtype=np.int64)
        self.free[:, place] -= taken
        self.ports[place] += host_ports(pod)
        owner = controller_of(pod) or next(iter(pod.metadata.owner_references or ()), None)
        if owner is not None and owner.kind == "DaemonSet":
            self._daemons[:, place] += taken

    def keep_room(self, daemon_sets: Sequence[DaemonSet], resources: Sequence[str]) -> None:
        """Keep room for the daemons that a node should run and does not yet."""
        due = np.zeros_like(self.free)
        for each in daemon_sets:
            spec = each.spec.template.spec
            mask = selected_by(spec, self.rows) & self.rows.bearable(daemon_tolerations(spec), hard_only=True)
            needs = {**incoming_requests(Pod(spec=spec)), "pods": 1}
            due += np.array([needs.get(name, 0) for name in resources], dtype=np.int64)[:, None] * mask
        self.free -= np.maximum(due - self._daemons, 0)

    def open_to(self, ask: Ask) -> list[int]:
        """The nodes with room for a pod, by name; those without are not looked at again."""
        found = ask.nodes
        if found is None:
            found = np.flatnonzero(ask.node_mask(self.rows, self.names))
        if len(found):
            fits: Bools = np.ones(len(found), dtype=bool)
            for resource, amount in ask.kind.needs:
                fits &= self.free[resource][found] >= amount
            if ask.kind.ports:
                fits &= [not clash(ask.kind.ports, self.ports[place]) for place in found.tolist()]
            found = found[fits]
        ask.nodes = found
        places: list[int] = found.tolist()
        return places

    def take(self, place: int, ask: Ask) -> None:
        """Put a pod on a node."""
        self.free[:, place] -= ask.kind.column[:, 0]
        self.ports[place] += ask.kind.ports


def running_of(pods: Sequence[RunningPod], place: Mapping[str, int], sorting: Sorting) -> Running:
    """The pods that run, as groups count them."""
    counts: dict[tuple[str, frozenset[tuple[str, str]]], Counter[int]] = {}
    held: list[tuple[PodTerm, int]] = []
    for pod, spec, where in pods:
        node = place.get(where)
        if node is None or not is_active(pod):
            continue
        key = pod.metadata.namespace or "default", sorting.seen(pod)
        counts.setdefault(key, Counter())[node] += 1
        affinity = pod.spec.affinity
        if affinity is not None and affinity.pod_anti_affinity is not None:
            held += ((term, node) for term in spec.anti_affinity)
    return Running(counts, held)


class Claim:
    """A node to be bought."""

    __slots__ = ("bits", "free", "host", "number", "pods", "ports", "rows", "shelf", "top")

    def __init__(self, number: int, *, host: int, shelf: int, rows: Rows, free: Ints) -> None:
        self.number, self.host, self.shelf = number, host, shelf
        self.rows, self.free = rows, free
        self.top: list[int] = free.max(axis=1).tolist()
        self.bits: dict[str, int] = {}
        """The values that its labels may have, where that is narrower than what its pool has."""
        self.ports: list[Port] = []
        self.pods: list[int] = []

    def room_for(self, ask: Ask, shelf: Shelf) -> Bools | None:
        """Which of its offerings could take one more pod; None if there is none."""
        top = self.top
        for resource, amount in ask.kind.needs:
            if amount > top[resource]:
                return None
        if ask.kind.ports and clash(ask.kind.ports, self.ports):
            return None
        fits = ask.shelf_mask(self.shelf, shelf)[self.rows]
        for resource, amount in ask.kind.needs:
            fits &= self.free[resource] >= amount
        return fits if fits.any() else None

    def take(self, pod: int, ask: Ask, fits: Bools) -> None:
        """Put a pod into it, which leaves these of its offerings."""
        if fits.all():
            self.free = self.free - ask.kind.column
        else:
            self.rows, self.free = self.rows[fits], self.free[:, fits] - ask.kind.column
        self.top = self.free.max(axis=1).tolist()
        self.ports += ask.kind.ports
        self.pods.append(pod)


def _taints(node: Node) -> list[Taint]:
    taints = list(node.spec.taints or ())
    if node.spec.unschedulable and not any(taint.key == _CORDONED.key for taint in taints):
        taints.append(_CORDONED)
    return taints
