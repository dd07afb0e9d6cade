"""The use case `compare`: what other autoscalers would do with the same cluster, beside our recommendation.

Contract: pure but for the clock, which comes with the caller's budgets; each autoscaler has as much time as our
search. Where there is nothing to compare, the comparison is empty.
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
    """Our purchase and scale-down beside those of others; it prints as `tutti recommend --compare` does."""

    recommendation: Recommendation
    currency: str
    purchases: tuple[ComparedPurchase, ...] = ()
    """Ours first; empty where no pod waits."""
    removals: PeerScaleDown | None = None
    """Nodes that Cluster Autoscaler would remove; None where no scale-down was asked for, or no pod is known."""

    def text(self, *, wide: bool = False) -> str:
        """The tables, and remarks on how to read them."""
        return "\n\n".join(self.tables())

    def tables(self) -> Iterator[str]:
        """The comparison of purchases, and that of scale-downs, as far as there are any."""
        if self.purchases:
            yield comparison_text(self.purchases, self.recommendation)
        if self.removals is not None and self.recommendation.down is not None:
            yield scale_down_comparison_text(self.recommendation.down, self.removals)

    def data(self) -> dict[str, Any]:
        """Both comparisons as plain data."""
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
    """Ask the models of other autoscalers; `budget` makes one of so many seconds, `tell` hears who is asked."""
    purchases: tuple[ComparedPurchase, ...] = ()
    if answer.pods:
        purchases = compare(request, answer, budget=budget(len(PEERS) * seconds), tell=tell)
    removals = cluster_autoscaler_scale_down(request, answer, budget(seconds))
    currency = request.catalogue.currency
    return ComparisonResult(recommendation=answer, currency=currency, purchases=purchases, removals=removals)
