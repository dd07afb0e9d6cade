"""The use case `compare`: our recommendation beside what other autoscalers would do with the same cluster.

Contract: pure except for the clock in the caller's budgets; each autoscaler gets the same time as our search. If there
is nothing to compare, the comparison is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tutti.app.result import Result
from tutti.cluster.work.work_budget import WorkBudget
from tutti.present.comparison_text import comparison_data, comparison_text
from tutti.present.scale_down_comparison_text import scale_down_comparison_data, scale_down_comparison_text
from tutti.recommend.compare import PEERS, ComparedPurchase, compare
from tutti.recommend.down.compare_cluster_autoscaler import PeerScaleDown, cluster_autoscaler_scale_down
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request


class ComparisonResult(Result, frozen=True, kw_only=True):
    """Our purchase and scale-down beside those of other autoscalers; its text is that of `--compare`."""

    recommendation: Recommendation
    currency: str
    purchases: tuple[ComparedPurchase, ...] = ()
    """Our purchase first; empty if no pod is pending."""
    removals: PeerScaleDown | None = None
    """Nodes that Cluster Autoscaler would remove; None without a scale-down request or without known pods."""

    def text(self, *, wide: bool = False) -> str:
        """Return the tables, and notes on how to read them."""
        return "\n\n".join(self.tables())

    def tables(self) -> Iterator[str]:
        """Yield the comparison of purchases and the comparison of scale-downs, if there are any."""
        if self.purchases:
            yield comparison_text(self.purchases, self.recommendation)
        if self.removals is not None and self.recommendation.down is not None:
            yield scale_down_comparison_text(self.recommendation.down, self.removals)

    def data(self) -> dict[str, Any]:
        """Return both comparisons as plain data."""
        data: dict[str, Any] = {"comparison": comparison_data(self.purchases, self.currency)}
        if self.removals is not None:
            data["scaleDownComparison"] = [scale_down_comparison_data(self.removals, self.currency)]
        return data


def compare_with_peers(
    answer: Recommendation,
    request: Request,
    seconds: float,
    *,
    budget: Callable[[float], WorkBudget],
    tell: Callable[[str], None] = lambda _: None,
) -> ComparisonResult:
    """Run the models of other autoscalers on a request.

    `budget` returns a work budget of a number of seconds; `tell` receives the name of each autoscaler before its run.
    """
    purchases: tuple[ComparedPurchase, ...] = ()
    if answer.pods:
        purchases = compare(request, answer, budget=budget(len(PEERS) * seconds), tell=tell)
    removals = cluster_autoscaler_scale_down(request, answer, budget(seconds))
    currency = request.catalogue.currency
    return ComparisonResult(recommendation=answer, currency=currency, purchases=purchases, removals=removals)
