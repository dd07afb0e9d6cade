"""Passes of a live scheduler: a queue with backoff, reservations, and resuming after the work budget is exhausted.

A turn that failed before is tried only when it is due (`queue`). When a session runs out of budget, the next session
takes new turns first, then the turns that were not reached. The first turn that starves for room gets a reservation:
room is held where the turn will be able to start, and later turns may use that room only if they are known to end
before the room is needed. With the policy `fifo` no turn passes a turn that waits for room.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from tutti.cluster.edits import Release
from tutti.engine.placement.engine import Engine
from tutti.engine.plugins.base import Area
from tutti.engine.session.context import FailedAttempt, OutOfBudgetError
from tutti.engine.session.passes import Passes
from tutti.engine.session.plan import NotConsidered, Turn
from tutti.engine.session.policy import Patience, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.queue_order import sort_into_turns
from tutti.engine.session.reserve.reservations import Reservations
from tutti.engine.session.waiting.eviction_races import node_events
from tutti.engine.session.waiting.failure_kind import FailureKind
from tutti.engine.session.waiting.room_check import RoomCheck
from tutti.engine.session.waiting.waiting_turn import WaitingTurn
from tutti.kube.times import micros


class QueuePasses(Passes):
    """See the module's docstring."""

    def __init__(
        self,
        engine: Engine,
        queue: Queue,
        now: int,
        policy: Policy,
        *,
        patience: Patience,
        only: Collection[str] | None,
    ) -> None:
        super().__init__(engine, now, policy, only=only)
        self.context.area_for = self.area_for
        self._queue, self._now, self._patience = queue, now, patience
        self._reservations = Reservations(self.context, queue, now, patience)
        self._room_check = RoomCheck(self.context)
        self._kind_taken: FailureKind | None = None
        """The kind of the waiting turn that was taken last."""
        # The order of these sessions is not that of the kinds' turns.
        self._lists_every_turn = only is not None or queue.resume is not None or policy.queueing == "fifo"
        self._broken_count = 0
        """How many gangs that this session broke have been noted."""
        self._stopped_at: Turn | None = None
        self._blocked_by: Turn | None = None
        self._release_expired_holds()

    def _release_expired_holds(self) -> None:
        expiry = self.cluster.hold_index.next_expiry()
        if expiry is not None and expiry <= self._now:
            for hold in list(self.cluster.holds.values()):
                if hold.until is not None and hold.until <= self._now:
                    self.cluster.apply(Release(hold.owner))

    # Which turns are due ----------------------------------------------------------------------------------------------

    def next_turns(self) -> tuple[list[Turn], list[NotConsidered]]:
        """Return gangs that run in part, new turns, due turns that the last session did not reach, other due turns."""
        queue = self._queue
        not_considered = queue.sync(self.engine, self._now, self._patience)
        self._reservations.drop_outdated()
        turns = queue.due_turns(self._now, self._patience, every=self._lists_every_turn)
        if self.only is not None:
            profile, gangs = self.engine.profile, self.context.gangs
            wanted = {turn.name for turn in sort_into_turns(self.cluster, gangs, self.only_pods(), profile=profile)[0]}
            turns = [turn for turn in turns if turn.name in wanted]
        if self.policy.queueing == "fifo":
            turns = self._not_blocked(turns)
        resume, partial = queue.resume, queue.partial.since if self.policy.partial_first else {}
        if resume is None and not partial:
            return turns, not_considered

        def place(turn: Turn) -> tuple[int, Turn]:
            if turn.gang in partial and not turn.surplus:
                return -1, turn  # the sooner a gang that runs in part is whole, the less room it wastes
            if resume is None or turn.order >= resume:
                return 1, turn
            return (2 if turn.name in queue.waiting else 0), turn

        return sorted(turns, key=place), not_considered

    def _not_blocked(self, turns: list[Turn]) -> list[Turn]:
        """Return the turns before the first turn that waits for room, and that turn."""
        due = {turn.name for turn in turns}
        queue = self._queue
        blocked = (queue.order_of(name) for name, e in queue.waiting.items() if e.needs_room and name not in due)
        first = min(blocked, default=None)
        return turns if first is None else [turn for turn in turns if turn.order < first]

    def area_for(self, pods: Sequence[str]) -> Area | None:
        """Return the nodes without those where a binding of one of the pods failed lately; None for all nodes."""
        avoided = self._queue.avoided_nodes(pods, self._now)
        if not avoided:
            return None
        mask = self.cluster.nodes.on.copy()
        mask[[row for row in map(self.cluster.nodes.row_of.get, avoided) if row is not None]] = False
        return Area(mask)

    def is_obsolete(self, turn: Turn) -> bool:
        """Return whether a turn need not be tried any more: one of its kind failed, or the room is taken again."""
        if self._blocked_by is not None:
            return turn.order > self._blocked_by.order
        if not self._queue.is_due(turn.name) or self._queue.is_paused(turn, self._now, self._patience):
            return True
        kind = self._queue.kind_to_check(turn.name)
        if kind is None or self._room_check.may_start(turn, kind, count_holds=self._counts_holds(turn)):
            return False
        self._queue.wait_on(kind)
        return True

    def _counts_holds(self, turn: Turn) -> bool:
        """Return whether all room that is held is out of reach for a turn."""
        holds = self.cluster.holds
        return not self._reservations.may_use_room(turn) and not any(pod in holds for pod in turn.pods)

    def turns_made_due(self, turn: Turn) -> list[Turn]:
        """Return the turns that follow a turn: the next that failed like it, the surplus of a gang that starts, turns
        that it may have cured, gangs whose pods it has evicted, and pods that have just lost their nominations, before
        a later turn takes other room.
        """
        lost = self.context.plan.lost_nominations
        names = dict.fromkeys(map(self._turn_name, lost))
        lost.clear()
        more: list[Turn | None] = [*map(self._queue.note_displaced, names)]
        broken = list(self.context.plan.broken_gangs)[self._broken_count :]
        self._broken_count += len(broken)
        more += map(self._queue.note_broken, broken)
        more += self._queue.newly_due(self.engine, self._now, turn)
        if self._kind_taken is not None and not self._lists_every_turn:
            more.append(self._queue.next_like(turn, self._kind_taken, self._now))
        if turn.gang is not None and not turn.surplus and turn.name not in self._queue.waiting:
            more.append(self._queue.note_started(turn.gang))
        return [each for each in more if each is not None and each > turn]

    def _turn_name(self, pod: str) -> str:
        row = self.cluster.pods.row_of.get(pod)
        gang = self.context.gangs.key_of(row) if row is not None else None
        return pod if gang is None else f"gang/{gang}"

    def may_retry_failure(self) -> bool:
        """Return False: a failed turn waits at least until its backoff is over."""
        return False

    def is_taken_alone(self, turn: Turn) -> bool:
        """Return whether a turn is a gang, or is not new, or must not evict pods everywhere.

        A turn that is not new may be obsolete when its turn comes.
        """
        if turn.gang is not None or not self._queue.is_untried(turn.name) or self.policy.queueing == "fifo":
            return True
        return self._queue.evictions_in_vain(turn) > 0

    # Taking turns -----------------------------------------------------------------------------------------------------

    def take_turns(self, batch: list[Turn]) -> None:
        """Attempt a batch, and update the queue: drop turns that succeeded, record turns that failed."""
        reservations = self._reservations
        self._kind_taken = self._queue.failure_kind(batch[0].name) if len(batch) == 1 else None
        self._reserve_before(batch[0])
        self.context.eviction_area = self._eviction_area(batch[0])
        self.context.spare_victims((each.pod, each.uid) for each in self._queue.spared.get(batch[0].name, ()))
        own = reservations.suspend_own(batch[0])
        try:
            if batch[0].gang is not None or reservations.is_limited:
                failed: dict[str, FailedAttempt] = {}
                for turn in batch:
                    with reservations.room_for(turn):
                        failed |= self.attempt([turn])
            else:
                failed = self.attempt(batch)
        except OutOfBudgetError:
            if own is not None:
                reservations.hold(own)
            raise
        self.failed |= failed
        for turn in batch:
            self._queue.note_tried(turn, self._now)
            failure = failed.get(turn.name)
            if failure is None:
                self._queue.note_done(turn)
                continue
            self._record_failure(turn, failure)
            if self.policy.queueing == "fifo" and failure.needs_room:
                self._blocked_by = turn
        if own is not None and self._queue.reservation is None:
            reservations.renew(own)  # at once: later turns must not take the room

    def _reserve_before(self, turn: Turn) -> None:
        """Reserve room for a starving turn that comes before a turn and has no attempt in this session."""
        if self.policy.queueing != "reservation":
            return
        name = self._queue.first_starving()
        if name is not None and self._queue.waiting[name].order < turn.order and not self._queue.is_due(name):
            self._reservations.reserve()

    def _eviction_area(self, turn: Turn) -> Area | None:
        """Return where a turn that has evicted pods in vain may evict more; None for everywhere."""
        rounds = self.policy.eviction_rounds
        if rounds is None or self._queue.evictions_in_vain(turn) < rounds:
            return None
        nodes = self.cluster.nodes
        if self.policy.own_nodes is None:
            return Area(np.zeros(nodes.size, dtype=bool))
        key, value = self.policy.own_nodes
        own = [any((t.key, t.value or "") == (key, value) for t in taints) for taints in nodes.taint_sets]
        return Area(np.array(own, dtype=bool)[nodes.taints] & nodes.on)

    def _waiting_since(self, turn: Turn) -> int:
        """Return since when a turn waits, as a scheduler before this one may have written it to its pods."""
        since = self._now
        for pod in turn.pods:
            for condition in self.cluster.pod(pod).status.conditions or ():
                is_waiting = condition.type == "PodScheduled" and condition.status == "False"
                if is_waiting and condition.last_transition_time:
                    since = min(since, micros(condition.last_transition_time))
        return since

    def _record_failure(self, turn: Turn, failure: FailedAttempt) -> None:
        """Put a failed turn into the queue."""
        previous = self._queue.waiting.get(turn.name)
        evictions = self._queue.evictions_in_vain(turn) + failure.has_evicted
        entry = WaitingTurn(
            since=previous.since if previous is not None else self._waiting_since(turn),
            tried=self._now,
            attempts=self._queue.attempts_of(turn),
            message=failure.message,
            order=turn.order,
            version=self._queue.version(turn),
            uid=self.cluster.pod(turn.key).metadata.uid if turn.gang is None else None,
            needs_room=failure.needs_room,
            waits_for_victims=bool(failure.leaving),
            evictions=evictions,
            stuck_at=failure.retry_at,
            evicted_at=node_events(self.cluster) if evictions else (),
            no_reservation_before=previous.no_reservation_before if previous is not None else 0,
        )
        self._queue.put(turn.name, entry, self.failure_kind(turn, failure))

    def _undo_partial_gangs(self) -> None:
        """Evict the bound pods of gangs that were not completed in time, and report those that stay."""
        is_complete = self._stopped_at is None
        for partial in self._queue.undo_partial_gangs(self._now, self._patience, is_complete=is_complete):
            self.context.plan.partial_gangs.append(partial)
            reason = f"{partial.running} of {partial.minimum} pods of gang {partial.gang} run, and it never ran whole"
            for pod in partial.evicted:
                self.context.evictor.undo(pod, gang=partial.gang, reason=reason)

    # The end ----------------------------------------------------------------------------------------------------------

    def record_stop(self, turn: Turn) -> None:
        """Record the turn at which the next session resumes."""
        self._stopped_at = turn

    def update_queue(self) -> None:
        """Undo partial gangs, reserve room for a starving turn; store where and when the next session is needed."""
        self._undo_partial_gangs()
        if self.policy.queueing == "reservation":
            self._reservations.reserve()
        self._queue.note_changes(self.engine)  # what this session did may have cured turns that it tried before
        self._queue.resume = self._stopped_at.order if self._stopped_at is not None else None
        if self._stopped_at is not None:
            self._queue.wake = self._now
        else:
            self._queue.wake = self._queue.next_due(self._now, self.policy, self._patience)
