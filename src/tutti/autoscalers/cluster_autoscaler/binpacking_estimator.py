"""Cluster Autoscaler's estimator: how many nodes of one group some pods need, by first fit of decreasing pods.

Contract: the snapshot is left as it was. Pod groups go from the largest to the smallest, by their share of the node's
cpu and memory together. A pod is tried on the new nodes, from the one after the last that took a pod; once a pod of a
group fits on none of them, the others of the group are tried on the newest only, and nodes are added one by one. Pods
that must be spread over hosts are tried on all nodes again, existing ones too. Plain pod groups are counted, not tried.
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
_MOST = 1_000
"""Nodes of one scale-up, as Cluster Autoscaler's ``max-nodes-per-scaleup`` has it by default."""


class Option(NamedTuple):
    """What one group could do."""

    offering: int
    nodes: int
    pods: Mapping[int, int]
    """How many pods of each pod group it would take."""


class BinpackingEstimator:
    """See the module's contract."""

    def __init__(self, view: AutoscalerCluster, snapshot: ClusterSnapshot, budget: WorkBudget | None = None) -> None:
        self._view, self._snapshot, self._budget = view, snapshot, budget
        self._next = 0
        """The node from which the next search starts; it is kept from one estimation to the next."""
        self._orders: dict[int, list[int]] = {}

    def schedulable(self, offering: int, waiting: Mapping[int, Sequence[str]]) -> list[int]:
        """The pod groups of which a pod fits on a new node of an offering."""
        snapshot = self._snapshot
        mark = snapshot.mark()
        snapshot.add(offering)
        found = [pod_group for pod_group, pods in waiting.items() if snapshot.fits_newest(pod_group, pods[0])]
        snapshot.back(mark)
        return found

    def estimate(
        self, offering: int, pod_groups: Sequence[int], waiting: Mapping[int, Sequence[str]], *, most: int
    ) -> Option:
        """Say how many nodes of an offering some pod groups need, at most so many, and what these would take."""
        snapshot = self._snapshot
        mark = snapshot.mark()
        run = _Run(self, offering, min(most, _MOST))
        helped = set(pod_groups)
        for pod_group in self._order(offering):
            if pod_group in helped:
                if self._budget is not None and self._budget.is_exhausted():
                    break
                self._view.cluster.meter.count += ESTIMATOR_SHAPE + ESTIMATOR_NODE * snapshot.size
                run.pod_group(pod_group, waiting[pod_group])
        snapshot.back(mark)
        return Option(offering, len(run.used), run.pods)

    def _order(self, offering: int) -> list[int]:
        """All pod groups, by the share of a node's cpu and memory that a pod takes, the largest first."""
        order = self._orders.get(offering)
        if order is None:
            amounts = allocatable(self._view.offerings[offering].node)
            offered = [(name, amounts[name]) for name in ("cpu", "memory") if amounts.get(name)]
            sizes = [
                sum(pod_group.requests.get(n, 0) / most for n, most in offered) for pod_group in self._view.pod_groups
            ]
            order = self._orders[offering] = sorted(range(len(sizes)), key=lambda pod_group: -sizes[pod_group])
        return order


class _Run:
    """One estimation."""

    def __init__(self, estimator: BinpackingEstimator, offering: int, most: int) -> None:
        self._own, self._snapshot, self._view = estimator, estimator._snapshot, estimator._view
        self._offering, self._left = offering, most
        self._first = self._snapshot.size
        self._may_add = True
        self.used: set[int] = set()
        """The nodes with pods."""
        self.pods: dict[int, int] = {}

    def pod_group(self, pod_group: int, pods: Sequence[str]) -> None:
        """Place the pods of one pod group."""
        if self._snapshot.is_plain(pod_group, pods[0]):
            placed = self._count(pod_group, pods)
        else:
            placed = self._try(pod_group, pods)
        if placed:
            self.pods[pod_group] = placed

    # Plain pod groups -------------------------------------------------------------------------------------------------

    def _count(self, pod_group: int, pods: Sequence[str]) -> int:
        snapshot, own = self._snapshot, self._own
        placed = 0
        if snapshot.size > self._first and len(pods) == 1:
            node = self._first_fit(snapshot.fits_plain(pod_group, pods[0]), self._first)
            if node is not None:
                self._take(pod_group, pods, node, ONE)
                return 1
        elif snapshot.size > self._first:
            copies = snapshot.copies(pod_group, pods[0], self._first)
            start = own._next % snapshot.size
            given, last = round_robin(copies, len(pods), max(start - self._first, 0))
            if last is not None:
                placed = int(given.sum())
                self._take(pod_group, pods[:placed], self._first, given)
                own._next = (self._first + last + 1) % snapshot.size
        if placed < len(pods) and self._may_add and not self._newest_is_empty():
            placed += self._count_on_new(pod_group, pods[placed:])
        return placed

    def _count_on_new(self, pod_group: int, pods: Sequence[str]) -> int:
        """Add as many nodes as the pods need."""
        snapshot = self._snapshot
        if not self._left:
            self._may_add = False
            return 0
        at = snapshot.size
        snapshot.add(self._offering)
        if len(pods) == 1:
            each = int(snapshot.fits_newest(pod_group, pods[0]))
        else:
            each = int(snapshot.copies(pod_group, pods[0], at)[0])
        count = min(-(-len(pods) // each), self._left) if each else 1
        self._may_add = count * each >= len(pods) or count < self._left
        self._left -= count
        if not each:
            return 0
        if count > 1:
            snapshot.add(self._offering, count - 1)
        given = np.full(count, each, dtype=np.int64)
        given[-1] -= max(count * each - len(pods), 0)
        placed = int(given.sum())
        self._take(pod_group, pods[:placed], at, given)
        return placed

    # Others -----------------------------------------------------------------------------------------------------------

    def _try(self, pod_group: int, pods: Sequence[str]) -> int:
        snapshot, budget = self._snapshot, self._own._budget
        on_any = True
        for placed, pod in enumerate(pods):
            if budget is not None and budget.is_exhausted():
                return placed
            node = self._search(pod, self._first) if on_any else None
            if node is None and snapshot.size > self._first:
                on_any, newest = False, snapshot.size - 1
                if snapshot.fits(pod)[newest]:
                    node = newest
                elif self._spreads_over_hosts(pod) and snapshot.fails_spread(pod, newest):
                    node = self._search(pod, 0, without=newest)
            on_any = on_any and node is not None
            if node is None:
                node = self._add_for(pod)
            if node is None:
                return placed
            self._take(pod_group, (pod,), node, ONE)
        return len(pods)

    def _search(self, pod: str, first: int, without: int | None = None) -> int | None:
        """Give the first node that takes a pod, from the one after the last match on."""
        if self._snapshot.size <= first:
            return None
        fits = self._snapshot.fits(pod)
        if without is not None:
            fits[without] = False
        return self._first_fit(fits, first)

    def _first_fit(self, fits: Bools, first: int) -> int | None:
        """Give the first node of those from `first` on that fit, beginning after the last match."""
        own, size = self._own, self._snapshot.size
        start = max(own._next % size, first)
        node = start + int(fits[start:].argmax())
        if not fits[node]:
            node = first + int(fits[first:].argmax())
            if not fits[node]:
                return None
        own._next = (node + 1) % size
        return node

    def _add_for(self, pod: str) -> int | None:
        snapshot = self._snapshot
        if not self._may_add or self._newest_is_empty():
            return None
        if not self._left:
            self._may_add = False
            return None
        self._left -= 1
        snapshot.add(self._offering)
        return snapshot.size - 1 if snapshot.fits(pod)[-1] else None

    def _spreads_over_hosts(self, pod: str) -> bool:
        spread = self._view.cluster.pod(pod).spec.topology_spread_constraints or ()
        return any(each.topology_key == _HOSTNAME for each in spread)

    def _newest_is_empty(self) -> bool:
        """Whether the newest node has no pods: what does not fit there fits on no further one."""
        return self._snapshot.size > self._first and self._snapshot.size - 1 not in self.used

    def _take(self, pod_group: int, pods: Sequence[str], first: int, counts: Ints) -> None:
        self._snapshot.take(pod_group, pods, first, counts)
        if len(counts) == 1:
            self.used.add(first)
        else:
            self.used.update((np.flatnonzero(counts) + first).tolist())


def round_robin(copies: Ints, wanted: int, start: int) -> tuple[Ints, int | None]:
    """Give pods to nodes one by one in turns, from `start` on; how many each gets, and who got the last one."""
    total = int(copies.sum())
    if not total:
        return copies, None
    turn = (np.arange(len(copies)) - start) % len(copies)
    if total <= wanted:
        top = np.flatnonzero(copies == copies.max())
        return copies, int(top[turn[top].argmax()])
    low, high = 0, wanted
    while low < high:  # the most whole rounds for which there are enough pods
        middle = (low + high + 1) // 2
        if int(np.minimum(copies, middle).sum()) <= wanted:
            low = middle
        else:
            high = middle - 1
    given = np.minimum(copies, low)
    rest = wanted - int(given.sum())
    more = np.flatnonzero(copies > low) if rest else np.flatnonzero(copies >= low)
    more = more[turn[more].argsort()]
    given[more[:rest]] += 1
    return given, int(more[rest - 1])
