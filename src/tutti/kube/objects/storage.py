"""Storage objects as data: claims, persistent volumes, storage classes, CSI nodes and drivers."""

from __future__ import annotations

import msgspec

from tutti.kube.objects.meta import Object, Quantities, Quantity, Wire
from tutti.kube.objects.selectors import LabelSelector, NodeSelector
from tutti.kube.objects.volumes import AwsDisk, AzureDisk, CinderDisk, ClaimSpec, GceDisk, PortworxVolume


class ClaimStatus(Wire, frozen=True):
    """How a claim is doing."""

    phase: str | None = None


class PersistentVolumeClaim(Object, frozen=True):
    """A wish for a volume."""

    KIND = "PersistentVolumeClaim"
    NAMESPACED = True
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class CsiSource(Wire, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class ObjectReference(Wire, frozen=True):
    """The name of another object."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class VolumeNodeAffinity(Wire, frozen=True):
    """Which nodes can reach a volume."""

    required: NodeSelector | None = None


class VolumeSpec(Wire, frozen=True):
    """What a volume is."""

    capacity: Quantities | None = None
    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_mode: str | None = None
    node_affinity: VolumeNodeAffinity | None = None
    claim_ref: ObjectReference | None = None
    volume_attributes_class_name: str | None = None
    csi: CsiSource | None = None
    gce_persistent_disk: GceDisk | None = None
    aws_elastic_block_store: AwsDisk | None = None
    azure_disk: AzureDisk | None = None
    cinder: CinderDisk | None = None
    portworx_volume: PortworxVolume | None = None


class PersistentVolume(Object, frozen=True):
    """A volume."""

    KIND = "PersistentVolume"
    spec: VolumeSpec = VolumeSpec()
    status: ClaimStatus = ClaimStatus()


class TopologyRequirement(Wire, frozen=True):
    """Values a node label may have."""

    key: str = ""
    values: list[str] | None = None


class TopologySelectorTerm(Wire, frozen=True):
    """Conditions on where a class can make volumes."""

    match_label_expressions: list[TopologyRequirement] | None = None


class StorageClass(Object, frozen=True):
    """How volumes are made."""

    KIND = "StorageClass"
    API_VERSION = "storage.k8s.io/v1"
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class VolumeLimit(Wire, frozen=True):
    """How many volumes a node takes."""

    count: int | None = None


class CsiNodeDriver(Wire, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    node_id: str | None = msgspec.field(default=None, name="nodeID")
    topology_keys: list[str] | None = None
    allocatable: VolumeLimit | None = None


class CsiNodeSpec(Wire, frozen=True):
    """The CSI drivers of a node."""

    drivers: list[CsiNodeDriver] | None = None


class CSINode(Object, frozen=True):
    """The CSI drivers of the node of the same name."""

    KIND = "CSINode"
    API_VERSION = "storage.k8s.io/v1"
    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(Wire, frozen=True):
    """What a CSI driver wants of the scheduler."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Object, frozen=True):
    """A CSI driver."""

    KIND = "CSIDriver"
    API_VERSION = "storage.k8s.io/v1"
    spec: CsiDriverSpec = CsiDriverSpec()


class CSIStorageCapacity(Object, frozen=True):
    """How much a storage class can still make, and where."""

    KIND = "CSIStorageCapacity"
    API_VERSION = "storage.k8s.io/v1"
    NAMESPACED = True
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None


class AttachmentSource(Wire, frozen=True):
    """The volume that is attached."""

    persistent_volume_name: str | None = None


class AttachmentSpec(Wire, frozen=True):
    """What is attached where."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Object, frozen=True):
    """A volume attached to a node."""

    KIND = "VolumeAttachment"
    API_VERSION = "storage.k8s.io/v1"
    spec: AttachmentSpec = AttachmentSpec()
