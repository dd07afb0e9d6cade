"""Pods that a kubelet rejects after they were bound: reported if nothing creates them again.

A kubelet admits pods by its own count, so it may refuse what the scheduler has bound: another scheduler took the room,
a device is gone, the labels of the node have changed. The pod is then Failed for ever. A controller creates another
one, which completes a gang; a bare pod only its user can replace.

Contract: `observe` sees changes before `NewestObjects` does, and reports pods that turn to Failed before they have
started, while this process leads. The pod gets an event, and so do the other pods of its gang. A rejection that no
process saw happen is not reported. Belongs to the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from tutti.client.event_recorder import EventRecorder, Regarding
from tutti.client.reflector import Change
from tutti.cluster.edits import Put
from tutti.kube.gangs.reader import membership
from tutti.kube.objects import Pod
from tutti.live.newest_objects import NewestObjects

_LOG = logging.getLogger("tutti.live")
_REASONS = frozenset((
    "AppArmor",
    "InvalidNodeInfo",
    "NodeAffinity",
    "NodeName",
    "NodePorts",
    "NodeShutdown",
    "PodOSNotSupported",
    "PodOSSelectorNodeLabelDoesNotMatch",
    "SysctlForbidden",
    "TopologyAffinityError",
    "UnexpectedAdmissionError",
    "UnexpectedPredicateFailureType",
    "UnsupportedNodeLabel",
))  # fmt: skip
"""Reasons with which kubelets reject pods, besides OutOf and the name of a resource."""
_MESSAGE = "Pod was rejected"
"""The beginning of the message of a rejected pod, whatever its reason."""


class RejectedPods:
    """See the module's docstring."""

    def __init__(
        self, newest: NewestObjects, events: EventRecorder, *, scheduler_name: str, may_write: Callable[[], bool]
    ) -> None:
        self._newest, self._events = newest, events
        self._scheduler_name, self._may_write = scheduler_name, may_write
        self.count = 0
        """How many bare pods were rejected."""

    def observe(self, changes: Iterable[Change]) -> None:
        """Report rejected pods among changes that a watch reports."""
        for change in changes:
            if isinstance(change, Put) and isinstance(change.obj, Pod) and change.obj.status.phase == "Failed":
                self._note_failed(change.obj)

    def _note_failed(self, pod: Pod) -> None:
        before = self._newest.pod(pod.key)
        if before is None or before.metadata.uid != pod.metadata.uid or not self._may_write():
            return
        is_ours = pod.spec.scheduler_name == self._scheduler_name
        if not is_ours or not pod.spec.node_name or not is_rejected(pod) or _has_controller(pod):
            return
        self.count += 1
        why = f"the kubelet of node {pod.spec.node_name} rejected it ({pod.status.reason or pod.status.message})"
        next_step = "no controller creates it again: delete it and create it anew"
        _LOG.warning("%s failed: %s, and %s", pod.key, why, next_step)
        self._record(pod, f"Failed before it started: {why}, and {next_step}")
        gang = membership(pod)
        if gang is None:
            return
        for other in self._newest.pods():
            found = membership(other) if other.key != pod.key else None
            if found is not None and found.group == gang.group:
                self._record(other, f"{pod.key} of the same gang failed: {why}, and {next_step}")

    def _record(self, pod: Pod, note: str) -> None:
        about = Regarding("Pod", pod.metadata.namespace or "", pod.metadata.name, pod.metadata.uid or "")
        self._events.record(about, "RejectedByKubelet", note, action="Binding", kind="Warning")


def is_rejected(pod: Pod) -> bool:
    """Return whether a failed pod was rejected by its kubelet, and has never started."""
    reason, message = pod.status.reason or "", pod.status.message or ""
    return reason.startswith("OutOf") or reason in _REASONS or message.startswith(_MESSAGE)


def _has_controller(pod: Pod) -> bool:
    return any(owner.controller for owner in pod.metadata.owner_references or ())
