"""Trials: what becomes of one gang if something were otherwise.

Contract: whatever is tried, the cluster is as before afterwards. `fits` asks for room alone and evicts nobody; it is
what scheduling asks first, with less work, so a yes here is a yes there. `carried_out` schedules the gang as if no
other pod waited. All trials of one question share a work budget; when it is exhausted, nothing fits any more.
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
from tutti.engine.gangs.gang_state import Gangs, GangState
from tutti.engine.gangs.placer import GANG_SEARCH, GangPlacer
from tutti.engine.placement.engine import Engine
from tutti.engine.session.passes import pending_pods
from tutti.engine.session.plan import Plan, Turn
from tutti.engine.session.queue_order import sort_into_turns
from tutti.engine.session.schedule import schedule
from tutti.kube.objects import Object, Pod

_ALL_TRIALS = 400_000 * GANG_POD
"""Work for all trials."""
_TRIAL = 4_000 * GANG_POD
"""Work for the search of one trial; placing every pod of the gang once comes on top."""
_NAMED = 5
"""Pods that a text names."""
_ALL = 5_000
"""Waiting pods up to which a cure is tried with all of them."""


class Cure(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """A change after which a gang starts, and what it costs."""

    kind: str
    """uncordon, nodes, toleration, nodeSelector, topology, minimum, move, priority, evict, wait, gates, pods, group."""
    text: str
    """What to do, as an order in one line."""
    edits: tuple[Edit, ...]
    nodes: int = 0
    """How many nodes are new."""
    pods: int = 0
    """How many pods are new."""
    evicts: tuple[str, ...] = ()
    """Who has to go, whether by the edits or because the gang then pushes them away."""
    priority: int | None = None
    """The highest priority among them."""
    gangs_broken: int = 0
    budgets_broken: int = 0


class CureTrials:
    """See the module's contract."""

    def __init__(self, engine: Engine, key: str, *, limit: int = _ALL_TRIALS) -> None:
        self.engine, self.cluster, self.key = engine, engine.cluster, key
        self.placer, self.gangs = GangPlacer(engine), Gangs(engine.cluster)
        self._budget = WorkBudget(limit)

    @contextmanager
    def after(self, edits: Iterable[Edit]) -> Iterator[None]:
        """Have some edits made for a while."""
        with Trial(self.cluster):
            for edit in edits:
                self.cluster.apply(edit)
            yield

    # What comes before the gang ---------------------------------------------------------------------------------------

    def earlier(self) -> list[Turn]:
        """The turns of all that waits and comes before the gang."""
        mine = self.turn()
        every, _ = sort_into_turns(self.cluster, self.gangs, pending_pods(self.cluster), profile=self.engine.profile)
        return [turn for turn in every if mine is not None and turn.order < mine.order]

    @contextmanager
    def after_turns(self, earlier: Sequence[Turn]) -> Iterator[None]:
        """Have turns taken for a while."""
        with self.after(()):
            if earlier:
                schedule(self.cluster, self._pods_of(earlier), self.engine.profile)
            yield

    def _pods_of(self, earlier: Sequence[Turn]) -> list[str]:
        pods = dict.fromkeys(pod for turn in earlier for pod in turn.pods)
        return [pod for pod in pods if pod in self.cluster.pods.row_of]

    def among(self, cure: Cure, earlier: Sequence[Turn]) -> Cure | None:
        """Give a cure as it is when everything that waits is scheduled with it; None when it is none then.

        Where very much waits, only what comes before the gang.
        """
        waiting = set(pending_pods(self.cluster))
        if waiting.issubset(self.pending()):
            return cure
        if any(isinstance(edit, Remove) and edit.kind == Pod.KIND and edit.key in waiting for edit in cure.edits):
            return None  # nobody can be evicted who does not run
        with self.after(cure.edits):
            some = None if len(waiting) <= _ALL else [*self._pods_of(earlier), *self.pending()]
            schedule(self.cluster, some, self.engine.profile)
            if not self.has_started():
                return None
        if waiting.issuperset(cure.evicts) and cure.evicts:
            text = f"{cure.text.partition(';')[0]}; it then comes before {self.named(cure.evicts)}"
            return replace(cure, text=text, evicts=(), priority=None, gangs_broken=0)
        return cure

    # The gang as it is now --------------------------------------------------------------------------------------------

    def pending(self) -> list[str]:
        """The gang's pods without a node, whether the scheduler tries them or not."""
        pods = self.cluster.pods
        return [pods.keys[row] for row in self.gangs.rows(self.key) if pods.node_names[row] is None]

    def turn(self) -> Turn | None:
        """The gang's turn; None when no pod of it waits."""
        found, _ = sort_into_turns(self.cluster, self.gangs, self.pending(), profile=self.engine.profile)
        return found[0] if found else None

    def standing(self) -> GangState:
        """The gang as it is, with the pods that wait in the order in which they are taken."""
        turn = self.turn()
        waiting = [self.cluster.pod_row(pod) for pod in turn.pods] if turn is not None else []
        return self.gangs.standing(self.key, waiting)

    def waiting(self) -> list[Pod]:
        """The pods that wait and may be tried."""
        turn = self.turn()
        return [self.cluster.pod(key) for key in turn.pods] if turn is not None else []

    def find(self, kind: str, key: str) -> Object | None:
        """The object of a kind with a key."""
        return self.cluster.objects[kind].get(key)

    def may_preempt(self) -> bool:
        """Whether the gang may evict others, were they less important."""
        gang, pods = self.gangs.gang(self.key), self.waiting()
        willing = gang.preempts is not False and all(pod.spec.preemption_policy != "Never" for pod in pods)
        return willing and self.engine.profile.preempts

    def named(self, keys: Sequence[str]) -> str:
        """Names for a text; without their namespace if it is the gang's."""
        own = f"{self.key.partition('/')[0]}/"
        names = [key.removeprefix(own) for key in keys[:_NAMED]]
        return ", ".join(names) + (f" and {len(keys) - _NAMED} more" if len(keys) > _NAMED else "")

    # What if ----------------------------------------------------------------------------------------------------------

    def fits(self, edits: Iterable[Edit] = ()) -> bool:
        """Say whether the gang would start at once, with nobody evicted."""
        if self._budget.is_exhausted():
            return False
        with self.after(edits):
            standing = self.standing()
            if standing.gang.problem is not None:
                return False
            need = standing.need()
            if not need.least:
                return bool(standing.running)
            search = WorkBudget(min(_TRIAL + GANG_POD * need.least, GANG_SEARCH))
            found = self.placer.place(need, search)
            self._budget.spend(CURE_TRIAL + search.meter.count)
            return found is not None

    def carried_out(self, edits: Iterable[Edit] = (), *, preemption: bool = True) -> Plan | None:
        """Give what scheduling the gang would do; None when it would not start, or not at once."""
        with self.after(edits):
            plan = schedule(self.cluster, self.pending(), self.engine.profile, preemption=preemption)
            return plan if self.has_started() else None

    def has_started(self) -> bool:
        """Say whether the gang runs with all that it needs."""
        standing = self.standing()
        return standing.gang.problem is None and bool(standing.running) and not standing.need().least
