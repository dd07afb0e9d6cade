"""The queue: which turns failed, and when each is tried again.

A failed turn is tried again when a change may have cured the failure (`waiting_index`) and the backoff is over, which
doubles with every attempt; or when the turn's own pods or group have changed; or after `Patience.retry_after` in any
case.

Contract: a `Queue` belongs to one cluster and changes in place. `due_turns` costs what has changed since the last
session. The queue follows the cluster's marks: a rollback of the cluster undoes what sessions did to the queue since
the mark. `freeze` returns a record that can be stored; a queue made from a record for another cluster tries every turn
again when its backoff is over. Losing a queue costs one round of attempts, nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable
from zlib import crc32

import msgspec
import numpy as np
from msgspec.structs import replace

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Hold
from tutti.cluster.events import Event
from tutti.engine.gangs.gang_state import NO_CREATION_TIME, Gangs, creation_time
from tutti.engine.placement.engine import Engine
from tutti.engine.session.partial_gangs import PartialGangs, follow, next_undo, undo
from tutti.engine.session.plan import NotConsidered, Order, PartialGang, Turn, surplus_name
from tutti.engine.session.policy import Patience, Policy
from tutti.engine.session.waiting.failure_kind import FailureKind
from tutti.engine.session.waiting.pending_turns import PendingTurns
from tutti.engine.session.waiting.starving_turns import StarvingTurns
from tutti.engine.session.waiting.waiting_index import WaitingIndex
from tutti.engine.session.waiting.waiting_turn import WaitingTurn
from tutti.kube.gangs.gang import Gang


class Reservation(msgspec.Struct, frozen=True):
    """Room that is held for a starving turn."""

    name: str
    """The name of the turn."""
    since: int
    holds: tuple[Hold, ...]
    until: int | None = None
    """When the turn will be able to start; None if the ends of the pods in its way are unknown."""


class AvoidedNodes(msgspec.Struct, frozen=True):
    """Nodes where the binding of a pod failed."""

    uid: str | None
    """The uid of the pod: a new pod of the same name avoids nothing."""
    until: dict[str, int]
    """The time until which each node is avoided, in microseconds."""


class QueueRecord(msgspec.Struct, frozen=True):
    """The content of a queue as plain data, for a recording or a restart."""

    waiting: dict[str, WaitingTurn] = {}
    """By the name of the turn."""
    resume: Order | None = None
    reservation: Reservation | None = None
    wake: int | None = None
    partial: PartialGangs = PartialGangs()
    avoided: dict[str, AvoidedNodes] = {}
    """Nodes where the binding of a pod failed, by pod key."""


class Queue:
    """See the module's docstring."""

    def __init__(self, cluster: Cluster, record: QueueRecord | None = None) -> None:
        """Make an empty queue, or a queue from the record of another cluster's queue.

        The turns of a record are due when their backoff is over, and the reservation is dropped.
        """
        self.cluster = cluster
        self._waiting: dict[str, WaitingTurn] = {}
        self._resume: Order | None = None
        self._reservation: Reservation | None = None
        self._wake: int | None = None
        self._partial = PartialGangs()
        self._avoided: dict[str, AvoidedNodes] = {}
        self._growing_until: int | None = None
        """When the first gang that is due but may still be growing is tried."""
        self._undo: list[tuple[str, object]] = []
        self._marks: list[tuple[int, WaitingIndex | None, int]] = []
        """For each open mark, the length of the undo log, the index and its version."""
        self._pending: PendingTurns | None = None
        self._untried: set[str] = set()
        """Pending turns that have neither failed nor been found to need nothing now."""
        self._changed: set[str] = set()
        """Waiting turns whose pods or group changed since they failed."""
        self._needs_nothing: dict[str, tuple[int, ...]] = {}
        """The versions of pending turns that were taken and had nothing to place, such as the surplus of a gang whose
        minimum waits. Trials of other turns of the gang are no reason to take them again."""
        self._noted_gangs: set[str] = set()
        """Gangs that were noted since the outermost mark: after a rollback they must be noted again."""
        self._noted_depth = 0
        """How many marks were open then."""
        self._unnoted_gangs: set[str] = set()
        """Gangs to note in the next `sync`, whether they have changed or not."""
        self._index: WaitingIndex | None = None
        self._starving = StarvingTurns(0)
        self._running_gangs: dict[str, tuple[Gang, dict[int, tuple[int, bool]]]] = {}
        """Gangs with running pods as they were noted last: the record, and node row and end of each pod by row."""
        self._events: list[int] = []
        self._log_positions = (0, 0)
        if record is not None:
            for name, entry in record.waiting.items():
                self._waiting[name] = replace(entry, version=())
            self._resume, self._partial = record.resume, record.partial
            self._unnoted_gangs = {*record.partial.whole, *record.partial.since}  # they may be gone
            self._avoided = dict(record.avoided)
        cluster.attach(self)

    @property
    def waiting(self) -> dict[str, WaitingTurn]:
        """The failed turns by name; only `put` and `drop` change them."""
        return self._waiting

    @property
    def resume(self) -> Order | None:
        """The place in the queue order at which the last session ran out of budget."""
        return self._resume

    @resume.setter
    def resume(self, order: Order | None) -> None:
        if order != self._resume:
            self._log("resume", self._resume)
            self._resume = order

    @property
    def reservation(self) -> Reservation | None:
        """The room that is held for a starving turn."""
        return self._reservation

    @reservation.setter
    def reservation(self, reservation: Reservation | None) -> None:
        self._log("reservation", self._reservation)
        self._reservation = reservation

    @property
    def wake(self) -> int | None:
        """The latest time at which the next session is needed, even if no event happens before."""
        return self._wake

    @wake.setter
    def wake(self, time: int | None) -> None:
        if time != self._wake:
            self._log("wake", self._wake)
            self._wake = time

    def freeze(self) -> QueueRecord:
        """Return the queue as a record."""
        waiting, avoided = dict(self._waiting), dict(self._avoided)
        return QueueRecord(waiting, self._resume, self._reservation, self._wake, self._partial, avoided)

    # Failed turns -----------------------------------------------------------------------------------------------------

    def put(self, name: str, entry: WaitingTurn, failure: FailureKind | None = None) -> None:
        """Record that a turn failed, with what may cure it; without a failure only the entry changes."""
        self._log(name, self._waiting.get(name))
        self._waiting[name] = entry
        self._untried.discard(name)
        self._changed.discard(name)
        if failure is not None and self._index is not None:
            self._index.put(name, entry, failure)
        self._starving.put(name, entry)

    def note_done(self, turn: Turn) -> None:
        """Remove a turn that was taken and did not fail: its pods are placed, or it needs nothing for now."""
        self.drop(turn.name)
        pods = self.cluster.pods
        if all(pods.node_names[pods.row_of[pod]] is None for pod in turn.pods):
            self._needs_nothing[turn.name] = self._need_version(turn)

    def drop(self, name: str) -> None:
        """Remove a turn that no longer waits."""
        self._untried.discard(name)
        self._changed.discard(name)
        self._needs_nothing.pop(name, None)
        entry = self._waiting.pop(name, None)
        if entry is not None:
            self._log(name, entry)
            self._starving.drop(name)
            if self._index is not None:
                self._index.drop(name)

    # Failed bindings and partial gangs --------------------------------------------------------------------------------

    def bind_failed(
        self, pod: str, node: str, message: str, *, now: int, patience: Patience, uid: str | None = None
    ) -> None:
        """Record that a planned binding failed; call this after `Unbind`.

        The pod waits for its backoff, and its node is avoided for a while. Nothing is recorded of a pod that is not
        pending: it is gone, another pod has its name, or a watch has reported it with a node.
        """
        row = self.cluster.pods.row_of.get(pod)
        if row is None or self.cluster.pods.node_names[row] is not None:
            return
        known_uid = self.cluster.pod(pod).metadata.uid
        if uid is not None and uid != known_uid:
            return
        self._log("avoided", self._avoided)
        avoided = self._avoided.get(pod)
        before = avoided.until if avoided is not None and avoided.uid == known_uid else {}
        nodes = AvoidedNodes(known_uid, {**before, node: now + patience.avoided_for})
        self._avoided = {**self._avoided, pod: nodes}
        gang = Gangs.of(self.cluster).key_of(row)
        name = pod if gang is None else f"gang/{gang}"
        previous = self._waiting.get(name)
        order = previous.order if previous is not None else (-int(self.cluster.pods.priority[row]), False, 0, pod)
        entry = WaitingTurn(
            since=previous.since if previous is not None else now,
            tried=now,
            attempts=previous.attempts + 1 if previous is not None else 1,
            message=f"binding to {node} failed: {message}",
            order=order,
            version=(),
            uid=known_uid if gang is None else None,
        )
        self._log(name, previous)
        self._waiting[name] = entry
        self._untried.discard(name)
        self._index = None  # the turn is due when its backoff is over, whatever happens

    def avoided_nodes(self, pods: Iterable[str], now: int) -> set[str]:
        """Return the nodes where a binding of one of some pods failed lately."""
        if not self._avoided:
            return set()
        found = ((pod, self._avoided.get(pod)) for pod in pods)
        return {
            node
            for pod, avoided in found
            if avoided is not None and avoided.uid == self.cluster.pod(pod).metadata.uid
            for node, until in avoided.until.items()
            if until > now
        }

    @property
    def partial(self) -> PartialGangs:
        """What is remembered about gangs that run in part."""
        return self._partial

    def _note_gangs(self, gangs: set[str], now: int) -> None:
        """Remember which gangs have run whole, and which are partial."""
        if self._marks:
            self._noted_gangs |= gangs
            self._noted_depth = len(self._marks)
        self._set_partial(follow(self._partial, self.cluster, gangs, now=now))

    def undo_partial_gangs(self, now: int, patience: Patience) -> list[PartialGang]:
        """Return the gangs that were not completed in time, as far as that is new or has changed."""
        seen, undone = undo(self._partial, self.cluster, now=now, partial_for=patience.partial_for)
        self._set_partial(seen)
        return undone

    def _set_partial(self, seen: PartialGangs) -> None:
        if seen is not self._partial:
            self._log("partial", self._partial)
            self._partial = seen

    def _without_growing(self, turns: list[Turn], now: int, patience: Patience) -> list[Turn]:
        """Return turns without those of gangs whose size is only counted, while pods may still be coming."""
        self._growing_until, grown = None, []
        for turn in turns:
            until = self._grows_until(turn, patience)
            if until is None or until <= now:
                grown.append(turn)
            elif self._growing_until is None or until < self._growing_until:
                self._growing_until = until
        return grown

    def _grows_until(self, turn: Turn, patience: Patience) -> int | None:
        """Return when a gang is complete if no further pod comes; None if its size is stated, or it ran whole."""
        if turn.gang is None or turn.gang in self._partial.whole:
            return None
        if not Gangs.of(self.cluster).gang(turn.gang).is_counted:
            return None
        times = [creation_time(self.cluster.pod(pod)) for pod in turn.pods]
        newest = max((time for time in times if time != NO_CREATION_TIME), default=None)
        return None if newest is None else newest + patience.counted_quiet_for

    # What is due ------------------------------------------------------------------------------------------------------

    def turn(self, name: str) -> Turn | None:
        """Return a pending turn, as of the last `sync`."""
        return self._pending.turns.get(name) if self._pending is not None else None

    def order_of(self, name: str) -> Order:
        """Return the place of a waiting turn in the queue, which may have changed since the turn failed."""
        turn = self.turn(name)
        return turn.order if turn is not None else self._waiting[name].order

    def sync(self, engine: Engine, now: int, patience: Patience) -> list[NotConsidered]:
        """Follow the cluster; return the pods that the scheduler does not try, as far as that is new."""
        if self._pending is None or not self._pending.serves(engine.profile):
            self._pending, self._index = PendingTurns(self.cluster, engine.profile), None
        changes = self._pending.sync()
        for name in changes.removed:
            self.drop(name)
        if changes.gangs or self._unnoted_gangs:
            self._note_gangs(changes.gangs | self._unnoted_gangs, now)
            self._unnoted_gangs = set()
        if self._avoided:
            self._forget_avoided(now)
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

    def _forget_avoided(self, now: int) -> None:
        """Forget failed bindings that are old, or of pods that have gone; the turns may use those nodes again."""
        rows, kept = self.cluster.pods.row_of, {}
        for pod, avoided in self._avoided.items():
            until = {node: time for node, time in avoided.until.items() if time > now} if pod in rows else {}
            if until:
                kept[pod] = AvoidedNodes(avoided.uid, until)
            if len(until) < len(avoided.until) and pod in rows:
                gang = Gangs.of(self.cluster).key_of(rows[pod])
                names = (pod,) if gang is None else (f"gang/{gang}", f"gang/{gang} above its minimum")
                self._changed |= {name for name in names if name in self._waiting and self.turn(name) is not None}
        if kept != self._avoided:
            self._log("avoided", self._avoided)
            self._avoided = kept

    def _rebuild(self, patience: Patience) -> None:
        """Make the index again; every waiting turn counts as possibly cured."""
        assert self._pending is not None
        turns = self._pending.turns
        for name, entry in list(self._waiting.items()):
            if name not in turns or self._is_another_pod(turns[name], entry):
                self.drop(name)
        self._index, self._starving = WaitingIndex(patience), StarvingTurns(patience.starving_after)
        self._running_gangs = {}
        self._untried = set(turns).difference(self._waiting)
        self._changed, self._needs_nothing = set(), {}
        for name, entry in self._waiting.items():
            if entry.version and entry.version != self.version(turns[name]):
                self._changed.add(name)
            self._index.put_hot(name, entry)
            self._starving.put(name, entry)

    def _note_changed(self, changed: set[str]) -> None:
        """Note the turns that are new, or whose pods or group are not those that failed."""
        for name in changed:
            entry, turn = self._waiting.get(name), self.turn(name)
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
        """Note which waiting turns may evict pods of gangs that have changed.

        A trial that was rolled back also reports its gangs: only gangs that differ from the last time count.
        """
        assert self._index is not None
        all_gangs, pods, nodes = Gangs.of(self.cluster), self.cluster.pods, set[int]()
        has_changed = False  # also if no pod of the gang runs any more
        for key in gangs:
            members = ((pods.node.item(row), row) for row in all_gangs.rows(key))
            running = {row: (node, bool(pods.terminating[row])) for node, row in members if node >= 0}
            known = (all_gangs.gang(key), running) if running else None
            if known != self._running_gangs.get(key):
                has_changed = True
                nodes.update(node for node, _ in running.values())
                if known is not None:
                    self._running_gangs[key] = known
                else:
                    del self._running_gangs[key]
        if has_changed:
            self._index.note_gangs(engine, np.array(sorted(nodes), dtype=np.intp))

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
        return self._without_growing(due, now, patience)

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
        """Return the kind of a turn that is due only because a changed node has room; None if due in any case."""
        assert self._index is not None
        return None if name in self._untried or name in self._changed else self._index.unsure_kind(name)

    def wait_on(self, kind: FailureKind) -> None:
        """Record that there is no room for the turns of a kind after all."""
        assert self._index is not None
        self._index.cool(kind)

    def note_displaced(self, name: str) -> Turn | None:
        """Make a waiting turn due at once, because the room that was held for it is lost; return the turn."""
        if name not in self._waiting:
            return None
        self._changed.add(name)
        return self.turn(name)

    def note_started(self, gang: str) -> Turn | None:
        """Make the surplus of a gang due, because the gang has just started; return that turn if there is one."""
        return self._note_untried(surplus_name(gang))

    def note_broken(self, gang: str) -> Turn | None:
        """Make a gang due, because its pods were just evicted; return its turn if pods of it are pending."""
        name = f"gang/{gang}"
        return self.note_displaced(name) if name in self._waiting else self._note_untried(name)

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
        reservation = self._reservation
        if name is None or reservation is None:
            return name
        owner = self._waiting.get(reservation.name)
        return name if owner is not None and self._waiting[name].order < owner.order else None

    def next_due(self, now: int, policy: Policy, patience: Patience) -> int | None:
        """Return the earliest time after now at which a session is needed, if nothing changes before."""
        assert self._index is not None
        waiting, reserves = self._waiting, policy.queueing == "reservation"
        blocked_after: Order | None = None
        if policy.queueing == "fifo":  # no turn passes the first one that waits for room
            blocked_after = min((self.order_of(name) for name, e in waiting.items() if e.needs_room), default=None)

        def retry_time(name: str) -> int | None:
            if blocked_after is not None and self.order_of(name) > blocked_after:
                return None
            turn = self.turn(name)
            grows_until = self._grows_until(turn, patience) if turn is not None else None
            return max(waiting[name].backoff_ends(patience), grows_until or 0)

        times = [self._index.next_retry(retry_time, now=now, each_turn=policy.queueing == "fifo")]
        if self._reservation is not None:
            times.append(self._reservation.since + patience.reserved_for)
        elif reserves and self.first_starving() is not None:
            times.append(now + 1)  # the last session had no budget left to make a reservation
        times += [self._starving.next_time() if reserves else None, self.cluster.hold_index.next_expiry()]
        times.append(next_undo(self._partial, now=now, partial_for=patience.partial_for))
        times += [self._growing_until, *(time for each in self._avoided.values() for time in each.until.values())]
        earliest = min((time for time in times if time is not None), default=None)
        return None if earliest is None else max(earliest, now + 1)

    # Following the cluster's marks ------------------------------------------------------------------------------------

    def _log(self, name: str, old: object) -> None:
        if self._marks:
            self._undo.append((name, old))

    def mark(self) -> None:
        """Start a nested transaction."""
        self._marks.append((len(self._undo), self._index, self._index.version if self._index is not None else 0))

    def rollback(self) -> None:
        """Undo all changes since the last mark."""
        start, index, version = self._marks.pop()
        if len(self._marks) < self._noted_depth:
            self._unnoted_gangs |= self._noted_gangs
        if len(self._undo) > start or index is not self._index or (index is not None and version != index.version):
            self._index = None  # it is derived: the next session makes it again
        while len(self._undo) > start:
            name, old = self._undo.pop()
            if name in _FIELDS:
                setattr(self, f"_{name}", old)
            elif isinstance(old, WaitingTurn):
                self._waiting[name] = old
            else:
                self._waiting.pop(name, None)

    def commit(self) -> None:
        """Keep all changes since the last mark."""
        self._marks.pop()
        if not self._marks:
            self._undo.clear()
            self._noted_gangs = set()


_EVENTS = tuple(Event)
_FIELDS = frozenset(("resume", "reservation", "wake", "partial", "avoided"))
"""Names in the undo log that are fields; every other name is a turn's, which contains a slash."""
