"""A cluster snapshot: a simulation to which nodes are added and in which pods are placed.

Contract: nodes are numbered, existing nodes first, then new nodes in the order in which they are added. A pod group is
plain while its filters depend only on the node and its free resources; then `copies` returns how many of its pods fit.
The pods of other groups are checked one by one (`fits`). `ColumnSnapshot` does arithmetic on columns and supports only
plain groups; `EngineSnapshot` uses a cluster and its engine. `rollback` undoes all changes since `mark`; in a
`ColumnSnapshot` it undoes only added nodes, so after `mark` callers place pods only on nodes added since.
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
    """See the module's contract. A method that has a `pod_group` and a `pod` gets one pending pod of that group."""

    existing_count: int
    """The number of existing nodes."""
    size: int
    """The number of existing and new nodes."""

    @abstractmethod
    def is_plain(self, pod_group: int, pod: str) -> bool:
        """Return whether the filters of a pod group depend only on nodes and their free resources now."""

    @abstractmethod
    def copies(self, pod_group: int, pod: str, first: int) -> Ints:
        """Return how many pods of a plain pod group fit on each node from `first` on."""

    @abstractmethod
    def fits_plain(self, pod_group: int, pod: str) -> Bools:
        """Return, for each node, whether a pod of a plain pod group fits."""

    @abstractmethod
    def fits_newest(self, pod_group: int, pod: str) -> bool:
        """Return whether a pod of any pod group fits on the newest node."""

    @abstractmethod
    def fits(self, pod: str) -> Bools:
        """Return, for each node, whether a pod of any pod group fits."""

    @abstractmethod
    def fails_spread(self, pod: str, node: int) -> bool:
        """Return whether PodTopologySpread is the first filter by which a node rejects a pod."""

    @abstractmethod
    def add_pods(self, pod_group: int, pods: Sequence[str], first: int, counts: Ints) -> None:
        """Place pods on the nodes from `first` on, in order; `counts` has the number of pods for each node."""

    @abstractmethod
    def add_nodes(self, offering: int, count: int = 1) -> None:
        """Add new nodes of an offering."""

    @abstractmethod
    def mark(self) -> tuple[int, int]:
        """Return a mark for `rollback`."""

    @abstractmethod
    def rollback(self, mark: tuple[int, int]) -> None:
        """Undo all changes since a mark."""


class ColumnSnapshot(ClusterSnapshot):
    """The free resources of every node as columns; for plain pod groups only."""

    def __init__(self, view: AutoscalerCluster, incoming: Sequence[IncomingPod], templates: Ints) -> None:
        """Copy the numbers from the cluster, in which `templates` are the rows of one node per offering."""
        nodes = view.cluster.nodes
        rows = np.concatenate((view.rows, templates))
        self._welcome = np.array([view.capacity.nodes_accept(each, rows) for each in incoming]).reshape(
            len(incoming), len(rows)
        )
        """Pod group x (existing node or offering): whether the node takes the pods, given free resources."""
        self._requests = [view.engine.evaluator.resource_requests(each) for each in incoming]
        """By pod group: the requested resources, as (resource, amount)."""
        free: Ints = nodes.alloc[:, rows] - nodes.used[:, rows]
        self.existing_count = self.size = len(view.rows)
        self._free_when_empty = free[:, self.existing_count :]
        """Resource x offering."""
        self._free = free[:, : self.existing_count].copy()
        """Resource x node."""
        self._welcome_column: Ints = np.arange(self.existing_count)
        """By node: its column in `_welcome`, which new nodes of one offering share."""
        self._resources = [np.array([resource for resource, _ in each], dtype=np.intp) for each in self._requests]
        self._amounts = [np.array([[amount] for _, amount in each], dtype=np.int64) for each in self._requests]
        self._request_table: Ints = np.full((len(free), len(incoming)), -UNLIMITED, dtype=np.int64)
        """Resource x pod group; a resource that a group does not request is below any free amount."""
        for pod_group, requests in enumerate(self._requests):
            for resource, amount in requests:
                self._request_table[resource, pod_group] = amount

    def fits(self, pod: str) -> Bools:
        """Raise: only plain pod groups are supported."""
        raise AssertionError(f"{pod} is not of a plain pod_group")

    def fails_spread(self, pod: str, node: int) -> bool:
        """Raise: only plain pod groups are supported."""
        raise AssertionError(f"{pod} is not of a plain pod_group")

    def is_plain(self, pod_group: int, pod: str) -> bool:
        """Return True."""
        return True

    def copies(self, pod_group: int, pod: str, first: int) -> Ints:
        """Divide free amounts by requested amounts."""
        most = np.where(self._welcome[pod_group][self._welcome_column[first : self.size]], NO_LIMIT, 0)
        for resource, amount in self._requests[pod_group]:
            np.minimum(most, self._free[resource, first : self.size] // amount, out=most)
        return np.maximum(most, 0, out=most)

    def fits_plain(self, pod_group: int, pod: str) -> Bools:
        """Compare free amounts with requested amounts."""
        enough = (self._free[self._resources[pod_group], : self.size] >= self._amounts[pod_group]).all(axis=0)
        fits: Bools = enough & self._welcome[pod_group][self._welcome_column[: self.size]]
        return fits

    def fits_newest(self, pod_group: int, pod: str) -> bool:
        """Compare the free amounts of the newest node with requested amounts."""
        newest = self.size - 1
        if not self._welcome[pod_group, self._welcome_column[newest]]:
            return False
        return all(self._free[resource, newest] >= amount for resource, amount in self._requests[pod_group])

    def add_pods(self, pod_group: int, pods: Sequence[str], first: int, counts: Ints) -> None:
        """Subtract requested amounts from free amounts."""
        if len(counts) == 1:
            self._free[self._resources[pod_group], first] -= self._amounts[pod_group][:, 0] * counts
            return
        for resource, amount in self._requests[pod_group]:
            self._free[resource, first : first + len(counts)] -= amount * counts

    def add_nodes(self, offering: int, count: int = 1) -> None:
        """Append columns."""
        size = self.size + count
        if size > len(self._welcome_column):
            room = size + size // 2 + 16
            self._welcome_column, self._free = grow_column(self._welcome_column, room), grow_column(self._free, room)
        self._welcome_column[self.size : size] = self.existing_count + offering
        self._free[:, self.size : size] = self._free_when_empty[:, offering : offering + 1]
        self.size = size

    def count_on_empty_node(self, pending: Mapping[int, int], offering: int) -> dict[int, int]:
        """Return how many pods of each group fit on an empty node of an offering, filled group after group.

        `pending` has the number of pods of each group. The snapshot does not change.
        """
        pod_groups = np.array(list(pending), dtype=np.intp)
        requests, welcome = (
            self._request_table[:, pod_groups],
            self._welcome[pod_groups, self.existing_count + offering],
        )
        free, counts, at = self._free_when_empty[:, offering].copy(), dict[int, int](), 0
        while at < len(pod_groups):
            fits = welcome[at:] & (requests[:, at:] <= free[:, np.newaxis]).all(axis=0)
            step = int(fits.argmax())
            if not fits[step]:
                break
            at += step
            pod_group = int(pod_groups[at])
            copies = min(
                (int(free[resource]) // amount for resource, amount in self._requests[pod_group]), default=NO_LIMIT
            )
            counts[pod_group] = count = min(pending[pod_group], copies)
            for resource, amount in self._requests[pod_group]:
                free[resource] -= amount * count
            at += 1
        return counts

    def mark(self) -> tuple[int, int]:
        """Return the number of nodes."""
        return self.size, 0

    def rollback(self, mark: tuple[int, int]) -> None:
        """Remove the nodes that were added since a mark."""
        self.size = mark[0]


class EngineSnapshot(ClusterSnapshot):
    """A cluster with its engine, which new nodes join."""

    def __init__(self, view: AutoscalerCluster) -> None:
        self._view, self._cluster, self._evaluator = view, view.cluster, view.engine.evaluator
        self._rows: list[int] = view.rows.tolist()
        self.existing_count = self.size = len(self._rows)
        self._added = 0

    def is_plain(self, pod_group: int, pod: str) -> bool:
        """Check the pod's rules, and the anti-affinity of placed pods."""
        return self._view.is_plain(self._incoming(pod))

    def copies(self, pod_group: int, pod: str, first: int) -> Ints:
        """Divide free amounts by requested amounts."""
        nodes, rows = self._cluster.nodes, np.array(self._rows[first:], dtype=np.intp)
        return self._view.capacity.copies_with_free(
            self._incoming(pod), nodes.alloc[:, rows] - nodes.used[:, rows], rows
        )

    def fits_plain(self, pod_group: int, pod: str) -> Bools:
        """Run the engine's filters."""
        return self.fits(pod)

    def fits_newest(self, pod_group: int, pod: str) -> bool:
        """Run the engine's filters."""
        return bool(self.fits(pod)[-1])

    def fits(self, pod: str) -> Bools:
        """Run the engine's filters."""
        result = self._evaluator.filter(self._incoming(pod))
        return result.feasible[self._rows] if isinstance(result, FilterResult) else np.zeros(self.size, dtype=bool)

    def fails_spread(self, pod: str, node: int) -> bool:
        """Run the engine's filters and look up the plugin of the reason."""
        incoming, row = self._incoming(pod), self._rows[node]
        result = self._evaluator.filter(incoming)
        if not isinstance(result, FilterResult) or result.feasible[row]:
            return False
        verdict = int(self._evaluator.filter_rows(incoming, result.states, np.array([row]))[0])
        return self._evaluator.reason(incoming, row, verdict).plugin == _SPREAD

    def add_pods(self, pod_group: int, pods: Sequence[str], first: int, counts: Ints) -> None:
        """Bind the pods."""
        names, pod = self._cluster.nodes.names, iter(pods)
        for row, count in zip(self._rows[first:], counts.tolist(), strict=False):
            for _ in range(count):
                self._cluster.apply(Bind(next(pod), names[row]))

    def add_nodes(self, offering: int, count: int = 1) -> None:
        """Add nodes to the cluster, with their daemons."""
        for _ in range(count):
            self._added += 1
            self._rows.append(self._view.join(offering, f"peer-new-{self._added}"))
        self.size += count

    def mark(self) -> tuple[int, int]:
        """Mark the cluster."""
        return self.size, self._cluster.mark()

    def rollback(self, mark: tuple[int, int]) -> None:
        """Roll back the cluster."""
        self.size = mark[0]
        del self._rows[self.size :]
        self._cluster.rollback(mark[1])

    def _incoming(self, pod: str) -> IncomingPod:
        return self._evaluator.incoming_pod(self._cluster.pod_row(pod))


def snapshot_of(view: AutoscalerCluster) -> ClusterSnapshot:
    """Return a `ColumnSnapshot` if every pod group is plain on existing and on new nodes, else an `EngineSnapshot`."""
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
