"""Nodes that go one after the other, and where their pods would go: Cluster Autoscaler's removal simulator.

Contract: placement is the engine's, filters without scores. A pod is tried first where it went when it was moved
before, then on the nodes in their order, from the one after the last node that took a pod; the first that takes it gets
it. A node goes if all the pods that move have a place; then they stay there for the nodes that come after, and the node
is gone. Otherwise nothing has happened, except that Cluster Autoscaler remembers where it put pods and where it
stopped. While its pods look for a place the node is still there, empty and tainted: it counts as a domain of a spread
constraint. `begin` puts everybody back, and keeps those memories, for the next pass.
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
    """See the module's contract. The pods of each node are in the order in which they came to it."""

    def __init__(self, cluster: Cluster) -> None:
        """Bind pods with a nominated node, and place pending daemons: they need room, and are never moved."""
        nodes, pods = cluster.nodes, cluster.pods
        self._all = [node for row in nodes.row_of.values() if (node := nodes.objects[row]) is not None]
        self._running = [
            (pod, where)
            for row in pods.row_of.values()
            if (pod := pods.objects[row]) is not None and (where := pods.node_names[row]) is not None
        ]
        self._cluster, self._evaluator = cluster, PlanningCluster(cluster, profile=filters_only()).engine.evaluator
        self._base = self._cluster.mark()
        self._last = 0
        """The place of the node that took a pod last."""
        self._hints: dict[str, str] = {}
        """Where each pod went when it was moved last, whatever came of it."""
        self._old_hints: dict[str, str] = {}
        self._left: dict[str, Node] = {}
        self._pods: dict[str, list[Pod]] = {}
        self._restore()

    def begin(self) -> None:
        """Put everybody back for another pass; pods that were not tried in the last one are forgotten."""
        self._cluster.rollback(self._base)
        self._base = self._cluster.mark()
        self._old_hints, self._hints = self._hints, {}
        self._restore()

    @property
    def nodes(self) -> list[Node]:
        """All nodes at the start of a pass, in the order of the node table."""
        return self._all

    def end(self) -> None:
        """Give up the mark of the last pass; the caller's own mark undoes the edits."""
        self._cluster.commit(self._base)

    def node(self, name: str) -> Node:
        """A node that is still there."""
        return self._left[name]

    def pods(self, node: str) -> Sequence[Pod]:
        """Who is on a node now."""
        return self._pods[node]

    def places(self) -> dict[str, str]:
        """Where pods were put in this pass, each the last time."""
        return dict(self._hints)

    def remove(self, node: str, moving: Sequence[Pod]) -> bool:
        """Let a node go if there is a place for those of its pods that move; say whether there is."""
        cluster, went = self._cluster, list[tuple[Pod, str]]()
        with Trial(cluster) as trial:
            for pod in moving:
                cluster.apply(Unbind(pod.key))
            self._become_ghost(node, {pod.key for pod in moving})
            for pod in moving:
                place = self._place(pod.key, node)
                if place is None:
                    return False
                cluster.apply(Bind(pod.key, place))
                went.append((pod, place))
            cluster.apply(Remove("Node", node))
            trial.keep()
        del self._left[node], self._pods[node]
        for pod, place in went:
            self._pods[place].append(pod)
        return True

    def _restore(self) -> None:
        self._left = {node.metadata.name: node for node in self._all}
        self._pods = {name: [] for name in self._left}
        for pod, node in self._running:
            if node in self._pods:
                self._pods[node].append(pod)

    def _become_ghost(self, name: str, moving: set[str]) -> None:
        """Take the pods that stay with it off a node, and taint it."""
        node = self._left[name]
        for pod in self._pods[name]:
            if pod.key not in moving:
                self._cluster.apply(Remove("Pod", pod.key))
        taints = [*(node.spec.taints or ()), TO_BE_DELETED]
        self._cluster.apply(Put(replace(node, spec=replace(node.spec, taints=taints))))

    def _place(self, pod: str, leaving: str) -> str | None:
        """Find a node for a pending pod, and remember it."""
        fits = self._fits(pod)
        hint = self._hints.get(pod) or self._old_hints.get(pod)
        if hint in self._left and hint != leaving and fits[self._cluster.node_row(hint)]:
            self._hints[pod] = hint
            return hint
        names = list(self._left)
        for step in range(len(names)):
            place = (self._last + 1 + step) % len(names)
            name = names[place]
            if name != leaving and fits[self._cluster.node_row(name)]:
                self._last, self._hints[pod] = place, name
                return name
        return None

    def _fits(self, pod: str) -> Bools:
        found = self._evaluator.filter(self._evaluator.incoming_pod(self._cluster.pod_row(pod)))
        return (
            found.feasible if isinstance(found, FilterResult) else np.zeros(len(self._cluster.nodes.names), dtype=bool)
        )
