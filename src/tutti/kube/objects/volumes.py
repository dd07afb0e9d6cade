"""Volumes of a pod as data, one struct per volume type."""

from __future__ import annotations

import msgspec

from tutti.kube.objects.containers import ResourceRequirements
from tutti.kube.objects.meta import KubeStruct, ObjectMeta
from tutti.kube.objects.selectors import LabelSelector


class ClaimVolume(KubeStruct, frozen=True):
    """A volume given by the name of a claim."""

    claim_name: str = ""
    read_only: bool | None = None


class ClaimSpec(KubeStruct, frozen=True):
    """The spec of a volume claim."""

    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_name: str | None = None
    volume_mode: str | None = None
    resources: ResourceRequirements | None = None
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class ClaimTemplate(KubeStruct, frozen=True):
    """The template of the claim that Kubernetes creates for an ephemeral volume."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()


class EphemeralVolume(KubeStruct, frozen=True):
    """A volume whose claim Kubernetes creates together with the pod."""

    volume_claim_template: ClaimTemplate | None = None


class GceDisk(KubeStruct, frozen=True):
    """A Google Compute Engine disk."""

    pd_name: str = ""
    read_only: bool | None = None
    partition: int | None = None


class AwsDisk(KubeStruct, frozen=True):
    """An Amazon EBS volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool | None = None
    partition: int | None = None


class AzureDisk(KubeStruct, frozen=True):
    """An Azure disk."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")


class CinderDisk(KubeStruct, frozen=True):
    """An OpenStack Cinder volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolume(KubeStruct, frozen=True):
    """A Portworx volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class IscsiDisk(KubeStruct, frozen=True):
    """An iSCSI disk."""

    iqn: str = ""
    read_only: bool | None = None


class RbdDisk(KubeStruct, frozen=True):
    """A Ceph block device."""

    monitors: list[str] | None = None
    image: str = ""
    pool: str | None = None
    read_only: bool | None = None


class ImageVolume(KubeStruct, frozen=True):
    """A volume from a container image."""

    reference: str | None = None


class EmptyDir(KubeStruct, frozen=True):
    """A directory that is deleted together with the pod."""

    medium: str | None = None


class HostPath(KubeStruct, frozen=True):
    """A directory of the node."""

    path: str = ""


class Volume(KubeStruct, frozen=True):
    """A volume of a pod; only the types that affect the placement or the eviction of the pod have a field."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GceDisk | None = None
    aws_elastic_block_store: AwsDisk | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderDisk | None = None
    portworx_volume: PortworxVolume | None = None
    iscsi: IscsiDisk | None = None
    rbd: RbdDisk | None = None
    image: ImageVolume | None = None
    empty_dir: EmptyDir | None = None
    host_path: HostPath | None = None

    @property
    def affects_scheduling(self) -> bool:
        """Whether the volume can affect the placement of the pod: any type but emptyDir and hostPath."""
        return self != Volume(name=self.name, empty_dir=self.empty_dir, host_path=self.host_path)
