"""Cluster Autoscaler's removal simulator: remove nodes one after the other, and place their pods on other nodes.

Contract: the engine's filters decide, without scores. A pod is tried first on its hint, the node to which it was moved
last, then on the nodes in their order, starting after the last node that took a pod; the first node that takes the pod
gets it. A node is removed if every pod that must move fits on another node; the moved pods then use room there while
later nodes are checked. Otherwise all edits are rolled back; hints and the last node are kept, as in Cluster
Autoscaler. While its pods are placed, the node still exists without pods and with a taint, so a spread constraint
counts its domain. `begin` restores the cluster for the next pass, and keeps the hints.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from tutti.autoscalers.shared.autoscaler_cluster import filters_only
from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools
from tutti.cluster.edits import Bind, Put, Remove, Unbind
from tutti.cluster.trial import Trial
from tutti.engine.placement.evaluator import FilterResult
from tutti.kube.objects import Node, Pod, Taint
from tutti.market.planning_cluster import PlanningCluster

TO_BE_DELETED = Taint(key="ToBeDeletedByClusterAutoscaler", effect="NoSchedule")


class RemovalSimulator:
    """See the module's contract. The pods of a node are in the order in which they were placed there."""

    def __init__(self, cluster: Cluster) -> None:
        """Bind pods with a nominated node, and place pending daemons: these pods need room, and are never moved."""
        nodes, pods = cluster.nodes, cluster.pods
        self._all = [node for row in nodes.row_of.values() if (node := nodes.objects[row]) is not None]
        self._running = [
            (pod, node_name)
            for row in pods.row_of.values()
            if (pod := pods.objects[row]) is not None and (node_name := pods.node_names[row]) is not None
        ]
        self._cluster, self._evaluator = cluster, PlanningCluster(cluster, profile=filters_only()).engine.evaluator
        self._base = self._cluster.mark()
        self._last = 0
        """The index of the node that took a pod last, among the remaining nodes."""
        self._hints: dict[str, str] = {}
        """By pod: the node to which this pass moved it last, even if that removal was rolled back."""
        self._old_hints: dict[str, str] = {}
        """The hints of the last pass."""
        self._remaining: dict[str, Node] = {}
        self._pods: dict[str, list[Pod]] = {}
        self._restore()

    def begin(self) -> None:
        """Restore the cluster for another pass; hints from passes before the last one are dropped."""
        self._cluster.rollback(self._base)
        self._base = self._cluster.mark()
        self._old_hints, self._hints = self._hints, {}
        self._restore()

    @property
    def nodes(self) -> list[Node]:
        """All nodes at the start of a pass, in the order of the node table."""
        return self._all

    def end(self) -> None:
        """Discard the mark of the last pass; the caller's own mark undoes the edits."""
        self._cluster.commit(self._base)

    def node(self, name: str) -> Node:
        """Return a node that is not removed."""
        return self._remaining[name]

    def pods(self, node: str) -> Sequence[Pod]:
        """Return the pods that are on a node now."""
        return self._pods[node]

    def places(self) -> dict[str, str]:
        """Return, by pod, the node to which this pass moved it last."""
        return dict(self._hints)

    def remove(self, node: str, moving: Sequence[Pod]) -> bool:
        """Remove a node if all its pods that must move fit on other nodes; return whether the node was removed."""
        cluster, placements = self._cluster, list[tuple[Pod, str]]()
        with Trial(cluster) as trial:
            for pod in moving:
                cluster.apply(Unbind(pod.key))
            self._empty_and_taint(node, {pod.key for pod in moving})
            for pod in moving:
                target = self._find_node(pod.key, node)
                if target is None:
                    return False
                cluster.apply(Bind(pod.key, target))
                placements.append((pod, target))
            cluster.apply(Remove("Node", node))
            trial.keep()
        del self._remaining[node], self._pods[node]
        for pod, target in placements:
            self._pods[target].append(pod)
        return True

    def _restore(self) -> None:
        self._remaining = {node.metadata.name: node for node in self._all}
        self._pods = {name: [] for name in self._remaining}
        for pod, node in self._running:
            if node in self._pods:
                self._pods[node].append(pod)

    def _empty_and_taint(self, name: str, moving: set[str]) -> None:
        """Remove the pods of a node that do not move, and taint the node."""
        node = self._remaining[name]
        for pod in self._pods[name]:
            if pod.key not in moving:
                self._cluster.apply(Remove("Pod", pod.key))
        taints = [*(node.spec.taints or ()), TO_BE_DELETED]
        self._cluster.apply(Put(replace(node, spec=replace(node.spec, taints=taints))))

    def _find_node(self, pod: str, removed: str) -> str | None:
        """Return a node for a pending pod, other than the removed node, and keep it as the pod's hint."""
        fits = self._fits(pod)
        hint = self._hints.get(pod) or self._old_hints.get(pod)
        if hint in self._remaining and hint != removed and fits[self._cluster.node_row(hint)]:
            self._hints[pod] = hint
            return hint
        names = list(self._remaining)
        for step in range(len(names)):
            index = (self._last + 1 + step) % len(names)
            name = names[index]
            if name != removed and fits[self._cluster.node_row(name)]:
                self._last, self._hints[pod] = index, name
                return name
        return None

    def _fits(self, pod: str) -> Bools:
        result = self._evaluator.filter(self._evaluator.incoming_pod(self._cluster.pod_row(pod)))
        if isinstance(result, FilterResult):
            return result.feasible
        return np.zeros(len(self._cluster.nodes.names), dtype=bool)
