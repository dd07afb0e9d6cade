"""Room checks: whether a waiting turn may have room now, so that an attempt is worth its cost.

Contract: a check is a necessary condition for turns that wait for room alone. If `may_start` returns False, an attempt
would fail. Where few nodes have changed since they were found to have room, those nodes are looked at; otherwise the
copies of each kind of the turn's pods that fit the cluster are counted (`placement.capacity`). If the turn may evict
pods, and there are pods to evict, the attempt itself must decide.
"""

from __future__ import annotations

from collections import Counter

from tutti.engine.session.context import SessionContext
from tutti.engine.session.plan import Turn
from tutti.engine.session.waiting.failure_kind import FailureKind
from tutti.engine.session.waiting.possible_victims import PossibleVictims

_MAX_ROWS = 8
"""Up to this many nodes are looked at one by one."""


class RoomCheck:
    """Checks of one session; results are kept until the cluster changes."""

    def __init__(self, context: SessionContext) -> None:
        self._cluster, self._evaluator = context.cluster, context.engine.evaluator
        self._capacity, self._victims = context.placer.capacity, PossibleVictims.of(context.cluster)
        self._version = (-1, -1, -1)
        self._copies: dict[tuple[int, int, bool], int] = {}
        """How many copies fit, by spec, priority, and whether held room counts as in use."""

    def may_start(self, turn: Turn, kind: FailureKind, *, count_holds: bool) -> bool:
        """Return whether enough pods of a turn may fit; with `count_holds`, room that is held counts as in use."""
        version = self._cluster.room_version
        if self._version != version:
            self._version = version
            self._copies.clear()
        has_room = self._rows_have_room(turn, kind, count_holds) if kind.needed == 1 else None
        if has_room is None:
            has_room = self._has_room(turn, kind, count_holds)
        return has_room or any(each.preempts and self._victims.exist_below(each.priority) for each in kind.classes)

    def _rows_have_room(self, turn: Turn, kind: FailureKind, count_holds: bool) -> bool | None:
        """Return whether a pod fits a node that had room, or has changed since; None if these are many."""
        cluster, known = self._cluster, kind.rows_with_room
        touched, released = cluster.touched, cluster.hold_index.touched
        first, _, first_released = kind.room_found_at
        if known is None or touched.length - first + released.length - first_released > _MAX_ROWS:
            return None
        if not touched.has_all_since(first) or not released.has_all_since(first_released):
            return None
        rows = known.union(touched.since(first).tolist(), released.since(first_released).tolist())
        # The pods of a gang may differ: the room that is held from none of them counts.
        priority = max(int(cluster.pods.priority[cluster.pods.row_of[pod]]) for pod in turn.pods)
        held = cluster.hold_index.room(priority) if count_holds else None
        return any(self._evaluator.has_room(each.spec, row, held) for each in kind.classes for row in rows)

    def _has_room(self, turn: Turn, kind: FailureKind, count_holds: bool) -> bool:
        """Return whether enough pods of a turn fit without evictions."""
        pods, rows, counts = self._cluster.pods, dict[tuple[int, int], int](), Counter[tuple[int, int]]()
        for pod in turn.pods:
            row = pods.row_of[pod]
            kind_of_pod = int(pods.spec[row]), int(pods.priority[row])
            rows.setdefault(kind_of_pod, row)
            counts[kind_of_pod] += 1
        fitting = 0
        for kind_of_pod, row in rows.items():
            fitting += min(self._fitting_copies(*kind_of_pod, row, count_holds), counts[kind_of_pod])
            if fitting >= kind.needed:
                return True
        return False

    def _fitting_copies(self, spec: int, priority: int, row: int, count_holds: bool) -> int:
        key = spec, priority, count_holds
        copies = self._copies.get(key)
        if copies is None:
            incoming = self._evaluator.incoming_pod(row)
            copies = self._copies[key] = int(self._capacity.copies(incoming, count_holds=count_holds).sum())
        return copies
