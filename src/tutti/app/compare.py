"""What others would do with the same cluster: buy for the pods that wait, and take nodes away.

Contract: the clock comes with the caller's work budgets. What there is nothing to compare with is empty or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from tutti.cluster.work_budget import WorkBudget
    from tutti.recommend.compare import Compared
    from tutti.recommend.down.compare_cluster_autoscaler import PeerDown
    from tutti.recommend.records.recommendation import Recommendation
    from tutti.recommend.records.request import Request


class Beside(NamedTuple):
    """See the module's line."""

    purchases: tuple[Compared, ...] = ()
    """Ours first; empty where nobody waits."""
    removals: PeerDown | None = None
    """Cluster Autoscaler's; None where no scale-down is asked for, or nothing is known of pods."""


def look_beside(
    answer: Recommendation, request: Request, seconds: float, *, budget: Callable[[float], WorkBudget]
) -> Beside:
    """What others would do; each of them has as much time as our search."""
    from tutti.cli.loading import busy
    from tutti.recommend.compare import PEERS, compare
    from tutti.recommend.down.compare_cluster_autoscaler import cluster_autoscaler_beside

    with busy("comparing") as tell:
        purchases: tuple[Compared, ...] = ()
        if answer.pods:
            purchases = compare(request, answer, budget=budget(len(PEERS) * seconds), tell=tell)
        return Beside(purchases, cluster_autoscaler_beside(request, answer, budget(seconds)))
