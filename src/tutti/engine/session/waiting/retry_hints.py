"""Retry hints: which waiting pods may fit on the nodes that have changed.

Contract: a hint is a necessary condition. If a class of pods that only nodes and free resources keep pending fits now,
with or without evictions, and did not fit before, then `with_room` names it for the rows that have changed since. Rows
are checked by arithmetic: the free amounts, with the room of terminating pods and of pods of lower priority for pods
that may evict them, and the verdicts of node plugins. Room that is held for others is not deducted. A gang is evicted
as a whole, so that a change of a gang is a change of all rows on which its pods run.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile

_MAX_CELLS = 400_000
"""Largest number of comparisons (classes x rows); beyond it, the largest amounts of all rows stand for each row."""
_MAX_LEVELS = 16
"""Largest number of priorities for which the room of lower pods is summed apart."""


class RoomClass(NamedTuple):
    """Waiting pods that differ in nothing that decides whether a node has room for them."""

    spec: int
    """The number of the spec class."""
    priority: int
    preempts: bool


class RoomHints:
    """The waiting classes, with their requests as columns."""

    def __init__(self) -> None:
        self._users: dict[RoomClass, int] = {}
        self._classes: list[RoomClass] | None = []
        self._by_level: dict[int | None, list[int]] = {}
        """The positions of the classes that may evict pods below each priority; None for those that evict none."""
        self._requests: Ints = np.zeros((0, 0), dtype=np.int64)
        self._requests_for: tuple[Profile | None, int] = (None, -1)

    def __len__(self) -> int:
        return len(self._users)

    def add(self, room_class: RoomClass) -> None:
        """Add a waiting class, or one more user of it."""
        users = self._users[room_class] = self._users.get(room_class, 0) + 1
        if users == 1:
            self._classes = None

    def remove(self, room_class: RoomClass) -> None:
        """Remove one user of a class."""
        self._users[room_class] -= 1
        if not self._users[room_class]:
            del self._users[room_class]
            self._classes = None

    def with_room(self, engine: Engine, rows: Rows) -> dict[RoomClass, Rows]:
        """Return the classes of which a pod may fit on one of some node rows, with the rows where it may."""
        nodes = engine.cluster.nodes
        rows = np.array(sorted(set(rows.tolist())), dtype=np.intp)  # for few rows much faster than np.unique
        rows = rows[nodes.on[rows]]
        if not self._users or not len(rows):
            return {}
        classes, requests = self._columns(engine)
        fitting = _rows_with_room(engine.cluster, self._by_level, requests, rows)
        numbers = np.flatnonzero(fitting.any(axis=1)).tolist()
        found = ((classes[i], rows[fitting[i]]) for i in numbers)
        return {each: where for each, where in found if self._is_accepted(engine, each, where)}

    def _columns(self, engine: Engine) -> tuple[list[RoomClass], Ints]:
        """Return the classes, and their requests by class and resource."""
        cluster = engine.cluster
        key = engine.profile, len(cluster.resources)
        if self._classes is None or self._requests_for[0] is not key[0] or self._requests_for[1] != key[1]:
            self._classes = sorted(self._users)
            self._by_level = _by_level(self._classes)
            self._requests_for = key
            self._requests = np.zeros((len(self._classes), len(cluster.resources)), dtype=np.int64)
            for number, each in enumerate(self._classes):
                spec = cluster.specs.classes.get(each.spec)
                for resource, amount in engine.evaluator.spec_requests(spec) if spec is not None else ():
                    self._requests[number, resource] = amount
        return self._classes, self._requests

    @staticmethod
    def _is_accepted(engine: Engine, room_class: RoomClass, rows: Rows) -> bool:
        # A class whose pods are gone may have been collected before the queue has noticed.
        spec = engine.cluster.specs.classes.get(room_class.spec)
        return spec is not None and engine.evaluator.node_plugins_accept(spec, rows)


def _by_level(classes: list[RoomClass]) -> dict[int | None, list[int]]:
    """Return the positions of classes by the priority below which they may evict pods; None if they evict none."""
    levels = sorted({each.priority for each in classes if each.preempts})[-_MAX_LEVELS:]
    by_level: dict[int | None, list[int]] = {}
    for number, each in enumerate(classes):
        # A class of a lower priority than all levels gets the room of the lowest: still a necessary condition.
        level = max(each.priority, levels[0]) if each.preempts else None
        by_level.setdefault(level, []).append(number)
    return by_level


def _rows_with_room(cluster: Cluster, by_level: dict[int | None, list[int]], requests: Ints, rows: Rows) -> Bools:
    """Return for each class and row whether its pods have room."""
    free = cluster.nodes.alloc.take(rows, axis=1) - cluster.nodes.used.take(rows, axis=1)
    if len(requests) * len(rows) > _MAX_CELLS:
        free = np.broadcast_to(free.max(axis=1, keepdims=True), free.shape)
    fits = np.zeros((len(requests), len(rows)), dtype=bool)
    for level, numbers in by_level.items():
        room = free if level is None else free + _lower_usage(cluster, rows, level)
        fits[numbers] = _has_room(requests[numbers], room)
    return fits


def _has_room(requests: Ints, room: Ints) -> Bools:
    """Return for each request and row whether the room suffices; a resource that is not requested does not count."""
    fits = np.ones((len(requests), room.shape[1]), dtype=bool)
    for amounts, free in zip(requests.T, room, strict=False):
        if amounts.any():
            fits &= (amounts[:, np.newaxis] <= free) | (amounts == 0)[:, np.newaxis]
    return fits


def _lower_usage(cluster: Cluster, rows: Rows, priority: int) -> Ints:
    """Return the amounts that terminating pods and pods of lower priority use, by resource and row.

    The priority of a member of a gang is its own, or that which the gang states, if that is lower.
    """
    pods = cluster.pods
    column = np.full(cluster.nodes.size + 1, -1)
    column[rows] = np.arange(len(rows))
    if len(rows) <= 64:
        on_rows = np.array([pod for row in rows.tolist() for pod in cluster.pods_on_row[row]], dtype=np.intp)
    else:
        on_rows = np.flatnonzero(column[pods.node[: pods.length]] >= 0)
    priorities = pods.priority[on_rows]
    lowest = Gangs.of(cluster).lowest_stated_priority()
    if lowest is not None:
        priorities = np.where(pods.group[on_rows] == NO_GROUP, priorities, np.minimum(priorities, lowest))
    lower = on_rows[(priorities < priority) | pods.terminating[on_rows]]
    usage = np.zeros((len(cluster.resources), len(rows)), dtype=np.int64)
    amounts = cluster.usages.matrix[pods.usage[lower]]
    np.add.at(usage[: amounts.shape[1]].T, column[pods.node[lower]], amounts)
    return usage
