"""Consolidation: many nodes for fewer or cheaper ones, bought anew if that pays.

Contract: the picture is left as the plan leaves it. A set of nodes is taken away and the recommender is asked what to
buy for their pods beside the nodes that stay: nothing, or M nodes for N. Sets are tried from the most wasteful nodes
down: many, half as many, single ones, over all pools and within each. The set that saves most and pays soon enough is
drained on the picture, and the search goes on until nothing pays or time is up. New nodes must fit below the limits of
their pools while the old ones are still there, because they come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from tutti.cluster.trial import Trial
from tutti.cluster.work.meter import SECOND
from tutti.cluster.work.work_budget import WorkBudget
from tutti.market.offerings import Offering
from tutti.market.planning_cluster import PlanningCluster
from tutti.market.remaining_limits import spent
from tutti.recommend.after_purchase import OfferingIndex
from tutti.recommend.down.bill import BillChange, change
from tutti.recommend.down.candidates import RemovalCandidate
from tutti.recommend.down.cluster_without import cluster_without
from tutti.recommend.down.drain import DrainBlocked, Drainer
from tutti.recommend.down.one_pass import RemovalGroup
from tutti.recommend.down.pool_sizes import PoolSizes
from tutti.recommend.flow import recommend_for
from tutti.recommend.records.down_plan import ScaleDownStep
from tutti.recommend.records.new_nodes import NewNode
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import DownOptions, Objective, Request, Strategy

_MOST, _SINGLES = 200, 24
"""How many nodes are taken away at once at most, and how many are looked at one by one."""
_LOOK = SECOND // 2
"""Work for a set of nodes before it is known to be a good one."""
_CARRIED_OUT = 3
"""How many of the best sets are drained before the search is given up."""


class Replacement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A bit that was drained, and how."""

    bit: RemovalGroup
    steps: tuple[ScaleDownStep, ...] = ()


class Consolidation:
    """See the module's contract."""

    def __init__(
        self,
        request: Request,
        planning: PlanningCluster,
        drainage: Drainer,
        *,
        sizes: PoolSizes,
        bought: Iterable[Offering],
        down: DownOptions,
        budget: WorkBudget,
    ) -> None:
        """`bought` was bought before, and counts against limits."""
        self._request, self._planning, self._drainage, self._sizes = request, planning, drainage, sizes
        self._catalogue, self._offered = spent(request.catalogue, bought), OfferingIndex(request.catalogue)
        self._down, self._budget = down, budget

    def run(self, candidates: Iterable[RemovalCandidate]) -> list[RemovalGroup]:
        """Look for swaps among nodes that are there."""
        left = list(candidates)
        swaps: list[RemovalGroup] = []
        while left and not self._budget.is_exhausted():
            swap = self._best(left)
            if swap is None:
                break
            bit = swap.bit
            swaps.append(bit)
            self._sizes.change(bit.gone, bit.nodes)
            self._catalogue = spent(self._catalogue, map(self._offered.of, bit.nodes))
            # Nodes that took pods now are not emptied again: nobody moves twice.
            names = {*bit.names, *(move.target for step in swap.steps for move in step.moves)}
            left = [each for each in left if each.node not in names]
        return swaps

    def _best(self, left: Sequence[RemovalCandidate]) -> Replacement | None:
        """The swap that saves most, carried out on the picture; None if there is none."""
        promising: list[tuple[BillChange, tuple[RemovalCandidate, ...]]] = []
        enough = self._budget.share(0.6)
        for chosen in _sets(left, self._sizes):
            if enough.is_exhausted():
                break
            if not self._worth(chosen, ()).is_worth(self._down):
                continue
            answer = self._ask(chosen, Strategy.LEAST_COST, budget=enough.limited_to(_LOOK))
            if answer is not None and (worth := self._worth(chosen, answer.nodes)).is_worth(self._down):
                promising.append((worth, chosen))
        promising.sort(key=lambda pair: (-pair[0].saving, pair[0].churn))
        for _, chosen in promising[:_CARRIED_OUT]:
            if (swap := self._carried_out(chosen)) is not None:
                return swap
        return None

    def _worth(
        self, chosen: Sequence[RemovalCandidate], nodes: Iterable[NewNode], moves: int | None = None
    ) -> BillChange:
        if moves is None:
            moves = sum(len(each.pods) for each in chosen)
        bought = [node.price or 0 for node in nodes]
        return change(removed=[each.price for each in chosen], bought=bought, moves=moves, down=self._down)

    def _ask(
        self, chosen: Sequence[RemovalCandidate], strategy: Strategy, *, budget: WorkBudget
    ) -> Recommendation | None:
        """What to buy when these nodes go; None if a pod would wait, a price is unknown, or a pool too small."""
        going = {each.node for each in chosen}
        options = replace(self._request.options, objective=Objective.COST, strategy=strategy, down=None)
        cluster = cluster_without(self._planning.cluster, going, {pod for each in chosen for pod in each.pods})
        request = replace(self._request, catalogue=self._catalogue, options=options, notes=())
        answer = recommend_for(cluster, request, budget)
        if answer.left or answer.cost is None or self._sizes.refusal(chosen, answer.nodes) is not None:
            return None
        return answer

    def _carried_out(self, chosen: Sequence[RemovalCandidate]) -> Replacement | None:
        """Drain a set, with the best that can be bought for it; the picture is as before if it does not pay."""
        asked = (
            self._ask(chosen, strategy, budget=self._budget.share(share))
            for strategy, share in ((Strategy.LEAST_COST, 0.2), (Strategy.OPTIMAL, 0.5))
        )
        answers = sorted((each for each in asked if each is not None), key=lambda each: each.cost or 0)
        for answer in answers:
            with Trial(self._planning.cluster) as trial:
                swap = self._drained(chosen, answer.nodes)
                if swap is not None:
                    trial.keep()
                    return swap
        return None

    def _drained(self, chosen: Sequence[RemovalCandidate], nodes: Sequence[NewNode]) -> Replacement | None:
        bought = {node.name: self._offered.of(node) for node in nodes}
        steps = self._drainage.drain([each.node for each in chosen], bought)
        if isinstance(steps, DrainBlocked):
            return None
        moves = sum(len(step.moves) for step in steps)
        used = {move.target for step in steps for move in step.moves}
        if not used.issuperset(bought) or not self._worth(chosen, nodes, moves).is_worth(self._down):
            return None
        return Replacement(bit=RemovalGroup(gone=tuple(chosen), nodes=tuple(nodes)), steps=tuple(steps))


def _sets(left: Sequence[RemovalCandidate], sizes: PoolSizes) -> Iterator[tuple[RemovalCandidate, ...]]:
    """Sets of nodes to look at, the most wasteful nodes first, of each pool as many as may go at a time."""
    order = sorted(left, key=lambda each: (-each.price * (1 - each.utilization), each.node))
    pools = {each.pool: [other for other in order if other.pool == each.pool] for each in order}
    seen: set[frozenset[str]] = set()
    for line in (order, *(pools.values() if len(pools) > 1 else ())):
        number = min(len(line), _MOST)
        while number:
            yield from _once(tuple(sizes.within_pace(line[:number])), seen)
            number //= 2
    for each in order[:_SINGLES]:
        yield from _once(tuple(sizes.within_pace([each])), seen)


def _once(chosen: tuple[RemovalCandidate, ...], seen: set[frozenset[str]]) -> Iterator[tuple[RemovalCandidate, ...]]:
    names = frozenset(each.node for each in chosen)
    if names and names not in seen:
        seen.add(names)
        yield chosen
