"""Cures: changes after which a waiting gang starts.

Contract: every cure has been tried: after its edits, scheduling the gang alone starts the gang. The cluster stays
unchanged. What the gang itself lacks (its group object, pods, open scheduling gates) comes first and is part of every
cure. Then come the cheapest changes: cordoned nodes, new nodes, what the pods and the gang require, and at last moves
and evictions of other pods. A work budget limits the search, so a very large search may miss a cure or a smaller one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

from msgspec.structs import replace

from tutti.cluster.edits import Edit
from tutti.engine.explain.cure_trials import Cure, CureTrials
from tutti.engine.explain.eviction_cures import eviction_cures, move_cures, with_evictions
from tutti.engine.explain.group_edits import with_minimum
from tutti.engine.explain.node_cures import new_node_cures, smallest_number, uncordon_cures
from tutti.engine.explain.pod_cures import (
    gang_members,
    gang_objects,
    gates_proposal,
    missing_group_proposal,
    more_pods_proposal,
    put_edits,
    selector_proposals,
    toleration_proposals,
    topology_proposals,
)
from tutti.engine.placement.engine import Engine

Tell = Callable[[str], None]
"""Receives progress messages: what the search tries next."""

_MAX_PAIRED = 3
"""The maximum number of proposals of each kind that are tried together with other nodes."""
_MAX_EVICTION_TRIALS = 8
"""The maximum number of proposals that are tried with evictions, because each may be a long search."""


def find_cures(engine: Engine, key: str, tell: Tell = lambda _: None) -> tuple[Cure, ...]:
    """Return the changes after which a waiting gang starts, the cheapest first."""
    trials = CureTrials(engine, key)
    preparations: list[Cure] = []
    smaller_gangs: list[Cure] = []
    with ExitStack() as stack:
        for propose in (missing_group_proposal, gates_proposal, more_pods_proposal):
            if not _is_incomplete(trials):
                break
            if propose is more_pods_proposal and not preparations:
                smaller_gangs = _Search(trials).minimum_cures()  # an alternative to more pods
            cure = propose(trials)
            if cure is not None:
                preparations.append(cure)
                stack.enter_context(trials.with_edits(cure.edits))
        if _is_incomplete(trials):
            return tuple(smaller_gangs)
        if preparations and trials.starting_plan() is not None:
            return (_combined(*preparations), *smaller_gangs)
        search = _Search(trials)
        cures = list(search.single_cures(tell)) or list(search.paired_cures(tell))
        return (*smaller_gangs, *(_combined(*preparations, cure) for cure in cures))


def _is_incomplete(trials: CureTrials) -> bool:
    """Return whether the gang itself lacks something, so that it waits regardless of the cluster."""
    state = trials.gang_state()
    return state.gang.refusal is not None or state.need().least > len(state.waiting)


def _combined(*cures: Cure) -> Cure:
    """Return one cure that makes the changes of several, which only help together."""
    *before, last = cures
    for cure in reversed(before):
        last = replace(
            last,
            text=f"{cure.text}, and {last.text}",
            edits=(*cure.edits, *last.edits),
            pods=cure.pods + last.pods,
        )
    return last


class _Search:
    """The search for cures of a gang that has all its pods and does not fit."""

    def __init__(self, trials: CureTrials) -> None:
        self._trials = trials
        self._eviction_trials_left = _MAX_EVICTION_TRIALS if trials.may_preempt() else 0

    def single_cures(self, tell: Tell) -> Iterator[Cure]:
        """Yield cures that each make one kind of change."""
        tell("cordoned nodes")
        yield from self._confirmed(uncordon_cures(self._trials))
        tell("new nodes")
        yield from self._confirmed(new_node_cures(self._trials))
        tell("what its pods ask of nodes")
        for proposals in (toleration_proposals, selector_proposals, topology_proposals):
            yield from self._first_helpful_round(proposals(self._trials))
        tell("a smaller gang")
        yield from self.minimum_cures()
        tell("moves")
        yield from move_cures(self._trials)
        tell("evictions")
        yield from eviction_cures(self._trials)

    def paired_cures(self, tell: Tell) -> Iterator[Cure]:
        """Yield cures that change what the pods or the gang require and also uncordon or add nodes."""
        tell("two things at once")
        trials = self._trials
        for rounds in (toleration_proposals, selector_proposals, topology_proposals):
            for cure in [cure for proposals in rounds(trials) for cure in proposals][:_MAX_PAIRED]:
                with trials.with_edits(cure.edits):
                    nodes = [*self._confirmed(uncordon_cures(trials)), *self._confirmed(new_node_cures(trials)[:1])]
                yield from (_combined(cure, node_cure) for node_cure in nodes)

    def _confirmed(self, cures: list[Cure]) -> Iterator[Cure]:
        """Yield the cures after which scheduling starts the gang without evictions."""
        return (cure for cure in cures if self._trials.starting_plan(cure.edits, preemption=False) is not None)

    def _first_helpful_round(self, rounds: Iterator[list[Cure]]) -> Iterator[Cure]:
        """Yield the proposals that help, of the first round that has any."""
        for proposals in rounds:
            cures = [cure for proposal in proposals if (cure := self._confirmed_proposal(proposal)) is not None]
            if cures:
                yield from cures
                return

    def _confirmed_proposal(self, cure: Cure) -> Cure | None:
        """Return the proposal if the gang starts after it, alone or with evictions that the gang may make."""
        if not cure.edits:
            return None
        if self._trials.fits(cure.edits):
            return next(self._confirmed([cure]), None)
        if self._eviction_trials_left <= 0:
            return None
        self._eviction_trials_left -= 1
        plan = self._trials.starting_plan(cure.edits)
        return None if plan is None else with_evictions(self._trials, cure, plan)

    # A smaller gang ---------------------------------------------------------------------------------------------------

    def minimum_cures(self) -> list[Cure]:
        """Return the cure with the largest minimum with which the gang starts, if its dialect can state a minimum."""
        trials = self._trials
        gang = trials.gangs.gang(trials.key)
        if gang.parts or gang.minimum < 2 or gang.problem is not None:
            return []
        old, most = gang.minimum, gang.minimum - 1
        reduction = smallest_number(lambda less: trials.fits(self._minimum_edits(old - less)), most)
        if reduction is None and self._eviction_trials_left > 0:
            reduction = smallest_number(lambda less: self._starts_with_evictions(old - less), most)
        if reduction is None:
            return []
        minimum = old - reduction
        text = f"lower its minimum from {old} to {minimum}"
        plan = trials.starting_plan(self._minimum_edits(minimum))
        cure = Cure(kind="minimum", text=text, edits=self._minimum_edits(minimum))
        return [] if plan is None else [with_evictions(trials, cure, plan)]

    def _starts_with_evictions(self, minimum: int) -> bool:
        self._eviction_trials_left -= 1
        return self._eviction_trials_left > 0 and self._trials.starting_plan(self._minimum_edits(minimum)) is not None

    def _minimum_edits(self, minimum: int) -> tuple[Edit, ...]:
        trials = self._trials
        return put_edits(with_minimum(gang_objects(trials), gang_members(trials), minimum, trials.find_object))
