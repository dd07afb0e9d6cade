"""Cluster Autoscaler's scale-up orchestrator: each loop buys nodes of one group, chosen by an expander.

Contract: pending pods that fit are bound, a loop buys nodes, the new nodes join with their daemons, and this repeats
until a loop buys no node or its nodes take no pod. Every offering is a node group. Among options with equal scores the
model takes the first, where Cluster Autoscaler chooses at random. Expendable pods (priority below the cutoff) buy no
node; they are bound where they fit. As in Cluster Autoscaler, limits on nodes hold while an option is estimated, and
other limits when the chosen option is bought.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from tutti.autoscalers.cluster_autoscaler.balancing_processor import are_similar, split
from tutti.autoscalers.cluster_autoscaler.binpacking_estimator import BinpackingEstimator, Option
from tutti.autoscalers.cluster_autoscaler.expander import EXPANDERS, ExpanderInput, Pricing, best
from tutti.autoscalers.cluster_autoscaler.filter_out_schedulable import bind
from tutti.autoscalers.shared.autoscaler_cluster import AutoscalerCluster
from tutti.autoscalers.shared.cluster_snapshot import ClusterSnapshot, snapshot_of
from tutti.autoscalers.shared.limit_counter import LimitCounter
from tutti.autoscalers.shared.purchase import Purchase
from tutti.autoscalers.shared.temporary_edits import temporary_edits
from tutti.cluster.cluster import Cluster
from tutti.cluster.work.work_budget import WorkBudget
from tutti.exceptions import InputError
from tutti.kube.objects import DaemonSet
from tutti.market.offerings import Catalogue

EXPENDABLE_BELOW = -10
"""Cluster Autoscaler's default for ``expendable-pods-priority-cutoff``."""
Deltas = dict[int, int]
"""By offering: how many nodes are bought."""


class ScaleUpOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Options of Cluster Autoscaler."""

    expander: str = "least-waste"
    """``least-waste``, ``most-pods`` or ``price``."""
    balance: bool = False
    """Whether a scale-up is split between similar node groups."""
    pricing: Pricing = Pricing()
    """The value of requested resources for the price expander."""


_DEFAULT = ScaleUpOptions()


def cluster_autoscaler(
    cluster: Cluster,
    catalogue: Catalogue,
    daemon_sets: Sequence[DaemonSet] = (),
    *,
    options: ScaleUpOptions = _DEFAULT,
    budget: WorkBudget | None = None,
) -> Purchase:
    """Return the nodes that Cluster Autoscaler would buy for the pending pods of a cluster, which stays unchanged."""
    with temporary_edits(cluster):
        view = AutoscalerCluster(cluster, catalogue, daemon_sets)
        orchestrator = ScaleUpOrchestrator(view, catalogue, options, budget=budget)
        for _ in orchestrator.loops():
            pass
        return orchestrator.purchase()


class ScaleUpLoop:
    """One loop: all options, the options with the best score, and the bought nodes."""

    def __init__(self, options: Sequence[Option], chosen: Sequence[Option], deltas: Deltas) -> None:
        self.options, self.chosen, self.deltas = options, chosen, deltas


class ScaleUpOrchestrator:
    """The loops of a scale-up. The loops edit the cluster of the view; the caller rolls the edits back."""

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
        self._pending = {number: list(pod_group.pods) for number, pod_group in enumerate(self.view.pod_groups)}
        self._bought: list[int] = []
        """The offering of each new node."""
        self._bound: list[tuple[str, int]] = []
        """The bound pods, with the number of their node in the snapshot."""

    def loops(self) -> Iterator[ScaleUpLoop]:
        """Run and yield loops until a loop buys no node, or its nodes take no pod."""
        tried_nodes = 0
        while True:
            bound = list(bind(self._snapshot, self._pending, since=tried_nodes, budget=self._budget))
            self._bound += bound
            pending = {n: pods for n, pods in self._pending.items() if not self._is_expendable(n)}
            if not pending or (self._bought and not bound) or self._is_exhausted():
                return
            tried_nodes = self._snapshot.size
            loop = self._loop(pending)
            yield loop
            if not loop.deltas:
                return
            for offering in sorted(loop.deltas, key=lambda each: self.view.offerings[each].pool):
                self._snapshot.add_nodes(offering, loop.deltas[offering])
                self._bought += [offering] * loop.deltas[offering]

    def purchase(self) -> Purchase:
        """Return the nodes that were bought so far, with their pods.

        If the work budget is exhausted, new nodes without pods are left out: their pods were not bound any more.
        """
        existing, names = self._snapshot.existing_count, self.view.cluster.nodes.names
        pods_of: list[list[str]] = [[] for _ in self._bought]
        on_existing = []
        for pod, node in self._bound:
            if node < existing:
                on_existing.append((pod, names[self.view.rows[node]]))
            else:
                pods_of[node - existing].append(pod)
        nodes = [each for each in zip(self._bought, pods_of, strict=True) if each[1] or not self._is_exhausted()]
        return Purchase(
            nodes=tuple((self.view.offerings[offering], tuple(pods)) for offering, pods in nodes),
            on_existing=tuple(on_existing),
            left=tuple(pod for pods in self._pending.values() for pod in pods),
        )

    # One loop ---------------------------------------------------------------------------------------------------------

    def _loop(self, pending: Mapping[int, Sequence[str]]) -> ScaleUpLoop:
        limits, estimator = self._limits, self._estimator
        schedulable: dict[int, list[int]] = {}
        for number in range(len(self.view.offerings)):
            if limits.max_nodes(number) and not self._is_exhausted():
                schedulable[number] = estimator.schedulable(number, pending)
        options = []
        for number, pod_groups in schedulable.items():
            if pod_groups and not self._is_exhausted():
                # Nodes of similar groups can be bought instead.
                max_nodes = limits.max_nodes_of_all(number, *self._similar(number, schedulable))
                options.append(estimator.estimate(number, pod_groups, pending, max_nodes=max_nodes))
        if self._is_exhausted():  # some options are missing, so none is chosen
            return ScaleUpLoop((), (), {})
        options = [option for option in options if option.nodes and option.pods]
        given = ExpanderInput(
            offerings=self.view.offerings,
            pod_groups=self.view.pod_groups,
            nodes=self._snapshot.size,
            pricing=self._options.pricing,
        )
        chosen = best(self._options.expander, given, options)
        deltas = self._buy(chosen[0], self._similar(chosen[0].offering, schedulable)) if chosen else {}
        return ScaleUpLoop(options, chosen, deltas)

    def _similar(self, offering: int, schedulable: Mapping[int, Sequence[int]]) -> list[int]:
        """Return the groups with which a scale-up of a group may be split: similar groups that fit the same pods.

        Cluster Autoscaler compares existing nodes of a group if it has nodes, else its template. In the recorded runs
        an existing node and a template are never similar, so a group with nodes and a group without are not.
        """
        if not self._options.balance:
            return []
        offerings, sizes, pod_groups = self.view.offerings, self._sizes, set(schedulable[offering])
        others = [n for n in schedulable if n != offering and bool(sizes[n]) == bool(sizes[offering])]
        return [
            n for n in others if pod_groups <= set(schedulable[n]) and are_similar(offerings[offering], offerings[n])
        ]

    def _buy(self, option: Option, similar: Sequence[int]) -> Deltas:
        """Split an option between its group and similar groups, and buy as many nodes as the limits allow."""
        limits, groups = self._limits, (option.offering, *similar)
        counts = split(option.nodes, [self._sizes[number] for number in groups], [limits.max_nodes(n) for n in groups])
        deltas = {}
        for number, wanted in zip(groups, counts, strict=True):
            count = min(wanted, limits.max_nodes(number))  # groups may share a limit
            if count:
                limits.buy(number, count)
                self._sizes[number] += count
                deltas[number] = count
        return deltas

    def _is_expendable(self, pod_group: int) -> bool:
        return self.view.pod_groups[pod_group].priority < EXPENDABLE_BELOW

    def _is_exhausted(self) -> bool:
        return self._budget is not None and self._budget.is_exhausted()
