"""Room checks: whether a waiting turn may have room now, so that an attempt is worth its cost.

Contract: a check is a necessary condition for turns that wait for room alone. If `may_start` returns False, an attempt
would fail. A check counts, for each kind of the turn's pods, the copies that fit the cluster by arithmetic
(`placement.capacity`); if the turn may evict pods and there are pods to evict, the attempt itself must decide.
"""

from __future__ import annotations

import numpy as np

from tutti.engine.session.context import SessionContext
from tutti.engine.session.plan import Turn
from tutti.engine.session.waiting.failure_kind import FailureKind


class RoomCheck:
    """Checks of one session; results are kept until the cluster changes."""

    def __init__(self, context: SessionContext) -> None:
        self._cluster, self._evaluator = context.cluster, context.engine.evaluator
        self._capacity, self._gangs = context.placer.capacity, context.gangs
        self._version = (-1, -1)
        self._copies: dict[tuple[int, int, bool], int] = {}
        """How many copies fit, by spec, priority, and whether held room counts as in use."""
        self._has_victims: dict[int, bool] = {}
        """By priority: whether a pod is on a node that is terminating, or whose priority or gang may be lower."""

    def may_start(self, turn: Turn, kind: FailureKind, *, count_holds: bool) -> bool:
        """Return whether enough pods of a turn may fit; with `count_holds`, room that is held counts as in use."""
        version = self._cluster.room_version
        if version == kind.room_found_at and kind.needed == 1 and not self._cluster.holds:
            return True
        if self._version != version:
            self._version = version
            self._copies.clear()
            self._has_victims.clear()
        return self._has_room(turn, kind, count_holds) or any(
            each.preempts and self._may_evict(each.priority) for each in kind.classes
        )

    def _has_room(self, turn: Turn, kind: FailureKind, count_holds: bool) -> bool:
        """Return whether enough pods of a turn fit without evictions."""
        pods, rows, counts = self._cluster.pods, dict[int, int](), dict[int, int]()
        for pod in turn.pods:
            row = pods.row_of[pod]
            spec = int(pods.spec[row])
            rows.setdefault(spec, row)
            counts[spec] = counts.get(spec, 0) + 1
        fitting = 0
        for spec, row in rows.items():
            fitting += min(self._fitting_copies(spec, row, count_holds), counts[spec])
            if fitting >= kind.needed:
                return True
        return False

    def _fitting_copies(self, spec: int, row: int, count_holds: bool) -> int:
        key = spec, int(self._cluster.pods.priority[row]), count_holds
        copies = self._copies.get(key)
        if copies is None:
            incoming = self._evaluator.incoming_pod(row)
            copies = self._copies[key] = int(self._capacity.copies(incoming, count_holds=count_holds).sum())
        return copies

    def _may_evict(self, priority: int) -> bool:
        has_victims = self._has_victims.get(priority)
        if has_victims is None:
            pods, length = self._cluster.pods, self._cluster.pods.length
            victims = (pods.priority[:length] < priority) | pods.terminating[:length]
            lowest = self._gangs.lowest_stated_priority()
            has_victims = (lowest is not None and lowest < priority) or bool(
                np.any(victims & (pods.node[:length] >= 0))
            )
            self._has_victims[priority] = has_victims
        return has_victims
