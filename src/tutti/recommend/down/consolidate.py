"""Consolidation: replace nodes by fewer or cheaper nodes, if that pays.

Contract: the planning cluster ends as the plan leaves it. A set of nodes is removed from a copy, and the recommender
says what to buy for their pods besides the nodes that stay: no node, or M nodes for N. Sets start with the most
wasteful nodes: many, half as many, single ones, over all pools and within each pool. The set that saves most and pays
soon enough is drained in the planning cluster; the search repeats until no set pays or the budget is exhausted. New
nodes must fit the limits of their pools while the old nodes still exist, because they join first.
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
from tutti.market.remaining_limits import catalogue_after_purchase
from tutti.recommend.after_purchase import OfferingIndex
from tutti.recommend.down.bill import BillChange, bill_change
from tutti.recommend.down.cluster_without import cluster_without
from tutti.recommend.down.drain import DrainBlocked, Drainer
from tutti.recommend.down.final_drain import RemovalGroup
from tutti.recommend.down.pool_sizes import PoolSizes
from tutti.recommend.down.removal_candidates import RemovalCandidate
from tutti.recommend.pipeline import recommend_for
from tutti.recommend.records.down_plan import ScaleDownStep
from tutti.recommend.records.new_nodes import NewNode
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import DownOptions, Objective, Request, Strategy

_MAX_SET, _MAX_SINGLES = 200, 24
"""The largest set of nodes, and the number of nodes that are tried one by one."""
_FIRST_LOOK = SECOND // 2
"""Work for a first look at a set of nodes."""
_MAX_DRAINED = 3
"""The number of best sets that are drained before the search ends."""


class Replacement(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A drained group of nodes, with the steps."""

    group: RemovalGroup
    steps: tuple[ScaleDownStep, ...] = ()


class Consolidation:
    """The search for replacements; see the module's contract."""

    def __init__(
        self,
        request: Request,
        planning: PlanningCluster,
        drainer: Drainer,
        *,
        sizes: PoolSizes,
        bought: Iterable[Offering],
        down: DownOptions,
        budget: WorkBudget,
    ) -> None:
        """Take the offerings of nodes already bought (`bought`), which count against limits."""
        self._request, self._planning, self._drainer, self._sizes = request, planning, drainer, sizes
        self._catalogue, self._offerings = (
            catalogue_after_purchase(request.catalogue, bought),
            OfferingIndex(request.catalogue),
        )
        self._down, self._budget = down, budget

    def run(self, candidates: Iterable[RemovalCandidate]) -> list[RemovalGroup]:
        """Return the groups of existing nodes to replace."""
        left = list(candidates)
        groups: list[RemovalGroup] = []
        while left and not self._budget.is_exhausted():
            replacement = self._best_replacement(left)
            if replacement is None:
                break
            group = replacement.group
            groups.append(group)
            self._sizes.change(group.gone, group.nodes)
            self._catalogue = catalogue_after_purchase(self._catalogue, map(self._offerings.find, group.nodes))
            # Nodes that received pods are not drained later: no pod moves twice.
            names = {*group.names, *(move.target for step in replacement.steps for move in step.moves)}
            left = [each for each in left if each.node not in names]
        return groups

    def _best_replacement(self, candidates: Sequence[RemovalCandidate]) -> Replacement | None:
        """Return the replacement that saves most, carried out in the planning cluster; None if there is none."""
        promising: list[tuple[BillChange, tuple[RemovalCandidate, ...]]] = []
        search_budget = self._budget.share(0.6)
        for chosen in _sets(candidates, self._sizes):
            if search_budget.is_exhausted():
                break
            if not self._bill_change(chosen, ()).pays_off(self._down):
                continue
            answer = self._recommendation_without(
                chosen, Strategy.LEAST_COST, budget=search_budget.limited_to(_FIRST_LOOK)
            )
            if answer is not None and (change := self._bill_change(chosen, answer.nodes)).pays_off(self._down):
                promising.append((change, chosen))
        promising.sort(key=lambda pair: (-pair[0].saving, pair[0].churn))
        for _, chosen in promising[:_MAX_DRAINED]:
            if (replacement := self._replace(chosen)) is not None:
                return replacement
        return None

    def _bill_change(
        self, chosen: Sequence[RemovalCandidate], nodes: Iterable[NewNode], moves: int | None = None
    ) -> BillChange:
        if moves is None:
            moves = sum(len(each.pods) for each in chosen)
        bought = [node.price or 0 for node in nodes]
        return bill_change(removed=[each.price for each in chosen], bought=bought, moves=moves, down=self._down)

    def _recommendation_without(
        self, chosen: Sequence[RemovalCandidate], strategy: Strategy, *, budget: WorkBudget
    ) -> Recommendation | None:
        """Return what to buy when these nodes go; None if a pod is left, a price is unknown, or a pool is too small."""
        removed_nodes = {each.node for each in chosen}
        options = replace(self._request.options, objective=Objective.COST, strategy=strategy, down=None)
        cluster = cluster_without(self._planning.cluster, removed_nodes, {pod for each in chosen for pod in each.pods})
        request = replace(self._request, catalogue=self._catalogue, options=options, notes=())
        answer = recommend_for(cluster, request, budget)
        if answer.left or answer.cost is None or self._sizes.refusal(chosen, answer.nodes) is not None:
            return None
        return answer

    def _replace(self, chosen: Sequence[RemovalCandidate]) -> Replacement | None:
        """Drain a set after the best purchase for its pods; if that does not pay, return None and change nothing."""
        recommendations = (
            self._recommendation_without(chosen, strategy, budget=self._budget.share(share))
            for strategy, share in ((Strategy.LEAST_COST, 0.2), (Strategy.OPTIMAL, 0.5))
        )
        answers = sorted((each for each in recommendations if each is not None), key=lambda each: each.cost or 0)
        for answer in answers:
            with Trial(self._planning.cluster) as trial:
                replacement = self._drain(chosen, answer.nodes)
                if replacement is not None:
                    trial.keep()
                    return replacement
        return None

    def _drain(self, chosen: Sequence[RemovalCandidate], nodes: Sequence[NewNode]) -> Replacement | None:
        bought = {node.name: self._offerings.find(node) for node in nodes}
        steps = self._drainer.drain([each.node for each in chosen], bought)
        if isinstance(steps, DrainBlocked):
            return None
        moves = sum(len(step.moves) for step in steps)
        target_nodes = {move.target for step in steps for move in step.moves}
        if not target_nodes.issuperset(bought) or not self._bill_change(chosen, nodes, moves).pays_off(self._down):
            return None
        return Replacement(group=RemovalGroup(gone=tuple(chosen), nodes=tuple(nodes)), steps=tuple(steps))


def _sets(candidates: Sequence[RemovalCandidate], sizes: PoolSizes) -> Iterator[tuple[RemovalCandidate, ...]]:
    """Yield sets of nodes to try, the most wasteful nodes first, of each pool as many as its budget allows."""
    order = sorted(candidates, key=lambda each: (-each.price * (1 - each.utilization), each.node))
    pools = {each.pool: [other for other in order if other.pool == each.pool] for each in order}
    seen: set[frozenset[str]] = set()
    for ordered in (order, *(pools.values() if len(pools) > 1 else ())):
        number = min(len(ordered), _MAX_SET)
        while number:
            yield from _unseen(tuple(sizes.within_budget(ordered[:number])), seen)
            number //= 2
    for each in order[:_MAX_SINGLES]:
        yield from _unseen(tuple(sizes.within_budget([each])), seen)


def _unseen(chosen: tuple[RemovalCandidate, ...], seen: set[frozenset[str]]) -> Iterator[tuple[RemovalCandidate, ...]]:
    names = frozenset(each.node for each in chosen)
    if names and names not in seen:
        seen.add(names)
        yield chosen
