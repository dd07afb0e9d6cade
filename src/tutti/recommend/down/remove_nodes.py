"""Shrinking: which nodes can go, one after the other, with every pod on another node that is there.

Contract: the picture is left as the plan leaves it. Which nodes go depends on who is asked first, so several orders are
tried and the one that saves most is kept: by what a move saves, the emptiest first, the cheapest first. The first is
run to its end; the others only while there is time, and only where something other than empty nodes is at stake.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from tutti.cluster.trial import Trial
from tutti.cluster.work.work_budget import WorkBudget
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.down.bill import change
from tutti.recommend.down.candidates import RemovalCandidate
from tutti.recommend.down.drain import DrainBlocked, Drainer
from tutti.recommend.down.pool_sizes import PoolSizes
from tutti.recommend.records.down_plan import ScaleDownStep, StayingNode
from tutti.recommend.records.request import DownOptions

Order = Callable[[RemovalCandidate], tuple[object, ...]]


class RemovedNodes(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one order came to."""

    gone: tuple[RemovalCandidate, ...] = ()
    moves: int = 0
    stays: tuple[StayingNode, ...] = ()

    @property
    def worth(self) -> tuple[int, int, int]:
        """How good it is: what it saves, how many nodes go, how few pods move."""
        return sum(each.price for each in self.gone), len(self.gone), -self.moves


def _by_saving(each: RemovalCandidate) -> tuple[object, ...]:
    return bool(each.pods), -each.price / max(len(each.pods), 1), each.utilization, each.node


def _by_use(each: RemovalCandidate) -> tuple[object, ...]:
    return bool(each.pods), each.utilization, -each.price, each.node


def _by_price(each: RemovalCandidate) -> tuple[object, ...]:
    return each.price, len(each.pods), each.utilization, each.node


class NodeRemover:
    """See the module's contract."""

    def __init__(
        self, planning: PlanningCluster, drainage: Drainer, sizes: PoolSizes, *, down: DownOptions, budget: WorkBudget
    ) -> None:
        self._cluster, self._drainage, self._sizes = planning.cluster, drainage, sizes
        self._down, self._budget = down, budget

    def run(self, asked: Sequence[RemovalCandidate]) -> RemovedNodes:
        """Remove what can go of these."""
        with Trial(self._cluster) as trial:
            best = self._run(asked, _by_saving)
            alone = not any(each.pods for each in asked) or self._budget.is_below(0.5)
            if alone:
                trial.keep()
        if not alone:
            for order in (_by_use, _by_price):
                if not self._budget.is_below(0.5):
                    best = max(best, self._tried(asked, order), key=lambda found: found.worth)
            for each in best.gone:
                self._drainage.drain([each.node])  # as when it was tried: the same picture, the same order
        self._sizes.change(best.gone)
        return best

    def _tried(self, asked: Sequence[RemovalCandidate], order: Order) -> RemovedNodes:
        with Trial(self._cluster):
            return self._run(asked, order)

    def _run(self, asked: Sequence[RemovalCandidate], order: Order) -> RemovedNodes:
        gone: list[RemovalCandidate] = []
        moves = 0
        stays: list[StayingNode] = []
        sizes = self._sizes.copy()
        for each in sorted(asked, key=order):
            if (refused := sizes.refusal([each])) is not None:
                stays.append(stay_of(each, refused.reason, refused.message))
                continue
            found = self._ask(each)
            if isinstance(found, StayingNode):
                stays.append(found)
            else:
                sizes.change([each])
                gone.append(each)
                moves += sum(len(step.moves) for step in found)
        return RemovedNodes(gone=tuple(gone), moves=moves, stays=tuple(stays))

    def _ask(self, each: RemovalCandidate) -> list[ScaleDownStep] | StayingNode:
        """Drain one node, if it can be and is worth it."""
        if each.pods and self._budget.is_exhausted():
            return stay_of(each, "NotSimulated", "there was no time to look at it: give more with --time-limit")
        with Trial(self._cluster) as trial:
            found = self._drainage.drain([each.node])
            if isinstance(found, DrainBlocked):
                return stay_of(each, found.reason, found.message, found.pod)
            moves = sum(len(step.moves) for step in found)
            if each.price and moves:
                worth = change(removed=[each.price], bought=(), moves=moves, down=self._down)
                if not worth.is_worth(self._down):
                    why = f"{moves} moves would not pay within {self._down.payback:g} hours"
                    return stay_of(each, "NotWorthMoving", why)
            trial.keep()
        return found


def stay_of(each: RemovalCandidate, reason: str, message: str, pod: str = "") -> StayingNode:
    """A candidate that stays after all."""
    return StayingNode(
        node=each.node, pool=each.pool, reason=reason, message=message, pod=pod, utilization=each.utilization
    )
