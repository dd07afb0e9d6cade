"""Cluster Autoscaler's scale-up: one group a loop, chosen by an expander, until nobody can be helped.

Contract: pods that fit are bound, one loop buys, the new nodes join with their daemons, pods that fit are bound, and so
on. In a loop every offering is a node group of its own; of options that the expander holds equal the first is taken,
where Cluster Autoscaler draws lots. Pods below the cutoff of expendable pods buy nothing; they go where room is left.
Limits on nodes hold while an option is estimated, other limits once it is chosen, as they do there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tutti.autoscalers.cluster_autoscaler.balancing_processor import are_similar, split
from tutti.autoscalers.cluster_autoscaler.binpacking_estimator import BinpackingEstimator, Option
from tutti.autoscalers.cluster_autoscaler.expander import EXPANDERS, ExpanderInput, Pricing, best
from tutti.autoscalers.cluster_autoscaler.filter_out_schedulable import bind
from tutti.autoscalers.shared.autoscaler_cluster import AutoscalerCluster
from tutti.autoscalers.shared.borrowed_cluster import borrowed
from tutti.autoscalers.shared.cluster_snapshot import ClusterSnapshot, snapshot_of
from tutti.autoscalers.shared.limit_counter import LimitCounter
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.cluster import Cluster
from tutti.cluster.work.work_budget import WorkBudget
from tutti.exceptions import InputError
from tutti.kube.objects import DaemonSet
from tutti.market.offerings import Catalogue

EXPENDABLE_BELOW = -10
Deltas = dict[int, int]
"""How many nodes of each offering are bought."""


class ScaleUpOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How Cluster Autoscaler runs."""

    expander: str = "least-waste"
    """``least-waste``, ``most-pods`` or ``price``."""
    balance: bool = False
    """Whether a scale-up is split between similar node groups."""
    pricing: Pricing = Pricing()
    """What pods are worth to the price expander."""


_DEFAULT = ScaleUpOptions()


def cluster_autoscaler(
    cluster: Cluster,
    catalogue: Catalogue,
    daemon_sets: Sequence[DaemonSet] = (),
    *,
    options: ScaleUpOptions = _DEFAULT,
    budget: WorkBudget | None = None,
) -> Purchase:
    """What Cluster Autoscaler would buy for the pending pods of a cluster, which is left as it was."""
    with borrowed(cluster):
        run = ScaleUpOrchestrator(AutoscalerCluster(cluster, catalogue, daemon_sets), catalogue, options, budget=budget)
        for _ in run.loops():
            pass
        return run.purchase()


class ScaleUpLoop:
    """One loop: what was weighed, what was held best, and what was bought."""

    def __init__(self, options: Sequence[Option], chosen: Sequence[Option], deltas: Deltas) -> None:
        self.options, self.chosen, self.deltas = options, chosen, deltas


class ScaleUpOrchestrator:
    """A scale-up under way; the cluster changes with it."""

    def __init__(
        self,
        view: AutoscalerCluster,
        catalogue: Catalogue,
        options: ScaleUpOptions = _DEFAULT,
        *,
        budget: WorkBudget | None = None,
    ) -> None:
        if options.expander not in EXPANDERS:
            raise InputError(f"{options.expander!r} is none of {', '.join(EXPANDERS)}", field="expander")
        self._options, self._budget = options, budget
        self.view = view
        self._snapshot: ClusterSnapshot = snapshot_of(self.view)
        self._estimator = BinpackingEstimator(self.view, self._snapshot, budget)
        self._limits = LimitCounter(catalogue, self.view.offerings)
        current = {pool.name: pool.current for pool in catalogue.pools}
        self._sizes = [current[offering.pool] for offering in self.view.offerings]
        self._waiting = {number: list(pod_group.pods) for number, pod_group in enumerate(self.view.pod_groups)}
        self._bought: list[int] = []
        """What each new node is."""
        self._went: list[tuple[str, int]] = []

    def loops(self) -> Iterator[ScaleUpLoop]:
        """Go on, loop by loop, until nothing is bought, or what was bought took nobody."""
        tried = 0
        while True:
            went = list(bind(self._snapshot, self._waiting, since=tried, budget=self._budget))
            self._went += went
            waiting = {n: pods for n, pods in self._waiting.items() if not self._is_expendable(n)}
            if not waiting or (self._bought and not went) or self._is_exhausted():
                return
            tried = self._snapshot.size
            loop = self._loop(waiting)
            yield loop
            if not loop.deltas:
                return
            for offering in sorted(loop.deltas, key=lambda each: self.view.offerings[each].pool):
                self._snapshot.add(offering, loop.deltas[offering])
                self._bought += [offering] * loop.deltas[offering]

    def purchase(self) -> Purchase:
        """What was bought by now, and who went where; when time is up, without nodes that nobody could be put on."""
        there, names = self._snapshot.there, self.view.cluster.nodes.names
        taken: list[list[str]] = [[] for _ in self._bought]
        on_existing = []
        for pod, node in self._went:
            if node < there:
                on_existing.append((pod, names[self.view.rows[node]]))
            else:
                taken[node - there].append(pod)
        nodes = [each for each in zip(self._bought, taken, strict=True) if each[1] or not self._is_exhausted()]
        return Purchase(
            nodes=tuple((self.view.offerings[offering], tuple(pods)) for offering, pods in nodes),
            on_existing=tuple(on_existing),
            left=tuple(pod for pods in self._waiting.values() for pod in pods),
        )

    # One loop ---------------------------------------------------------------------------------------------------------

    def _loop(self, waiting: Mapping[int, Sequence[str]]) -> ScaleUpLoop:
        limits, estimator = self._limits, self._estimator
        helped: dict[int, list[int]] = {}
        for number in range(len(self.view.offerings)):
            if limits.left(number) and not self._is_exhausted():
                helped[number] = estimator.schedulable(number, waiting)
        options = []
        for number, pod_groups in helped.items():
            if pod_groups and not self._is_exhausted():
                # Groups that are alike stand in for each other.
                most = limits.nodes_left(number, *self._similar(number, helped))
                options.append(estimator.estimate(number, pod_groups, waiting, most=most))
        if self._is_exhausted():  # not all that there is was weighed
            return ScaleUpLoop((), (), {})
        options = [option for option in options if option.nodes and option.pods]
        given = ExpanderInput(
            offerings=self.view.offerings,
            pod_groups=self.view.pod_groups,
            nodes=self._snapshot.size,
            pricing=self._options.pricing,
        )
        chosen = best(self._options.expander, given, options)
        deltas = self._buy(chosen[0], self._similar(chosen[0].offering, helped)) if chosen else {}
        return ScaleUpLoop(options, chosen, deltas)

    def _similar(self, offering: int, helped: Mapping[int, Sequence[int]]) -> list[int]:
        """The other groups that a scale-up of this one may be split with: like it, and good for the same pods.

        Cluster Autoscaler looks at a node of a group if it has one, else at its template. As recorded, it finds the one
        unlike the other.
        """
        if not self._options.balance:
            return []
        offerings, sizes, mine = self.view.offerings, self._sizes, set(helped[offering])
        others = [n for n in helped if n != offering and bool(sizes[n]) == bool(sizes[offering])]
        return [n for n in others if mine <= set(helped[n]) and are_similar(offerings[offering], offerings[n])]

    def _buy(self, option: Option, similar: Sequence[int]) -> Deltas:
        """Split what was chosen, as far as limits allow."""
        limits, groups = self._limits, (option.offering, *similar)
        given = split(option.nodes, [self._sizes[number] for number in groups], [limits.left(n) for n in groups])
        deltas = {}
        for number, wanted in zip(groups, given, strict=True):
            count = min(wanted, limits.left(number))  # what another group took may have been the last of a limit
            if count:
                limits.take(number, count)
                self._sizes[number] += count
                deltas[number] = count
        return deltas

    def _is_expendable(self, pod_group: int) -> bool:
        return self.view.pod_groups[pod_group].priority < EXPENDABLE_BELOW

    def _is_exhausted(self) -> bool:
        return self._budget is not None and self._budget.is_exhausted()
