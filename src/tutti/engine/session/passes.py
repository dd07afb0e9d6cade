"""Passes over the queue: turns are taken in order, and again while a later turn may have cured an earlier failure.

Contract: without patience everything that is pending is tried, until nothing changes any more; what comes out is
settled. The cluster changes by edits only.
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
from tutti.engine.session.queue_order import turns
from tutti.engine.session.single_pod_attempts import SinglePodAttempts

_CHUNK = 256
"""Single pods that are tried before the budget is looked at again."""


def pending(cluster: Cluster) -> list[str]:
    """Return all pods without a node."""
    pods = cluster.pods
    return [key for key, row in pods.row_of.items() if pods.node_names[row] is None]


class Passes:
    """See the module's docstring. Sessions with a queue (`patient_passes`) override what differs."""

    def __init__(self, engine: Engine, now: int | None, policy: Policy, *, only: Collection[str] | None) -> None:
        self.engine, self.cluster, self.policy = engine, engine.cluster, policy
        self.context = SessionContext(engine, policy, now)
        self._only = only
        self._single_pods, self._gang_attempts = SinglePodAttempts(self.context), GangAttempts(self.context)
        self.failed: dict[str, FailedAttempt] = {}
        """Turns that failed in this session."""

    def run(self) -> Plan:
        """Take turns, and return the plan."""
        every, not_considered = self._turns()
        todo = self.due(every)
        for number in range(1, self.policy.passes + 1):
            self.cluster.meter.count += TURN * len(todo)
            displaced = self.context.plan.displaced
            for turn in todo:
                self.failed.pop(turn.name, None)
            self._take_all(todo)
            if number == self.policy.passes or not (self.is_any_cured() or self.context.plan.displaced != displaced):
                break
            todo = self.due(self._turns()[0])
        self.finish()
        return self.context.plan.plan(not_considered)

    def _turns(self) -> tuple[list[Turn], list[NotConsidered]]:
        names, rows = self.cluster.pods.node_names, self.cluster.pods.row_of
        if self._only is None:
            waiting = pending(self.cluster)
        else:
            found = ((pod, rows.get(pod)) for pod in dict.fromkeys(self._only))
            waiting = [pod for pod, row in found if row is not None and names[row] is None]
        return turns(self.cluster, self.context.gangs, waiting, profile=self.engine.profile)

    def due(self, every: list[Turn]) -> list[Turn]:
        """Return the turns to take in the next pass."""
        events, failed = self.cluster.events, self.failed
        return [turn for turn in every if turn.name not in failed or failed[turn.name].may_be_cured(events)]

    def is_any_cured(self) -> bool:
        """Return whether a later turn may have cured one that failed."""
        return any(failure.may_be_cured(self.cluster.events) for failure in self.failed.values())

    def _take_all(self, todo: list[Turn]) -> None:
        for batch in self.batches(todo):
            if self.context.budget.is_exhausted():
                self.stop_at(batch[0])
                return
            self.context.plan.take(batch)
            try:
                self.take(batch)
            except OutOfBudgetError:
                self.stop_at(batch[0])
                return
            self.context.may_be_cut = True

    def batches(self, todo: list[Turn]) -> Iterator[list[Turn]]:
        """Yield single pods many at once, and turns that must be taken alone one by one."""
        size = len(todo) if self.policy.budget is None else _CHUNK
        for alone, group in groupby(todo, self.is_taken_alone):
            listed = list(group)
            step = 1 if alone else size
            for first in range(0, len(listed), step):
                yield listed[first : first + step]

    def is_taken_alone(self, turn: Turn) -> bool:
        """Return whether a turn is taken by itself: gangs are."""
        return turn.gang is not None

    def take(self, batch: list[Turn]) -> None:
        """Take some turns, single pods or one gang, and note which of them failed."""
        self.failed |= self.attempt(batch)

    def attempt(self, batch: list[Turn]) -> dict[str, FailedAttempt]:
        """Try to place the pods of some turns; return those that failed."""
        first = batch[0]
        if first.gang is None:
            return self._single_pods.attempt([turn.key for turn in batch])
        failure = self._gang_attempts.attempt(first)
        return {} if failure is None else {first.name: failure}

    def stop_at(self, turn: Turn) -> None:
        """Note where the session ran out of budget."""

    def finish(self) -> None:
        """Note what the next session needs to know."""
