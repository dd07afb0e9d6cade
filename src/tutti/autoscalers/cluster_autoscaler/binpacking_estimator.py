"""Cluster Autoscaler's estimator: how many nodes of one group some pods need, by first-fit-decreasing bin packing.

Contract: the snapshot is left unchanged. Pod groups are packed in decreasing order of the cpu share plus the memory
share that a pod takes of the node. A pod is tried on the new nodes, starting after the last node that took a pod. Once
a pod of a group fits on no new node, the other pods of the group are tried only on the newest node, and nodes are added
one by one. Pods with a spread constraint over hosts are tried on all nodes again, including existing nodes. Pods of
plain groups are counted with arithmetic; pods of other groups are tried one by one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tutti.autoscalers.shared.autoscaler_cluster import AutoscalerCluster
from tutti.autoscalers.shared.cluster_snapshot import ONE, ClusterSnapshot
from tutti.cluster.columns import Bools, Ints
from tutti.cluster.work.meter import ESTIMATOR_NODE, ESTIMATOR_SHAPE
from tutti.cluster.work.work_budget import WorkBudget
from tutti.kube.resources import allocatable

_HOSTNAME = "kubernetes.io/hostname"
_MAX_NODES_PER_SCALE_UP = 1_000
"""Cluster Autoscaler's default for ``max-nodes-per-scaleup``."""


class Option(NamedTuple):
    """A scale-up of one node group: new nodes, and the pods that fit on them."""

    offering: int
    nodes: int
    pods: Mapping[int, int]
    """By pod group: how many of its pods fit."""


class BinpackingEstimator:
    """See the module's contract."""

    def __init__(self, view: AutoscalerCluster, snapshot: ClusterSnapshot, budget: WorkBudget | None = None) -> None:
        self._view, self._snapshot, self._budget = view, snapshot, budget
        self._next = 0
        """The node at which the next search starts; kept from one estimation to the next."""
        self._orders: dict[int, list[int]] = {}

    def schedulable(self, offering: int, pending: Mapping[int, Sequence[str]]) -> list[int]:
        """Return the pod groups whose pods fit on an empty new node of an offering."""
        snapshot = self._snapshot
        mark = snapshot.mark()
        snapshot.add_nodes(offering)
        pod_groups = [pod_group for pod_group, pods in pending.items() if snapshot.fits_newest(pod_group, pods[0])]
        snapshot.rollback(mark)
        return pod_groups

    def estimate(
        self, offering: int, pod_groups: Sequence[int], pending: Mapping[int, Sequence[str]], *, max_nodes: int
    ) -> Option:
        """Return how many nodes of an offering some pod groups need, at most `max_nodes`, and how many pods fit."""
        snapshot = self._snapshot
        mark = snapshot.mark()
        estimation = _Estimation(self, offering, min(max_nodes, _MAX_NODES_PER_SCALE_UP))
        schedulable = set(pod_groups)
        for pod_group in self._order(offering):
            if pod_group in schedulable:
                if self._budget is not None and self._budget.is_exhausted():
                    break
                self._view.cluster.meter.count += ESTIMATOR_SHAPE + ESTIMATOR_NODE * snapshot.size
                estimation.place_group(pod_group, pending[pod_group])
        snapshot.rollback(mark)
        return Option(offering, len(estimation.nodes_with_pods), estimation.pods)

    def _order(self, offering: int) -> list[int]:
        """Return all pod groups in decreasing order of the cpu share plus the memory share that a pod takes."""
        order = self._orders.get(offering)
        if order is None:
            amounts = allocatable(self._view.offerings[offering].node)
            offered = [(name, amounts[name]) for name in ("cpu", "memory") if amounts.get(name)]
            sizes = [
                sum(pod_group.requests.get(name, 0) / amount for name, amount in offered)
                for pod_group in self._view.pod_groups
            ]
            order = self._orders[offering] = sorted(range(len(sizes)), key=lambda pod_group: -sizes[pod_group])
        return order


class _Estimation:
    """The state of one estimation."""

    def __init__(self, estimator: BinpackingEstimator, offering: int, max_nodes: int) -> None:
        self._estimator, self._snapshot, self._view = estimator, estimator._snapshot, estimator._view
        self._offering, self._nodes_left = offering, max_nodes
        self._first = self._snapshot.size
        """The number of the first new node."""
        self._may_add = True
        self.nodes_with_pods: set[int] = set()
        self.pods: dict[int, int] = {}
        """By pod group: how many of its pods are placed."""

    def place_group(self, pod_group: int, pods: Sequence[str]) -> None:
        """Place the pods of one pod group."""
        if self._snapshot.is_plain(pod_group, pods[0]):
            placed = self._place_plain(pod_group, pods)
        else:
            placed = self._place_one_by_one(pod_group, pods)
        if placed:
            self.pods[pod_group] = placed

    # Plain pod groups -------------------------------------------------------------------------------------------------

    def _place_plain(self, pod_group: int, pods: Sequence[str]) -> int:
        snapshot, estimator = self._snapshot, self._estimator
        placed = 0
        if snapshot.size > self._first and len(pods) == 1:
            node = self._first_fit(snapshot.fits_plain(pod_group, pods[0]), self._first)
            if node is not None:
                self._add_pods(pod_group, pods, node, ONE)
                return 1
        elif snapshot.size > self._first:
            copies = snapshot.copies(pod_group, pods[0], self._first)
            start = estimator._next % snapshot.size
            counts, last = round_robin(copies, len(pods), max(start - self._first, 0))
            if last is not None:
                placed = int(counts.sum())
                self._add_pods(pod_group, pods[:placed], self._first, counts)
                estimator._next = (self._first + last + 1) % snapshot.size
        if placed < len(pods) and self._may_add and not self._is_newest_empty():
            placed += self._place_plain_on_new(pod_group, pods[placed:])
        return placed

    def _place_plain_on_new(self, pod_group: int, pods: Sequence[str]) -> int:
        """Add as many nodes as the pods need, place the pods there, and return how many were placed."""
        snapshot = self._snapshot
        if not self._nodes_left:
            self._may_add = False
            return 0
        first = snapshot.size
        snapshot.add_nodes(self._offering)
        if len(pods) == 1:
            per_node = int(snapshot.fits_newest(pod_group, pods[0]))
        else:
            per_node = int(snapshot.copies(pod_group, pods[0], first)[0])
        nodes = min(-(-len(pods) // per_node), self._nodes_left) if per_node else 1
        self._may_add = nodes * per_node >= len(pods) or nodes < self._nodes_left
        self._nodes_left -= nodes
        if not per_node:
            return 0
        if nodes > 1:
            snapshot.add_nodes(self._offering, nodes - 1)
        counts = np.full(nodes, per_node, dtype=np.int64)
        counts[-1] -= max(nodes * per_node - len(pods), 0)
        placed = int(counts.sum())
        self._add_pods(pod_group, pods[:placed], first, counts)
        return placed

    # Other pod groups -------------------------------------------------------------------------------------------------

    def _place_one_by_one(self, pod_group: int, pods: Sequence[str]) -> int:
        snapshot, budget = self._snapshot, self._estimator._budget
        search_all_new = True
        for placed, pod in enumerate(pods):
            if budget is not None and budget.is_exhausted():
                return placed
            node = self._search(pod, self._first) if search_all_new else None
            if node is None and snapshot.size > self._first:
                search_all_new, newest = False, snapshot.size - 1
                if snapshot.fits(pod)[newest]:
                    node = newest
                elif self._spreads_over_hosts(pod) and snapshot.fails_spread(pod, newest):
                    node = self._search(pod, 0, excluded=newest)
            search_all_new = search_all_new and node is not None
            if node is None:
                node = self._add_node_for(pod)
            if node is None:
                return placed
            self._add_pods(pod_group, (pod,), node, ONE)
        return len(pods)

    def _search(self, pod: str, first: int, excluded: int | None = None) -> int | None:
        """Return the first node from `first` on that takes a pod, starting after the last match."""
        if self._snapshot.size <= first:
            return None
        fits = self._snapshot.fits(pod)
        if excluded is not None:
            fits[excluded] = False
        return self._first_fit(fits, first)

    def _first_fit(self, fits: Bools, first: int) -> int | None:
        """Return the first node from `first` on that fits, starting after the last match."""
        estimator, size = self._estimator, self._snapshot.size
        start = max(estimator._next % size, first)
        node = start + int(fits[start:].argmax())
        if not fits[node]:
            node = first + int(fits[first:].argmax())
            if not fits[node]:
                return None
        estimator._next = (node + 1) % size
        return node

    def _add_node_for(self, pod: str) -> int | None:
        """Add a node, and return it if the pod fits there."""
        snapshot = self._snapshot
        if not self._may_add or self._is_newest_empty():
            return None
        if not self._nodes_left:
            self._may_add = False
            return None
        self._nodes_left -= 1
        snapshot.add_nodes(self._offering)
        return snapshot.size - 1 if snapshot.fits(pod)[-1] else None

    def _spreads_over_hosts(self, pod: str) -> bool:
        spread = self._view.cluster.pod(pod).spec.topology_spread_constraints or ()
        return any(each.topology_key == _HOSTNAME for each in spread)

    def _is_newest_empty(self) -> bool:
        """Return whether the newest node has no pods: a pod that does not fit there fits on no further new node."""
        return self._snapshot.size > self._first and self._snapshot.size - 1 not in self.nodes_with_pods

    def _add_pods(self, pod_group: int, pods: Sequence[str], first: int, counts: Ints) -> None:
        self._snapshot.add_pods(pod_group, pods, first, counts)
        if len(counts) == 1:
            self.nodes_with_pods.add(first)
        else:
            self.nodes_with_pods.update((np.flatnonzero(counts) + first).tolist())


def round_robin(copies: Ints, pods: int, start: int) -> tuple[Ints, int | None]:
    """Assign pods to nodes one by one in rounds, beginning at node `start`.

    `copies` has the number of pods that each node can take. Return the number that each node gets, and the node that
    gets the last pod (None if no pod fits).
    """
    total = int(copies.sum())
    if not total:
        return copies, None
    position = (np.arange(len(copies)) - start) % len(copies)  # of each node in a round
    if total <= pods:
        largest = np.flatnonzero(copies == copies.max())
        return copies, int(largest[position[largest].argmax()])
    low, high = 0, pods
    while low < high:  # search the largest number of whole rounds for which there are enough pods
        middle = (low + high + 1) // 2
        if int(np.minimum(copies, middle).sum()) <= pods:
            low = middle
        else:
            high = middle - 1
    counts = np.minimum(copies, low)
    rest = pods - int(counts.sum())
    last_round = np.flatnonzero(copies > low) if rest else np.flatnonzero(copies >= low)
    last_round = last_round[position[last_round].argsort()]
    counts[last_round[:rest]] += 1
    return counts, int(last_round[rest - 1])
