"""Pending turns: the turns of all pending pods, kept current by the cluster's log of changed pods.

Contract: `sync` costs the pods and gangs that changed since the last call, not the cluster. After it, `turns` has the
same turns as `queue_order.sort_into_turns` gives for all pending pods, and the result says which of them are new,
changed or gone. A rollback of the cluster is a change like any other: the next `sync` follows it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tutti.cluster.cluster import Cluster
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import NotConsidered, Turn, surplus_name
from tutti.engine.session.queue_order import creation_time, gang_turns, not_considered


class TurnChanges(NamedTuple):
    """What has changed since the last `sync`, by names of turns."""

    changed: set[str]
    """New turns, and turns whose pods or group changed."""
    removed: set[str]
    not_considered: list[NotConsidered]
    """Pods that the scheduler does not try, as far as that is new."""
    gangs: set[str]
    """Gangs of which a pod or a group object has changed."""


class PendingTurns:
    """See the module's docstring."""

    def __init__(self, cluster: Cluster, profile: Profile) -> None:
        self._cluster, self._profile = cluster, profile
        self._gangs = Gangs.of(cluster)
        self._gangs.watch(self._note_gang)
        self._log_position = -1
        self._gang_of_row: dict[int, tuple[str, str | None]] = {}
        """The key and the gang of the pending pod in each row; only pods that the scheduler tries."""
        self._changed_gangs: set[str] = set()
        self.turns: dict[str, Turn] = {}
        """By name."""
        self.not_considered: dict[str, NotConsidered] = {}
        """By pod key."""

    def serves(self, profile: Profile) -> bool:
        """Return whether the turns are those of a profile."""
        return (profile.scheduler_name, profile.gates) == (self._profile.scheduler_name, self._profile.gates)

    def _note_gang(self, key: str) -> None:
        self._changed_gangs.add(key)

    def sync(self) -> TurnChanges:
        """Follow the changes of the cluster."""
        changes = TurnChanges(set(), set(), [], set())
        touched = self._cluster.pods.touched
        self._gangs.sync()
        if self._log_position != touched.length:
            if self._log_position < 0 or not touched.has_all_since(self._log_position):
                rows: Collection[int] = range(self._cluster.pods.length)
            else:
                rows = set(touched.since(self._log_position).tolist())
            self._log_position = touched.length
            # First forget, then add: a pod that was created again may have another row than before.
            for row in rows:
                self._forget_row(row, changes)
            for row in rows:
                self._add_row(row, changes)
        while self._changed_gangs:
            gang = self._changed_gangs.pop()
            changes.gangs.add(gang)
            self._sync_gang(gang, changes)
        changed = {name for name in changes.changed if name in self.turns}
        removed = {name for name in changes.removed if name not in self.turns}
        return TurnChanges(changed, removed, changes.not_considered, changes.gangs)

    def _forget_row(self, row: int, changes: TurnChanges) -> None:
        """Forget what was known of the pod in a row."""
        pods = self._cluster.pods
        known = self._gang_of_row.pop(row, None)
        if known is not None:
            self._forget(known, changes)
        elif pods.group[row] != NO_GROUP:  # a bound pod began to terminate, or has just been bound elsewhere
            gang = self._gangs.key_of(row)
            if gang is not None:
                changes.gangs.add(gang)
        if pods.objects[row] is None or pods.node_names[row] is not None:
            self.not_considered.pop(pods.keys[row], None)

    def _add_row(self, row: int, changes: TurnChanges) -> None:
        """Add the pod in a row if it is pending."""
        pods = self._cluster.pods
        pod = pods.objects[row]
        if pod is None or pods.node_names[row] is not None:
            return
        key, reason = pods.keys[row], not_considered(pod, self._profile)
        if reason is not None:
            if self.not_considered.get(key) != reason:
                self.not_considered[key] = reason
                changes.not_considered.append(reason)
            return
        self.not_considered.pop(key, None)
        gang = None if pods.group[row] == NO_GROUP else self._gangs.key_of(row)
        self._gang_of_row[row] = key, gang
        if gang is not None:
            self._changed_gangs.add(gang)
        else:
            self.turns[key] = Turn((-(pod.spec.priority or 0), False, creation_time(pod), key), (key,))
            changes.changed.add(key)

    def _forget(self, known: tuple[str, str | None], changes: TurnChanges) -> None:
        key, gang = known
        if gang is not None:
            self._changed_gangs.add(gang)
        else:
            self.turns.pop(key, None)
            changes.removed.add(key)

    def _sync_gang(self, gang: str, changes: TurnChanges) -> None:
        """Make the turns of a gang again, from its pending pods."""
        pods, created = self._cluster.pods, []
        for row in self._gangs.rows(gang):
            known, pod = self._gang_of_row.get(row), pods.objects[row]
            if known is None or pod is None:
                continue
            if known[1] != gang:  # its group belongs to another gang now
                self._gang_of_row[row] = known[0], gang
                if known[1] is not None:
                    self._changed_gangs.add(known[1])
            created.append((creation_time(pod), known[0]))
        turns = gang_turns(self._gangs, gang, sorted(created)) if created else []
        names = {turn.name for turn in turns}
        for name in (f"gang/{gang}", surplus_name(gang)):
            if name not in names and self.turns.pop(name, None) is not None:
                changes.removed.add(name)
        for turn in turns:
            self.turns[turn.name] = turn
            changes.changed.add(turn.name)
