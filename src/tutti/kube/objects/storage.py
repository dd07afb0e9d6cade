"""Storage objects as data: claims, persistent volumes, storage classes, CSI nodes and drivers."""

from __future__ import annotations

import msgspec

from tutti.kube.objects.meta import KubeStruct, Object, Quantities, Quantity
from tutti.kube.objects.selectors import LabelSelector, NodeSelector
from tutti.kube.objects.volumes import AwsDisk, AzureDisk, CinderDisk, ClaimSpec, GceDisk, PortworxVolume


class ClaimStatus(KubeStruct, frozen=True):
    """The phase of a claim or of a persistent volume."""

    phase: str | None = None


class PersistentVolumeClaim(Object, frozen=True):
    """A request for a persistent volume."""

    KIND = "PersistentVolumeClaim"
    NAMESPACED = True
    spec: ClaimSpec = ClaimSpec()
    status: ClaimStatus = ClaimStatus()


class CsiSource(KubeStruct, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class ObjectReference(KubeStruct, frozen=True):
    """A reference to another object."""

    kind: str | None = None
    namespace: str | None = None
    name: str | None = None
    uid: str | None = None


class VolumeNodeAffinity(KubeStruct, frozen=True):
    """The nodes that can access a volume."""

    required: NodeSelector | None = None


class VolumeSpec(KubeStruct, frozen=True):
    """Capacity, class, node affinity and source of a persistent volume."""

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
    """A persistent volume."""

    KIND = "PersistentVolume"
    spec: VolumeSpec = VolumeSpec()
    status: ClaimStatus = ClaimStatus()


class TopologyRequirement(KubeStruct, frozen=True):
    """The allowed values of a node label."""

    key: str = ""
    values: list[str] | None = None


class TopologySelectorTerm(KubeStruct, frozen=True):
    """Conditions on the nodes for which a storage class can provision volumes."""

    match_label_expressions: list[TopologyRequirement] | None = None


class StorageClass(Object, frozen=True):
    """How volumes are provisioned and bound."""

    KIND = "StorageClass"
    API_VERSION = "storage.k8s.io/v1"
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologySelectorTerm] | None = None


class VolumeLimit(KubeStruct, frozen=True):
    """How many volumes of a driver a node can attach."""

    count: int | None = None


class CsiNodeDriver(KubeStruct, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    node_id: str | None = msgspec.field(default=None, name="nodeID")
    topology_keys: list[str] | None = None
    allocatable: VolumeLimit | None = None


class CsiNodeSpec(KubeStruct, frozen=True):
    """The CSI drivers of a node."""

    drivers: list[CsiNodeDriver] | None = None


class CSINode(Object, frozen=True):
    """The CSI drivers of the node of the same name."""

    KIND = "CSINode"
    API_VERSION = "storage.k8s.io/v1"
    spec: CsiNodeSpec = CsiNodeSpec()


class CsiDriverSpec(KubeStruct, frozen=True):
    """The fields of a CSI driver that the scheduler reads."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Object, frozen=True):
    """A CSI driver."""

    KIND = "CSIDriver"
    API_VERSION = "storage.k8s.io/v1"
    spec: CsiDriverSpec = CsiDriverSpec()


class CSIStorageCapacity(Object, frozen=True):
    """The free capacity of a storage class for the selected nodes."""

    KIND = "CSIStorageCapacity"
    API_VERSION = "storage.k8s.io/v1"
    NAMESPACED = True
    storage_class_name: str = ""
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None


class AttachmentSource(KubeStruct, frozen=True):
    """The attached volume."""

    persistent_volume_name: str | None = None


class AttachmentSpec(KubeStruct, frozen=True):
    """The attached volume, its node and its driver."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Object, frozen=True):
    """The attachment of a volume to a node."""

    KIND = "VolumeAttachment"
    API_VERSION = "storage.k8s.io/v1"
    spec: AttachmentSpec = AttachmentSpec()
