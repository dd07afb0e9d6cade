"""The cluster after a purchase, as `tutti schedule` would print it then."""

from __future__ import annotations

from tutti.engine.session.plan import Plan
from tutti.present.gang_plan_table import GangTable, has_gangs
from tutti.present.plan_table import plan_table, summary
from tutti.recommend.after_purchase import Settled, settle
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request


class After:
    """What becomes of the cluster."""

    def __init__(self, settled: Settled) -> None:
        self._settled = settled

    @property
    def plan(self) -> Plan:
        """The plan that places the pods."""
        return self._settled.plan

    def text(self, *, wide: bool) -> str:
        """The table and its summary."""
        plan, cluster = self.plan, self._settled.picture.cluster
        if has_gangs(plan):
            gangs = GangTable(plan, cluster)
            lines, total = gangs.text(self._settled.queue, wide=wide, namespaced=None), gangs.summary()
        else:
            lines, total = plan_table(plan, cluster, wide=wide, namespaced=None), summary(plan)
        return f"{lines}\n\n{total}" if lines else total


def after_purchase(answer: Recommendation, request: Request) -> After:
    """Buy what is recommended, and place the pods."""
    return After(settle(answer, request))
