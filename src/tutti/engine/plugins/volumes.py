"""Lookups that the volume plugins share: claims, volumes, classes, and in-tree disks that migrated to CSI."""

from __future__ import annotations

from typing import NamedTuple

from tutti.cluster.cluster import Cluster
from tutti.engine.plugins.verdict import AttemptError
from tutti.kube.objects import CSINode, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume, VolumeSpec

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
MIGRATED_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins"
WAIT_FOR_CONSUMER = "WaitForFirstConsumer"


class CsiVolume(NamedTuple):
    """A volume as its CSI driver identifies it."""

    driver: str
    handle: str


class MigratedDriver(NamedTuple):
    """A former in-tree volume plugin and the CSI driver that replaces it."""

    plugin: str
    driver: str
    zone_key: str


AWS = MigratedDriver("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone")
GCE = MigratedDriver("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone")
AZURE = MigratedDriver("kubernetes.io/azure-disk", "disk.csi.azure.com", "topology.disk.csi.azure.com/zone")
CINDER = MigratedDriver("kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone")
PORTWORX = MigratedDriver("kubernetes.io/portworx-volume", "pxd.portworx.com", "")
MIGRATED = {m.plugin: m for m in (AWS, GCE, AZURE, CINDER, PORTWORX)}


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Return the name of the claim behind a pod's volume; None if the volume uses no claim."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def find_claim(cluster: Cluster, namespace: str, name: str) -> PersistentVolumeClaim | None:
    """Return a claim by name."""
    obj = cluster.objects["PersistentVolumeClaim"].get(f"{namespace}/{name}")
    assert obj is None or isinstance(obj, PersistentVolumeClaim)
    return obj


def find_volume(cluster: Cluster, name: str) -> PersistentVolume | None:
    """Return a persistent volume by name."""
    obj = cluster.objects["PersistentVolume"].get(name)
    assert obj is None or isinstance(obj, PersistentVolume)
    return obj


def find_storage_class(cluster: Cluster, name: str) -> StorageClass | None:
    """Return a storage class by name."""
    obj = cluster.objects["StorageClass"].get(name)
    assert obj is None or isinstance(obj, StorageClass)
    return obj


def find_csi_node(cluster: Cluster, name: str) -> CSINode | None:
    """Return the CSINode object of a node."""
    obj = cluster.objects["CSINode"].get(name)
    assert obj is None or isinstance(obj, CSINode)
    return obj


def claim_class_name(claim: PersistentVolumeClaim) -> str:
    """Return the storage class of a claim, "" if it has none."""
    return (claim.metadata.annotations or {}).get(CLASS_ANNOTATION, claim.spec.storage_class_name or "")


def volume_class_name(obj: PersistentVolume) -> str:
    """Return the storage class of a persistent volume, "" if it has none."""
    return (obj.metadata.annotations or {}).get(CLASS_ANNOTATION, obj.spec.storage_class_name or "")


def ownership_error(pod: Pod, claim: PersistentVolumeClaim) -> str | None:
    """Return an error message if the claim of an ephemeral volume belongs to another pod."""
    owner = next((o for o in claim.metadata.owner_references or () if o.controller), None)
    if owner is not None and owner.uid == (pod.metadata.uid or ""):
        return None
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def require_ownership(pod: Pod, claim: PersistentVolumeClaim) -> None:
    """Raise `AttemptError` if the claim of an ephemeral volume belongs to another pod."""
    problem = ownership_error(pod, claim)
    if problem is not None:
        raise AttemptError(problem)


def migrated_driver(source: Volume | VolumeSpec) -> MigratedDriver | None:
    """Return the migrated driver of an in-tree disk; None for other volumes."""
    if source.aws_elastic_block_store is not None:
        return AWS
    if source.gce_persistent_disk is not None:
        return GCE
    if source.azure_disk is not None:
        return AZURE
    if source.cinder is not None:
        return CINDER
    if source.portworx_volume is not None:
        return PORTWORX
    return None


def migrated_disk(source: Volume | VolumeSpec, labels: dict[str, str] | None = None) -> CsiVolume | None:
    """Return an in-tree disk as its CSI driver identifies it; `labels` of the volume object give the disk's zone."""
    driver = migrated_driver(source)
    if driver is None:
        return None
    if source.aws_elastic_block_store is not None:
        volume_id = source.aws_elastic_block_store.volume_id
        return CsiVolume(driver.driver, volume_id.rsplit("/", 1)[-1] if volume_id.startswith("aws://") else volume_id)
    if source.gce_persistent_disk is not None:
        return CsiVolume(driver.driver, _gce_handle(source.gce_persistent_disk.pd_name, labels or {}))
    if source.azure_disk is not None:
        return CsiVolume(driver.driver, source.azure_disk.disk_uri)
    if source.cinder is not None:
        return CsiVolume(driver.driver, source.cinder.volume_id)
    assert source.portworx_volume is not None
    return CsiVolume(driver.driver, source.portworx_volume.volume_id)


def _gce_handle(name: str, labels: dict[str, str]) -> str:
    zones = labels.get("failure-domain.beta.kubernetes.io/zone") or labels.get("topology.kubernetes.io/zone") or ""
    parts = zones.split("__")
    if len(parts) > 1:
        return f"projects/UNSPECIFIED/regions/{parts[0].rsplit('-', 1)[0]}/disks/{name}"
    return f"projects/UNSPECIFIED/zones/{zones or 'UNSPECIFIED'}/disks/{name}"
