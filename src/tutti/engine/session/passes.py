"""Passes: take all turns in queue order, and repeat while a later turn may have cured an earlier failure.

Contract: every pending pod is tried, until a pass cures no failure or the policy's number of passes is reached. The
cluster changes by edits only. `queue_passes` has the passes of a live scheduler, which tries only turns that are due.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import groupby

from tutti.cluster.cluster import Cluster
from tutti.cluster.work.meter import TURN
from tutti.engine.placement.engine import Engine
from tutti.engine.session.context import FailedAttempt, OutOfBudgetError, SessionContext
from tutti.engine.session.gang_attempts import GangAttempts
from tutti.engine.session.plan import NotConsidered, Plan, Turn
from tutti.engine.session.policy import Policy
from tutti.engine.session.queue_order import sort_into_turns
from tutti.engine.session.single_pod_attempts import SinglePodAttempts

_BATCH_SIZE = 256
"""Single pods that are tried between two checks of the work budget."""


def pending_pods(cluster: Cluster) -> list[str]:
    """Return the keys of all pods without a node."""
    pods = cluster.pods
    return [key for key, row in pods.row_of.items() if pods.node_names[row] is None]


class Passes:
    """See the module's docstring; `queue_passes` overrides the public methods for sessions with a queue."""

    def __init__(self, engine: Engine, now: int | None, policy: Policy, *, only: Collection[str] | None) -> None:
        self.engine, self.cluster, self.policy = engine, engine.cluster, policy
        self.context = SessionContext(engine, policy, now)
        self._only = only
        self._single_pod_attempts, self._gang_attempts = SinglePodAttempts(self.context), GangAttempts(self.context)
        self.failed: dict[str, FailedAttempt] = {}
        """The turns that failed in this session, by name."""

    def run(self) -> Plan:
        """Take passes over the turns, and return the plan."""
        all_turns, not_considered = self._pending_turns()
        due_turns = self.turns_due(all_turns)
        for pass_number in range(1, self.policy.passes + 1):
            self.cluster.meter.count += TURN * len(due_turns)
            displaced_count = self.context.plan.displaced_count
            for turn in due_turns:
                self.failed.pop(turn.name, None)
            self._take_due_turns(due_turns)
            has_displaced = self.context.plan.displaced_count != displaced_count
            if pass_number == self.policy.passes or not (self.may_retry_failure() or has_displaced):
                break
            due_turns = self.turns_due(self._pending_turns()[0])
        self.update_queue()
        return self.context.plan.plan(not_considered)

    def _pending_turns(self) -> tuple[list[Turn], list[NotConsidered]]:
        names, rows = self.cluster.pods.node_names, self.cluster.pods.row_of
        if self._only is None:
            waiting_keys = pending_pods(self.cluster)
        else:
            known_rows = ((pod, rows.get(pod)) for pod in dict.fromkeys(self._only))
            waiting_keys = [pod for pod, row in known_rows if row is not None and names[row] is None]
        return sort_into_turns(self.cluster, self.context.gangs, waiting_keys, profile=self.engine.profile)

    def turns_due(self, all_turns: list[Turn]) -> list[Turn]:
        """Return the turns to take in the next pass."""
        events, failed = self.cluster.events, self.failed
        return [turn for turn in all_turns if turn.name not in failed or failed[turn.name].may_be_cured(events)]

    def may_retry_failure(self) -> bool:
        """Return whether an event since its attempt may have cured a failed turn."""
        return any(failure.may_be_cured(self.cluster.events) for failure in self.failed.values())

    def _take_due_turns(self, due_turns: list[Turn]) -> None:
        for batch in self.batches(due_turns):
            if self.context.budget.is_exhausted():
                self.record_stop(batch[0])
                return
            self.context.plan.record_turns(batch)
            try:
                self.take_turns(batch)
            except OutOfBudgetError:
                self.record_stop(batch[0])
                return
            self.context.may_defer_turn = True

    def batches(self, due_turns: list[Turn]) -> Iterator[list[Turn]]:
        """Batch single pods; yield turns that must be taken alone one at a time."""
        batch_size = len(due_turns) if self.policy.budget is None else _BATCH_SIZE
        for is_alone, group in groupby(due_turns, self.is_taken_alone):
            group_turns = list(group)
            size = 1 if is_alone else batch_size
            for first in range(0, len(group_turns), size):
                yield group_turns[first : first + size]

    def is_taken_alone(self, turn: Turn) -> bool:
        """Return whether a turn must not share a batch: gangs must not."""
        return turn.gang is not None

    def take_turns(self, batch: list[Turn]) -> None:
        """Attempt a batch, which is single pods or one gang, and record the turns that failed."""
        self.failed |= self.attempt(batch)

    def attempt(self, batch: list[Turn]) -> dict[str, FailedAttempt]:
        """Try to place the pods of a batch; return the failures by the name of the turn."""
        first = batch[0]
        if first.gang is None:
            return self._single_pod_attempts.attempt([turn.key for turn in batch])
        failure = self._gang_attempts.attempt(first)
        return {} if failure is None else {first.name: failure}

    def record_stop(self, turn: Turn) -> None:
        """Record the turn at which the session ran out of budget."""

    def update_queue(self) -> None:
        """Store in the queue what the next session needs."""
