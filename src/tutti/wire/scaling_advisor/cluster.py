"""The cluster of a planner request of gardener/scaling-advisor, as Kubernetes objects.

Contract: pure. A pod has one container with the aggregated requests of its containers. Kinds that the snapshot leaves
out are unknown and not checked; if a kind is listed, a pod with a missing claim or class of that kind is rejected. A
claim of a storage class with immediate binding counts as bound: its volume is provisioned independently of the plan, in
an unknown zone, so the claim does not restrict its pod to a zone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec.structs import replace

from tutti.engine.plugins.volume_binding import BOUND
from tutti.exceptions import InputError
from tutti.kube.admission.prepare import prepare
from tutti.kube.admission.unknown_volumes import drop_unknown_volumes
from tutti.kube.objects import (
    ClaimSpec,
    ClaimStatus,
    Container,
    CSINode,
    CsiSource,
    Node,
    NodeSpec,
    NodeStatus,
    Object,
    ObjectMeta,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    PodStatus,
    PriorityClass,
    ResourceRequirements,
    RuntimeClass,
    StorageClass,
    VolumeNodeAffinity,
    VolumeSpec,
)
from tutti.kube.reading.snapshot import Snapshot, by_kind
from tutti.kube.reading.validation import validate
from tutti.market.instance_types import HOSTNAME, INSTANCE_TYPE
from tutti.wire.scaling_advisor.schema import (
    ClaimText,
    PlannerNodeText,
    PlannerPodText,
    PlannerSnapshotText,
    VolumeText,
)
from tutti.wire.scaling_advisor.volume_limits import NO_PROVISIONER, driver_of

_BOUND = "Bound"


def read_cluster(text: PlannerSnapshotText, *, file: str) -> Snapshot:
    """Return the prepared cluster of a planner request."""
    present = {Node.KIND, Pod.KIND}
    for kind, listed in (
        (PersistentVolume, text.volumes), (PersistentVolumeClaim, text.claims), (StorageClass, text.storage_classes),
        (PriorityClass, text.priority_classes), (RuntimeClass, text.runtime_classes),
    ):  # fmt: skip
        if listed:
            present.add(kind.KIND)
    found: dict[tuple[str, str], Object] = {}
    for obj in _objects(text):
        called = f"{obj.KIND.lower()} {obj.key if obj.metadata.name else 'without a name'}"
        try:
            validate(obj)
        except InputError as error:
            raise InputError(error.problem, file=file, obj=called, field=error.field) from None
        if found.setdefault((obj.KIND, obj.key), obj) != obj:
            raise InputError("defined twice, with different content", file=file, obj=called)
    try:
        snapshot = prepare(Snapshot(objects=by_kind(found.values()), present_kinds=frozenset(present)))
    except InputError as error:
        raise InputError(error.problem, file=file, obj=error.obj, field=error.field) from None
    return drop_unknown_volumes(snapshot)


def _objects(text: PlannerSnapshotText) -> Iterator[Object]:
    yield from text.storage_classes or ()
    yield from text.priority_classes or ()
    yield from text.runtime_classes or ()
    for node in text.nodes or ():
        yield _node(node)
        if node.csi_node_spec is not None:
            yield CSINode(metadata=ObjectMeta(name=node.name or ""), spec=node.csi_node_spec)
    drivers = {each.metadata.name: driver_of(each) for each in text.storage_classes or ()}
    for volume in text.volumes or ():
        yield _volume(volume, driver=drivers.get(volume.storage_class_name or "", ""))
    at_once = {each.metadata.name for each in text.storage_classes or () if _binds_at_once(each)}
    for claim in text.claims or ():
        if not claim.volume_name and claim.storage_class_name in at_once:
            claim = replace(claim, volume_name=f"to-come-{claim.namespace or 'default'}-{claim.name}", phase=_BOUND)
            yield _to_come(claim, driver=drivers.get(claim.storage_class_name or "", ""))
        yield _claim(claim)
    yield from map(_pod, text.pods or ())


def _metadata(text: Any, *, namespaced: bool = True) -> ObjectMeta:
    return ObjectMeta(
        name=text.name or "",
        namespace=(text.namespace or "default") if namespaced else None,
        uid=text.uid,
        labels=text.labels,
        annotations=text.annotations,
        creation_timestamp=text.creation_timestamp,
        deletion_timestamp=text.deletion_timestamp,
        owner_references=text.owner_references,
    )


def _node(text: PlannerNodeText) -> Node:
    metadata = _metadata(text, namespaced=False)
    own = {HOSTNAME: text.name or ""} | ({INSTANCE_TYPE: text.instance_type} if text.instance_type else {})
    return Node(
        metadata=replace(metadata, labels=own | (metadata.labels or {})),
        spec=NodeSpec(taints=text.taints, unschedulable=text.unschedulable or None),
        status=NodeStatus(
            capacity=text.capacity, allocatable=text.allocatable or text.capacity, conditions=text.conditions
        ),
    )


def _pod(text: PlannerPodText) -> Pod:
    asks = ResourceRequirements(requests=text.aggregated_requests)
    metadata = _metadata(text)
    if text.priority is None and text.priority_class_name:
        # Without a number the priority is looked up by its class, as for a pod that is not stored yet.
        metadata = replace(metadata, uid=None, creation_timestamp=None)
    return Pod(
        metadata=metadata,
        spec=PodSpec(
            containers=[Container(name="main", resources=asks)],
            node_name=text.node_name or None,
            node_selector=text.node_selector,
            affinity=text.affinity,
            tolerations=text.tolerations,
            topology_spread_constraints=text.topology_spread_constraints,
            priority=text.priority,
            priority_class_name=text.priority_class_name or None,
            preemption_policy=text.preemption_policy or None,
            scheduler_name=text.scheduler_name or None,
            overhead=text.overhead,
            volumes=text.volumes,
            resource_claims=text.resource_claims,
            runtime_class_name=text.runtime_class_name or None,
        ),
        status=PodStatus(nominated_node_name=text.nominated_node_name or None),
    )


def _binds_at_once(storage: StorageClass) -> bool:
    mode = storage.volume_binding_mode or "Immediate"
    return mode == "Immediate" and storage.provisioner not in ("", NO_PROVISIONER)


def _source(driver: str, volume: str) -> CsiSource | None:
    """Return the CSI source, by which nodes count volumes; the driver comes from the storage class of the volume."""
    return CsiSource(driver=driver, volume_handle=volume) if driver else None


def _to_come(claim: ClaimText, *, driver: str) -> PersistentVolume:
    """Return the volume that will be provisioned for a claim."""
    size = (claim.resources.requests or {}) if claim.resources is not None else {}
    return PersistentVolume(
        metadata=ObjectMeta(name=claim.volume_name or ""),
        spec=VolumeSpec(
            capacity=size,
            access_modes=claim.access_modes,
            storage_class_name=claim.storage_class_name,
            volume_mode=claim.volume_mode,
            claim_ref=ObjectReference(namespace=claim.namespace or "default", name=claim.name, uid=claim.uid),
            csi=_source(driver, claim.volume_name or ""),
        ),
        status=ClaimStatus(phase=_BOUND),
    )


def _claim(text: ClaimText) -> PersistentVolumeClaim:
    metadata = _metadata(text)
    if text.volume_name and text.phase == _BOUND:
        metadata = replace(metadata, annotations={BOUND: "yes"} | (metadata.annotations or {}))
    return PersistentVolumeClaim(
        metadata=metadata,
        spec=ClaimSpec(
            access_modes=text.access_modes,
            storage_class_name=text.storage_class_name,
            volume_name=text.volume_name,
            volume_mode=text.volume_mode,
            resources=text.resources,
            selector=text.selector,
        ),
        status=ClaimStatus(phase=text.phase),
    )


def _volume(text: VolumeText, *, driver: str) -> PersistentVolume:
    return PersistentVolume(
        metadata=_metadata(text, namespaced=False),
        spec=VolumeSpec(
            capacity=text.capacity,
            access_modes=text.access_modes,
            storage_class_name=text.storage_class_name,
            volume_mode=text.volume_mode,
            node_affinity=VolumeNodeAffinity(required=text.node_affinity) if text.node_affinity is not None else None,
            claim_ref=text.claim_ref,
            csi=_source(driver, text.name or ""),
        ),
        status=ClaimStatus(phase=text.phase),
    )
