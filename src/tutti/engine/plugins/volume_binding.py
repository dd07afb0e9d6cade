"""VolumeBinding: can the pod's claims be met on the node, by bound, available or newly provisioned volumes?

`volume_matching` finds the volumes. `reserve` returns the edits with which a placed pod takes its volumes.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.assumed_volumes import bound_to_claim, with_selected_node
from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints, Rows
from tutti.cluster.edits import AssumeVolume, Edit
from tutti.cluster.events import Event
from tutti.engine.plugins import volumes
from tutti.engine.plugins.base import MAX_SCORE, ClusterPlugin, IncomingPod, PreFilterState, Selection
from tutti.engine.plugins.node_resources_fit import FunctionShape, broken_linear_function
from tutti.engine.plugins.verdict import AttemptError, Reason, Refusal
from tutti.engine.plugins.volume_matching import (
    BIND_CONFLICT,
    COMBINED_CODES,
    NODE_CONFLICT,
    NOT_ENOUGH_SPACE,
    PV_NOT_EXIST,
    ClaimsState,
    VolumeMatch,
)
from tutti.kube.objects import ObjectReference, PersistentVolumeClaim
from tutti.kube.quantity import value

BOUND = "pv.kubernetes.io/bind-completed"

_MESSAGES = {
    NODE_CONFLICT: "node(s) didn't match PersistentVolume's node affinity",
    BIND_CONFLICT: "node(s) didn't find available persistent volumes to bind",
    NOT_ENOUGH_SPACE: "node(s) did not have enough free storage",
    PV_NOT_EXIST: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class VolumeBinding(ClusterPlugin):
    """kube-scheduler's VolumeBinding: PreFilter, filter, score and reserve."""

    name = "VolumeBinding"
    events_to_register = frozenset((Event.NODE_ADDED, Event.NODE_LABELS, Event.VOLUMES))
    refusals = (
        *(Refusal(_MESSAGES[i], resolvable=False) for i in _MESSAGES),
        *(Refusal(" and ".join(_MESSAGES[i] for i in sorted(both)), resolvable=False) for both in COMBINED_CODES),
    )

    def __init__(self, shape: FunctionShape = ((0, MAX_SCORE), (MAX_SCORE, 0))) -> None:
        self._shape_scores = broken_linear_function(shape)

    def applies_to(self, incoming: IncomingPod) -> bool:
        """Return whether the pod has volumes."""
        return bool(incoming.spec.volumes)

    def pre_filter(self, incoming: IncomingPod) -> PreFilterState | Reason | None:
        """Split the claims into bound and waiting; a missing, lost or unbound immediate claim refuses all nodes."""
        claims: list[PersistentVolumeClaim] = []
        for volume in incoming.spec.volumes:
            name = volumes.claim_name(incoming.pod, volume)
            if name is None:
                continue
            claim = volumes.find_claim(incoming.cluster, incoming.spec.namespace, name)
            problem = _claim_problem(incoming, claim, name, ephemeral=volume.ephemeral is not None)
            if problem is not None or claim is None:
                return Reason(self.name, (problem or "",), resolvable=False)
            claims.append(claim)
        if not claims:
            return None
        bound = [c for c in claims if _is_bound(c)]
        waiting = [c for c in claims if not _is_bound(c)]
        if any(c.spec.volume_name or not _waits_for_first_consumer(incoming.cluster, c) for c in waiting):
            return Reason(self.name, ("pod has unbound immediate PersistentVolumeClaims",), resolvable=False)
        return ClaimsState(incoming, bound, waiting)

    def reason(self, incoming: IncomingPod, row: int, code: int) -> Reason:
        """Return all messages of the row."""
        state = self.pre_filter(incoming)
        assert isinstance(state, ClaimsState)
        match = state.match(row)
        return Reason(self.name, tuple(_MESSAGES[r] for r in sorted(match.refusals)), resolvable=False)

    def count_messages(self, incoming: IncomingPod, rows: Rows, code: int) -> dict[str, int]:
        """Return how many rows have each message."""
        state = self.pre_filter(incoming)
        assert isinstance(state, ClaimsState)
        counts: dict[str, int] = {}
        for row in rows.tolist():
            for refusal in state.match(row).refusals:
                counts[_MESSAGES[refusal]] = counts.get(_MESSAGES[refusal], 0) + 1
        return counts

    def score(self, incoming: IncomingPod, state: PreFilterState | None, rows: Selection) -> Ints | None:
        """Prefer nodes whose volumes fit the claims closely, by the shape; pods without waiting claims score 0."""
        numbers = np.arange(incoming.cluster.nodes.size)[rows].tolist()
        if not isinstance(state, ClaimsState) or not state.waiting:
            return np.zeros(len(numbers), dtype=np.int64)
        return np.fromiter((self._utilization_score(state.match(row)) for row in numbers), np.int64, len(numbers))

    def _utilization_score(self, match: VolumeMatch) -> int:
        """Return the average score of the storage classes by their utilization."""
        classes: dict[str, tuple[int, int]] = {}
        if match.bindings:
            for claim, volume in match.bindings:
                requested, size = classes.get(volume.spec.storage_class_name or "", (0, 0))
                classes[volume.spec.storage_class_name or ""] = (
                    requested + _requested_storage(claim), size + value((volume.spec.capacity or {}).get("storage", 0))
                )  # fmt: skip
        else:
            for claim, capacity in match.provisions:
                if capacity is None:
                    continue
                name = claim.spec.storage_class_name or ""
                # The capacity belongs to the class on the node, not to each claim.
                requested = classes.get(name, (0, 0))[0] + _requested_storage(claim)
                classes[name] = (requested, value(capacity.capacity or 0))
        if not classes:
            return 0
        total = 0
        for requested, size in classes.values():
            utilization = MAX_SCORE if size == 0 or requested > size else requested * MAX_SCORE // size
            total += int(self._shape_scores[utilization])
        return int(total / len(classes) + 0.5)


def reserve(incoming: IncomingPod, states: list[PreFilterState | None], row: int) -> list[Edit]:
    """Return the edits by which a placed pod takes its volumes.

    An available volume is bound to its claim; a claim to provision gets the node as its selected node.
    """
    claims = next((s for s in states if isinstance(s, ClaimsState)), None)
    if claims is None or not claims.waiting:
        return []
    match, pod, node = claims.match(row), incoming.pod.key, incoming.cluster.nodes.names[row]
    edits: list[Edit] = [
        AssumeVolume(bound_to_claim(volume, _reference(claim)), pod) for claim, volume in match.bindings
    ]
    edits += (AssumeVolume(with_selected_node(claim, node), pod) for claim, _ in match.provisions)
    return edits


def _reference(claim: PersistentVolumeClaim) -> ObjectReference:
    meta = claim.metadata
    return ObjectReference(kind=claim.KIND, namespace=meta.namespace, name=meta.name, uid=meta.uid)


def _claim_problem(
    incoming: IncomingPod, claim: PersistentVolumeClaim | None, name: str, *, ephemeral: bool
) -> str | None:
    """Return the message for a claim that refuses all nodes; None for a usable claim."""
    if claim is None:
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name or ""}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    return volumes.ownership_error(incoming.pod, claim) if ephemeral else None


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BOUND in (claim.metadata.annotations or {})


def _waits_for_first_consumer(cluster: Cluster, claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim's class has the binding mode WaitForFirstConsumer."""
    storage_class = volumes.find_storage_class(cluster, volumes.claim_class_name(claim))
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise AttemptError(f'VolumeBindingMode not set for StorageClass "{storage_class.metadata.name}"')
    return storage_class.volume_binding_mode == volumes.WAIT_FOR_CONSUMER


def _requested_storage(claim: PersistentVolumeClaim) -> int:
    requests = (claim.spec.resources.requests if claim.spec.resources else None) or {}
    return value(requests.get("storage", 0))
