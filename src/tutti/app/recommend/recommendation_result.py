"""The answer of the use case `recommend`: a recommendation with its request, which prints as `tutti recommend` does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tutti.app.recommend.compare_with_peers import ComparisonResult
from tutti.app.result import Result
from tutti.engine.session.plan import Plan
from tutti.market.money import dollars
from tutti.present.plan_table import NO_PENDING_PODS, plan_data, plan_text
from tutti.present.recommendation_names import recommendation_names
from tutti.present.recommendation_text import recommendation_text
from tutti.present.scale_down_text import scale_down_text
from tutti.recommend.after_purchase import ClusterAfterPurchase, apply_recommendation
from tutti.recommend.pending_pods import not_considered
from tutti.recommend.records.down_plan import DownPlan
from tutti.recommend.records.new_nodes import NewNode, ScaleUp
from tutti.recommend.records.recommendation import LeftPod, Recommendation
from tutti.recommend.records.request import Request
from tutti.wire.tutti_api.build_response import recommendation_answer


class AfterPurchaseResult(Result, frozen=True, kw_only=True):
    """The plan that places the pods once the nodes have joined, as `tutti schedule` would print it then."""

    settled: ClusterAfterPurchase

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.settled.plan

    def text(self, *, wide: bool = False) -> str:
        """The table and its summary."""
        return plan_text(self.plan, self.settled.planning.cluster, self.settled.queue, wide=wide)

    def data(self) -> dict[str, Any]:
        """The plan as plain data."""
        return plan_data(self.plan)


class RecommendationResult(Result, frozen=True, kw_only=True):
    """A recommendation with the request that it answers; it prints as `tutti recommend` does."""

    recommendation: Recommendation
    request: Request
    comparison: ComparisonResult | None = None
    """What others would do, if that was asked."""

    @property
    def scale_up(self) -> tuple[ScaleUp, ...]:
        """How many nodes to buy of each pool, zone and type."""
        return self.recommendation.scale_up

    @property
    def nodes(self) -> tuple[NewNode, ...]:
        """Every node to buy, with its pods."""
        return self.recommendation.nodes

    @property
    def pending(self) -> tuple[LeftPod, ...]:
        """Pods that stay pending, with the reason."""
        return self.recommendation.left

    @property
    def scale_down(self) -> DownPlan | None:
        """Nodes that can go, if that was asked."""
        return self.recommendation.down

    @property
    def cost_per_hour(self) -> float | None:
        """The price of all nodes to buy, in the currency of the prices; None when a price is not known."""
        cost = self.recommendation.cost
        return None if cost is None else dollars(cost)

    @property
    def is_empty(self) -> bool:
        """Whether no pod was pending."""
        return not self.recommendation.pods and not not_considered(self.request)

    def after_purchase(self) -> AfterPurchaseResult:
        """The plan that places the pods once the nodes have joined."""
        return AfterPurchaseResult(settled=apply_recommendation(self.recommendation, self.request))

    def text(self, *, wide: bool = False) -> str:
        """All tables, one after the other."""
        return "\n\n".join(self.tables(wide=wide)) or NO_PENDING_PODS

    def tables(self, *, wide: bool, applied: bool = False) -> Iterator[str]:
        """What to buy, where the pods are then (if `applied`), which nodes can go, and what others would do."""
        answer, others = self.recommendation, not_considered(self.request)
        if answer.pods or others:
            yield recommendation_text(answer, self.request, others, wide=wide)
        if applied and answer.pods:
            yield self.after_purchase().text(wide=wide)
        if answer.down is not None:
            yield scale_down_text(answer.down, wide=wide)
        if self.comparison is not None:
            yield from self.comparison.tables()

    def names(self) -> str:
        """A line for each scale-up and for each node that can go, as `-o name` has it."""
        return recommendation_names(self.recommendation)

    def data(self, *, applied: bool = False) -> dict[str, Any]:
        """The recommendation as plain data; `applied` adds the plan after the purchase."""
        answer = recommendation_answer(self.recommendation, self.request.catalogue.currency)
        data: dict[str, Any] = msgspec.to_builtins(answer)
        if applied:
            data["plan"] = self.after_purchase().data()
        return data | (self.comparison.data() if self.comparison is not None else {})
