"""Storage classes, volumes and claims that wait for their first consumer, with defaults that make short tests."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tests.support.builders import HOSTNAME, pod
from tutti.kube import objects as k

STATIC, DYNAMIC = "static", "dynamic"
"""Storage classes: volumes of the first exist, those of the second are provisioned."""
_PROVISIONERS = {STATIC: "kubernetes.io/no-provisioner", DYNAMIC: "disk.example"}


def storage_classes() -> list[k.StorageClass]:
    """Both storage classes."""
    return [
        k.StorageClass(
            metadata=k.ObjectMeta(name=name), provisioner=provisioner, volume_binding_mode="WaitForFirstConsumer"
        )
        for name, provisioner in _PROVISIONERS.items()
    ]


def volume(name: str, *, on: str | None = None, size: str = "1Gi", version: int | None = None) -> k.PersistentVolume:
    """An available volume; `on` is the only node that reaches it."""
    term = k.NodeSelectorTerm(
        match_expressions=[k.LabelSelectorRequirement(key=HOSTNAME, operator="In", values=[on or ""])]
    )
    affinity = k.VolumeNodeAffinity(required=k.NodeSelector(node_selector_terms=[term])) if on else None
    return k.PersistentVolume(
        metadata=k.ObjectMeta(name=name, uid=f"uid-{name}", resource_version=_text(version)),
        spec=k.VolumeSpec(
            capacity={"storage": size}, access_modes=["ReadWriteOnce"], storage_class_name=STATIC,
            node_affinity=affinity,
        ),
        status=k.ClaimStatus(phase="Available"),
    )  # fmt: skip


def claim(name: str, storage_class: str = STATIC, *, version: int | None = None) -> k.PersistentVolumeClaim:
    """A claim that is not bound."""
    return k.PersistentVolumeClaim(
        metadata=k.ObjectMeta(
            name=name, namespace="default", uid=f"uid-{name}", resource_version=_text(version)
        ),
        spec=k.ClaimSpec(
            access_modes=["ReadWriteOnce"], storage_class_name=storage_class,
            resources=k.ResourceRequirements(requests={"storage": "1Gi"}),
        ),
        status=k.ClaimStatus(phase="Pending"),
    )  # fmt: skip


def _text(version: int | None) -> str | None:
    return str(version) if version is not None else None


def pod_with_claims(name: str, *claims: str, **how: Any) -> k.Pod:
    """A pod that mounts claims."""
    mounts = [k.Volume(name=each, persistent_volume_claim=k.ClaimVolume(claim_name=each)) for each in claims]
    return pod(name, volumes=mounts, **how)


def bound_volume(obj: k.PersistentVolume, claim_name: str, *, version: int | None = None) -> k.PersistentVolume:
    """A volume that the API server has bound to a claim."""
    reference = k.ObjectReference(
        kind="PersistentVolumeClaim", namespace="default", name=claim_name, uid=f"uid-{claim_name}"
    )
    annotations = {**(obj.metadata.annotations or {}), "pv.kubernetes.io/bound-by-controller": "yes"}
    meta = replace(obj.metadata, annotations=annotations, resource_version=_text(version))
    return replace(obj, metadata=meta, spec=replace(obj.spec, claim_ref=reference))


def selected_claim(obj: k.PersistentVolumeClaim, node: str, *, version: int | None = None) -> k.PersistentVolumeClaim:
    """A claim whose volume is provisioned for a node."""
    annotations = {**(obj.metadata.annotations or {}), "volume.kubernetes.io/selected-node": node}
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations, resource_version=_text(version)))


def relabelled(obj: Any, label: str, *, version: int | None = None) -> Any:
    """A volume or a claim with another label: an update that does not bind it."""
    return replace(obj, metadata=replace(obj.metadata, labels={"note": label}, resource_version=_text(version)))
