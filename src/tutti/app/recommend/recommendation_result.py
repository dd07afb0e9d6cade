"""The result of the use case `recommend`: a recommendation with its request; its text is that of `tutti recommend`."""

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
    """The plan that places the pods after the new nodes have joined; its text is that of `tutti schedule`."""

    purchase: ClusterAfterPurchase

    @property
    def plan(self) -> Plan:
        """The plan after the purchase."""
        return self.purchase.plan

    def text(self, *, wide: bool = False) -> str:
        """Return the table and its summary."""
        return plan_text(self.plan, self.purchase.planning.cluster, self.purchase.queue, wide=wide)

    def data(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return plan_data(self.plan)


class RecommendationResult(Result, frozen=True, kw_only=True):
    """A recommendation with its request; its text is that of `tutti recommend`."""

    recommendation: Recommendation
    request: Request
    comparison: ComparisonResult | None = None
    """What other autoscalers would do, if a comparison was requested."""

    @property
    def scale_up(self) -> tuple[ScaleUp, ...]:
        """The number of nodes to buy for each pool, zone and instance type."""
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
        """The nodes to remove, if a scale-down was requested."""
        return self.recommendation.down

    @property
    def cost_per_hour(self) -> float | None:
        """The price of all nodes to buy, in the currency of the prices; None if a price is unknown."""
        cost = self.recommendation.cost
        return None if cost is None else dollars(cost)

    @property
    def is_empty(self) -> bool:
        """Whether no pod was pending."""
        return not self.recommendation.pods and not not_considered(self.request)

    def after_purchase(self) -> AfterPurchaseResult:
        """Return the plan that places the pods after the new nodes have joined."""
        return AfterPurchaseResult(purchase=apply_recommendation(self.recommendation, self.request))

    def text(self, *, wide: bool = False) -> str:
        """Return all tables."""
        return "\n\n".join(self.tables(wide=wide)) or NO_PENDING_PODS

    def tables(self, *, wide: bool, applied: bool = False) -> Iterator[str]:
        """Yield the nodes to buy, the plan after the purchase (if `applied`), the scale-down, and the comparison."""
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
        """Return a line for each scale-up and for each node to remove, as `-o name` prints it."""
        return recommendation_names(self.recommendation)

    def data(self, *, applied: bool = False) -> dict[str, Any]:
        """Return the recommendation as plain data; `applied` adds the plan after the purchase."""
        answer = recommendation_answer(self.recommendation, self.request.catalogue.currency)
        data: dict[str, Any] = msgspec.to_builtins(answer)
        if applied:
            data["plan"] = self.after_purchase().data()
        return data | (self.comparison.data() if self.comparison is not None else {})
