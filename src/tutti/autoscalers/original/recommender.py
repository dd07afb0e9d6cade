"""The original recommender: one node a run, the one whose run schedules the most for its price.

Contract: in every run each offering is simulated: one node of it joins, and all pods that wait are scheduled by
kube-scheduler, filling full nodes first. A run's score is what its scheduled pods are worth over the node's price; the
highest wins, then the node with the most memory, then the first. The winner's node and pods stay, and the next run
follows, until nobody waits or no run helps. Pods that find room on nodes that are there count in the first run of all
offerings alike. Kept from the original: pods worth nothing never buy a node, and a node without a price beats all.
Not kept: a node that takes no pod is never bought. Like pods are scheduled one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf

import numpy as np

from tutti.autoscalers.shared.autoscaler_cluster import AutoscalerCluster, filters_only
from tutti.autoscalers.shared.borrowed_cluster import borrowed
from tutti.autoscalers.shared.cluster_snapshot import ColumnSnapshot, snapshot_of
from tutti.autoscalers.shared.limit_counter import LimitCounter, capacity
from tutti.autoscalers.shared.purchase import Purchase
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
Placed = dict[int, list[tuple[str, str]]]
"""The pods of each pod group that a run schedules, with their nodes."""


def original_recommender(
    cluster: Cluster,
    catalogue: Catalogue,
    daemon_sets: Sequence[DaemonSet] = (),
    *,
    budget: WorkBudget | None = None,
) -> Purchase:
    """What the original recommender would buy for the pending pods of a cluster, which is left as it was."""
    with borrowed(cluster):
        run = _Runs(AutoscalerCluster(cluster, catalogue, daemon_sets, profile=_bin_packing()), catalogue, budget)
        run.go()
        return run.purchase()


def worth(pod: Pod) -> int:
    """What a pod is worth: of each container the whole GiB of memory, rounded down, and six times its cores, up."""
    total = 0
    for container in pod.spec.containers or ():
        requests = container_requests(container)
        cores, gib = -(-milli(requests.get("cpu", "0")) // 1000), value(requests.get("memory", "0")) >> 30
        total += _CPU_WEIGHT * cores + _MEMORY_WEIGHT * gib
    return total


class _Runs:
    """The runs, one after the other."""

    def __init__(self, view: AutoscalerCluster, catalogue: Catalogue, budget: WorkBudget | None) -> None:
        self._view, self._budget = view, budget
        self._cluster = self._view.cluster
        self._filters = Evaluator(self._cluster, filters_only())
        self._capacity = Capacity(self._filters)
        self._wants: dict[int, list[tuple[int, int]]] = {}
        self._welcome: dict[tuple[int, int], bool] = {}
        """Whether nodes of an offering take pods of a pod group: by pod group and offering."""
        self._limits = LimitCounter(catalogue, self._view.offerings)
        self._memory = [capacity(offering).get("memory", 0) for offering in self._view.offerings]
        self._worth = [worth(self._cluster.pod(pod_group.pods[0])) for pod_group in self._view.pod_groups]
        self._waiting = {number: list(pod_group.pods) for number, pod_group in enumerate(self._view.pod_groups)}
        self._bought: list[tuple[int, list[str]]] = []
        self._names: dict[str, int] = {}
        """The place of each new node."""
        self._on_existing: list[tuple[str, str]] = []

    def go(self) -> None:
        """Run until the end."""
        already = self._keep(self._schedule(list(self._waiting)))
        snapshot = snapshot_of(self._view)
        if isinstance(snapshot, ColumnSnapshot):
            self._count(snapshot, already)
        else:
            self._try(already)

    def purchase(self) -> Purchase:
        """What was bought by now."""
        offerings = self._view.offerings
        return Purchase(
            nodes=tuple((offerings[offering], tuple(pods)) for offering, pods in self._bought),
            on_existing=tuple(self._on_existing),
            left=tuple(pod for pods in self._waiting.values() for pod in pods),
        )

    def _units(self, run: Mapping[int, int]) -> int:
        """What the pods of a run are worth."""
        return sum(self._worth[pod_group] * count for pod_group, count in run.items())

    def _winner(self, units_of: Mapping[int, int], already: int) -> int | None:
        """The best offering, by what the pods of its run are worth."""
        best, found = (0.0, 0), None
        for offering, units in sorted(units_of.items()):
            price = self._view.offerings[offering].price
            total = units + already
            rank = (total / price if price else inf, self._memory[offering])
            if total and rank > best:
                best, found = rank, offering
        return found

    def _is_exhausted(self) -> bool:
        return self._budget is not None and self._budget.is_exhausted()

    # Numbers ----------------------------------------------------------------------------------------------------------

    def _count(self, snapshot: ColumnSnapshot, already: int) -> None:
        """Buy while all pods look at room alone: only a new node has any, and is filled in the order of pod groups."""
        runs: dict[int, dict[int, int]] = {}
        while self._waiting and not self._is_exhausted():
            numbers = {pod_group: len(pods) for pod_group, pods in self._waiting.items()}
            for offering in self._open(runs, numbers):
                runs[offering] = snapshot.fill(numbers, offering)
            winner = self._winner({number: self._units(run) for number, run in runs.items() if run}, already)
            if winner is None:
                return
            self._limits.take(winner, 1)
            taken: list[str] = []
            for pod_group, count in runs[winner].items():
                taken += self._waiting[pod_group][:count]
                del self._waiting[pod_group][:count]
                if not self._waiting[pod_group]:
                    del self._waiting[pod_group]
            self._bought.append((winner, taken))
            already = 0

    def _open(self, runs: dict[int, dict[int, int]], numbers: Mapping[int, int]) -> list[int]:
        """The offerings that must be simulated anew; those that are sold out are struck off the runs.

        A run comes out as before while there are as many pods of each pod group as it took.
        """
        anew = []
        for offering in range(len(self._view.offerings)):
            if not self._limits.left(offering):
                runs.pop(offering, None)
            elif (run := runs.get(offering)) is None or any(numbers.get(s, 0) < count for s, count in run.items()):
                anew.append(offering)
        return anew

    # The engine -------------------------------------------------------------------------------------------------------

    def _try(self, already: int) -> None:
        """Some pod groups look at other pods: runs are simulated."""
        runs: dict[int, dict[int, int]] = {}
        while self._waiting:
            numbers = {pod_group: len(pods) for pod_group, pods in self._waiting.items()}
            if not all(self._view.is_local(self._ask(pods[0])) for pods in self._waiting.values()):
                runs = {}
            for offering in self._open(runs, numbers):
                if self._is_exhausted():
                    return
                with Trial(self._cluster):
                    runs[offering] = self._join(offering, _TEMPLATE)
            winner = self._winner({number: self._units(run) for number, run in runs.items() if run}, already)
            if winner is None:
                return
            self._limits.take(winner, 1)
            name = f"peer-new-{len(self._bought) + 1}"
            self._names[name] = len(self._bought)
            self._bought.append((winner, []))
            taken = self._join(winner, name)
            self._keep(
                {pod_group: [(pod, name) for pod in self._waiting[pod_group][:n]] for pod_group, n in taken.items()}
            )
            far = [
                pod_group for pod_group, pods in self._waiting.items() if not self._view.is_local(self._ask(pods[0]))
            ]
            self._keep(self._schedule(far))  # the new pods may have opened other nodes to them
            already = 0

    def _join(self, offering: int, name: str) -> dict[int, int]:
        """Let a node join, and bind the pods that fit there; give how many of each pod group."""
        cluster = self._cluster
        row = self._view.join(offering, name)
        area, taken = Area.of_row(row, cluster.nodes.size), dict[int, int]()
        free: list[int] | None = None
        for pod_group, pods in self._waiting.items():
            if not self._is_welcome(pod_group, offering, row):
                continue
            if free is None:
                free = (cluster.nodes.alloc[:, row] - cluster.nodes.used[:, row]).tolist()
            room = min((free[place] // amount for place, amount in self._wants[pod_group]), default=NO_LIMIT)
            if room <= 0:
                continue
            plain, count = self._view.is_plain(self._ask(pods[0])), 0
            for pod in pods[:room]:
                if not plain and not self._fits(pod, area):
                    break
                cluster.apply(Bind(pod, name))
                count += 1
            if count:
                taken[pod_group], free = count, None
        return taken

    def _is_welcome(self, pod_group: int, offering: int, row: int) -> bool:
        """Whether nodes of an offering take pods of a pod group, were there room."""
        known = self._welcome.get((pod_group, offering))
        if known is None:
            incoming = self._ask(self._waiting[pod_group][0])
            self._wants[pod_group] = self._filters.resource_requests(incoming)
            known = bool(self._capacity.nodes_accept(incoming, np.array([row]))[0])
            self._welcome[pod_group, offering] = known
        return known

    def _fits(self, pod: str, area: Area) -> bool:
        found = self._filters.filter(self._ask(pod, area))
        return isinstance(found, FilterResult) and bool(found.feasible.any())

    def _ask(self, pod: str, area: Area | None = None) -> IncomingPod:
        return self._filters.incoming_pod(self._cluster.pod_row(pod), area)

    def _schedule(self, pod_groups: Sequence[int]) -> Placed:
        """Let the engine bind the pods of some pod groups wherever they fit."""
        placed: Placed = {pod_group: [] for pod_group in pod_groups}
        while pod_groups:
            moved = []
            for pod_group in pod_groups:
                rest = self._waiting[pod_group][len(placed[pod_group]) :]
                if rest and not self._is_exhausted() and self._capacity.copies(self._ask(rest[0])).any():
                    decisions = self._view.engine.place(rest, give_up=True)
                    went = [(each.pod, each.node) for each in decisions if each.node is not None]
                    placed[pod_group] += went
                    moved += [pod_group] if went else []
            # Who only looks at room will not fit later either.
            pod_groups = [
                each for each in pod_groups if moved and not self._view.is_plain(self._ask(self._waiting[each][0]))
            ]
        return placed

    def _keep(self, placed: Placed) -> int:
        """Write down who went where; give what they are worth."""
        for pod_group, went in placed.items():
            for pod, node in went:
                if node in self._names:
                    self._bought[self._names[node]][1].append(pod)
                else:
                    self._on_existing.append((pod, node))
            del self._waiting[pod_group][: len(went)]
        self._waiting = {pod_group: pods for pod_group, pods in self._waiting.items() if pods}
        return self._units({pod_group: len(went) for pod_group, went in placed.items()})


def _bin_packing() -> Profile:
    """kube-scheduler as the original runs it: full nodes first, whatever the balance of their resources."""
    plugins = []
    for enabled in Profile.default().plugins:
        if isinstance(enabled.plugin, NodeResourcesFit):
            plugins.append(EnabledPlugin(NodeResourcesFit(ScoringStrategy("MostAllocated")), enabled.weight))
        elif not isinstance(enabled.plugin, NodeResourcesBalancedAllocation):
            plugins.append(enabled)
    return Profile(tuple(plugins))
