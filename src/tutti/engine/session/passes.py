"""Passes: take all turns in queue order, and repeat while a later turn may have cured an earlier failure.

Contract: every pending pod is tried, until a pass cures no failure or the policy's number of passes is reached. The
cluster changes by edits only. `queue_passes` has the passes of a live scheduler, which tries only turns that are due.
"""

from __future__ import annotations

from collections.abc import Collection

from tutti.cluster.cluster import Cluster
from tutti.cluster.trial import Trial
from tutti.cluster.work.meter import TURN
from tutti.engine.placement.engine import Engine
from tutti.engine.session.context import FailedAttempt, OutOfBudgetError, SessionContext
from tutti.engine.session.gang_attempts import GangAttempts
from tutti.engine.session.plan import NotConsidered, Order, Plan, Turn, Unschedulable
from tutti.engine.session.policy import Policy
from tutti.engine.session.queue_order import sort_into_turns
from tutti.engine.session.single_pod_attempts import SinglePodAttempts
from tutti.engine.session.waiting.failure_kind import FailureKind
from tutti.engine.session.waiting.turn_line import TurnLine
from tutti.exceptions import InputError

_BATCH_SIZE = 256
"""Single pods that are tried between two checks of the work budget."""


def pending_pods(cluster: Cluster) -> list[str]:
    """Return the keys of all pods without a node."""
    pods = cluster.pods
    return [key for key, row in pods.row_of.items() if pods.node_names[row] is None]


class Passes:
    """See the module's docstring; `queue_passes` overrides the public methods for sessions with a queue."""

    def __init__(
        self,
        engine: Engine,
        now: int | None,
        policy: Policy,
        *,
        only: Collection[str] | None,
        before: Order | None = None,
    ) -> None:
        self.engine, self.cluster, self.policy = engine, engine.cluster, policy
        self.context = SessionContext(engine, policy, now)
        self.only, self._before = only, before
        self._single_pod_attempts, self._gang_attempts = SinglePodAttempts(self.context), GangAttempts(self.context)
        self.failed: dict[str, FailedAttempt] = {}
        """The turns that failed in this session, by name."""

    def run(self) -> Plan:
        """Take passes over the turns, and return the plan."""
        due_turns, not_considered = self.next_turns()
        for pass_number in range(1, self.policy.passes + 1):
            self.cluster.meter.count += TURN * len(due_turns)
            displaced_count = self.context.plan.displaced_count
            for turn in due_turns:
                self.failed.pop(turn.name, None)
            self._take_due_turns(due_turns)
            has_displaced = self.context.plan.displaced_count != displaced_count
            if pass_number == self.policy.passes or not (self.may_retry_failure() or has_displaced):
                break
            due_turns, _ = self.next_turns()
        self.update_queue()
        self.context.plan.start_bound_pods()
        return self.context.plan.plan(not_considered)

    def next_turns(self) -> tuple[list[Turn], list[NotConsidered]]:
        """Return the turns to take in the next pass, and the pods that the scheduler does not try."""
        waiting = pending_pods(self.cluster) if self.only is None else self.only_pods()
        profile, gangs = self.engine.profile, self.context.gangs
        all_turns, not_considered = sort_into_turns(self.cluster, gangs, waiting, profile=profile)
        if self._before is not None:
            all_turns = [turn for turn in all_turns if turn.order < self._before]
        events, failed = self.cluster.events, self.failed
        due = [turn for turn in all_turns if turn.name not in failed or failed[turn.name].may_be_cured(events)]
        return due, not_considered

    def only_pods(self) -> list[str]:
        """Return the pods to which the session is limited, as far as they are pending."""
        names, rows = self.cluster.pods.node_names, self.cluster.pods.row_of
        known_rows = ((pod, rows.get(pod)) for pod in dict.fromkeys(self.only or ()))
        return [pod for pod, row in known_rows if row is not None and names[row] is None]

    def may_retry_failure(self) -> bool:
        """Return whether an event since its attempt may have cured a failed turn."""
        return any(failure.may_be_cured(self.cluster.events) for failure in self.failed.values())

    def _take_due_turns(self, due_turns: list[Turn]) -> None:
        remaining = TurnLine(due_turns)
        while remaining:
            if self.context.budget.is_exhausted():
                self.record_stop(remaining.first)
                return
            batch = self._next_batch(remaining)
            if len(batch) == 1 and self.is_obsolete(batch[0]):
                continue
            self.context.plan.record_turns(batch)
            try:
                self.take_turns(batch)
            except OutOfBudgetError:
                self.record_stop(batch[0])
                return
            self.context.may_defer_turn = True
            for turn in self.turns_made_due(batch[-1]):
                remaining.add(turn)

    def _next_batch(self, remaining: TurnLine) -> list[Turn]:
        """Take the next turns off the front: one that must be taken alone, or as many others as fit a batch."""
        batch = [remaining.pop()]
        if not self.is_taken_alone(batch[0]):
            size = len(remaining) + 1 if self.policy.budget is None else _BATCH_SIZE
            while remaining and len(batch) < size and not self.is_taken_alone(remaining.first):
                batch.append(remaining.pop())
        return batch

    def turns_made_due(self, turn: Turn) -> list[Turn]:
        """Return further turns to take in this pass, because of what a turn did to them; they come after it."""
        return []

    def is_taken_alone(self, turn: Turn) -> bool:
        """Return whether a turn must not share a batch: gangs must not."""
        return turn.gang is not None

    def is_obsolete(self, turn: Turn) -> bool:
        """Return whether a turn that was due need not be taken any more."""
        return False

    def take_turns(self, batch: list[Turn]) -> None:
        """Attempt a batch, which is single pods or one gang, and record the turns that failed."""
        self.failed |= self.attempt(batch)

    def attempt(self, batch: list[Turn]) -> dict[str, FailedAttempt]:
        """Try to place the pods of a batch; return the failures by the name of the turn.

        A turn that cannot be evaluated, because an object that concerns it is malformed, is set aside with the reason.
        """
        plan = self.context.plan
        mark = plan.mark()
        try:
            with Trial(self.cluster) as trial:
                failures = self._attempt(batch)
                trial.keep()
                return failures
        except OutOfBudgetError:
            plan.rollback(mark)
            raise
        except InputError as error:
            plan.rollback(mark)
            if len(batch) == 1:
                return {batch[0].name: self._set_aside(batch[0], error)}
            return {name: failure for turn in batch for name, failure in self.attempt([turn]).items()}

    def _set_aside(self, turn: Turn, error: InputError) -> FailedAttempt:
        """Refuse the pods of a turn that cannot be evaluated; only a change of its pods or group retries it."""
        message, pods = f"cannot be scheduled: {error}", self.cluster.pods
        for pod in turn.pods:
            if pod in pods.row_of and pods.node_names[pods.row_of[pod]] is None:
                priority = int(pods.priority[pods.row_of[pod]])
                nodes = self.cluster.nodes.count
                self.context.plan.refuse(
                    Unschedulable(pod, message, priority, nodes, {}, turn.gang, waits_for="correction")
                )
        return FailedAttempt(message, frozenset(), tuple(self.cluster.events))

    def _attempt(self, batch: list[Turn]) -> dict[str, FailedAttempt]:
        first = batch[0]
        if first.gang is None:
            return self._single_pod_attempts.attempt([turn.key for turn in batch])
        failure = self._gang_attempts.attempt(first)
        return {} if failure is None else {first.name: failure}

    def failure_kind(self, turn: Turn, failure: FailedAttempt) -> FailureKind:
        """Return the kind of a failed turn: turns of the same kind fail alike."""
        if turn.gang is None:
            return self._single_pod_attempts.failure_kind(turn, failure)
        return self._gang_attempts.failure_kind(turn, failure)

    def record_stop(self, turn: Turn) -> None:
        """Record the turn at which the session ran out of budget."""

    def update_queue(self) -> None:
        """Store in the queue what the next session needs."""
