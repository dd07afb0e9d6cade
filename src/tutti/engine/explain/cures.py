"""Cures: what would have to be otherwise for a gang to start.

Contract: every cure that is given has been tried: with its edits made, scheduling the gang by itself starts it. The
cluster is as before afterwards. What the gang lacks of itself (its group, pods, open gates) comes first and is part of
every cure; then what costs least: nodes that are there, new nodes, what the pods and the gang ask for, and at last the
moves and evictions of others. Limited by work, so a cure may be missed, or not be the smallest, in very large searches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

from msgspec.structs import replace

from tutti.cluster.edits import Edit
from tutti.engine.explain.cure_trials import Cure, CureTrials
from tutti.engine.explain.eviction_cures import evicting, moving, with_evictions
from tutti.engine.explain.group_edits import with_minimum
from tutti.engine.explain.node_cures import new_node_cures, smallest, uncordon_cures
from tutti.engine.explain.pod_cures import (
    gates_proposal,
    members,
    missing_group_proposal,
    more_pods_proposal,
    objects,
    puts,
    selector_proposals,
    toleration_proposals,
    topology_proposals,
)
from tutti.engine.placement.engine import Engine

Tell = Callable[[str], None]
"""Is told what is looked at."""

_PAIRS = 3
"""Proposals of each sort that are tried together with other nodes."""
_CHANCES = 8
"""Proposals that are tried with evictions: each may be a long search."""


def find_cures(engine: Engine, key: str, tell: Tell = lambda _: None) -> tuple[Cure, ...]:
    """Give what would make a waiting gang start, the mildest first."""
    trials = CureTrials(engine, key)
    first: list[Cure] = []
    fewer: list[Cure] = []
    with ExitStack() as stack:
        for prepare in (missing_group_proposal, gates_proposal, more_pods_proposal):
            if not _is_incomplete(trials):
                break
            if prepare is more_pods_proposal and not first:
                fewer = _Search(trials).smaller()  # in place of more pods
            cure = prepare(trials)
            if cure is not None:
                first.append(cure)
                stack.enter_context(trials.after(cure.edits))
        if _is_incomplete(trials):
            return tuple(fewer)
        if first and trials.carried_out() is not None:
            return (_joined(*first), *fewer)
        search = _Search(trials)
        found = list(search.run(tell)) or list(search.in_pairs(tell))
        return (*fewer, *(_joined(*first, cure) for cure in found))


def _is_incomplete(trials: CureTrials) -> bool:
    """Say whether the gang lacks something of itself: whatever the cluster, it would wait."""
    standing = trials.standing()
    return standing.gang.problem is not None or standing.need().least > len(standing.waiting)


def _joined(*cures: Cure) -> Cure:
    """One cure of several that only help together."""
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
    """The search for a gang that is complete and does not fit."""

    def __init__(self, trials: CureTrials) -> None:
        self._trials = trials
        self._chances = _CHANCES if trials.may_preempt() else 0

    def run(self, tell: Tell) -> Iterator[Cure]:
        tell("cordoned nodes")
        yield from self._sure(uncordon_cures(self._trials))
        tell("new nodes")
        yield from self._sure(new_node_cures(self._trials))
        tell("what its pods ask of nodes")
        for proposals in (toleration_proposals, selector_proposals, topology_proposals):
            yield from self._tried(proposals(self._trials))
        tell("a smaller gang")
        yield from self.smaller()
        tell("moves")
        yield from moving(self._trials)
        tell("evictions")
        yield from evicting(self._trials)

    def in_pairs(self, tell: Tell) -> Iterator[Cure]:
        """Give what would have to be borne or given up for other nodes to help, where one thing is not enough."""
        tell("two things at once")
        trials = self._trials
        for rounds in (toleration_proposals, selector_proposals, topology_proposals):
            for cure in [cure for proposals in rounds(trials) for cure in proposals][:_PAIRS]:
                with trials.after(cure.edits):
                    found = [*self._sure(uncordon_cures(trials)), *self._sure(new_node_cures(trials)[:1])]
                yield from (_joined(cure, other) for other in found)

    def _sure(self, cures: list[Cure]) -> Iterator[Cure]:
        """Give those cures with which scheduling starts the gang."""
        return (cure for cure in cures if self._trials.carried_out(cure.edits, preemption=False) is not None)

    def _tried(self, rounds: Iterator[list[Cure]]) -> Iterator[Cure]:
        """Give the proposals of the first round that help: by themselves, or with evictions that the gang may make."""
        for proposals in rounds:
            found = [cure for each in proposals if (cure := self._helping(each)) is not None]
            if found:
                yield from found
                return

    def _helping(self, cure: Cure) -> Cure | None:
        if not cure.edits:
            return None
        if self._trials.fits(cure.edits):
            return next(self._sure([cure]), None)
        if self._chances <= 0:
            return None
        self._chances -= 1
        plan = self._trials.carried_out(cure.edits)
        return None if plan is None else with_evictions(self._trials, cure, plan)

    # A smaller gang ---------------------------------------------------------------------------------------------------

    def smaller(self) -> list[Cure]:
        """The largest minimum with which the gang starts, if its dialect has words for it."""
        trials = self._trials
        gang = trials.gangs.gang(trials.key)
        if gang.parts or gang.minimum < 2 or gang.problem is not None:
            return []
        less = smallest(lambda less: trials.fits(self._minimum(gang.minimum - less)), gang.minimum - 1)
        if less is None and self._chances > 0:
            less = smallest(lambda less: self._after_evictions(gang.minimum - less), gang.minimum - 1)
        if less is None:
            return []
        minimum = gang.minimum - less
        text = f"lower its minimum from {gang.minimum} to {minimum}"
        plan = trials.carried_out(self._minimum(minimum))
        cure = Cure(kind="minimum", text=text, edits=self._minimum(minimum))
        return [] if plan is None else [with_evictions(trials, cure, plan)]

    def _after_evictions(self, minimum: int) -> bool:
        self._chances -= 1
        return self._chances > 0 and self._trials.carried_out(self._minimum(minimum)) is not None

    def _minimum(self, minimum: int) -> tuple[Edit, ...]:
        trials = self._trials
        return puts(with_minimum(objects(trials), members(trials), minimum, trials.find))
