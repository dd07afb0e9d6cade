"""What the volume plugins share: claims, classes and volumes by name, and disks of drivers that moved to CSI."""

from __future__ import annotations

from typing import NamedTuple

from tutti.cluster.cluster import Cluster
from tutti.engine.plugins.verdict import AttemptError
from tutti.kube.objects import CSINode, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, Volume, VolumeSpec

CLASS_ANNOTATION = "volume.beta.kubernetes.io/storage-class"
MIGRATED_ANNOTATION = "storage.alpha.kubernetes.io/migrated-plugins"
WAIT_FOR_CONSUMER = "WaitForFirstConsumer"


class CsiVolume(NamedTuple):
    """A volume as its CSI driver knows it."""

    driver: str
    handle: str


class MigratedDriver(NamedTuple):
    """A driver that was part of Kubernetes and is a CSI driver now."""

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
    """Give the name of the claim behind a volume, None for a volume without one."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    if volume.ephemeral is not None:
        return f"{pod.metadata.name}-{volume.name}"
    return None


def claim(cluster: Cluster, namespace: str, name: str) -> PersistentVolumeClaim | None:
    """Give a claim by name."""
    found = cluster.objects["PersistentVolumeClaim"].get(f"{namespace}/{name}")
    assert found is None or isinstance(found, PersistentVolumeClaim)
    return found


def volume(cluster: Cluster, name: str) -> PersistentVolume | None:
    """Give a volume by name."""
    found = cluster.objects["PersistentVolume"].get(name)
    assert found is None or isinstance(found, PersistentVolume)
    return found


def storage_class(cluster: Cluster, name: str) -> StorageClass | None:
    """Give a storage class by name."""
    found = cluster.objects["StorageClass"].get(name)
    assert found is None or isinstance(found, StorageClass)
    return found


def csi_node(cluster: Cluster, name: str) -> CSINode | None:
    """Give the CSI drivers of a node."""
    found = cluster.objects["CSINode"].get(name)
    assert found is None or isinstance(found, CSINode)
    return found


def class_name(wish: PersistentVolumeClaim) -> str:
    """Give the storage class that a claim asks for, "" for none."""
    return (wish.metadata.annotations or {}).get(CLASS_ANNOTATION, wish.spec.storage_class_name or "")


def volume_class_name(found: PersistentVolume) -> str:
    """Give the storage class of a volume, "" for none."""
    return (found.metadata.annotations or {}).get(CLASS_ANNOTATION, found.spec.storage_class_name or "")


def not_created_for(pod: Pod, wish: PersistentVolumeClaim) -> str | None:
    """Say that an ephemeral volume's claim belongs to somebody else, if it does."""
    owner = next((o for o in wish.metadata.owner_references or () if o.controller), None)
    if owner is not None and owner.uid == (pod.metadata.uid or ""):
        return None
    return f"PVC {wish.key} was not created for pod {pod.key} (pod is not owner)"


def owned_or_error(pod: Pod, wish: PersistentVolumeClaim) -> None:
    """Give the attempt up when an ephemeral volume's claim belongs to somebody else."""
    problem = not_created_for(pod, wish)
    if problem is not None:
        raise AttemptError(problem)


def in_tree(source: Volume | VolumeSpec) -> MigratedDriver | None:
    """Say which driver a disk was of before it moved to CSI."""
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
    """Give a disk as its CSI driver knows it; `labels` are those of the volume object, which tell a disk's zone."""
    driver = in_tree(source)
    if driver is None:
        return None
    if source.aws_elastic_block_store is not None:
        identity = source.aws_elastic_block_store.volume_id
        return CsiVolume(driver.driver, identity.rsplit("/", 1)[-1] if identity.startswith("aws://") else identity)
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
