"""Volume limits of new nodes: ``maxVolumes`` of scaling-advisor's templates.

Contract: pure. A template has one number, and Kubernetes counts volumes by CSI driver: the number applies to each
driver of the cluster's storage classes, volumes and nodes. With several drivers that allows more volumes than the
template says, and a note says so; without a driver volumes cannot be counted, and a note says so. A template without a
number, beside templates with one, has no limit. The engine enforces the limits in plans; drafts and the bound ignore
them, so the bound may be too low.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tutti.engine.plugins.volumes import MIGRATED, migrated_disk
from tutti.kube.objects import CSINode, CsiNodeDriver, CsiNodeSpec, PersistentVolume, StorageClass, VolumeLimit
from tutti.kube.reading.snapshot import Snapshot
from tutti.wire.scaling_advisor.schema import ConstraintTemplateText, ConstraintText

NO_PROVISIONER = "kubernetes.io/no-provisioner"


def drivers_of(snapshot: Snapshot) -> list[str]:
    """Return the names of the CSI drivers that a cluster's volumes may use, sorted."""
    return sorted(set(filter(None, _drivers(snapshot))))


def _drivers(snapshot: Snapshot) -> Iterator[str]:
    yield from map(driver_of, snapshot.objects_of(StorageClass))
    for volume in snapshot.objects_of(PersistentVolume):
        if volume.spec.csi is not None:
            yield volume.spec.csi.driver
        elif (disk := migrated_disk(volume.spec, volume.metadata.labels)) is not None:
            yield disk.driver
    for node in snapshot.objects_of(CSINode):
        for driver in node.spec.drivers or ():
            yield driver.name


def driver_of(storage: StorageClass) -> str:
    """Return the driver that provisions the volumes of a storage class; empty without a provisioner."""
    migrated = MIGRATED.get(storage.provisioner)
    if migrated is not None:
        return migrated.driver
    return storage.provisioner if storage.provisioner != NO_PROVISIONER else ""


def csi_of(template: ConstraintTemplateText, drivers: Iterable[str]) -> CsiNodeSpec:
    """Return the CSINode spec of a template's nodes, with the volume limit of each driver."""
    limit = VolumeLimit(count=template.max_volumes) if template.max_volumes else None
    return CsiNodeSpec(drivers=[CsiNodeDriver(name=name, node_id=name, allocatable=limit) for name in drivers])


def has_limits(text: ConstraintText) -> bool:
    """Return whether any template has a volume limit; 0 means no limit."""
    return any(each.max_volumes for pool in text.spec.node_pools or () for each in pool.node_templates or ())


def volume_notes(text: ConstraintText, drivers: list[str]) -> Iterator[str]:
    """Yield notes about how maxVolumes is applied."""
    if not has_limits(text):
        return
    if not drivers:
        yield "maxVolumes of templates does not count: the input names no CSI driver, by storage class, volume or node"
    elif len(drivers) > 1:
        yield f"maxVolumes of templates counts for each CSI driver by itself: {', '.join(drivers)}"
