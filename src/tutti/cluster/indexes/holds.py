"""Holds: room that is kept on nodes for pods that are not bound yet, and for other owners, as columns.

Contract: an owner has at most one hold. The owner is a pending pod, whose usage is held, or any other name (a node that
is coming, a reservation) with amounts of its own. Each hold has a slot: the node's row (-1 while the node is not in the
cluster), the priority, the group of the pod, and the amounts. `room` returns the amounts that are held per node row for
holds of at least some priority; it costs the number of holds after a change, and nothing after that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Bools, Ints, Ints32, RowLog, Rows, grow_column
from tutti.cluster.edits import Hold
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.cluster.node_table import NodeTable
from tutti.cluster.pod_table import PodTable, UsageTable

_MAX_TOUCHED = 1 << 16
_MAX_ROOMS = 256
"""Largest number of rooms that are remembered: each has a column per resource, and every gang asks for its own."""


class HeldRoom(NamedTuple):
    """The room that holds keep from a pod."""

    amounts: Ints
    """By resource and node row."""
    rows: Rows
    """The node rows with such holds, each once."""
    pods: list[int]
    """The pod rows of the holds' owners; holds with amounts of their own have none."""


class Holds:
    """All holds of a cluster; see the module's contract."""

    def __init__(self, nodes: NodeTable, pods: PodTable, usages: UsageTable) -> None:
        self._nodes, self._pods, self._usages = nodes, pods, usages
        self.by_owner: dict[str, Hold] = {}
        self.by_node: dict[str, dict[str, Hold]] = {}
        """By node name, then owner."""
        self.version = 0
        """Changes with every added, changed or removed hold."""
        self.touched = RowLog(_MAX_TOUCHED)
        """Node rows where a hold was removed."""
        self._expiry: tuple[int, int | None] = (0, None)
        self._slot_of: dict[str, int] = {}
        self._owners: list[str] = []
        self._free: list[int] = []
        self._row: Ints32 = np.full(16, -1, dtype=np.int32)
        self._priority: Ints = np.zeros(16, dtype=np.int64)
        self._group: Ints32 = np.full(16, NO_GROUP, dtype=np.int32)
        self._amounts: Ints = np.zeros((len(usages.resources), 16), dtype=np.int64)
        self._rooms: dict[tuple[int, int, int], HeldRoom | None] = {}
        self._rooms_version: tuple[int, int, int] = (-1, -1, -1)

    # Changes ----------------------------------------------------------------------------------------------------------

    def put(self, hold: Hold) -> None:
        """Add a hold, which replaces an earlier hold of the same owner."""
        self.take(hold.owner)
        self.version += 1
        self.by_owner[hold.owner] = hold
        self.by_node.setdefault(hold.node, {})[hold.owner] = hold
        slot = self._slot_of[hold.owner] = self._take_slot()
        self._owners[slot] = hold.owner
        self._write(slot, hold)

    def take(self, owner: str) -> Hold | None:
        """Remove and return the hold of an owner; None if there is no hold."""
        hold = self.by_owner.pop(owner, None)
        if hold is not None:
            self.version += 1
            on_node = self.by_node[hold.node]
            del on_node[owner]
            if not on_node:
                del self.by_node[hold.node]
            slot = self._slot_of.pop(owner)
            if self._row[slot] >= 0:
                self.touched.add(int(self._row[slot]))
            self._row[slot], self._owners[slot] = -1, ""
            self._free.append(slot)
        return hold

    def owner_changed(self, owner: str) -> None:
        """Read the columns of an owner's hold again, after its pod has changed."""
        hold = self.by_owner.get(owner)
        if hold is not None:
            self.version += 1
            self._write(self._slot_of[owner], hold)

    def node_changed(self, name: str) -> None:
        """Read the row of a node again, after the node was added or removed."""
        row = self._nodes.row_of.get(name, -1)
        for owner in self.by_node.get(name, ()):
            self._row[self._slot_of[owner]] = row
            self.version += 1

    def _take_slot(self) -> int:
        if self._free:
            return self._free.pop()
        slot = len(self._owners)
        self._owners.append("")
        if slot == len(self._row):
            self._row, self._group = (grow_column(column, 2 * slot, fill=-1) for column in (self._row, self._group))
            self._priority = grow_column(self._priority, 2 * slot)
            self._amounts = grow_column(self._amounts, 2 * slot)
        return slot

    def _write(self, slot: int, hold: Hold) -> None:
        pods, resources = self._pods, self._usages.resources
        pod = pods.row_of.get(hold.owner, -1) if not hold.amounts else -1
        amounts = self._usages.matrix[pods.usage[pod]] if pod >= 0 else resources.vector(dict(hold.amounts))
        if len(resources) > len(self._amounts):
            missing = np.zeros((len(resources) - len(self._amounts), self._amounts.shape[1]), dtype=np.int64)
            self._amounts = np.vstack((self._amounts, missing))
        self._amounts[: len(amounts), slot] = amounts
        self._row[slot] = self._nodes.row_of.get(hold.node, -1)
        self._priority[slot] = hold.effective_priority(int(pods.priority[pod]) if pod >= 0 else 0)
        self._group[slot] = pods.group[pod] if pod >= 0 else NO_GROUP

    def next_expiry(self) -> int | None:
        """Return the earliest time at which a hold expires; it costs the number of holds after a change."""
        if self._expiry[0] != self.version:
            times = [hold.until for hold in self.by_owner.values() if hold.until is not None]
            self._expiry = self.version, min(times, default=None)
        return self._expiry[1]

    def priority_of(self, owner: str) -> int:
        """Return the priority of an owner's hold."""
        return int(self._priority[self._slot_of[owner]])

    def amounts_of(self, owner: str) -> Ints:
        """Return the amounts that are held for an owner, by resource."""
        amounts: Ints = self._amounts[:, self._slot_of[owner]]
        return amounts

    # Questions --------------------------------------------------------------------------------------------------------

    def room(self, priority: int, *, owner: str = "", group: int = NO_GROUP) -> HeldRoom | None:
        """Return the room held with at least a priority, without the holds of an owner or of the pods of a group.

        None if no such hold is on a node of the cluster.
        """
        if not self.by_owner:
            return None
        version = self.version, self._nodes.size, len(self._usages.resources)
        if self._rooms_version != version or len(self._rooms) >= _MAX_ROOMS:
            self._rooms_version, self._rooms = version, {}
        key = priority, self._slot_of.get(owner, -1), group
        if key not in self._rooms:
            self._rooms[key] = self._room(*key)
        return self._rooms[key]

    def _room(self, priority: int, own_slot: int, group: int) -> HeldRoom | None:
        length = len(self._owners)
        rows = self._row[:length]
        counted: Bools = (rows >= 0) & (self._priority[:length] >= priority)
        if own_slot >= 0:
            counted[own_slot] = False
        if group != NO_GROUP:
            counted &= self._group[:length] != group
        slots = np.flatnonzero(counted)
        if not len(slots):
            return None
        amounts = np.zeros((len(self._usages.resources), self._nodes.size), dtype=np.int64)
        held = self._amounts[:, slots]
        np.add.at(amounts[: len(held)].T, rows[slots], held.T)
        owners = [self._owners[slot] for slot in slots.tolist()]
        pods = [row for row in map(self._pods.row_of.get, owners) if row is not None]
        return HeldRoom(amounts, np.unique(rows[slots]).astype(np.intp), pods)

    def copy(self, nodes: NodeTable, pods: PodTable, usages: UsageTable) -> Holds:
        """Return the holds of a copied cluster."""
        clone = Holds(nodes, pods, usages)
        for hold in self.by_owner.values():
            clone.put(hold)
        clone.version, clone.touched = self.version, self.touched.copy()
        return clone
