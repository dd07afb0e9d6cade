"""Cluster Autoscaler's drainability rules: which pods of a removed node move, which are skipped, and which block it.

Contract: pure; the rules only decide. They apply in a fixed order, and the first rule with an outcome wins, so an old
kube-system pod moves even if it is annotated as not safe to evict. The order:

1. A mirror pod is skipped, and so is a pod that has been terminating for too long.
2. A pod whose controller is known to be missing blocks.
3. A DaemonSet pod is skipped.
4. A pod with ``safe-to-evict: true`` moves.
5. A finished pod is skipped.
6. A pod with ``safe-to-evict: on-completion`` makes the node wait.
7. A pod without a controller that would replace the pod blocks.
8. A kube-system pod that no disruption budget selects blocks while it is younger than an hour, and then moves.
9. A pod with ``safe-to-evict: false`` blocks, and so do a pod with local storage and a pod whose disruption budget
   allows no disruption. As in Cluster Autoscaler, a budget needs one allowed disruption, not one per pod of the node.

All other pods move.
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
"""Kinds of controllers that replace a deleted pod, as far as Cluster Autoscaler knows."""
_SECOND = 1_000_000
_MIN_SYSTEM_POD_AGE = 3600 * _SECOND
"""The age from which a kube-system pod without a disruption budget may move."""
_DEFAULT_GRACE_SECONDS = 30
_LONG_TERMINATING_SECONDS = 30
"""How long after its grace period a terminating pod starts to be ignored."""
MAX_GRACE_SECONDS = 600
"""Cluster Autoscaler's default for ``--max-graceful-termination-sec``."""
_CHECKED_CONTROLLERS = REPLICATED | {"DaemonSet"}


class DrainabilityOutcome(StrEnum):
    """What a drain of its node does with a pod."""

    SKIP_DRAIN = "stays"
    """The pod is not moved: it ends with the node."""
    DRAIN_OK = "moves"
    WAIT_FOR_COMPLETION = "waits"
    """The node is removed after the pod has finished."""
    BLOCK_DRAIN = "blocks"


class DrainabilityStatus(msgspec.Struct, frozen=True, gc=False):
    """The outcome of the rules for a pod."""

    outcome: DrainabilityOutcome
    reason: str = ""
    """Cluster Autoscaler's name of the reason why the pod blocks."""


_SKIP, _DRAIN_OK, _WAIT = (
    DrainabilityStatus(DrainabilityOutcome.SKIP_DRAIN),
    DrainabilityStatus(DrainabilityOutcome.DRAIN_OK),
    DrainabilityStatus(DrainabilityOutcome.WAIT_FOR_COMPLETION),
)
_CONTROLLER_NOT_FOUND, _NOT_REPLICATED = (
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "ControllerNotFound"),
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "NotReplicated"),
)
_KUBE_SYSTEM_POD, _NOT_SAFE_TO_EVICT = (
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "UnmovableKubeSystemPod"),
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "NotSafeToEvictAnnotation"),
)
_LOCAL_STORAGE, _NOT_ENOUGH_PDB = (
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "LocalStorageRequested"),
    DrainabilityStatus(DrainabilityOutcome.BLOCK_DRAIN, "NotEnoughPdb"),
)


class DrainabilityRules:
    """The rules at one moment; see the module's contract.

    `now` is in microseconds since 1970. If `now` is None, ages are unknown: no pod counts as terminating for too long,
    and every kube-system pod counts as young, so that nodes are kept rather than removed. `latest_moment` of the
    objects is never later than the real time. `missing_controllers` names controllers that are known not to exist, as
    ``namespace/Kind/name``; all other controllers count as existing.
    """

    def __init__(
        self, budgets: RemainingBudgets, *, now: int | None = None, missing_controllers: frozenset[str] = frozenset()
    ) -> None:
        self.budgets = budgets
        self._now, self._missing_controllers = now, missing_controllers

    def drainable(self, pod: Pod) -> DrainabilityStatus:
        """Return what a drain of its node does with a pod."""
        return self._first_rules(pod) or self._blocking_rules(pod) or _DRAIN_OK

    def _first_rules(self, pod: Pod) -> DrainabilityStatus | None:
        """Apply rules 1 to 6."""
        annotations = pod.metadata.annotations or {}
        if MIRROR in annotations or self.is_long_terminating(pod):
            return _SKIP
        if self._is_orphan(pod):
            return _CONTROLLER_NOT_FOUND
        if is_daemon(pod):
            return _SKIP
        safe_to_evict = annotations.get(SAFE_TO_EVICT)
        if safe_to_evict == "true":
            return _DRAIN_OK
        if is_finished(pod):
            return _SKIP
        return _WAIT if safe_to_evict == ON_COMPLETION else None

    def _blocking_rules(self, pod: Pod) -> DrainabilityStatus | None:
        """Apply rules 7 to 9."""
        owner = controller_of(pod)
        if owner is None or owner.kind not in REPLICATED:
            return _NOT_REPLICATED
        if pod.metadata.namespace == KUBE_SYSTEM and not self.budgets.number(pod):
            is_old = self._is_older_than(pod.metadata.creation_timestamp, _MIN_SYSTEM_POD_AGE)
            return _DRAIN_OK if is_old else _KUBE_SYSTEM_POD
        if (pod.metadata.annotations or {}).get(SAFE_TO_EVICT) == "false":
            return _NOT_SAFE_TO_EVICT
        if has_local_storage(pod):
            return _LOCAL_STORAGE
        left = self.budgets.left(pod)
        return _NOT_ENOUGH_PDB if left is not None and left < 1 else None

    def _is_orphan(self, pod: Pod) -> bool:
        """Return whether a pod's controller is known to be missing."""
        owner = controller_of(pod)
        if owner is None or owner.kind not in _CHECKED_CONTROLLERS or not self._missing_controllers:
            return False
        return f"{pod.metadata.namespace or 'default'}/{owner.kind}/{owner.name}" in self._missing_controllers

    def is_long_terminating(self, pod: Pod) -> bool:
        """Return whether a pod has been terminating for its whole grace period and 30 seconds more."""
        age = (grace_of(pod) + _LONG_TERMINATING_SECONDS) * _SECOND
        return self._is_older_than(pod.metadata.deletion_timestamp, age)

    def _is_older_than(self, moment: str | None, age: int) -> bool:
        return moment is not None and self._now is not None and micros(moment) + age < self._now


def grace_of(pod: Pod) -> int:
    """Return a pod's termination grace period in seconds; a negative value counts as 1, as in Kubernetes."""
    own = pod.spec.termination_grace_period_seconds
    return _DEFAULT_GRACE_SECONDS if own is None else own if own >= 0 else 1


def is_daemon(pod: Pod) -> bool:
    """Return whether a pod belongs to a DaemonSet, or has an annotation to be treated like such a pod."""
    owner = controller_of(pod)
    if owner is not None and owner.kind == "DaemonSet":
        return True
    return (pod.metadata.annotations or {}).get(DAEMON_POD) == "true"


def is_finished(pod: Pod) -> bool:
    """Return whether a pod has finished and is not restarted on its node."""
    phase, policy = pod.status.phase, pod.spec.restart_policy
    return phase == "Failed" or (phase == "Succeeded" and policy in ("Never", "OnFailure"))


def has_local_storage(pod: Pod) -> bool:
    """Return whether a pod has data on the node's disk; volumes in memory or annotated as safe to lose do not count."""
    annotation = (pod.metadata.annotations or {}).get(SAFE_LOCAL_VOLUMES, "")
    safe_volumes = annotation.split(",") if annotation else ()
    for volume in pod.spec.volumes or ():
        if volume.name in safe_volumes:
            continue
        if volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != "Memory"):
            return True
    return False


def latest_moment(objects: Iterable[Object]) -> int | None:
    """Return the latest timestamp in objects, in microseconds since 1970: the objects were read at that time or later.

    Nodes have the last heartbeat of their kubelet, which in a dump of a running cluster is at most a few minutes old.
    """
    times = {timestamp for each in objects for timestamp in _timestamps(each) if timestamp is not None}
    return max(map(micros, times), default=None)


def _timestamps(each: Object) -> Iterator[str | None]:
    yield each.metadata.creation_timestamp
    if isinstance(each, Pod):
        yield each.status.start_time
    if isinstance(each, Node):
        yield from (condition.last_heartbeat_time for condition in each.status.conditions or ())
