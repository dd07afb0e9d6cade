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
from tutti.autoscalers.cluster_autoscaler.binpacking_estimator import Estimator, Option
from tutti.autoscalers.cluster_autoscaler.expander import EXPANDERS, Market, Pricing, best
from tutti.autoscalers.cluster_autoscaler.filter_out_schedulable import bind
from tutti.autoscalers.shared.autoscaler_cluster import AutoscalerCluster
from tutti.autoscalers.shared.borrowed_cluster import borrowed
from tutti.autoscalers.shared.cluster_snapshot import Ground, ground_of
from tutti.autoscalers.shared.limit_counter import Stock
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.cluster import Cluster
from tutti.cluster.work_budget import Deadline
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
    deadline: Deadline | None = None,
) -> Purchase:
    """What Cluster Autoscaler would buy for the pending pods of a cluster, which is left as it was."""
    with borrowed(cluster):
        run = ScaleUp(AutoscalerCluster(cluster, catalogue, daemon_sets), catalogue, options, deadline=deadline)
        for _ in run.loops():
            pass
        return run.purchase()


class Loop:
    """One loop: what was weighed, what was held best, and what was bought."""

    def __init__(self, options: Sequence[Option], chosen: Sequence[Option], deltas: Deltas) -> None:
        self.options, self.chosen, self.deltas = options, chosen, deltas


class ScaleUp:
    """A scale-up under way; the cluster changes with it."""

    def __init__(
        self,
        site: AutoscalerCluster,
        catalogue: Catalogue,
        options: ScaleUpOptions = _DEFAULT,
        *,
        deadline: Deadline | None = None,
    ) -> None:
        if options.expander not in EXPANDERS:
            raise InputError(f"{options.expander!r} is none of {', '.join(EXPANDERS)}", field="expander")
        self._options, self._deadline = options, deadline
        self.site = site
        self._ground: Ground = ground_of(self.site)
        self._estimator = Estimator(self.site, self._ground, deadline)
        self._stock = Stock(catalogue, self.site.offerings)
        current = {pool.name: pool.current for pool in catalogue.pools}
        self._sizes = [current[offering.pool] for offering in self.site.offerings]
        self._waiting = {number: list(shape.pods) for number, shape in enumerate(self.site.shapes)}
        self._bought: list[int] = []
        """What each new node is."""
        self._went: list[tuple[str, int]] = []

    def loops(self) -> Iterator[Loop]:
        """Go on, loop by loop, until nothing is bought, or what was bought took nobody."""
        tried = 0
        while True:
            went = list(bind(self._ground, self._waiting, since=tried, deadline=self._deadline))
            self._went += went
            waiting = {n: pods for n, pods in self._waiting.items() if not self._is_expendable(n)}
            if not waiting or (self._bought and not went) or self._is_over():
                return
            tried = self._ground.size
            loop = self._loop(waiting)
            yield loop
            if not loop.deltas:
                return
            for offering in sorted(loop.deltas, key=lambda each: self.site.offerings[each].pool):
                self._ground.add(offering, loop.deltas[offering])
                self._bought += [offering] * loop.deltas[offering]

    def purchase(self) -> Purchase:
        """What was bought by now, and who went where; when time is up, without nodes that nobody could be put on."""
        there, names = self._ground.there, self.site.cluster.nodes.names
        taken: list[list[str]] = [[] for _ in self._bought]
        on_existing = []
        for pod, node in self._went:
            if node < there:
                on_existing.append((pod, names[self.site.rows[node]]))
            else:
                taken[node - there].append(pod)
        nodes = [each for each in zip(self._bought, taken, strict=True) if each[1] or not self._is_over()]
        return Purchase(
            nodes=tuple((self.site.offerings[offering], tuple(pods)) for offering, pods in nodes),
            on_existing=tuple(on_existing),
            left=tuple(pod for pods in self._waiting.values() for pod in pods),
        )

    # One loop ---------------------------------------------------------------------------------------------------------

    def _loop(self, waiting: Mapping[int, Sequence[str]]) -> Loop:
        stock, estimator = self._stock, self._estimator
        helped: dict[int, list[int]] = {}
        for number in range(len(self.site.offerings)):
            if stock.left(number) and not self._is_over():
                helped[number] = estimator.schedulable(number, waiting)
        options = []
        for number, shapes in helped.items():
            if shapes and not self._is_over():
                # Groups that are alike stand in for each other.
                most = stock.nodes_left(number, *self._similar(number, helped))
                options.append(estimator.estimate(number, shapes, waiting, most=most))
        if self._is_over():  # not all that there is was weighed
            return Loop((), (), {})
        options = [option for option in options if option.nodes and option.pods]
        market = Market(
            offerings=self.site.offerings,
            shapes=self.site.shapes,
            nodes=self._ground.size,
            pricing=self._options.pricing,
        )
        chosen = best(self._options.expander, market, options)
        deltas = self._buy(chosen[0], self._similar(chosen[0].offering, helped)) if chosen else {}
        return Loop(options, chosen, deltas)

    def _similar(self, offering: int, helped: Mapping[int, Sequence[int]]) -> list[int]:
        """The other groups that a scale-up of this one may be split with: like it, and good for the same pods.

        Cluster Autoscaler looks at a node of a group if it has one, else at its template. As recorded, it finds the one
        unlike the other.
        """
        if not self._options.balance:
            return []
        offerings, sizes, mine = self.site.offerings, self._sizes, set(helped[offering])
        others = [n for n in helped if n != offering and bool(sizes[n]) == bool(sizes[offering])]
        return [n for n in others if mine <= set(helped[n]) and are_similar(offerings[offering], offerings[n])]

    def _buy(self, option: Option, similar: Sequence[int]) -> Deltas:
        """Split what was chosen, as far as limits allow."""
        stock, groups = self._stock, (option.offering, *similar)
        given = split(option.nodes, [self._sizes[number] for number in groups], [stock.left(n) for n in groups])
        deltas = {}
        for number, wanted in zip(groups, given, strict=True):
            count = min(wanted, stock.left(number))  # what another group took may have been the last of a limit
            if count:
                stock.take(number, count)
                self._sizes[number] += count
                deltas[number] = count
        return deltas

    def _is_expendable(self, shape: int) -> bool:
        return self.site.shapes[shape].priority < EXPENDABLE_BELOW

    def _is_over(self) -> bool:
        return self._deadline is not None and self._deadline.is_over()
