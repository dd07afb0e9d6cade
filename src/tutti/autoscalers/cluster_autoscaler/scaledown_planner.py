"""Cluster Autoscaler's scale-down: which nodes it finds unneeded, why it keeps the others, and what it then deletes.

Contract: pure. Two passes of its main loop are modelled, at `now` and eleven minutes later, when what was unneeded all
the time may go. A pass looks at the nodes in their order, empty ones first, and lets one after the other go if no pod
blocks it and all that must move find a place on what remains (`evictable`, `moves`). After twenty unneeded nodes it
looks no further. Pods below the cutoff of expendable pods, and finished ones, are not seen. A group keeps its minimum.
Where Cluster Autoscaler goes through a map in Go's random order, here the first name comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tutti.autoscalers.cluster_autoscaler.drainability import EvictionRules, Fate
from tutti.autoscalers.cluster_autoscaler.orchestrator import EXPENDABLE_BELOW
from tutti.autoscalers.cluster_autoscaler.removal_simulator import Moves
from tutti.autoscalers.cluster_autoscaler.scaledown_records import Deleted, DownGroup, Kept, Removals
from tutti.autoscalers.cluster_autoscaler.utilization import utilisation
from tutti.autoscalers.shared.borrowed_cluster import borrowed
from tutti.autoscalers.shared.go_sort import go_sort
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Remove
from tutti.cluster.work_budget import Deadline
from tutti.engine.preemption.disruption_budgets import RemainingBudgets
from tutti.kube.objects import Pod, PodDisruptionBudget

DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
PARALLEL = 10
"""How many nodes are deleted at once."""
DRAINS = 1
"""How many of them may have pods that must move."""
LATER = 11 * 60 * 1_000_000
"""When the second pass comes: nodes have been unneeded for ten minutes then."""
ENOUGH = 2 * PARALLEL
"""After how many unneeded nodes a pass looks no further."""


class ScaleDownOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How Cluster Autoscaler runs."""

    threshold: float = 0.5
    """Up to this utilization a node is underused, unless its group says otherwise."""
    ignore_daemons: bool = False
    """Whether the utilization leaves DaemonSet pods out."""


_DEFAULT = ScaleDownOptions()


def cluster_autoscaler_down(
    cluster: Cluster,
    groups: Sequence[DownGroup],
    *,
    options: ScaleDownOptions = _DEFAULT,
    now: int | None = None,
    gone: frozenset[str] = frozenset(),
    deadline: Deadline | None = None,
) -> Removals:
    """What Cluster Autoscaler would remove from a cluster, which is left as it was.

    `gone` are the controllers that do not exist, as ``namespace/Kind/name``; `now` is in microseconds since 1970. Nodes
    whose turn has not come at the deadline are ``NotSimulated``.
    """
    with borrowed(cluster):
        remove_unseen_pods(cluster)
        run = _ScaleDown(cluster, groups, options, gone=gone, deadline=deadline)
        try:
            first = run.go(now)
            second = run.go(None if now is None else now + LATER)
        finally:
            run.end()
        return Removals(
            removable=tuple(first.unneeded),
            kept=first.kept,
            utilization=first.utilization,
            deleted=run.delete(first, second),
            places=run.places(),
        )


def remove_unseen_pods(cluster: Cluster) -> None:
    """Remove the pods that a scale-down does not see: finished ones, and those below the cutoff of expendable pods."""
    pods = [(key, cluster.pod(key)) for key in cluster.pods.row_of]
    for key, pod in pods:
        if (pod.spec.priority or 0) < EXPENDABLE_BELOW or pod.status.phase in ("Succeeded", "Failed"):
            cluster.apply(Remove(Pod.KIND, key))


class _Unneeded(msgspec.Struct, frozen=True):
    """A node that may go."""

    moving: int
    waits: bool
    """Whether a pod on it is let finish first."""
    risky: bool
    """Whether some eviction has to wait for another."""


class _Pass:
    """What one pass finds."""

    def __init__(self) -> None:
        self.unneeded: dict[str, _Unneeded] = {}
        self.kept: dict[str, Kept] = {}
        self.utilization: dict[str, float] = {}


class _ScaleDown:
    """A scale-down under way."""

    def __init__(
        self,
        cluster: Cluster,
        groups: Sequence[DownGroup],
        options: ScaleDownOptions,
        *,
        gone: frozenset[str],
        deadline: Deadline | None,
    ) -> None:
        budgets = cluster.objects[PodDisruptionBudget.KIND].values()
        self._budgets = RemainingBudgets(each for each in budgets if isinstance(each, PodDisruptionBudget))
        self._moves = Moves(cluster)
        self._groups = {name: group for group in groups for name in group.members}
        self._options, self._gone = options, gone
        self._deadline = deadline
        self._before: frozenset[str] = frozenset()
        """What the last pass found unneeded."""

    def end(self) -> None:
        """Give up the mark of the last pass."""
        self._moves.end()

    # A pass -----------------------------------------------------------------------------------------------------------

    def go(self, now: int | None) -> _Pass:
        """Make a pass."""
        found = _Pass()
        self._moves.begin()
        rules = EvictionRules(self._budgets.copy(), now=now, gone=self._gone)
        for name in [name for name in self._candidates(found, now) if self._is_eligible(name, found, rules)]:
            if len(found.unneeded) >= ENOUGH or (self._deadline is not None and self._deadline.is_over()):
                found.kept[name] = Kept("NotSimulated", prefiltered=True)
                continue
            outcome = self._try(name, rules)
            if isinstance(outcome, Kept):
                found.kept[name] = outcome
            else:
                found.unneeded[name] = outcome
        self._before = frozenset(found.unneeded)
        return found

    def _candidates(self, found: _Pass, now: int | None) -> list[str]:
        """The nodes of groups above their minimum: empty ones first, then those that were unneeded before."""
        named = []
        for node in self._moves.nodes:
            name = node.metadata.name
            group = self._groups.get(name)
            if group is None:
                found.kept[name] = Kept("NotAutoscaled", prefiltered=True)
            elif len(group.members) <= group.minimum:
                found.kept[name] = Kept("NodeGroupMinSizeReached", prefiltered=True)
            else:
                named.append(name)
        # Whether a node is empty is asked without budgets and without looking for controllers.
        plain = EvictionRules(RemainingBudgets(), now=now)
        ranks = {name: (not self._is_empty(name, plain), name not in self._before) for name in named}
        return go_sort(named, ranks.__getitem__)

    def _is_empty(self, name: str, rules: EvictionRules) -> bool:
        fates = {rules.verdict(pod).fate for pod in self._moves.pods(name)}
        return not fates & {Fate.MOVES, Fate.BLOCKS}

    def _is_eligible(self, name: str, found: _Pass, rules: EvictionRules) -> bool:
        """Say whether a node may be underused; if not, note why."""
        node = self._moves.node(name)
        if (node.metadata.annotations or {}).get(DISABLED) == "true":
            found.kept[name] = Kept("ScaleDownDisabledAnnotation")
            return False
        pods = [pod for pod in self._moves.pods(name) if not rules.is_long_terminating(pod)]
        share = utilisation(node, pods, ignore_daemons=self._options.ignore_daemons)
        if share is None:
            found.kept[name] = Kept("UnexpectedError")
            return False
        found.utilization[name] = share
        own = self._groups[name].threshold
        if share > (self._options.threshold if own is None else own):
            found.kept[name] = Kept("NotUnderutilized")
            return False
        return True

    def _try(self, name: str, rules: EvictionRules) -> Kept | _Unneeded:
        """Let a node go, or say why it stays."""
        moving, waits = [], False
        for pod in self._moves.pods(name):
            verdict = rules.verdict(pod)
            if verdict.fate is Fate.BLOCKS:
                return Kept("BlockedByPod", pod.key, verdict.reason)
            waits |= verdict.fate is Fate.WAITS
            if verdict.fate is Fate.MOVES:
                moving.append(pod)
        if not self._moves.leave(name, moving):
            return Kept("NoPlaceToMovePods")
        risky = not rules.budgets.allow_together(moving)
        for pod in moving:
            rules.budgets.spend(pod)
        return _Unneeded(len(moving), waits, risky)

    # What is deleted --------------------------------------------------------------------------------------------------

    def delete(self, first: _Pass, second: _Pass) -> Deleted:
        """Choose among the nodes that both passes found unneeded."""
        held = {name: second.kept[name].reason for name in first.unneeded if name not in second.unneeded}
        long_enough = sorted(name for name in second.unneeded if name in first.unneeded)
        long_enough.sort(key=lambda name: bool(second.unneeded[name].moving))
        sizes = {group.name: len(group.members) for group in self._groups.values()}
        chosen = []
        for name in long_enough:
            group = self._groups[name]
            if sizes[group.name] <= group.minimum:
                held[name] = "NodeGroupMinSizeReached"
                continue
            sizes[group.name] -= 1  # also for a node that then waits
            if second.unneeded[name].waits:
                held[name] = "BlockedByOnCompletionPod"
            else:
                chosen.append(name)
        empty = tuple(name for name in chosen if not second.unneeded[name].moving)
        drain = sorted((name for name in chosen if name not in empty), key=lambda name: second.unneeded[name].risky)
        first_empty = self._by_group(empty)[:PARALLEL]
        return Deleted(
            empty=empty,
            drain=tuple(drain),
            held=held,
            first_empty=first_empty,
            first_drain=self._by_group(drain)[: min(DRAINS, PARALLEL - len(first_empty))],
        )

    def places(self) -> dict[str, str]:
        """Where the last pass put the pods that it moved."""
        return self._moves.places()

    def _by_group(self, names: Sequence[str]) -> tuple[str, ...]:
        """The same nodes, group by group, as they are deleted."""
        order = list(dict.fromkeys(self._groups[name].name for name in names))
        return tuple(sorted(names, key=lambda name: order.index(self._groups[name].name)))
