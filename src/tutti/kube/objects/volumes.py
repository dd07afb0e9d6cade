"""Volumes of a pod as data, one record per kind of volume."""

from __future__ import annotations

import msgspec

from tutti.kube.objects.containers import ResourceRequirements
from tutti.kube.objects.meta import ObjectMeta, Wire
from tutti.kube.objects.selectors import LabelSelector


class ClaimVolume(Wire, frozen=True):
    """A volume by the name of its claim."""

    claim_name: str = ""
    read_only: bool | None = None


class ClaimSpec(Wire, frozen=True):
    """What a volume claim asks for."""

    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_name: str | None = None
    volume_mode: str | None = None
    resources: ResourceRequirements | None = None
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class ClaimTemplate(Wire, frozen=True):
    """The claim that an ephemeral volume makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: ClaimSpec = ClaimSpec()


class EphemeralVolume(Wire, frozen=True):
    """A volume whose claim is made with the pod."""

    volume_claim_template: ClaimTemplate | None = None


class GceDisk(Wire, frozen=True):
    """A Google disk."""

    pd_name: str = ""
    read_only: bool | None = None
    partition: int | None = None


class AwsDisk(Wire, frozen=True):
    """An Amazon disk."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    read_only: bool | None = None
    partition: int | None = None


class AzureDisk(Wire, frozen=True):
    """An Azure disk."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")


class CinderDisk(Wire, frozen=True):
    """An OpenStack disk."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class PortworxVolume(Wire, frozen=True):
    """A Portworx volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class IscsiDisk(Wire, frozen=True):
    """An iSCSI disk."""

    iqn: str = ""
    read_only: bool | None = None


class RbdDisk(Wire, frozen=True):
    """A Ceph block device."""

    monitors: list[str] | None = None
    image: str = ""
    pool: str | None = None
    read_only: bool | None = None


class ImageVolume(Wire, frozen=True):
    """A volume from a container image."""

    reference: str | None = None


class EmptyDir(Wire, frozen=True):
    """A directory that lives as long as its pod."""

    medium: str | None = None


class HostPath(Wire, frozen=True):
    """A directory of the node."""

    path: str = ""


class Volume(Wire, frozen=True):
    """A volume of a pod, if it is of a kind that decides where the pod can go, or whether it can leave."""

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
    def decides(self) -> bool:
        """Whether it matters to where the pod can go."""
        return self != Volume(name=self.name, empty_dir=self.empty_dir, host_path=self.host_path)
