"""A cluster snapshot: nodes on which pods of pod groups are tried, and to which nodes are added.

Contract: nodes are numbered, existing nodes first, then new ones as they are added. A pod group is plain while its pods
look at nothing but the node itself and its room; then `copies` says how many fit. Other pods are asked about one by
one (`fits`). `ColumnSnapshot` is for pod groups that stay plain, and is arithmetic only; `EngineSnapshot` is a cluster
with its engine. `back` undoes what was done since `mark`; `ColumnSnapshot` undoes added nodes only.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np

from tutti.autoscalers.shared.autoscaler_cluster import AutoscalerCluster
from tutti.cluster.columns import UNLIMITED, Bools, Ints, grow_column
from tutti.cluster.edits import Bind
from tutti.engine.placement.capacity import NO_LIMIT
from tutti.engine.placement.evaluator import FilterResult
from tutti.engine.plugins.base import IncomingPod

ONE: Ints = np.ones(1, dtype=np.int64)
"""One pod for one node."""
_SPREAD = "PodTopologySpread"


class ClusterSnapshot(ABC):
    """See the module's contract."""

    there: int
    """How many nodes are no new ones."""
    size: int
    """How many nodes there are with the new ones."""

    @abstractmethod
    def is_plain(self, pod_group: int, pod: str) -> bool:
        """Say whether a pod group, of which a pod is given, only looks at nodes and room now."""

    @abstractmethod
    def copies(self, pod_group: int, pod: str, first: int) -> Ints:
        """Give how many pods of a plain pod group fit on each node from `first` on."""

    @abstractmethod
    def fits_plain(self, pod_group: int, pod: str) -> Bools:
        """Say which nodes take a pod of a plain pod group."""

    @abstractmethod
    def fits_newest(self, pod_group: int, pod: str) -> bool:
        """Say whether the newest node takes a pod of any pod group."""

    @abstractmethod
    def fits(self, pod: str) -> Bools:
        """Say which nodes take a pod, plain or not."""

    @abstractmethod
    def fails_spread(self, pod: str, node: int) -> bool:
        """Say whether a node does not take a pod because like pods would not be spread evenly."""

    @abstractmethod
    def take(self, pod_group: int, pods: Sequence[str], first: int, counts: Ints) -> None:
        """Put pods on the nodes from `first` on: so many on each, one node after the other."""

    @abstractmethod
    def add(self, offering: int, count: int = 1) -> None:
        """Add new nodes."""

    @abstractmethod
    def mark(self) -> tuple[int, int]:
        """Remember this moment."""

    @abstractmethod
    def back(self, mark: tuple[int, int]) -> None:
        """Undo everything since."""


class ColumnSnapshot(ClusterSnapshot):
    """What is free on each node, as columns."""

    def __init__(self, view: AutoscalerCluster, incoming: Sequence[IncomingPod], templates: Ints) -> None:
        """Take over the numbers while the templates, one node per offering, are in the cluster."""
        nodes = view.cluster.nodes
        rows = np.concatenate((view.rows, templates))
        self._welcome = np.array([view.capacity.nodes_accept(each, rows) for each in incoming]).reshape(
            len(incoming), len(rows)
        )
        self._wants = [view.engine.evaluator.resource_requests(each) for each in incoming]
        free: Ints = nodes.alloc[:, rows] - nodes.used[:, rows]
        self.there = self.size = len(view.rows)
        self._fresh = free[:, self.there :]
        self._free = free[:, : self.there].copy()
        self._kinds: Ints = np.arange(self.there)
        """What each node is: itself, or which offering, as a place in `_welcome`."""
        self._places = [np.array([place for place, _ in wants], dtype=np.intp) for wants in self._wants]
        self._amounts = [np.array([[amount] for _, amount in wants], dtype=np.int64) for wants in self._wants]
        self._wanted: Ints = np.full((len(free), len(incoming)), -UNLIMITED, dtype=np.int64)
        """Resource x pod group; what is not wanted is not looked at, however little there is."""
        for pod_group, wants in enumerate(self._wants):
            for place, amount in wants:
                self._wanted[place, pod_group] = amount

    def fits(self, pod: str) -> Bools:
        """Never asked: columns are for plain pod groups alone."""
        raise AssertionError(f"{pod} is not of a plain pod_group")

    def fails_spread(self, pod: str, node: int) -> bool:
        """Never asked either."""
        raise AssertionError(f"{pod} is not of a plain pod_group")

    def is_plain(self, pod_group: int, pod: str) -> bool:
        """They all are."""
        return True

    def copies(self, pod_group: int, pod: str, first: int) -> Ints:
        """Divide what is free by what is wanted."""
        most = np.where(self._welcome[pod_group][self._kinds[first : self.size]], NO_LIMIT, 0)
        for place, amount in self._wants[pod_group]:
            np.minimum(most, self._free[place, first : self.size] // amount, out=most)
        return np.maximum(most, 0, out=most)

    def fits_plain(self, pod_group: int, pod: str) -> Bools:
        """Compare what is free with what is wanted."""
        enough = (self._free[self._places[pod_group], : self.size] >= self._amounts[pod_group]).all(axis=0)
        fits: Bools = enough & self._welcome[pod_group][self._kinds[: self.size]]
        return fits

    def fits_newest(self, pod_group: int, pod: str) -> bool:
        """Compare what is free there with what is wanted."""
        newest = self.size - 1
        if not self._welcome[pod_group, self._kinds[newest]]:
            return False
        return all(self._free[place, newest] >= amount for place, amount in self._wants[pod_group])

    def take(self, pod_group: int, pods: Sequence[str], first: int, counts: Ints) -> None:
        """Take away what is wanted."""
        if len(counts) == 1:
            self._free[self._places[pod_group], first] -= self._amounts[pod_group][:, 0] * counts
            return
        for place, amount in self._wants[pod_group]:
            self._free[place, first : first + len(counts)] -= amount * counts

    def add(self, offering: int, count: int = 1) -> None:
        """Add columns."""
        size = self.size + count
        if size > len(self._kinds):
            room = size + size // 2 + 16
            self._kinds, self._free = grow_column(self._kinds, room), grow_column(self._free, room)
        self._kinds[self.size : size] = self.there + offering
        self._free[:, self.size : size] = self._fresh[:, offering : offering + 1]
        self.size = size

    def fill(self, numbers: Mapping[int, int], offering: int) -> dict[int, int]:
        """Give how many pods of each group, of so many, an empty node of an offering takes, group after group."""
        pod_groups = np.array(list(numbers), dtype=np.intp)
        wanted, welcome = self._wanted[:, pod_groups], self._welcome[pod_groups, self.there + offering]
        free, taken, at = self._fresh[:, offering].copy(), dict[int, int](), 0
        while at < len(pod_groups):
            fits = welcome[at:] & (wanted[:, at:] <= free[:, np.newaxis]).all(axis=0)
            step = int(fits.argmax())
            if not fits[step]:
                break
            at += step
            pod_group = int(pod_groups[at])
            copies = min((int(free[place]) // amount for place, amount in self._wants[pod_group]), default=NO_LIMIT)
            taken[pod_group] = count = min(numbers[pod_group], copies)
            for place, amount in self._wants[pod_group]:
                free[place] -= amount * count
            at += 1
        return taken

    def mark(self) -> tuple[int, int]:
        """Remember how many nodes there are."""
        return self.size, 0

    def back(self, mark: tuple[int, int]) -> None:
        """Drop the nodes since."""
        self.size = mark[0]


class EngineSnapshot(ClusterSnapshot):
    """A cluster, its engine, and the nodes that join it."""

    def __init__(self, view: AutoscalerCluster) -> None:
        self._view, self._cluster, self._evaluator = view, view.cluster, view.engine.evaluator
        self._rows: list[int] = view.rows.tolist()
        self.there = self.size = len(self._rows)
        self._added = 0

    def is_plain(self, pod_group: int, pod: str) -> bool:
        """Ask the engine whether any rule looks at other pods or nodes."""
        return self._view.is_plain(self._ask(pod))

    def copies(self, pod_group: int, pod: str, first: int) -> Ints:
        """Divide what is free by what is wanted."""
        nodes, rows = self._cluster.nodes, np.array(self._rows[first:], dtype=np.intp)
        return self._view.capacity.copies_with_free(self._ask(pod), nodes.alloc[:, rows] - nodes.used[:, rows], rows)

    def fits_plain(self, pod_group: int, pod: str) -> Bools:
        """Ask the engine's filters."""
        return self.fits(pod)

    def fits_newest(self, pod_group: int, pod: str) -> bool:
        """Ask the engine's filters."""
        return bool(self.fits(pod)[-1])

    def fits(self, pod: str) -> Bools:
        """Ask the engine's filters."""
        found = self._evaluator.filter(self._ask(pod))
        return found.feasible[self._rows] if isinstance(found, FilterResult) else np.zeros(self.size, dtype=bool)

    def fails_spread(self, pod: str, node: int) -> bool:
        """Ask which filter says no first."""
        incoming, row = self._ask(pod), self._rows[node]
        found = self._evaluator.filter(incoming)
        if not isinstance(found, FilterResult) or found.feasible[row]:
            return False
        verdict = int(self._evaluator.filter_rows(incoming, found.states, np.array([row]))[0])
        return self._evaluator.reason(incoming, row, verdict).plugin == _SPREAD

    def take(self, pod_group: int, pods: Sequence[str], first: int, counts: Ints) -> None:
        """Bind the pods."""
        names, pod = self._cluster.nodes.names, iter(pods)
        for row, count in zip(self._rows[first:], counts.tolist(), strict=False):
            for _ in range(count):
                self._cluster.apply(Bind(next(pod), names[row]))

    def add(self, offering: int, count: int = 1) -> None:
        """Let nodes join."""
        for _ in range(count):
            self._added += 1
            self._rows.append(self._view.join(offering, f"peer-new-{self._added}"))
        self.size += count

    def mark(self) -> tuple[int, int]:
        """Mark the cluster."""
        return self.size, self._cluster.mark()

    def back(self, mark: tuple[int, int]) -> None:
        """Roll the cluster back."""
        self.size = mark[0]
        del self._rows[self.size :]
        self._cluster.rollback(mark[1])

    def _ask(self, pod: str) -> IncomingPod:
        return self._evaluator.incoming_pod(self._cluster.pod_row(pod))


def snapshot_of(view: AutoscalerCluster) -> ClusterSnapshot:
    """Give the snapshot for the pod groups of a view: numbers alone if they will do."""
    cluster, evaluator = view.cluster, view.engine.evaluator
    mark = cluster.mark()
    try:
        templates = [view.join(number, f"peer-template-{number}") for number in range(len(view.offerings))]
        incoming = [evaluator.incoming_pod(cluster.pod_row(pod_group.pods[0])) for pod_group in view.pod_groups]
        if all(map(view.is_plain, incoming)):
            return ColumnSnapshot(view, incoming, np.array(templates, dtype=np.intp))
    finally:
        cluster.rollback(mark)
    return EngineSnapshot(view)
