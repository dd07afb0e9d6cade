"""The original recommender: it buys one node per run, the node whose run has the best score.

Contract: every run simulates each offering: one node of the offering joins, and kube-scheduler schedules all pending
pods, filling full nodes first. The score of an offering is the value of the pods that its simulation schedules, divided
by the price of the node. The highest score wins, then the node with the most memory, then the first offering. The node
and the pods of the winner stay, and the next run follows, until no pod is pending or no offering has a score. Pods that
fit on existing nodes add the same value to all offerings of the first run. Kept from the original: pods without value
never buy a node, and an offering without a price beats all others. Not kept: a node that takes no pod is never bought.
Pods of one group are scheduled one after the other. The cluster is left unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from tutti.autoscalers.shared.autoscaler_cluster import AutoscalerCluster, filters_only
from tutti.autoscalers.shared.cluster_snapshot import ColumnSnapshot, snapshot_of
from tutti.autoscalers.shared.limit_counter import LimitCounter, capacity
from tutti.autoscalers.shared.purchase import Purchase
from tutti.autoscalers.shared.temporary_edits import temporary_edits
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind
from tutti.cluster.trial import Trial
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.placement.capacity import NO_LIMIT, Capacity
from tutti.engine.placement.evaluator import Evaluator, FilterResult
from tutti.engine.placement.profile import EnabledPlugin, Profile
from tutti.engine.plugins.base import Area, IncomingPod
from tutti.engine.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from tutti.engine.plugins.node_resources_fit import NodeResourcesFit, ScoringStrategy
from tutti.kube.container_totals import container_requests
from tutti.kube.objects import DaemonSet, Pod
from tutti.kube.quantity import milli, value
from tutti.market.offerings import Catalogue

_CPU_WEIGHT, _MEMORY_WEIGHT = 6, 1
_TEMPLATE = "peer-template"
Placements = dict[int, list[tuple[str, str]]]
"""By pod group: the pods that were scheduled, with their nodes."""


def original_recommender(
    cluster: Cluster,
    catalogue: Catalogue,
    daemon_sets: Sequence[DaemonSet] = (),
    *,
    budget: WorkBudget | None = None,
) -> Purchase:
    """Return the nodes that the original recommender would buy for the pending pods of a cluster."""
    with temporary_edits(cluster):
        view = AutoscalerCluster(cluster, catalogue, daemon_sets, profile=_bin_packing())
        runs = _Runs(view, catalogue, budget)
        runs.run_all()
        return runs.purchase()


def pod_value(pod: Pod) -> int:
    """Return the value of a pod: for each container, its memory in whole GiB (rounded down) and 6 x its cores (up)."""
    total = 0
    for container in pod.spec.containers or ():
        requests = container_requests(container)
        cores, gib = -(-milli(requests.get("cpu", "0")) // 1000), value(requests.get("memory", "0")) >> 30
        total += _CPU_WEIGHT * cores + _MEMORY_WEIGHT * gib
    return total


class _Runs:
    """The runs of one recommendation. Pod groups and offerings are given by number."""

    def __init__(self, view: AutoscalerCluster, catalogue: Catalogue, budget: WorkBudget | None) -> None:
        self._view, self._budget = view, budget
        self._cluster = self._view.cluster
        self._filters = Evaluator(self._cluster, filters_only())
        self._capacity = Capacity(self._filters)
        self._requests: dict[int, list[tuple[int, int]]] = {}
        """By pod group: the requested resources, as (resource, amount)."""
        self._welcome: dict[tuple[int, int], bool] = {}
        """By pod group and offering: whether a node of the offering takes the pods, given free resources."""
        self._limits = LimitCounter(catalogue, self._view.offerings)
        self._memory = [capacity(offering).get("memory", 0) for offering in self._view.offerings]
        self._values = [pod_value(self._cluster.pod(pod_group.pods[0])) for pod_group in self._view.pod_groups]
        self._pending = {number: list(pod_group.pods) for number, pod_group in enumerate(self._view.pod_groups)}
        self._bought: list[tuple[int, list[str]]] = []
        """The offering and the pods of each new node."""
        self._bought_index: dict[str, int] = {}
        """By name of a new node: its index in `_bought`."""
        self._on_existing: list[tuple[str, str]] = []

    def run_all(self) -> None:
        """Run until no run buys a node."""
        existing_value = self._keep(self._schedule(list(self._pending)))
        snapshot = snapshot_of(self._view)
        if isinstance(snapshot, ColumnSnapshot):
            self._run_by_counting(snapshot, existing_value)
        else:
            self._run_by_simulation(existing_value)

    def purchase(self) -> Purchase:
        """Return the nodes that were bought so far."""
        offerings = self._view.offerings
        return Purchase(
            nodes=tuple((offerings[offering], tuple(pods)) for offering, pods in self._bought),
            on_existing=tuple(self._on_existing),
            left=tuple(pod for pods in self._pending.values() for pod in pods),
        )

    def _value(self, counts: Mapping[int, int]) -> int:
        """Return the value of some pods, counted by pod group."""
        return sum(self._values[pod_group] * count for pod_group, count in counts.items())

    def _winner(self, simulations: Mapping[int, Mapping[int, int]], existing_value: int) -> int | None:
        """Return the offering with the best score; `simulations` has the pods of each, counted by pod group."""
        best, winner = (0.0, 0), None
        values = {offering: self._value(counts) for offering, counts in simulations.items() if counts}
        for offering, new_value in sorted(values.items()):
            price = self._view.offerings[offering].price
            total = new_value + existing_value
            rank = (total / price if price else inf, self._memory[offering])
            if total and rank > best:
                best, winner = rank, offering
        return winner

    def _is_exhausted(self) -> bool:
        return self._budget is not None and self._budget.is_exhausted()

    # Runs by counting -------------------------------------------------------------------------------------------------

    def _run_by_counting(self, snapshot: ColumnSnapshot, existing_value: int) -> None:
        """Run while all pod groups are plain: only the new node has room, and pod groups fill it in their order."""
        simulations: dict[int, dict[int, int]] = {}
        while self._pending and not self._is_exhausted():
            pending = {pod_group: len(pods) for pod_group, pods in self._pending.items()}
            for offering in self._offerings_to_simulate(simulations, pending):
                simulations[offering] = snapshot.count_on_empty_node(pending, offering)
            winner = self._winner(simulations, existing_value)
            if winner is None:
                return
            self._limits.buy(winner, 1)
            bought_for: list[str] = []
            for pod_group, count in simulations[winner].items():
                bought_for += self._pending[pod_group][:count]
                del self._pending[pod_group][:count]
                if not self._pending[pod_group]:
                    del self._pending[pod_group]
            self._bought.append((winner, bought_for))
            existing_value = 0

    def _offerings_to_simulate(self, simulations: dict[int, dict[int, int]], pending: Mapping[int, int]) -> list[int]:
        """Return the offerings that must be simulated again, and drop the simulations of offerings at their limit.

        A simulation stays valid while as many pods of each pod group are pending as it schedules.
        """
        outdated = []
        for offering in range(len(self._view.offerings)):
            if not self._limits.max_nodes(offering):
                simulations.pop(offering, None)
            elif (counts := simulations.get(offering)) is None or any(
                pending.get(pod_group, 0) < count for pod_group, count in counts.items()
            ):
                outdated.append(offering)
        return outdated

    # Runs by simulation -----------------------------------------------------------------------------------------------

    def _run_by_simulation(self, existing_value: int) -> None:
        """Run with the engine: the filters of some pod groups depend on other pods."""
        simulations: dict[int, dict[int, int]] = {}
        while self._pending:
            pending = {pod_group: len(pods) for pod_group, pods in self._pending.items()}
            if not all(self._view.is_local(self._incoming(pods[0])) for pods in self._pending.values()):
                simulations = {}
            for offering in self._offerings_to_simulate(simulations, pending):
                if self._is_exhausted():
                    return
                with Trial(self._cluster):
                    simulations[offering] = self._join(offering, _TEMPLATE)
            winner = self._winner(simulations, existing_value)
            if winner is None:
                return
            self._limits.buy(winner, 1)
            name = f"peer-new-{len(self._bought) + 1}"
            self._bought_index[name] = len(self._bought)
            self._bought.append((winner, []))
            counts = self._join(winner, name)
            self._keep(
                {pod_group: [(pod, name) for pod in self._pending[pod_group][:n]] for pod_group, n in counts.items()}
            )
            not_local = [
                pod_group
                for pod_group, pods in self._pending.items()
                if not self._view.is_local(self._incoming(pods[0]))
            ]
            self._keep(self._schedule(not_local))  # pods on the new node may let these fit on other nodes
            existing_value = 0

    def _join(self, offering: int, name: str) -> dict[int, int]:
        """Add a node, bind the pending pods that fit there, and return how many of each pod group."""
        cluster = self._cluster
        row = self._view.join(offering, name)
        area, counts = Area.of_row(row, cluster.nodes.size), dict[int, int]()
        free: list[int] | None = None
        for pod_group, pods in self._pending.items():
            if not self._is_welcome(pod_group, offering, row):
                continue
            if free is None:
                free = (cluster.nodes.alloc[:, row] - cluster.nodes.used[:, row]).tolist()
            room = min((free[resource] // amount for resource, amount in self._requests[pod_group]), default=NO_LIMIT)
            if room <= 0:
                continue
            is_plain, count = self._view.is_plain(self._incoming(pods[0])), 0
            for pod in pods[:room]:
                if not is_plain and not self._fits(pod, area):
                    break
                cluster.apply(Bind(pod, name))
                count += 1
            if count:
                counts[pod_group], free = count, None
        return counts

    def _is_welcome(self, pod_group: int, offering: int, row: int) -> bool:
        """Return whether a node of an offering takes pods of a pod group, given free resources."""
        known = self._welcome.get((pod_group, offering))
        if known is None:
            incoming = self._incoming(self._pending[pod_group][0])
            self._requests[pod_group] = self._filters.resource_requests(incoming)
            known = bool(self._capacity.nodes_accept(incoming, np.array([row]))[0])
            self._welcome[pod_group, offering] = known
        return known

    def _fits(self, pod: str, area: Area) -> bool:
        result = self._filters.filter(self._incoming(pod, area))
        return isinstance(result, FilterResult) and bool(result.feasible.any())

    def _incoming(self, pod: str, area: Area | None = None) -> IncomingPod:
        return self._filters.incoming_pod(self._cluster.pod_row(pod), area)

    def _schedule(self, pod_groups: Sequence[int]) -> Placements:
        """Let the engine bind the pods of some pod groups to any node, until a round binds no pod."""
        placements: Placements = {pod_group: [] for pod_group in pod_groups}
        while pod_groups:
            progressed = []
            for pod_group in pod_groups:
                rest = self._pending[pod_group][len(placements[pod_group]) :]
                if rest and not self._is_exhausted() and self._capacity.copies(self._incoming(rest[0])).any():
                    decisions = self._view.engine.place(rest, give_up=True)
                    bound = [(each.pod, each.node) for each in decisions if each.node is not None]
                    placements[pod_group] += bound
                    progressed += [pod_group] if bound else []
            # A plain pod group that does not fit now does not fit later either.
            pod_groups = [
                each
                for each in pod_groups
                if progressed and not self._view.is_plain(self._incoming(self._pending[each][0]))
            ]
        return placements

    def _keep(self, placements: Placements) -> int:
        """Record placements, remove their pods from the pending pods, and return the value of these pods."""
        for pod_group, bound in placements.items():
            for pod, node in bound:
                if node in self._bought_index:
                    self._bought[self._bought_index[node]][1].append(pod)
                else:
                    self._on_existing.append((pod, node))
            del self._pending[pod_group][: len(bound)]
        self._pending = {pod_group: pods for pod_group, pods in self._pending.items() if pods}
        return self._value({pod_group: len(bound) for pod_group, bound in placements.items()})


def _bin_packing() -> Profile:
    """Return the profile of the original's kube-scheduler: fill full nodes first, and do not balance resources."""
    plugins = []
    for enabled in Profile.default().plugins:
        if isinstance(enabled.plugin, NodeResourcesFit):
            plugins.append(EnabledPlugin(NodeResourcesFit(ScoringStrategy("MostAllocated")), enabled.weight))
        elif not isinstance(enabled.plugin, NodeResourcesBalancedAllocation):
            plugins.append(enabled)
    return Profile(tuple(plugins))
