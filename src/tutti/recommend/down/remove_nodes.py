"""Remove candidates one after the other, if all their pods fit on existing nodes.

Contract: the planning cluster ends as the plan leaves it. The result depends on the order, so several orders are tried,
and the one that saves most is kept: by saving per move, least utilized first, cheapest first. The first order always
runs to its end; the others run only while the budget allows, and only if a candidate has pods.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tutti.cluster.trial import Trial
from tutti.cluster.work.work_budget import WorkBudget
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.down.bill import bill_change
from tutti.recommend.down.drain import DrainBlocked, Drainer
from tutti.recommend.down.pool_sizes import PoolSizes
from tutti.recommend.down.removal_candidates import RemovalCandidate
from tutti.recommend.records.down_plan import ScaleDownStep, StayingNode
from tutti.recommend.records.request import DownOptions

Order = Callable[[RemovalCandidate], tuple[object, ...]]


class RemovedNodes(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The result of one order."""

    gone: tuple[RemovalCandidate, ...] = ()
    moves: int = 0
    staying_nodes: tuple[StayingNode, ...] = ()

    @property
    def worth(self) -> tuple[int, int, int]:
        """Rank of the result: saving, number of removed nodes, fewest moves."""
        return sum(each.price for each in self.gone), len(self.gone), -self.moves


def _by_saving(each: RemovalCandidate) -> tuple[object, ...]:
    return bool(each.pods), -each.price / max(len(each.pods), 1), each.utilization, each.node


def _by_utilization(each: RemovalCandidate) -> tuple[object, ...]:
    return bool(each.pods), each.utilization, -each.price, each.node


def _by_price(each: RemovalCandidate) -> tuple[object, ...]:
    return each.price, len(each.pods), each.utilization, each.node


class NodeRemover:
    """Removes candidates from a planning cluster; see the module's contract."""

    def __init__(
        self, planning: PlanningCluster, drainer: Drainer, sizes: PoolSizes, *, down: DownOptions, budget: WorkBudget
    ) -> None:
        self._cluster, self._drainer, self._sizes = planning.cluster, drainer, sizes
        self._down, self._budget = down, budget

    def run(self, candidates: Sequence[RemovalCandidate]) -> RemovedNodes:
        """Remove as many of these candidates as possible."""
        with Trial(self._cluster) as trial:
            best = self._run_order(candidates, _by_saving)
            is_first_enough = not any(each.pods for each in candidates) or self._budget.is_below(0.5)
            if is_first_enough:
                trial.keep()
        if not is_first_enough:
            for order in (_by_utilization, _by_price):
                if not self._budget.is_below(0.5):
                    best = max(best, self._try_order(candidates, order), key=lambda found: found.worth)
            for each in best.gone:
                self._drainer.drain([each.node])  # gives the same result as in the trial: same cluster, same order
        self._sizes.change(best.gone)
        return best

    def _try_order(self, candidates: Sequence[RemovalCandidate], order: Order) -> RemovedNodes:
        with Trial(self._cluster):
            return self._run_order(candidates, order)

    def _run_order(self, candidates: Sequence[RemovalCandidate], order: Order) -> RemovedNodes:
        gone: list[RemovalCandidate] = []
        moves = 0
        staying_nodes: list[StayingNode] = []
        sizes = self._sizes.copy()
        for each in sorted(candidates, key=order):
            if (refusal := sizes.refusal([each])) is not None:
                staying_nodes.append(staying_node(each, refusal.reason, refusal.message))
                continue
            result = self._drain_candidate(each)
            if isinstance(result, StayingNode):
                staying_nodes.append(result)
            else:
                sizes.change([each])
                gone.append(each)
                moves += sum(len(step.moves) for step in result)
        return RemovedNodes(gone=tuple(gone), moves=moves, staying_nodes=tuple(staying_nodes))

    def _drain_candidate(self, candidate: RemovalCandidate) -> list[ScaleDownStep] | StayingNode:
        """Drain one candidate if that is possible and pays; otherwise return why the node stays."""
        if candidate.pods and self._budget.is_exhausted():
            return staying_node(
                candidate, "NotSimulated", "there was no time to look at it: give more with --time-limit"
            )
        with Trial(self._cluster) as trial:
            steps = self._drainer.drain([candidate.node])
            if isinstance(steps, DrainBlocked):
                return staying_node(candidate, steps.reason, steps.message, steps.pod)
            moves = sum(len(step.moves) for step in steps)
            if candidate.price and moves:
                change = bill_change(removed=[candidate.price], bought=(), moves=moves, down=self._down)
                if not change.pays_off(self._down):
                    message = f"{moves} moves would not pay within {self._down.payback:g} hours"
                    return staying_node(candidate, "NotWorthMoving", message)
            trial.keep()
        return steps


def staying_node(candidate: RemovalCandidate, reason: str, message: str, pod: str = "") -> StayingNode:
    """Return the record of a candidate that stays."""
    return StayingNode(
        node=candidate.node,
        pool=candidate.pool,
        reason=reason,
        message=message,
        pod=pod,
        utilization=candidate.utilization,
    )
