"""The cluster after a purchase, as `tutti schedule` would print it then."""

from __future__ import annotations

from typing import Any

from tutti.app.result import Result
from tutti.engine.session.plan import Plan
from tutti.present.plan_table import plan_data, plan_text
from tutti.recommend.after_purchase import Settled, settle
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request


class AfterPurchaseResult(Result, frozen=True, kw_only=True):
    """The plan that places the pods once the nodes have joined."""

    settled: Settled

    @property
    def plan(self) -> Plan:
        """The plan."""
        return self.settled.plan

    def text(self, *, wide: bool = False) -> str:
        """The table and its summary."""
        return plan_text(self.plan, self.settled.picture.cluster, self.settled.queue, wide=wide)

    def data(self) -> dict[str, Any]:
        """The plan as plain data."""
        return plan_data(self.plan)


def after_purchase(answer: Recommendation, request: Request) -> AfterPurchaseResult:
    """Buy what is recommended, and place the pods."""
    return AfterPurchaseResult(settled=settle(answer, request))
