"""Which pods leave a node that goes, which stay with it, and which keep it: Cluster Autoscaler's rules.

Contract: pure. The rules are asked in a fixed order and the first that answers wins, so a kube-system pod that is old
enough moves even if it is annotated as not safe to evict. In this order: a mirror pod stays with its node; so does one
that should long be gone; a pod whose controller is known to be gone blocks; a DaemonSet's pod stays; `safe-to-evict:
true` moves whatever else holds; a finished pod stays; `safe-to-evict: on-completion` makes the node wait; a pod without
a controller that would make it again blocks; a kube-system pod that no budget selects blocks while it is younger than
an hour and moves afterwards; `safe-to-evict: false` blocks; local storage blocks; a budget with nothing left blocks.
All other pods move. The rules only decide; they move no pod.

A budget has to have one disruption left, not one for every pod of the node, as in Cluster Autoscaler.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

from tutti.engine.preemption.disruption_budgets import RemainingBudgets
from tutti.kube.objects import Node, Object, Pod
from tutti.kube.times import micros
from tutti.kube.workloads.owners import controller_of

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
SAFE_LOCAL_VOLUMES = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
DAEMON_POD = "cluster-autoscaler.kubernetes.io/daemonset-pod"
MIRROR = "kubernetes.io/config.mirror"
ON_COMPLETION = "on-completion"
KUBE_SYSTEM = "kube-system"
REPLICATED = frozenset(("ReplicationController", "ReplicaSet", "StatefulSet", "Job"))
"""Kinds of controllers that make a pod again; one of any other kind is not trusted to."""
_SECOND = 1_000_000
_SYSTEM_GRACE = 3600 * _SECOND
"""How long a kube-system pod without a budget is left alone."""
_GRACE = 30
"""For how many seconds a pod may go on when it is told to end, if it does not say."""
_OVERDUE = 30
"""For how many seconds a pod is still waited for when its time is up."""
MOST_GRACE = 600
"""For how many seconds Cluster Autoscaler lets a pod go on at most (``--max-graceful-termination-sec``)."""
_LOOKED_UP = REPLICATED | {"DaemonSet"}


class DrainabilityOutcome(StrEnum):
    """What becomes of a pod when its node goes."""

    SKIP_DRAIN = "stays"
    """It needs no other place: it goes with the node."""
    DRAIN_OK = "moves"
    WAIT_FOR_COMPLETION = "waits"
    """It is let finish; the node goes afterwards."""
    BLOCK_DRAIN = "blocks"


class DrainabilityStatus(msgspec.Struct, frozen=True, gc=False):
    """What the rules say about a pod."""

    outcome: DrainabilityOutcome
    reason: str = ""
    """Cluster Autoscaler's word for why it blocks."""


_STAYS, _MOVES, _WAITS = (
    DrainabilityStatus(DrainabilityOutcome.SKIP_DRAIN),
    DrainabilityStatus(DrainabilityOutcome.DRAIN_OK),
    DrainabilityStatus(DrainabilityOutcome.WAIT_FOR_COMPLETION),
)
_GONE, _NAKED = (
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "ControllerNotFound"),
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "NotReplicated"),
)
_SYSTEM, _UNSAFE = (
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "UnmovableKubeSystemPod"),
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "NotSafeToEvictAnnotation"),
)
_LOCAL, _SPENT = (
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "LocalStorageRequested"),
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "NotEnoughPdb"),
)


class DrainabilityRules:
    """The rules at one moment; see the module's contract.

    `now` is in microseconds since 1970. Without it ages cannot be told: then no pod has been terminating for long, and
    every kube-system pod is young, which is the answer that keeps nodes. `latest_moment` of the objects is a `now`
    that is never too late. `gone` names the controllers that are known not to exist, as ``namespace/Kind/name``; of all
    others it is believed that they are there.
    """

    def __init__(
        self, budgets: RemainingBudgets, *, now: int | None = None, gone: frozenset[str] = frozenset()
    ) -> None:
        self.budgets = budgets
        self._now, self._gone = now, gone

    def drainable(self, pod: Pod) -> DrainabilityStatus:
        """What becomes of a pod when its node is drained."""
        return self._stays_or_safe(pod) or self._blocks(pod) or _MOVES

    def _stays_or_safe(self, pod: Pod) -> DrainabilityStatus | None:
        """The rules that end the questions before anything about the pod could block, with the one that comes first."""
        marks = pod.metadata.annotations or {}
        if MIRROR in marks or self.is_long_terminating(pod):
            return _STAYS
        if self._is_orphan(pod):
            return _GONE
        if is_daemon(pod):
            return _STAYS
        evict = marks.get(SAFE_TO_EVICT)
        if evict == "true":
            return _MOVES
        if is_finished(pod):
            return _STAYS
        return _WAITS if evict == ON_COMPLETION else None

    def _blocks(self, pod: Pod) -> DrainabilityStatus | None:
        owner = controller_of(pod)
        if owner is None or owner.kind not in REPLICATED:
            return _NAKED
        if pod.metadata.namespace == KUBE_SYSTEM and not self.budgets.number(pod):
            return _MOVES if self._is_older_than(pod.metadata.creation_timestamp, _SYSTEM_GRACE) else _SYSTEM
        if (pod.metadata.annotations or {}).get(SAFE_TO_EVICT) == "false":
            return _UNSAFE
        if has_local_storage(pod):
            return _LOCAL
        left = self.budgets.left(pod)
        return _SPENT if left is not None and left < 1 else None

    def _is_orphan(self, pod: Pod) -> bool:
        """Whether a pod's controller is known to be gone."""
        owner = controller_of(pod)
        if owner is None or owner.kind not in _LOOKED_UP or not self._gone:
            return False
        return f"{pod.metadata.namespace or 'default'}/{owner.kind}/{owner.name}" in self._gone

    def is_long_terminating(self, pod: Pod) -> bool:
        """Whether a pod should have been gone for a while: Cluster Autoscaler counts its whole grace period."""
        return self._is_older_than(pod.metadata.deletion_timestamp, (grace_of(pod) + _OVERDUE) * _SECOND)

    def _is_older_than(self, moment: str | None, age: int) -> bool:
        return moment is not None and self._now is not None and micros(moment) + age < self._now


def grace_of(pod: Pod) -> int:
    """For how many seconds a pod may go on when it is told to end; below 0 stands for 1, as for Kubernetes."""
    own = pod.spec.termination_grace_period_seconds
    return _GRACE if own is None else own if own >= 0 else 1


def is_daemon(pod: Pod) -> bool:
    """Whether a pod is a DaemonSet's, or says that it is to be treated like one."""
    owner = controller_of(pod)
    if owner is not None and owner.kind == "DaemonSet":
        return True
    return (pod.metadata.annotations or {}).get(DAEMON_POD) == "true"


def is_finished(pod: Pod) -> bool:
    """Whether a pod has run, and will not run again on its node."""
    phase, policy = pod.status.phase, pod.spec.restart_policy
    return phase == "Failed" or (phase == "Succeeded" and policy in ("Never", "OnFailure"))


def has_local_storage(pod: Pod) -> bool:
    """Whether a pod would lose what it has on the node's disk; a volume in memory, or one given up by name, is none."""
    listed = (pod.metadata.annotations or {}).get(SAFE_LOCAL_VOLUMES, "")
    given_up = listed.split(",") if listed else ()
    for volume in pod.spec.volumes or ():
        if volume.name in given_up:
            continue
        if volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != "Memory"):
            return True
    return False


def latest_moment(objects: Iterable[Object]) -> int | None:
    """The latest moment that objects speak of: the clock that wrote them showed at least that.

    Nodes say when their kubelet spoke last: in a dump of a running cluster that is a few minutes ago.
    """
    times = {stamp for each in objects for stamp in _stamps(each) if stamp is not None}
    return max(map(micros, times), default=None)


def _stamps(each: Object) -> Iterator[str | None]:
    yield each.metadata.creation_timestamp
    if isinstance(each, Pod):
        yield each.status.start_time
    if isinstance(each, Node):
        yield from (condition.last_heartbeat_time for condition in each.status.conditions or ())
