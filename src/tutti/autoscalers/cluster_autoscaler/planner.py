"""Cluster Autoscaler's scale-down planner: which nodes are unneeded, why the others are kept, and what is deleted.

Contract: the cluster is left as it was. Two passes of the main loop are modelled, at `now` and eleven minutes later,
when nodes that were unneeded all the time may go. A pass looks at the nodes in their order, empty ones first, and
removes one after the other if no pod blocks it (`drainability`) and all pods that must move find a place on other nodes
(`removal_simulator`). After twenty unneeded nodes it looks no further. Pods below the cutoff of expendable pods, and
finished ones, are not seen. A group keeps its minimum. Where Cluster Autoscaler goes through a map in random order, the
model takes the first name first.
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
from tutti.autoscalers.cluster_autoscaler.unneeded import PARALLEL, UnneededNode, nodes_to_delete
from tutti.autoscalers.shared.borrowed_cluster import borrowed
from tutti.autoscalers.shared.go_sort import go_sort
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Remove
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.preemption.disruption_budgets import RemainingBudgets
from tutti.kube.objects import Pod, PodDisruptionBudget

LATER = 11 * 60 * 1_000_000
"""When the second pass comes: nodes have been unneeded for ten minutes then."""
ENOUGH = 2 * PARALLEL
"""After how many unneeded nodes a pass looks no further."""
_DEFAULT = ScaleDownOptions()


def cluster_autoscaler_down(
    cluster: Cluster,
    groups: Sequence[ScaleDownNodeGroup],
    *,
    options: ScaleDownOptions = _DEFAULT,
    now: int | None = None,
    gone: frozenset[str] = frozenset(),
    budget: WorkBudget | None = None,
) -> ScaleDownDecision:
    """What Cluster Autoscaler would remove from a cluster.

    `gone` are the controllers that do not exist, as ``namespace/Kind/name``; `now` is in microseconds since 1970. Nodes
    whose turn has not come when the work budget is exhausted are ``NotSimulated``.
    """
    group_of = {name: group for group in groups for name in group.members}
    with borrowed(cluster):
        _remove_unseen_pods(cluster)
        planner = _Planner(cluster, group_of, options, gone=gone, budget=budget)
        try:
            first = planner.run_pass(now)
            second = planner.run_pass(None if now is None else now + LATER)
        finally:
            planner.end()
    return ScaleDownDecision(
        removable=tuple(first.unneeded),
        kept=first.kept,
        utilization=first.utilization,
        deleted=nodes_to_delete(first.unneeded, second.unneeded, kept=second.kept, groups=group_of),
        places=planner.places(),
    )


def _remove_unseen_pods(cluster: Cluster) -> None:
    for key, pod in [(key, cluster.pod(key)) for key in cluster.pods.row_of]:
        if (pod.spec.priority or 0) < EXPENDABLE_BELOW or pod.status.phase in ("Succeeded", "Failed"):
            cluster.apply(Remove(Pod.KIND, key))


class _Pass:
    """What one pass finds."""

    def __init__(self) -> None:
        self.unneeded: dict[str, UnneededNode] = {}
        self.kept: dict[str, UnremovableNode] = {}
        self.utilization: dict[str, float] = {}


class _Planner:
    """The passes over one cluster."""

    def __init__(
        self,
        cluster: Cluster,
        group_of: Mapping[str, ScaleDownNodeGroup],
        options: ScaleDownOptions,
        *,
        gone: frozenset[str],
        budget: WorkBudget | None,
    ) -> None:
        budgets = cluster.objects[PodDisruptionBudget.KIND].values()
        self._budgets = RemainingBudgets(each for each in budgets if isinstance(each, PodDisruptionBudget))
        self._simulator = RemovalSimulator(cluster)
        self._group_of, self._options, self._gone, self._budget = group_of, options, gone, budget
        self._unneeded_before: frozenset[str] = frozenset()

    def run_pass(self, now: int | None) -> _Pass:
        """Look at all nodes once."""
        found = _Pass()
        self._simulator.begin()
        rules = DrainabilityRules(self._budgets.copy(), now=now, gone=self._gone)
        for name in [name for name in self._candidates(found, now) if self._is_eligible(name, found, rules)]:
            if len(found.unneeded) >= ENOUGH or (self._budget is not None and self._budget.is_exhausted()):
                found.kept[name] = UnremovableNode("NotSimulated", prefiltered=True)
                continue
            outcome = self._simulate_removal(name, rules)
            if isinstance(outcome, UnremovableNode):
                found.kept[name] = outcome
            else:
                found.unneeded[name] = outcome
        self._unneeded_before = frozenset(found.unneeded)
        return found

    def end(self) -> None:
        """Give up the mark of the last pass."""
        self._simulator.end()

    def places(self) -> dict[str, str]:
        """Where the last pass put the pods that it moved."""
        return self._simulator.places()

    def _candidates(self, found: _Pass, now: int | None) -> list[str]:
        """The nodes of groups above their minimum: empty ones first, then those that were unneeded before."""
        names = []
        for node in self._simulator.nodes:
            name = node.metadata.name
            group = self._group_of.get(name)
            if group is None:
                found.kept[name] = UnremovableNode("NotAutoscaled", prefiltered=True)
            elif len(group.members) <= group.minimum:
                found.kept[name] = UnremovableNode("NodeGroupMinSizeReached", prefiltered=True)
            else:
                names.append(name)
        # Whether a node is empty does not depend on budgets and on missing controllers.
        rules = DrainabilityRules(RemainingBudgets(), now=now)
        ranks = {name: (not self._is_empty(name, rules), name not in self._unneeded_before) for name in names}
        return go_sort(names, ranks.__getitem__)

    def _is_empty(self, name: str, rules: DrainabilityRules) -> bool:
        outcomes = {rules.drainable(pod).outcome for pod in self._simulator.pods(name)}
        return not outcomes & {DrainabilityOutcome.DRAIN_OK, DrainabilityOutcome.BLOCK_DRAIN}

    def _is_eligible(self, name: str, found: _Pass, rules: DrainabilityRules) -> bool:
        node, pods = self._simulator.node(name), self._simulator.pods(name)
        refused, share = check_eligibility(node, pods, self._group_of[name], rules=rules, options=self._options)
        if share is not None:
            found.utilization[name] = share
        if refused is not None:
            found.kept[name] = refused
        return refused is None

    def _simulate_removal(self, name: str, rules: DrainabilityRules) -> UnremovableNode | UnneededNode:
        """Remove a node, or say why it stays."""
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
        risky = not rules.budgets.allow_together(moving)
        for pod in moving:
            rules.budgets.spend(pod)
        return UnneededNode(len(moving), waits, risky)
