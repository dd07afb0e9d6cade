"""Trials: whether one gang starts after some edits.

Contract: every trial leaves the cluster unchanged. `fits` places the gang without evictions; scheduling does the same
first, with a larger work budget, so a gang that fits here also starts there. `starting_plan` schedules the gang as if
no other pod were pending. All trials of one `CureTrials` share a work budget; when the budget is exhausted, `fits`
returns False.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from tutti.cluster.edits import Edit, Remove
from tutti.cluster.trial import Trial
from tutti.cluster.work.meter import CURE_TRIAL, GANG_POD
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import GangPhase, GangState
from tutti.engine.gangs.placer import GANG_SEARCH, GangPlacer
from tutti.engine.placement.engine import Engine
from tutti.engine.session.passes import pending_pods
from tutti.engine.session.plan import Plan, Turn
from tutti.engine.session.queue_order import sort_into_turns
from tutti.engine.session.schedule import schedule
from tutti.kube.objects import Object, Pod

_ALL_TRIALS_WORK = 400_000 * GANG_POD
"""The work budget of all trials."""
_TRIAL_WORK = 4_000 * GANG_POD
"""The work budget of one trial, in addition to placing every pod of the gang once."""
_MAX_NAMES = 5
"""The maximum number of pods that a text names."""
_MAX_RESCHEDULED = 5_000
"""The maximum number of pending pods that are all scheduled to confirm a cure."""


class Cure(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A change after which a gang starts, and the cost of that change."""

    kind: str
    """uncordon, nodes, toleration, nodeSelector, topology, minimum, move, priority, evict, wait, gates, pods, group."""
    text: str
    """The instruction for the user, in one line."""
    edits: tuple[Edit, ...]
    nodes: int = 0
    """The number of new nodes."""
    pods: int = 0
    """The number of new pods."""
    evicts: tuple[str, ...] = ()
    """The pods that are evicted, by the edits or by the gang's own preemption after the edits."""
    priority: int | None = None
    """The highest priority of the evicted pods."""
    gangs_broken: int = 0
    budgets_broken: int = 0


class CureTrials:
    """See the module's docstring."""

    def __init__(self, engine: Engine, key: str, *, limit: int = _ALL_TRIALS_WORK) -> None:
        self.engine, self.cluster, self.key = engine, engine.cluster, key
        self.placer, self.gangs = GangPlacer(engine), Gangs(engine.cluster)
        self._budget = WorkBudget(limit)

    @contextmanager
    def with_edits(self, edits: Iterable[Edit]) -> Iterator[None]:
        """Apply edits for the length of a ``with`` block."""
        with Trial(self.cluster):
            for edit in edits:
                self.cluster.apply(edit)
            yield

    # What comes before the gang ---------------------------------------------------------------------------------------

    def earlier_turns(self) -> list[Turn]:
        """Return the turns of all pending pods that come before the gang's turn."""
        own = self.turn()
        turns, _ = sort_into_turns(self.cluster, self.gangs, pending_pods(self.cluster), profile=self.engine.profile)
        return [turn for turn in turns if own is not None and turn.order < own.order]

    @contextmanager
    def at_turn(self) -> Iterator[None]:
        """Take all turns that come before the gang's turn, for the length of a ``with`` block."""
        own = self.turn()
        with self.with_edits(()):
            if own is not None:
                schedule(self.cluster, None, self.engine.profile, before=own.order)
            yield

    def _pods_of(self, turns: Sequence[Turn]) -> list[str]:
        pods = dict.fromkeys(pod for turn in turns for pod in turn.pods)
        return [pod for pod in pods if pod in self.cluster.pods.row_of]

    def recheck_with_pending(self, cure: Cure, earlier_turns: Sequence[Turn]) -> Cure | None:
        """Return the cure if the gang still starts when all pending pods are scheduled with it; None otherwise.

        With more than `_MAX_RESCHEDULED` pending pods, only those that come before the gang are scheduled.
        """
        pending = set(pending_pods(self.cluster))
        if pending.issubset(self.pending_keys()):
            return cure
        if any(isinstance(edit, Remove) and edit.kind == Pod.KIND and edit.key in pending for edit in cure.edits):
            return None  # a pod that does not run cannot be evicted
        with self.with_edits(cure.edits):
            is_small = len(pending) <= _MAX_RESCHEDULED
            pods = None if is_small else [*self._pods_of(earlier_turns), *self.pending_keys()]
            schedule(self.cluster, pods, self.engine.profile)
            if not self.has_started():
                return None
        if pending.issuperset(cure.evicts) and cure.evicts:
            text = f"{cure.text.partition(';')[0]}; it then comes before {self.format_names(cure.evicts)}"
            return replace(cure, text=text, evicts=(), priority=None, gangs_broken=0)
        return cure

    # The gang's current state -----------------------------------------------------------------------------------------

    def pending_keys(self) -> list[str]:
        """Return the keys of the gang's pods without a node, including pods that the scheduler does not try."""
        pods = self.cluster.pods
        return [pods.keys[row] for row in self.gangs.rows(self.key) if pods.node_names[row] is None]

    def turn(self) -> Turn | None:
        """Return the gang's turn; None if the scheduler has no pod of the gang to try."""
        turns, _ = sort_into_turns(self.cluster, self.gangs, self.pending_keys(), profile=self.engine.profile)
        return turns[0] if turns else None

    def gang_state(self) -> GangState:
        """Return the gang's state, with its waiting pods in the order in which the scheduler takes them."""
        turn = self.turn()
        waiting = [self.cluster.pod_row(pod) for pod in turn.pods] if turn is not None else []
        return self.gangs.state(self.key, waiting)

    def waiting_pods(self) -> list[Pod]:
        """Return the gang's pending pods that the scheduler tries."""
        turn = self.turn()
        return [self.cluster.pod(key) for key in turn.pods] if turn is not None else []

    def find_object(self, kind: str, key: str) -> Object | None:
        """Return the object of a kind with a key, if the cluster has one."""
        return self.cluster.objects[kind].get(key)

    def may_preempt(self) -> bool:
        """Return whether the gang may evict pods of lower priority."""
        gang, pods = self.gangs.gang(self.key), self.waiting_pods()
        is_allowed = gang.preempts is not False and all(pod.spec.preemption_policy != "Never" for pod in pods)
        return is_allowed and self.engine.profile.preempts

    def format_names(self, keys: Sequence[str]) -> str:
        """Return the first names for a text; a name in the gang's own namespace is without its namespace."""
        own = f"{self.key.partition('/')[0]}/"
        names = [key.removeprefix(own) for key in keys[:_MAX_NAMES]]
        return ", ".join(names) + (f" and {len(keys) - _MAX_NAMES} more" if len(keys) > _MAX_NAMES else "")

    # Trials -----------------------------------------------------------------------------------------------------------

    def fits(self, edits: Iterable[Edit] = ()) -> bool:
        """Return whether the gang would start after edits, without evictions."""
        if self._budget.is_exhausted():
            return False
        with self.with_edits(edits):
            state = self.gang_state()
            if state.gang.refusal is not None:
                return False
            need = state.need()
            if not need.least:
                return state.phase is GangPhase.WHOLE
            search = WorkBudget(min(_TRIAL_WORK + GANG_POD * need.least, GANG_SEARCH))
            decisions = self.placer.place(need, search)
            self._budget.spend(CURE_TRIAL + search.meter.count)
            return decisions is not None

    def starting_plan(self, edits: Iterable[Edit] = (), *, preemption: bool = True) -> Plan | None:
        """Return the plan that schedules the gang after edits; None if the gang would not start at once."""
        with self.with_edits(edits):
            plan = schedule(self.cluster, self.pending_keys(), self.engine.profile, preemption=preemption)
            return plan if self.has_started() else None

    def has_started(self) -> bool:
        """Return whether the gang runs and all its minimums are reached."""
        return self.gang_state().phase is GangPhase.WHOLE
