"""The result of the use case `recommend`: a recommendation with its request; its text is that of `tutti recommend`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from tutti.app.recommend.compare_with_peers import ComparisonResult
from tutti.app.result import Result
from tutti.app.schedule import selected_plan
from tutti.engine.session.plan import NotConsidered, Plan, Turn
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
    namespace: str | None = None
    """The namespace whose pods and gangs are shown; None for all."""

    @property
    def plan(self) -> Plan:
        """The plan after the purchase, for the pods that are shown."""
        plan = self.purchase.plan
        if self.namespace is None:
            return plan
        records = (*plan.binds, *plan.unschedulable, *plan.not_considered)
        pods = {each.pod for each in records if _is_in(each.pod, self.namespace)}
        return selected_plan(plan, pods, self._queue)

    @property
    def _queue(self) -> list[Turn]:
        return [turn for turn in self.purchase.queue if _is_in(turn.key, self.namespace)]

    def text(self, *, wide: bool = False) -> str:
        """Return the table and its summary."""
        return plan_text(self.plan, self.purchase.planning.cluster, self._queue, wide=wide)

    def data(self) -> dict[str, Any]:
        """Return the plan as plain data."""
        return plan_data(self.plan)


class RecommendationResult(Result, frozen=True, kw_only=True):
    """A recommendation with its request; its text is that of `tutti recommend`."""

    recommendation: Recommendation
    request: Request
    comparison: ComparisonResult | None = None
    """What other autoscalers would do, if a comparison was requested."""
    namespace: str | None = None
    """The namespace whose pods are shown; None for all. The nodes are always those for all pods."""

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
        """The pods that stay pending and are shown, with the reason."""
        return self._shown.left

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
        return not self.recommendation.pods and not self._not_considered

    @property
    def _shown(self) -> Recommendation:
        """The recommendation, of the pods that stay pending only those that are shown."""
        answer, namespace = self.recommendation, self.namespace
        if namespace is None:
            return answer
        left = tuple(each for each in answer.left if _is_in(each.pod, namespace))
        alternatives = tuple(each for each in answer.alternatives if _is_in(each.who, namespace))
        return msgspec.structs.replace(answer, left=left, alternatives=alternatives)

    @property
    def _not_considered(self) -> list[NotConsidered]:
        return [each for each in not_considered(self.request) if _is_in(each.pod, self.namespace)]

    def after_purchase(self) -> AfterPurchaseResult:
        """Return the plan that places the pods after the new nodes have joined."""
        purchase = apply_recommendation(self.recommendation, self.request)
        return AfterPurchaseResult(purchase=purchase, namespace=self.namespace)

    def text(self, *, wide: bool = False) -> str:
        """Return all tables."""
        return "\n\n".join(self.tables(wide=wide)) or NO_PENDING_PODS

    def tables(self, *, wide: bool, applied: bool = False) -> Iterator[str]:
        """Yield the nodes to buy, the plan after the purchase (if `applied`), the scale-down, and the comparison."""
        answer, others = self._shown, self._not_considered
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
        answer = recommendation_answer(self._shown, self.request.catalogue.currency)
        data: dict[str, Any] = msgspec.to_builtins(answer)
        if applied:
            data["plan"] = self.after_purchase().data()
        return data | (self.comparison.data() if self.comparison is not None else {})


def _is_in(key: str, namespace: str | None) -> bool:
    """Return whether the object of a key is in a namespace; always without one."""
    return namespace is None or key.partition("/")[0] == namespace
