"""Selection: the best plan of all drafts, as the binder would carry them out.

Contract: pure but for the deadline; the picture is left as it was. Less is better in `rank`: pods left by falling
priority, then the objective. Gangs that could not start whole are given up, the last in turn first, and the rest is
planned again without them: nothing is bought for a gang that waits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tutti.recommend.binding import Outcome, bought_of
from tutti.recommend.draft import Draft
from tutti.recommend.drafts import greedy_drafts, optimal_drafts, peer_drafts, without
from tutti.recommend.followed import Followed
from tutti.recommend.greedy import greedy
from tutti.recommend.matter import Matter, Progress
from tutti.recommend.optimum import is_plain, prove
from tutti.recommend.problem import Problem, pose_again
from tutti.recommend.replayed import Replayed
from tutti.recommend.request import Objective, Strategy


def _numbers(of: Draft | Outcome) -> list[int]:
    """The offerings of all new nodes."""
    return [each.offering for each in of.bought] if isinstance(of, Draft) else [number for _, number in of.nodes]


class Selection:
    """See the module's contract."""

    def __init__(self, matter: Matter, progress: Progress) -> None:
        self.matter, self._progress = matter, progress
        self._demand = matter.problem.demand
        self._proved = 0.0
        """A bound for all of the demand, when there is one."""

    def best(self) -> Outcome:
        """The best outcome of all drafts."""
        drafts = greedy_drafts(self.matter, self._progress)
        given_up: set[str] = set()
        if drafts:  # what was found to be hopeless node by node is not hoped for again
            given_up = {gang for pod in drafts[0].left if (gang := self._short_gang(pod, drafts[0])) is not None}
        while True:
            outcome = self._best_of([without(self.matter, draft, given_up) for draft in drafts], given_up)
            if not outcome.short:
                break
            given_up |= set(outcome.short) if self._progress.deadline.is_over() else {outcome.short[-1]}
        gangs = dict.fromkeys(map(self.matter.gang_of, outcome.left))
        return outcome._replace(short=tuple(gang for gang in gangs if gang is not None and gang in given_up))

    def _short_gang(self, pod: str, draft: Draft) -> str | None:
        """The gang of a pod that a draft leaves, if it starts none of that gang."""
        gang = self.matter.gang_of(pod)
        if gang is None:
            return None
        placed = (pod for each in draft.bought for pod in each.pods)
        return None if any(self.matter.gang_of(other) == gang for other in placed) else gang

    def _best_of(self, drafts: Sequence[Draft], given_up: set[str]) -> Outcome:
        matter, progress = self.matter, self._progress
        problem = matter.without(given_up)
        self._demand, self._proved = np.where(matter.possible, problem.demand, 0), 0.0
        every = list(drafts)
        if matter.strategy is Strategy.OPTIMAL and self._demand.any():
            every += [without(matter, draft, given_up) for draft in peer_drafts(matter, progress)]
            found = optimal_drafts(matter, progress, problem=problem, demand=self._demand, seeds=every)
            every, self._proved = [*found.drafts, *every], found.bound
        every.sort(key=lambda draft: (len(draft.left), draft.price(problem.offerings), len(draft.bought)))
        best = self._followed(problem, every) if matter.follows else self._replayed(problem, every)
        return best._replace(left=tuple(pod for pod in matter.picture.pending if pod not in best.where))

    def _followed(self, problem: Problem, drafts: Sequence[Draft]) -> Outcome:
        """The best of what becomes of drafts that pods follow, as far as there is time and they promise anything."""
        deadline = self._progress.deadline
        binding = Followed(self.matter.picture, problem, buy=self._mend)
        best: Outcome | None = None
        for place, draft in enumerate(drafts or [Draft("nothing")]):
            late = deadline.left < 0.1 * deadline.seconds
            if best is None or not (late or not self._promises(draft, best)):
                self._progress.tell(f"trying plan {place + 1} of {len(drafts)}: {draft.maker}")
                best = self._better(best, binding.followed(draft, deadline))
        assert best is not None
        return best

    def _replayed(self, problem: Problem, drafts: Sequence[Draft]) -> Outcome:
        """The best of what a scheduler makes of some drafts: as they are, and those that are cheaper mended."""
        deadline = self._progress.deadline
        binding = Replayed(self.matter.picture, problem, buy=self._mend)
        known: dict[tuple[int, ...], tuple[Draft, Outcome]] = {}
        best: Outcome | None = None
        for draft in drafts or [Draft("nothing")]:
            purchase = tuple(sorted(each.offering for each in draft.bought))
            if purchase not in known and (best is None or deadline.left > 0.2 * deadline.seconds):
                self._progress.tell(f"replaying {draft.maker}")
                known[purchase] = (draft, binding.first(draft))
                best = self._better(best, known[purchase][1])
        for draft, outcome in known.values():  # the cheapest first
            late = deadline.left < 0.2 * deadline.seconds
            if best is None or (best.left and not late) or (not late and self._promises(draft, best)):
                self._progress.tell(f"mending {draft.maker}")
                best = self._better(best, binding.mended(draft, outcome))
        assert best is not None
        if best.left:  # whatever the time: what was promised is kept
            draft, outcome = next(iter(known.values()))
            best = self._better(best, binding.mended(draft, outcome))
        self._progress.tell("giving back what is not needed")
        return binding.spared(best, deadline)

    def _better(self, one: Outcome | None, other: Outcome) -> Outcome:
        return other if one is None or self.rank(other) < self.rank(one) else one

    def _promises(self, draft: Draft, best: Outcome) -> bool:
        """Whether a draft could come out better than what is there."""
        if len(draft.left) < len(best.left):
            return True
        prices = self.matter.prices
        mine, known = (sum(prices[each] for each in numbers) for numbers in (_numbers(draft), _numbers(best)))
        return bool(mine < known)

    def _mend(self, problem: Problem, pods: Sequence[str]) -> Draft:
        """Buy for pods that were left, on the picture as it stands."""
        posed = pose_again(self.matter.picture, problem, pods)
        every = np.ones(len(problem.offerings), dtype=bool)
        deadline = self._progress.deadline.at_least(1.0)
        return greedy(
            self.matter.picture, posed, self.matter.options, Strategy.LEAST_COST, eligible=every, deadline=deadline
        )

    def rank(self, outcome: Outcome) -> tuple[float, ...]:
        """How good an outcome is; the least is best."""
        problem, number_of = self.matter.problem, self.matter.problem.of_pod
        left = [number_of[pod] for pod in outcome.left if pod in number_of]
        counts = Counter(problem.classes[number].priority for number in left)
        levels = sorted({each.priority for each in problem.classes}, reverse=True)
        pods = tuple(counts[level] for level in levels)
        cost = round(float(sum(self.matter.prices[number] for _, number in outcome.nodes)))
        if self.matter.objective is Objective.PODS:
            units = round(float(sum(self.matter.units[number] for number in left)), 9)
            return (*pods, units, cost, outcome.price)
        return (*pods, cost, outcome.price)

    def bound(self, outcome: Outcome) -> float:
        """What no plan that places the same pods can cost less than, in the objective's prices; 0 when not known."""
        matter = self.matter
        if not outcome.nodes or matter.strategy is not Strategy.OPTIMAL:
            return 0.0
        placed = np.array([sum(pod in outcome.where for pod in each.pods) for each in matter.problem.classes])
        cost = float(sum(matter.prices[number] for _, number in outcome.nodes))
        if self._proved and bool((placed == self._demand).all()) and is_plain(matter.problem):
            return min(self._proved, cost)
        self._progress.tell("proving the bound")
        deadline = self._progress.deadline.at_least(0.3)
        return prove(matter.problem, placed.astype(np.int64), matter.prices, deadline, known=bought_of(outcome))
