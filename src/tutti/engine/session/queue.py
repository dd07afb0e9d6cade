"""The queue: which turns failed, and when each is tried again.

A failed turn is tried again when a change may have cured the failure (`waiting_index`) and the backoff is over, which
doubles with every attempt; or when the turn's own pods or group have changed; or after `Patience.retry_after`, a turn
that waits for room alone only if arithmetic on all nodes finds room, or pods to evict. A paused turn is not tried,
whatever changes: a binding of its pods failed, its gang was undone lately, or its gang may still be growing.

Contract: a `Queue` belongs to one cluster and changes in place. `due_turns` costs what has changed since the last
session. The queue follows the cluster's marks: a rollback of the cluster undoes what sessions did to the queue since
the mark. `freeze` returns a record that can be stored; a queue made from a record for another cluster tries every turn
again when its backoff is over. Losing a queue costs one round of attempts, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from zlib import crc32

import numpy as np
from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.events import Event
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import GangPhase
from tutti.engine.placement.engine import Engine
from tutti.engine.session.partial_gangs import follow, next_undo, undo
from tutti.engine.session.plan import NotConsidered, Order, PartialGang, Turn, surplus_name
from tutti.engine.session.policy import Patience, Policy
from tutti.engine.session.queue_state import QueueRecord, QueueState
from tutti.engine.session.waiting.avoided_nodes import forget_old, nodes_avoided_by, note_failure
from tutti.engine.session.waiting.eviction_races import LostRaces, begin, node_events, preemptor_of, settle
from tutti.engine.session.waiting.failure_kind import FailureKind
from tutti.engine.session.waiting.growing_gangs import grows_until
from tutti.engine.session.waiting.pending_turns import PendingTurns
from tutti.engine.session.waiting.running_gangs import RunningGangs
from tutti.engine.session.waiting.spared_victims import SparedVictim, forget_expired, spare
from tutti.engine.session.waiting.starving_turns import StarvingTurns
from tutti.engine.session.waiting.waiting_index import WaitingIndex
from tutti.engine.session.waiting.waiting_turn import WaitingTurn


class Queue(QueueState):
    """See the module's docstring."""

    def __init__(self, cluster: Cluster, record: QueueRecord | None = None) -> None:
        """Make an empty queue, or a queue from the record of another cluster's queue."""
        super().__init__(record or QueueRecord())
        self.cluster = cluster
        self._last_now = 0
        """The time of the last session."""
        self._pause_ends: int | None = None
        """When the first turn that is due but paused is tried."""
        self._index_marks: list[tuple[WaitingIndex | None, int]] = []
        """For each open mark, the index and its version."""
        self._pending: PendingTurns | None = None
        self._untried: set[str] = set()
        """Pending turns that have neither failed nor been found to need nothing now."""
        self._changed: set[str] = set()
        """Waiting turns whose pods or group changed since they failed."""
        self._put_between_sessions: set[str] = set()
        """Turns whose bindings failed since the last `sync`: the next one looks whether they are still pending."""
        self._needs_nothing: dict[str, tuple[int, ...]] = {}
        """The versions of pending turns that were taken and had nothing to place, such as the surplus of a gang whose
        minimum waits. Trials of other turns of the gang are no reason to take them again."""
        self._noted_gangs: set[str] = set()
        """Gangs that were noted since the outermost mark: after a rollback they must be noted again."""
        self._noted_depth = 0
        """How many marks were open then."""
        self._unnoted_gangs = {*self.partial.whole, *self.partial.since}
        """Gangs to note in the next `sync`, whether they have changed or not."""
        self._index: WaitingIndex | None = None
        self._starving = StarvingTurns(0)
        self._running_gangs = RunningGangs(cluster)
        self._events: list[int] = []
        self._log_positions = (0, 0)
        cluster.attach(self)

    # Failed turns -----------------------------------------------------------------------------------------------------

    def put(self, name: str, entry: WaitingTurn, failure: FailureKind | None = None) -> None:
        """Record that a turn failed, with what may cure it; without a failure only the entry changes."""
        super().put(name, entry)
        self._untried.discard(name)
        self._changed.discard(name)
        if failure is not None and self._index is not None:
            self._index.put(name, entry, failure)
        self._starving.put(name, entry)

    def note_done(self, turn: Turn) -> None:
        """Remove a turn that was taken and did not fail: its pods are placed, or it needs nothing for now."""
        evictions = self.evictions_in_vain(turn)
        if evictions:
            self.races = begin(self.races, self.cluster, turn, LostRaces(evictions, node_events(self.cluster)))
        self.drop(turn.name)
        pods = self.cluster.pods
        if all(pods.node_names[pods.row_of[pod]] is None for pod in turn.pods):
            self._needs_nothing[turn.name] = self._need_version(turn)

    def drop(self, name: str) -> bool:
        """Remove a turn that no longer waits; return whether it was known."""
        self._untried.discard(name)
        self._changed.discard(name)
        self._needs_nothing.pop(name, None)
        was_known = super().drop(name)
        if was_known:
            self._starving.drop(name)
            if self._index is not None:
                self._index.drop(name)
        return was_known

    # Failed bindings and partial gangs --------------------------------------------------------------------------------

    def bind_failed(
        self, pod: str, node: str, message: str, *, now: int, patience: Patience, uid: str | None = None
    ) -> None:
        """Record that a planned binding failed; call this after `Unbind`.

        The turn that lacks the pod waits for its backoff, and the pod avoids the node for `Patience.avoided_for`. The
        backoff doubles with every plan that bound the pod in vain, however many pods of a gang failed with it, but not
        that of a partial gang. Nothing is recorded of a pod that is not pending: it is gone, another pod has its name,
        or a watch has reported it with a node.
        """
        row = self.cluster.pods.row_of.get(pod)
        if row is None or self.cluster.pods.node_names[row] is not None:
            return
        known_uid = self.cluster.pod(pod).metadata.uid
        if uid is not None and uid != known_uid:
            return
        self.avoided = note_failure(
            self.avoided, self.cluster, pod=pod, node=node, now=now, avoided_for=patience.avoided_for
        )
        gang = Gangs.of(self.cluster).key_of(row)
        is_short = gang is not None and Gangs.of(self.cluster).state(gang, ()).is_short
        name = pod if gang is None else f"gang/{gang}" if is_short else surplus_name(gang)
        previous, attempts = self.waiting.get(name), self.avoided[pod].failures
        entry = WaitingTurn(
            # What failed since the last plan of the turn belongs to that plan.
            since=previous.since if previous is not None else now,
            tried=previous.tried if previous is not None else now,
            attempts=1 if self._is_completed_soon(gang) else max(attempts, previous.attempts if previous else 1),
            message=f"binding to {node} failed: {message}",
            order=(-int(self.cluster.pods.priority[row]), name == surplus_name(gang or ""), 0, gang or pod),
            version=(),
            uid=known_uid if gang is None else None,
        )
        self._put_due(name, entry)

    def _put_due(self, name: str, entry: WaitingTurn) -> None:
        """Put a turn that is due when its backoff is over, whatever happens."""
        super().put(name, entry)
        self._untried.discard(name)
        self._starving.put(name, entry)
        self._put_between_sessions.add(name)
        if self._index is not None:
            self._index.put_hot(name, entry)

    def eviction_refused(self, preemptor: str, victim: SparedVictim | None = None) -> None:
        """Record that the server refused to evict a victim of a pod or gang.

        The eviction does not count as one in vain, and the next session gives back the room that is held for the pod or
        gang, which is due when its backoff is over. A `victim` is not chosen again until its time.
        """
        for name in (preemptor, f"gang/{preemptor}", surplus_name(preemptor)):
            entry = self.waiting.get(name)
            if entry is not None:
                self._index = None
                super().put(name, replace(entry, evictions=max(entry.evictions - 1, 0), waits_for_victims=False))
                self._end_holds(entry, preemptor)
                if victim is not None:
                    self.spared = spare(self.spared, name, victim)

    def _end_holds(self, entry: WaitingTurn, preemptor: str) -> None:
        """Let the next session release the room that is held for the pods of a waiting turn."""
        cluster, pods = self.cluster, [preemptor]
        if entry.uid is None:
            pods = [cluster.pods.keys[row] for row in Gangs.of(cluster).rows(preemptor)]
        for hold in filter(None, map(cluster.holds.get, pods)):
            cluster.apply(replace(hold, until=self._last_now))

    def _forget_spared(self, now: int) -> None:
        """Forget refused evictions that are old; their turns may evict those pods again."""
        kept, freed = forget_expired(self.spared, self.waiting, now=now)
        self._changed |= {name for name in freed if self.turn(name) is not None}
        if kept != self.spared:
            self.spared = kept

    def evictions_in_vain(self, turn: Turn) -> int:
        """Return how often a turn, and pods of its controller before it, have evicted others and did not start.

        Evictions from before the last change of nodes do not count, and none whose victims are overdue.
        """
        entry, lost = self.waiting.get(turn.name), self.races.lost
        if entry is not None and entry.evictions and entry.stuck_at is not None and entry.stuck_at <= self._last_now:
            entry = replace(entry, evictions=entry.evictions - 1)
        if not lost and (entry is None or not entry.evictions):
            return 0
        both = (entry, lost.get(preemptor_of(turn, self.cluster)) if lost else None)
        counted = [each for each in both if each is not None and each.evictions]
        now = node_events(self.cluster) if counted else ()
        return max((each.evictions for each in counted if each.evicted_at == now), default=0)

    def avoided_nodes(self, pods: Iterable[str], now: int) -> set[str]:
        """Return the nodes where a binding of one of some pods failed lately."""
        return nodes_avoided_by(pods, self.avoided, cluster=self.cluster, now=now) if self.avoided else set()

    def _note_gangs(self, gangs: set[str], now: int, patience: Patience) -> None:
        """Remember which gangs have run whole, and which are partial."""
        if self._index_marks:
            self._noted_gangs |= gangs
            self._noted_depth = len(self._index_marks)
        self.partial = follow(self.partial, self.cluster, gangs, now=now, patience=patience)

    def note_tried(self, turn: Turn, now: int) -> None:
        """Record that a turn was tried: if its gang is partial, the gang may be undone when its time is over."""
        gang, seen = turn.gang, self.partial
        if gang in seen.since and gang not in seen.tried and not turn.surplus:
            self.partial = replace(seen, tried={**seen.tried, gang: now})

    def _is_completed_soon(self, gang: str | None) -> bool:
        """Return whether a gang runs in part and was not undone or reported yet: its backoff does not grow."""
        if gang is None or gang in self.partial.undone:
            return False
        return gang in self.partial.since or Gangs.of(self.cluster).state(gang, ()).phase is GangPhase.PARTIAL

    def attempts_of(self, turn: Turn) -> int:
        """Return the number of attempts of a turn that fails now."""
        previous = self.waiting.get(turn.name)
        return 1 if previous is None or self._is_completed_soon(turn.gang) else previous.attempts + 1

    def undo_partial_gangs(self, now: int, patience: Patience, *, is_complete: bool) -> list[PartialGang]:
        """Return the gangs that were not completed in time, as far as that is new or has changed.

        `is_complete` says whether the session has reached all turns that are due.
        """

        def awaits_attempt(turn: Turn) -> bool:
            if not is_complete:
                return True
            entry, until = self.waiting.get(turn.name), self._paused_until(turn, patience, counts_undo=False)
            return max(until or 0, entry.backoff_ends(patience) if entry is not None else 0) > now

        self.partial, undone = undo(
            self.partial, self.cluster, self.turns, now=now, patience=patience, awaits_attempt=awaits_attempt
        )
        return undone

    # Paused turns -----------------------------------------------------------------------------------------------------

    def is_paused(self, turn: Turn, now: int, patience: Patience) -> bool:
        """Return whether a turn is not tried yet, whatever has changed; `next_due` knows when it is."""
        until = self._paused_until(turn, patience)
        if until is None or until <= now:
            return False
        self._pause_ends = until if self._pause_ends is None else min(until, self._pause_ends)
        return True

    def _paused_until(self, turn: Turn, patience: Patience, *, counts_undo: bool = True) -> int | None:
        """Return until when a turn is not tried, whatever changes; None if it is not paused."""
        entry, pause = self.waiting.get(turn.name), self.partial.pauses.get(turn.gang or "")
        times = [entry.backoff_ends(patience)] if entry is not None and not entry.version else []
        if pause is not None and counts_undo:
            times.append(pause.until)
        if turn.gang not in self.partial.whole:
            grown = grows_until(self.cluster, turn, quiet_for=patience.counted_quiet_for)
            times += [grown] if grown is not None else []
        return max(times, default=None)

    # What is due ------------------------------------------------------------------------------------------------------

    @property
    def turns(self) -> Mapping[str, Turn]:
        """All pending turns by name, as of the last `sync`."""
        return self._pending.turns if self._pending is not None else {}

    @property
    def not_considered(self) -> Mapping[str, NotConsidered]:
        """The pending pods that the scheduler does not try, by key, as of the last `sync`."""
        return self._pending.not_considered if self._pending is not None else {}

    def turn(self, name: str) -> Turn | None:
        """Return a pending turn, as of the last `sync`."""
        return self._pending.turns.get(name) if self._pending is not None else None

    def order_of(self, name: str) -> Order:
        """Return the place of a waiting turn in the queue, which may have changed since the turn failed."""
        turn = self.turn(name)
        return turn.order if turn is not None else self.waiting[name].order

    def sync(self, engine: Engine, now: int, patience: Patience) -> list[NotConsidered]:
        """Follow the cluster; return the pods that the scheduler does not try, as far as that is new."""
        if now < self._last_now:
            self._clock_went_back(now, patience)
        self._last_now = now
        if self._pending is None or not self._pending.serves(engine.profile):
            self._pending, self._index = PendingTurns(self.cluster, engine.profile), None
        changes = self._pending.sync()
        for name in (*changes.removed, *self._put_between_sessions):
            if name not in self.turns:
                self.drop(name)
        self._put_between_sessions.clear()
        if changes.gangs or self._unnoted_gangs:
            self._note_gangs(changes.gangs | self._unnoted_gangs, now, patience)
            self._unnoted_gangs = set()
        if self.avoided:
            self._forget_avoided(now, patience)
        if self.spared:
            self._forget_spared(now)
        if self.races.open:
            self.races = settle(self.races, self.cluster)
        if self._index is None or self._index.patience != patience:
            self._rebuild(patience)
        else:
            self._note_changed(changes.changed)
            self._note_needs(changes.gangs)
        assert self._index is not None
        self.note_changes(engine)
        self._note_running_gangs(engine, changes.gangs)
        self._index.note_time(now)
        self._starving.note_time(now)
        return changes.not_considered

    def _clock_went_back(self, now: int, patience: Patience) -> None:
        """Let nothing that is remembered lie in the future, or turns would wait for as long as the clock jumped."""
        for name, entry in list(self.waiting.items()):
            if entry.tried > now:
                super().put(name, replace(entry, tried=now, since=min(entry.since, now), no_reservation_before=0))
        latest = now + patience.avoided_for
        self.avoided = {
            pod: replace(
                nodes,
                until={node: min(until, latest) for node, until in nodes.until.items()},
                failed_at=min(nodes.failed_at, now),
            )
            for pod, nodes in self.avoided.items()
        }
        self.spared = {
            turn: tuple(replace(each, until=min(each.until, latest)) for each in victims)
            for turn, victims in self.spared.items()
        }
        seen = self.partial
        undone = {gang: replace(each, at=min(each.at, now)) for gang, each in seen.undone.items()}
        since = {gang: min(time, now) for gang, time in seen.since.items()}
        latest = now + patience.retry_after
        pauses = {gang: replace(each, until=min(each.until, latest)) for gang, each in seen.pauses.items()}
        self.partial = replace(seen, since=since, undone=undone, pauses=pauses)
        if self.reservation is not None:
            self.reservation = replace(self.reservation, since=min(self.reservation.since, now))
        self._index = None

    def _forget_avoided(self, now: int, patience: Patience) -> None:
        """Forget failed bindings that are old, or of pods that have gone; the turns may use those nodes again."""
        kept, freed = forget_old(self.avoided, self.cluster, now=now, remembered_for=patience.retry_after)
        for row in freed:
            gang = Gangs.of(self.cluster).key_of(row)
            names = (self.cluster.pods.keys[row],) if gang is None else (f"gang/{gang}", surplus_name(gang))
            self._changed |= {name for name in names if name in self.waiting and self.turn(name) is not None}
        if kept != self.avoided:
            self.avoided = kept

    def _rebuild(self, patience: Patience) -> None:
        """Make the index again; every waiting turn counts as possibly cured."""
        assert self._pending is not None
        turns = self._pending.turns
        for name, entry in list(self.waiting.items()):
            if name not in turns or self._is_another_pod(turns[name], entry):
                self.drop(name)
        self._index, self._starving = WaitingIndex(self.cluster, patience), StarvingTurns(patience.starving_after)
        self._untried = set(turns).difference(self.waiting)
        self._changed, self._needs_nothing = set(), {}
        for name, entry in self.waiting.items():
            if entry.version and entry.version != self.version(turns[name]):
                self._changed.add(name)
            self._index.put_hot(name, entry)
            self._starving.put(name, entry)

    def _note_changed(self, changed: set[str]) -> None:
        """Note the turns that are new, or whose pods or group are not those that failed."""
        for name in changed:
            entry, turn = self.waiting.get(name), self.turn(name)
            assert turn is not None
            if entry is None:
                if self._needs_nothing.get(name) != self._need_version(turn):
                    self._untried.add(name)
            elif self._is_another_pod(turn, entry):
                self.drop(name)
                self._untried.add(name)
            elif entry.version != self.version(turn):
                self._changed.add(name)

    def _note_needs(self, gangs: set[str]) -> None:
        """Note the turns of gangs that needed nothing, and may do so now: running pods have come or gone."""
        for gang in gangs if self._needs_nothing else ():
            for name in (f"gang/{gang}", surplus_name(gang)):
                turn, known = self.turn(name), self._needs_nothing.get(name)
                if turn is not None and known is not None and known != self._need_version(turn):
                    del self._needs_nothing[name]
                    self._untried.add(name)

    def _need_version(self, turn: Turn) -> tuple[int, ...]:
        """Return numbers that change when a turn that needs nothing may need something."""
        if turn.gang is None:
            return self.version(turn)
        return (*self.version(turn), len(Gangs.of(self.cluster).state(turn.gang, ()).running))

    def _is_another_pod(self, turn: Turn, entry: WaitingTurn) -> bool:
        if turn.gang is not None or entry.uid is None:
            return False
        return self.cluster.pod(turn.key).metadata.uid != entry.uid

    def version(self, turn: Turn) -> tuple[int, ...]:
        """Return numbers that change when the turn's pods or group change."""
        if turn.gang is not None:
            return Gangs.of(self.cluster).version(turn.gang), crc32("\n".join(turn.pods).encode())
        row = self.cluster.pod_row(turn.pods[0])
        return int(self.cluster.pods.spec[row]), int(self.cluster.pods.labels[row])

    def _note_running_gangs(self, engine: Engine, gangs: Iterable[str]) -> None:
        """Note which waiting turns may evict pods of gangs that have changed."""
        assert self._index is not None
        rows = self._running_gangs.changed_node_rows(gangs)
        if rows is not None:
            self._index.note_gangs(engine, rows)

    def note_changes(self, engine: Engine) -> None:
        """Note which waiting turns the changes of the cluster since the last call may cure.

        A session calls this also while it runs and at its end: what it has placed or released may cure a turn, and
        nothing else may happen before `wake`.
        """
        assert self._index is not None
        cluster = self.cluster
        touched, released = cluster.touched, cluster.hold_index.touched
        if self._events == cluster.events:
            return
        if self._events:
            changed = [event for event in _EVENTS if self._events[event] != cluster.events[event]]
            if touched.has_all_since(self._log_positions[0]) and released.has_all_since(self._log_positions[1]):
                rows = np.concatenate((touched.since(self._log_positions[0]), released.since(self._log_positions[1])))
            else:
                rows = np.arange(cluster.nodes.length)
            self._index.note_changes(engine, changed, rows)
        self._events, self._log_positions = list(cluster.events), (touched.length, released.length)

    def due_turns(self, now: int, patience: Patience, *, every: bool) -> list[Turn]:
        """Return the turns to try now, in queue order.

        Of waiting turns that fail alike only the first, unless `every` is set: `next_like` returns the next.
        """
        assert self._index is not None
        assert self._pending is not None
        turns = self._pending.turns
        due = [turns[name] for name in self._untried]
        due += [turns[name] for name in self._changed]
        self._index.take_newly_hot()
        hot = self._index.due_turns(now) if every else self._index.first_due_turns(now)
        due += [turns[name] for name in hot if name not in self._changed]
        due.sort()
        self._pause_ends = None
        return [turn for turn in due if not self.is_paused(turn, now, patience)]

    def is_untried(self, name: str) -> bool:
        """Return whether a turn is new."""
        return name in self._untried

    def is_due(self, name: str) -> bool:
        """Return whether a turn that was due when the session began still is: a failure of its kind may have come."""
        assert self._index is not None
        return name in self._untried or name in self._changed or self._index.is_hot(name)

    def failure_kind(self, name: str) -> FailureKind | None:
        """Return the kind of a waiting turn."""
        assert self._index is not None
        return self._index.kind_of(name)

    def newly_due(self, engine: Engine, now: int, turn: Turn) -> list[Turn]:
        """Return waiting turns after a turn that changes since the last call of this or of `due_turns` may have cured.

        Of turns that fail alike only the first.
        """
        assert self._index is not None
        if turn.gang is not None:  # also if the turn failed: some of its surplus pods may have been bound
            self._note_running_gangs(engine, (turn.gang,))
        self.note_changes(engine)
        following = (self.next_like(turn, kind, now) for kind in self._index.take_newly_hot())
        return [each for each in following if each is not None]

    def next_like(self, turn: Turn, kind: FailureKind, now: int) -> Turn | None:
        """Return the next turn of a kind to try, after a turn."""
        assert self._index is not None
        name = self._index.next_due_turn(kind, now, turn.order)
        return self.turn(name) if name is not None else None

    def kind_to_check(self, name: str) -> FailureKind | None:
        """Return the kind of a turn that is due only if there is room for it now; None if due in any case."""
        assert self._index is not None
        return None if name in self._untried or name in self._changed else self._index.unsure_kind(name)

    def wait_on(self, kind: FailureKind) -> None:
        """Record that there is no room for the turns of a kind after all."""
        assert self._index is not None
        self._index.cool(kind)

    def note_displaced(self, name: str) -> Turn | None:
        """Make a waiting turn due at once, because the room that was held for it is lost; return the turn."""
        if name not in self.waiting:
            return None
        self._changed.add(name)
        return self.turn(name)

    def note_started(self, gang: str) -> Turn | None:
        """Make the surplus of a gang due, because the gang has just started; return that turn if there is one."""
        return self._note_untried(surplus_name(gang))

    def note_broken(self, gang: str) -> Turn | None:
        """Make a gang due, because its pods were just evicted; return its turn if pods of it are pending."""
        name = f"gang/{gang}"
        return self.note_displaced(name) if name in self.waiting else self._note_untried(name)

    def _note_untried(self, name: str) -> Turn | None:
        turn = self.turn(name)
        if turn is not None:
            self._needs_nothing.pop(name, None)
            self._untried.add(name)
        return turn

    def postpone_reservation(self, name: str, until: int) -> None:
        """Let a turn, and all turns that fail like it, get no reservation before a time."""
        assert self._index is not None
        self._starving.postpone(self._index.turns_like(name), until)

    def first_starving(self) -> str | None:
        """Return the first starving turn in the queue, if a reservation could be made for it."""
        name = self._starving.first()
        reservation = self.reservation
        if name is None or reservation is None:
            return name
        owner = self.waiting.get(reservation.name)
        return name if owner is not None and self.waiting[name].order < owner.order else None

    def next_due(self, now: int, policy: Policy, patience: Patience) -> int | None:
        """Return the earliest time after now at which a session is needed, if nothing changes before."""
        assert self._index is not None
        waiting, reserves = self.waiting, policy.queueing == "reservation"
        blocked_after: Order | None = None
        if policy.queueing == "fifo":  # no turn passes the first one that waits for room
            blocked_after = min((self.order_of(name) for name, e in waiting.items() if e.needs_room), default=None)

        def retry_time(name: str) -> int | None:
            if blocked_after is not None and self.order_of(name) > blocked_after:
                return None
            turn = self.turn(name)
            paused_until = self._paused_until(turn, patience) if turn is not None else None
            return max(waiting[name].backoff_ends(patience), paused_until or 0)

        times = [self._index.next_retry(retry_time, now=now, each_turn=policy.queueing == "fifo")]
        if self.reservation is not None:
            times.append(self.reservation.since + patience.reserved_for)
        elif reserves and self.first_starving() is not None:
            times.append(now + 1)  # the last session had no budget left to make a reservation
        times += [self._starving.next_time() if reserves else None, self.cluster.hold_index.next_expiry()]
        times.append(next_undo(self.partial, now=now, patience=patience))
        times += [self._pause_ends, *(time for each in self.avoided.values() for time in each.until.values())]
        times += [each.until for victims in self.spared.values() for each in victims]
        earliest = min((time for time in times if time is not None), default=None)
        return None if earliest is None else max(earliest, now + 1)

    # Following the cluster's marks ------------------------------------------------------------------------------------

    def mark(self) -> None:
        """Start a nested transaction."""
        super().mark()
        self._index_marks.append((self._index, self._index.version if self._index is not None else 0))

    def rollback(self) -> None:
        """Undo all changes since the last mark."""
        index, version = self._index_marks.pop()
        if len(self._index_marks) < self._noted_depth:
            self._unnoted_gangs |= self._noted_gangs
        if self.has_changed() or index is not self._index or (index is not None and version != index.version):
            self._index = None  # it is derived: the next session makes it again
        super().rollback()

    def commit(self) -> None:
        """Keep all changes since the last mark."""
        super().commit()
        self._index_marks.pop()
        if not self._index_marks:
            self._noted_gangs = set()


_EVENTS = tuple(Event)
