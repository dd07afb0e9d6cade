"""The gangs of a cluster: which pods belong to each, and what its group objects say of it.

Contract: `Gangs` follows one cluster. A gang's record is read again only when its pods or group objects have changed.
Rows are rows of the cluster's pod table. A pod that names no group is a gang of one pod and has no record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints32
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.engine.gangs.gang_state import GangState
from tutti.engine.gangs.object_readers import ObjectReaders
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.kube.gangs.gang import Gang
from tutti.kube.gangs.reader import part_of, read_gang, root_group
from tutti.kube.objects import Object, Pod


class Gangs:
    """The gangs of one cluster (see the module's contract)."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._read = self._objects_read = self._renamed_read = 0
        self._roots: list[str] = []
        """The gang of each group."""
        self._groups_of: dict[str, list[int]] = {}
        """The groups of each gang."""
        self._records: dict[str, Gang] = {}
        self._versions: dict[str, int] = {}
        self._changes = 0
        self._stated_priorities: dict[str, int] = {}
        """The priorities of gangs that state one."""
        self._unread: set[str] = set()
        """Gangs whose records were dropped since `lowest_stated_priority` was last asked."""
        self._gangs_reading = ObjectReaders[str]()
        """Which gang's record depends on which object."""
        self._groups_reading = ObjectReaders[int]()
        """Which group's gang depends on which object."""
        self.caches: dict[Any, Any] = {}
        """Values of attached caches (`attached_cache`)."""
        self._watchers: list[Callable[[str], None]] = []
        self.root_keys: list[str] = []
        self._root_places: Ints32 = np.zeros(0, dtype=np.int32)

    @staticmethod
    def of(cluster: Cluster) -> Gangs:
        """Return the gangs of a cluster, with the records that are already read."""
        return _GANGS.of(cluster)

    def watch(self, changed: Callable[[str], None]) -> None:
        """Call a function with the key of each gang whose pods or group objects change."""
        self._watchers.append(changed)

    def key_of(self, row: int) -> str | None:
        """Return the gang of the pod in a row; None for a pod without a group."""
        number = int(self._cluster.pods.group[row])
        if number == NO_GROUP:
            return None
        self._sync()
        return self._roots[number]

    def roots(self) -> Sequence[str]:
        """Return the gang of each group, by group number."""
        self._sync()
        return self._roots

    def roots_of(self, groups: Ints32) -> Ints32:
        """Return the positions in `root_keys` of the gangs to which groups belong."""
        self._sync()
        if len(self._root_places) != len(self._roots):
            places = {key: place for place, key in enumerate(dict.fromkeys(self._roots))}
            self.root_keys = list(places)
            self._root_places = np.array([places[key] for key in self._roots], dtype=np.int32)
        return self._root_places[groups]

    # Following the cluster --------------------------------------------------------------------------------------------

    def sync(self) -> None:
        """Follow the changes of the cluster, and call the watchers."""
        self._sync()

    def _sync(self) -> None:
        """Assign new groups to their gangs, and drop the records of gangs that have changed."""
        groups = self._cluster.groups
        if (
            self._read == groups.touched.length
            and self._objects_read == groups.changed_objects_dropped + len(groups.changed_objects)
            and self._renamed_read == groups.renamed.length
            and len(self._roots) == len(groups.keys)
        ):
            return
        if not (groups.touched.has_all_since(self._read) and groups.renamed.has_all_since(self._renamed_read)):
            self._clear()  # the logs no longer have all that happened since
        if self._renamed_read != groups.renamed.length:
            renamed = set(groups.renamed.since(self._renamed_read).tolist())
            self._renamed_read = groups.renamed.length
            for number in sorted(renamed):
                if number < len(self._roots):
                    self._forget(number)
                    self._assign(number)
            self._root_places = np.zeros(0, dtype=np.int32)
        if self._objects_read != groups.changed_objects_dropped + len(groups.changed_objects):
            self._follow_objects()
        if self._read != groups.touched.length:
            touched = set(groups.touched.since(self._read).tolist())
            self._read = groups.touched.length
            for number in touched:
                if number < len(self._roots) and self._roots[number]:
                    self._changed(self._roots[number])
        for number in range(len(self._roots), len(groups.keys)):
            self._roots.append("")
            self._assign(number)

    def _assign(self, number: int) -> None:
        """Assign a group to its gang; a number that was given back has no gang."""
        group = self._cluster.groups.keys[number]
        find = self._groups_reading.recorder(number, self._find)
        key = self._roots[number] = root_group(group, find) if group else ""
        if group:
            self._groups_of.setdefault(key, []).append(number)
            self._changed(key)

    def _forget(self, number: int) -> None:
        """Take a number that was given back from its gang."""
        key = self._roots[number]
        if key:
            self._groups_of[key].remove(number)
            self._changed(key)
            if not self._groups_of[key]:
                del self._groups_of[key], self._versions[key]
                self._unread.discard(key)
                self._stated_priorities.pop(key, None)
                self._gangs_reading.forget(key)

    def _follow_objects(self) -> None:
        """Drop what was read from objects that have changed."""
        groups = self._cluster.groups
        first = self._objects_read - groups.changed_objects_dropped
        self._objects_read = groups.changed_objects_dropped + len(groups.changed_objects)
        if first < 0:
            self._clear()
            return
        changed = dict.fromkeys(groups.changed_objects[first:])
        for number in sorted({number for obj in changed for number in self._groups_reading.of(obj)}):
            if groups.keys[number]:
                key = root_group(groups.keys[number], self._groups_reading.recorder(number, self._find))
                if key != self._roots[number]:
                    self._regroup(number, key)
        for key in dict.fromkeys(key for obj in changed for key in self._gangs_reading.of(obj)):
            self._changed(key)

    def _regroup(self, number: int, key: str) -> None:
        """Move a group to another gang."""
        old = self._roots[number]
        self._groups_of[old].remove(number)
        self._roots[number] = key
        self._groups_of.setdefault(key, []).append(number)
        self._root_places = np.zeros(0, dtype=np.int32)
        self._changed(old)
        self._changed(key)

    def _changed(self, key: str) -> None:
        self._records.pop(key, None)
        self._unread.add(key)
        self._changes += 1
        self._versions[key] = self._changes
        for notify in self._watchers:
            notify(key)

    def _clear(self) -> None:
        keys = list(self._groups_of)
        self._roots, self._groups_of, self._versions = [], {}, {}
        self._root_places = np.zeros(0, dtype=np.int32)
        self._gangs_reading, self._groups_reading = ObjectReaders(), ObjectReaders()
        for key in keys:
            self._changed(key)

    def rows(self, key: str) -> list[int]:
        """Return the rows of all pods of a gang, sorted."""
        self._sync()
        members = self._cluster.groups.members
        return sorted(row for number in self._groups_of.get(key, ()) for row in members[number])

    def keys(self) -> list[str]:
        """Return all gangs that have pods, sorted."""
        self._sync()
        return sorted({key for key, members in zip(self._roots, self._cluster.groups.members, strict=True) if members})

    def version(self, key: str) -> int:
        """Return a number that changes when a pod of the gang, or an object that describes the gang, changes."""
        self._sync()
        return self._versions.get(key, 0)

    def gang(self, key: str) -> Gang:
        """Return a gang's record, read from its group objects and pods."""
        self._sync()
        record = self._records.get(key)
        if record is None:
            find = self._gangs_reading.recorder(key, self._find)
            record = self._records[key] = read_gang(key, self._pods(self.rows(key)), find)
        return record

    def lowest_stated_priority(self) -> int | None:
        """Return the lowest priority that a gang states for itself; it costs the gangs that have changed."""
        self._sync()
        while self._unread:
            key = self._unread.pop()
            priority = self.gang(key).priority if key in self._groups_of else None
            if priority is None:
                self._stated_priorities.pop(key, None)
            else:
                self._stated_priorities[key] = priority
        return min(self._stated_priorities.values(), default=None)

    def records(self, places: Sequence[int]) -> list[Gang]:
        """Return the records of many gangs, by their positions in `root_keys`."""
        self._sync()
        find_record, keys = self._records.get, self.root_keys
        return [find_record(keys[place]) or self.gang(keys[place]) for place in places]

    def priority(self, key: str) -> int:
        """Return the priority of a gang: its stated priority, or the highest priority of its pods."""
        stated = self.gang(key).priority
        return stated if stated is not None else int(self._cluster.pods.priority[self.rows(key)].max())

    def state(self, key: str, waiting: Sequence[int]) -> GangState:
        """Return the state of a gang, with the waiting pods that may be placed."""
        return self.state_with(key, self.running(key), waiting)

    def running(self, key: str) -> tuple[int, ...]:
        """Return the rows of a gang's pods that are on nodes and not terminating."""
        nodes, terminating = self._cluster.pods.node, self._cluster.pods.terminating
        return tuple(row for row in self.rows(key) if nodes[row] >= 0 and not terminating[row])

    def state_with(self, key: str, running: Sequence[int], waiting: Sequence[int] = ()) -> GangState:
        """Return the state of a gang if exactly the pods in some rows run."""
        gang = self.gang(key)
        # A minimum that is counted from the unfinished pods shrinks when a pod finishes.
        succeeded = () if gang.is_counted else self._succeeded(key)
        return GangState(gang, tuple(running), tuple(waiting), self.parts_of(key), succeeded)

    def _succeeded(self, key: str) -> tuple[str, ...]:
        """Return the parts of the members that have succeeded."""
        finished = self._cluster.groups.finished
        if not finished:
            return ()
        groups = self._groups_of.get(key, ())
        return tuple(part_of(each, key) for number in groups for each in finished.get(number, {}).values())

    def parts_of(self, key: str) -> dict[int, str]:
        """Return the name of the part of each pod of a gang, by row."""
        membership_by_row = self._cluster.groups.membership_by_row
        return {row: part_of(membership_by_row[row], key) for row in self.rows(key)}

    def _pods(self, rows: Iterable[int]) -> list[Pod]:
        return [pod for pod in map(self._cluster.pods.objects.__getitem__, rows) if pod is not None]

    def _find(self, kind: str, key: str) -> Object | None:
        return self._cluster.objects[kind].get(key)


_GANGS: AttachedCache[Cluster, Gangs] = AttachedCache(Gangs)
