"""How gangs stand: which of their pods run, which wait, and what they still need.

Contract: `Gangs` follows one cluster. A gang's record is read again when its pods or group objects have changed, and
only then. Rows are rows of the cluster's pod table. A pod that names no group is a gang of one and has no record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints32
from tutti.cluster.groups import NO_GROUP
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.kube.gangs.gang import Gang, GangPart, GangTopology
from tutti.kube.gangs.reader import part_of, read_gang, root
from tutti.kube.objects import Object, Pod
from tutti.kube.times import micros

NEW = 2**63 - 1
"""When something was created that has no creation time: after everything else."""


class Need(msgspec.Struct, frozen=True, gc=False):
    """What a gang, or a part of one, lacks: so many of the pods that wait, near to those that run."""

    name: str
    lack: int
    """How many pods are needed at least, those of parts included."""
    waiting: tuple[int, ...]
    """The pods that are in no part."""
    running: tuple[int, ...]
    """All pods that run, those of parts included."""
    topology: GangTopology = GangTopology()
    parts: tuple[Need, ...] = ()
    parts_needed: int = 0
    """How many of the parts that lack something must get it."""

    @property
    def least(self) -> int:
        """How many pods this means at the very least, the parts' needs counted."""
        if not self.parts:
            return self.lack
        lacking = sorted(part.least for part in self.parts if part.least)
        return max(self.lack, sum(lacking[: self.parts_needed]))

    @property
    def everybody(self) -> tuple[int, ...]:
        """All pods that wait, those of parts included."""
        if not self.parts:
            return self.waiting
        return (*self.waiting, *(row for part in self.parts for row in part.everybody))

    @property
    def has_pods(self) -> bool:
        """Whether there are pods enough, in every part that must reach its minimum."""
        if not self.parts:
            return self.lack <= len(self.waiting)
        ready = sum(1 for part in self.parts if part.least and part.has_pods)
        return self.lack <= len(self.everybody) and ready >= self.parts_needed

    @property
    def prefers(self) -> bool:
        """Whether it, or a part of it, prefers some places to others."""
        return bool(self.topology.preferred) or any(part.prefers for part in self.parts)

    @property
    def takes_all(self) -> bool:
        """Whether every part that lacks something must get it."""
        return self.parts_needed >= sum(1 for part in self.parts if part.least)


class GangState(msgspec.Struct, frozen=True, gc=False):
    """A gang with its pods as they are now."""

    gang: Gang
    running: tuple[int, ...]
    """On nodes, and not about to leave."""
    waiting: tuple[int, ...]
    """Pending and free to start, in the order in which they are taken."""
    part_of: dict[int, str]

    def need(self) -> Need:
        """What the gang lacks to reach its minimums."""
        gang = self.gang
        return self._need(GangPart(gang.key, gang.minimum, gang.topology, gang.parts, gang.parts_needed), whole=True)

    def _need(self, part: GangPart, *, whole: bool = False) -> Need:
        inner = tuple(self._need(each) for each in part.parts)
        below = set(names_below(part))
        if whole:
            running = self.running
            waiting = tuple(row for row in self.waiting if self.part_of[row] not in below) if below else self.waiting
        else:
            running = tuple(row for row in self.running if self.part_of[row] == part.name or self.part_of[row] in below)
            waiting = tuple(row for row in self.waiting if self.part_of[row] == part.name)
        wanted = len(inner) if part.parts_needed is None else part.parts_needed
        needed = max(wanted - sum(1 for each in inner if not each.least), 0)
        return Need(part.name, max(part.minimum - len(running), 0), waiting, running, part.topology, inner, needed)

    def one_more(self, row: int) -> Need:
        """The need for one more pod of a gang, where it may run."""
        gang, inner = self.gang, None
        for part in reversed(_path(gang.parts, self.part_of[row])):
            below = {part.name, *names_below(part)}
            running = tuple(r for r in self.running if self.part_of[r] in below)
            if inner is None:
                inner = Need(part.name, 1, (row,), running, part.topology)
            else:
                inner = Need(part.name, 0, (), running, part.topology, (inner,), 1)
        if inner is None:
            return Need(gang.key, 1, (row,), self.running, gang.topology)
        return Need(gang.key, 0, (), self.running, gang.topology, (inner,), 1)

    def everyone(self) -> Need:
        """The need for all pods that wait, whatever the minimums."""
        return _for_all(self.need())

    @property
    def surplus(self) -> int:
        """How many more pods may start once the minimums are reached."""
        most = self.gang.maximum
        return len(self.waiting) if most is None else max(most - len(self.running), 0)


def _path(parts: Iterable[GangPart], name: str) -> list[GangPart]:
    """Give the parts from the outermost to the one of a name; none when there is no such part."""
    for part in parts:
        if part.name == name:
            return [part]
        below = _path(part.parts, name)
        if below:
            return [part, *below]
    return []


def _for_all(need: Need) -> Need:
    parts = tuple(_for_all(part) for part in need.parts)
    lack = len(need.everybody)
    needed = sum(1 for part in parts if part.least)
    return Need(need.name, lack, need.waiting, need.running, need.topology, parts, needed)


def names_below(part: GangPart) -> Iterable[str]:
    """Give the names of all parts of a part."""
    for each in part.parts:
        yield each.name
        yield from names_below(each)


class Gangs:
    """See the module's contract."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._objects_version = -1
        self._read = self._objects_read = 0
        self._roots: list[str] = []
        """The gang of each group."""
        self._leaves: dict[str, list[int]] = {}
        """The groups of each gang."""
        self._known: dict[str, Gang] = {}
        self.caches: dict[Any, Any] = {}
        """The values of attached caches (`attached_cache`)."""
        self._watchers: list[Callable[[str], None]] = []
        self.root_keys: list[str] = []
        self._root_places: Ints32 = np.zeros(0, dtype=np.int32)

    @staticmethod
    def of(cluster: Cluster) -> Gangs:
        """The gangs of a cluster; what was read of them before is still known."""
        return _GANGS.of(cluster)

    def watch(self, changed: Callable[[str], None]) -> None:
        """Call a function with the key of each gang of which a pod has changed."""
        self._watchers.append(changed)

    def key_of(self, row: int) -> str | None:
        """The gang of the pod in a row; None for one on its own."""
        number = int(self._cluster.pods.group[row])
        if number == NO_GROUP:
            return None
        self._follow()
        return self._roots[number]

    def roots(self) -> Sequence[str]:
        """The gang of each group, by the group's number."""
        self._follow()
        return self._roots

    def roots_of(self, groups: Ints32) -> Ints32:
        """The places in `root_keys` of the gangs to which groups belong."""
        self._follow()
        if len(self._root_places) != len(self._roots):
            places = {key: place for place, key in enumerate(dict.fromkeys(self._roots))}
            self.root_keys = list(places)
            self._root_places = np.array([places[key] for key in self._roots], dtype=np.int32)
        return self._root_places[groups]

    def _follow(self) -> None:
        """Find the gangs to which new groups belong, and forget what was read of gangs that have changed."""
        groups = self._cluster.groups
        if self._read != groups.touched.length:
            for number in set(groups.touched.since(self._read).tolist()):
                if number < len(self._roots):
                    self._known.pop(self._roots[number], None)
                    for changed in self._watchers:
                        changed(self._roots[number])
            self._read = groups.touched.length
        if self._objects_version != groups.objects_version or self._has_moved():
            self._objects_version, self._objects_read = groups.objects_version, groups.objects_touched.length
            self._forget()
        for number in range(len(self._roots), len(groups.keys)):
            key = root(groups.keys[number], self._find)
            self._roots.append(key)
            self._known.pop(key, None)
            self._leaves.setdefault(key, []).append(number)

    def _has_moved(self) -> bool:
        """Say whether a group whose object changed belongs to another gang now."""
        groups = self._cluster.groups
        if self._objects_read == groups.objects_touched.length:
            return False
        changed = set(groups.objects_touched.since(self._objects_read).tolist())
        self._objects_read = groups.objects_touched.length
        return any(n < len(self._roots) and self._roots[n] != root(groups.keys[n], self._find) for n in changed)

    def _forget(self) -> None:
        self._roots, self._leaves, self._known = [], {}, {}
        self._root_places = np.zeros(0, dtype=np.int32)

    def rows(self, key: str) -> list[int]:
        """The rows of all pods of a gang."""
        self._follow()
        members = self._cluster.groups.members
        return sorted(row for number in self._leaves.get(key, ()) for row in members[number])

    def keys(self) -> list[str]:
        """All gangs that have pods."""
        self._follow()
        return sorted({key for key, members in zip(self._roots, self._cluster.groups.members, strict=True) if members})

    def version(self, key: str) -> tuple[int, ...]:
        """What moves when a pod of a gang, or an object that says something about groups, changes."""
        self._follow()
        groups = self._cluster.groups
        return groups.objects_version, *(groups.version[number] for number in self._leaves.get(key, ()))

    def gang(self, key: str) -> Gang:
        """What a gang's group says."""
        self._follow()
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = read_gang(key, self._pods(self.rows(key)), self._find)
        return known

    def records(self, places: Sequence[int]) -> list[Gang]:
        """What the groups of many gangs say, by their places in `root_keys`."""
        self._follow()
        known, keys = self._known.get, self.root_keys
        return [known(keys[place]) or self.gang(keys[place]) for place in places]

    def standing(self, key: str, waiting: Sequence[int]) -> GangState:
        """A gang as it is now, with those of its pods that may be tried."""
        pods = self._cluster.pods
        running = tuple(row for row in self.rows(key) if pods.node[row] >= 0 and not pods.terminating[row])
        return GangState(self.gang(key), running, tuple(waiting), self.parts_of(key))

    def parts_of(self, key: str) -> dict[int, str]:
        """The part in which each pod of a gang is, by row."""
        membership_by_row = self._cluster.groups.membership_by_row
        return {row: part_of(membership_by_row[row], key) for row in self.rows(key)}

    def _pods(self, rows: Iterable[int]) -> list[Pod]:
        return [pod for pod in map(self._cluster.pods.objects.__getitem__, rows) if pod is not None]

    def _find(self, kind: str, key: str) -> Object | None:
        return self._cluster.objects[kind].get(key)


def created(pod: Pod) -> int:
    """When a pod was created, in microseconds."""
    stamp = pod.metadata.creation_timestamp
    return micros(stamp) if stamp else NEW


_GANGS: AttachedCache[Cluster, Gangs] = AttachedCache(Gangs)
