"""Cluster Autoscaler's scale-down planner: which nodes are unneeded, why other nodes are kept, and which are deleted.

Contract: the cluster is left unchanged. The model runs two passes of the main loop, at `now` and eleven minutes later,
when nodes that were unneeded in both passes are deleted. A pass checks the nodes in their order, empty nodes first, and
removes a node if no pod blocks the drain (`drainability`) and every pod that must move fits on another node
(`removal_simulator`). A pass stops after twenty unneeded nodes. Expendable pods (priority below the cutoff) and
finished pods are ignored. A group keeps its minimum size. Where Cluster Autoscaler iterates over a map in random order,
the model iterates in the order of names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tutti.autoscalers.cluster_autoscaler.drainability import DrainabilityOutcome, DrainabilityRules
from tutti.autoscalers.cluster_autoscaler.eligibility import check_eligibility
from tutti.autoscalers.cluster_autoscaler.orchestrator import EXPENDABLE_BELOW
from tutti.autoscalers.cluster_autoscaler.removal_simulator import RemovalSimulator
from tutti.autoscalers.cluster_autoscaler.scaledown_records import (
    ScaleDownDecision,
    ScaleDownNodeGroup,
    ScaleDownOptions,
    UnremovableNode,
)
from tutti.autoscalers.cluster_autoscaler.unneeded import MAX_SCALE_DOWN_PARALLELISM, UnneededNode, nodes_to_delete
from tutti.autoscalers.shared.go_sort import go_sort
from tutti.autoscalers.shared.temporary_edits import temporary_edits
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Remove
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.preemption.disruption_budgets import RemainingBudgets
from tutti.kube.objects import Pod, PodDisruptionBudget

SECOND_PASS_DELAY = 11 * 60 * 1_000_000
"""In microseconds; more than the ten minutes for which a node must be unneeded before its deletion."""
MAX_UNNEEDED_NODES = 2 * MAX_SCALE_DOWN_PARALLELISM
"""A pass stops after this number of unneeded nodes."""
_DEFAULT = ScaleDownOptions()


def cluster_autoscaler_down(
    cluster: Cluster,
    groups: Sequence[ScaleDownNodeGroup],
    *,
    options: ScaleDownOptions = _DEFAULT,
    now: int | None = None,
    missing_controllers: frozenset[str] = frozenset(),
    budget: WorkBudget | None = None,
) -> ScaleDownDecision:
    """Return the nodes that Cluster Autoscaler would remove from a cluster.

    `now` is in microseconds since 1970. `missing_controllers` are controllers that do not exist, as
    ``namespace/Kind/name``. Nodes that are not checked before the work budget is exhausted are ``NotSimulated``.
    """
    group_of = {name: group for group in groups for name in group.members}
    with temporary_edits(cluster):
        _remove_ignored_pods(cluster)
        planner = _Planner(cluster, group_of, options, missing_controllers=missing_controllers, budget=budget)
        try:
            first = planner.run_pass(now)
            second = planner.run_pass(None if now is None else now + SECOND_PASS_DELAY)
        finally:
            planner.end()
    return ScaleDownDecision(
        removable=tuple(first.unneeded),
        kept=first.kept,
        utilization=first.utilization,
        deleted=nodes_to_delete(first.unneeded, second.unneeded, kept=second.kept, groups=group_of),
        places=planner.places(),
    )


def _remove_ignored_pods(cluster: Cluster) -> None:
    for key, pod in [(key, cluster.pod(key)) for key in cluster.pods.row_of]:
        if (pod.spec.priority or 0) < EXPENDABLE_BELOW or pod.status.phase in ("Succeeded", "Failed"):
            cluster.apply(Remove(Pod.KIND, key))


class _PassResult:
    """The unneeded nodes, kept nodes and utilizations of one pass."""

    def __init__(self) -> None:
        self.unneeded: dict[str, UnneededNode] = {}
        self.kept: dict[str, UnremovableNode] = {}
        self.utilization: dict[str, float] = {}


class _Planner:
    """The passes over one cluster, which the passes edit."""

    def __init__(
        self,
        cluster: Cluster,
        group_of: Mapping[str, ScaleDownNodeGroup],
        options: ScaleDownOptions,
        *,
        missing_controllers: frozenset[str],
        budget: WorkBudget | None,
    ) -> None:
        budgets = cluster.objects[PodDisruptionBudget.KIND].values()
        self._budgets = RemainingBudgets(each for each in budgets if isinstance(each, PodDisruptionBudget))
        self._simulator = RemovalSimulator(cluster)
        self._group_of, self._options, self._budget = group_of, options, budget
        self._missing_controllers = missing_controllers
        self._unneeded_before: frozenset[str] = frozenset()

    def run_pass(self, now: int | None) -> _PassResult:
        """Check all nodes once."""
        result = _PassResult()
        self._simulator.begin()
        rules = DrainabilityRules(self._budgets.copy(), now=now, missing_controllers=self._missing_controllers)
        for name in [name for name in self._candidates(result, now) if self._is_eligible(name, result, rules)]:
            is_full = len(result.unneeded) >= MAX_UNNEEDED_NODES
            if is_full or (self._budget is not None and self._budget.is_exhausted()):
                result.kept[name] = UnremovableNode("NotSimulated", prefiltered=True)
                continue
            outcome = self._simulate_removal(name, rules)
            if isinstance(outcome, UnremovableNode):
                result.kept[name] = outcome
            else:
                result.unneeded[name] = outcome
        self._unneeded_before = frozenset(result.unneeded)
        return result

    def end(self) -> None:
        """Discard the mark of the last pass."""
        self._simulator.end()

    def places(self) -> dict[str, str]:
        """Return the nodes to which the last pass moved pods, by pod."""
        return self._simulator.places()

    def _candidates(self, result: _PassResult, now: int | None) -> list[str]:
        """Return the nodes of groups above their minimum: empty nodes first, then nodes that were unneeded before."""
        names = []
        for node in self._simulator.nodes:
            name = node.metadata.name
            group = self._group_of.get(name)
            if group is None:
                result.kept[name] = UnremovableNode("NotAutoscaled", prefiltered=True)
            elif len(group.members) <= group.minimum:
                result.kept[name] = UnremovableNode("NodeGroupMinSizeReached", prefiltered=True)
            else:
                names.append(name)
        # Whether a node is empty does not depend on disruption budgets or missing controllers.
        rules = DrainabilityRules(RemainingBudgets(), now=now)
        ranks = {name: (not self._is_empty(name, rules), name not in self._unneeded_before) for name in names}
        return go_sort(names, ranks.__getitem__)

    def _is_empty(self, name: str, rules: DrainabilityRules) -> bool:
        outcomes = {rules.drainable(pod).outcome for pod in self._simulator.pods(name)}
        return not outcomes & {DrainabilityOutcome.DRAIN_OK, DrainabilityOutcome.BLOCK_DRAIN}

    def _is_eligible(self, name: str, result: _PassResult, rules: DrainabilityRules) -> bool:
        node, pods = self._simulator.node(name), self._simulator.pods(name)
        reason, utilization = check_eligibility(node, pods, self._group_of[name], rules=rules, options=self._options)
        if utilization is not None:
            result.utilization[name] = utilization
        if reason is not None:
            result.kept[name] = reason
        return reason is None

    def _simulate_removal(self, name: str, rules: DrainabilityRules) -> UnremovableNode | UnneededNode:
        """Remove a node if possible; otherwise return why the node is kept."""
        moving, waits = [], False
        for pod in self._simulator.pods(name):
            status = rules.drainable(pod)
            if status.outcome is DrainabilityOutcome.BLOCK_DRAIN:
                return UnremovableNode("BlockedByPod", pod.key, status.reason)
            waits |= status.outcome is DrainabilityOutcome.WAIT_FOR_COMPLETION
            if status.outcome is DrainabilityOutcome.DRAIN_OK:
                moving.append(pod)
        if not self._simulator.remove(name, moving):
            return UnremovableNode("NoPlaceToMovePods")
        is_risky = not rules.budgets.allow_together(moving)
        for pod in moving:
            rules.budgets.spend(pod)
        return UnneededNode(len(moving), waits, is_risky)
