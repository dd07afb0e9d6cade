"""How many volumes new nodes take: ``maxVolumes`` of scaling-advisor's templates.

Contract: pure. A template says one number, Kubernetes counts by CSI driver: each driver that the cluster knows, by its
storage classes, volumes and nodes, takes up to that number. Where there are several, that is more than was said, and a
note says so; where there is none, nothing can be counted, and the note says that. A template without a number, beside
others that have one, takes any number. The engine holds plans to it; the arithmetic of drafts and bound does not know
it, so where it binds the bound may be too low.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tutti.engine.plugins.volumes import MIGRATED, migrated_disk
from tutti.kube.objects import CSINode, CsiNodeDriver, CsiNodeSpec, PersistentVolume, StorageClass, VolumeLimit
from tutti.kube.reading.snapshot import Snapshot
from tutti.wire.scaling_advisor.text import ConstraintTemplateText, ConstraintText

NO_PROVISIONER = "kubernetes.io/no-provisioner"


def drivers_of(snapshot: Snapshot) -> list[str]:
    """The CSI drivers that a cluster's volumes may be of, by name."""
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
    """The driver that makes the volumes of a storage class; empty where nobody makes them."""
    moved = MIGRATED.get(storage.provisioner)
    return moved.driver if moved is not None else storage.provisioner if storage.provisioner != NO_PROVISIONER else ""


def csi_of(template: ConstraintTemplateText, drivers: Iterable[str]) -> CsiNodeSpec:
    """What a node of a template takes of each driver."""
    limit = VolumeLimit(count=template.max_volumes) if template.max_volumes else None
    return CsiNodeSpec(drivers=[CsiNodeDriver(name=name, node_id=name, allocatable=limit) for name in drivers])


def has_limits(text: ConstraintText) -> bool:
    """Whether any template says how many volumes its nodes take; 0 stands for: it does not say."""
    return any(each.max_volumes for pool in text.spec.node_pools or () for each in pool.node_templates or ())


def volume_notes(text: ConstraintText, drivers: list[str]) -> Iterator[str]:
    """Lines about how maxVolumes counts."""
    if not has_limits(text):
        return
    if not drivers:
        yield "maxVolumes of templates does not count: the input names no CSI driver, by storage class, volume or node"
    elif len(drivers) > 1:
        yield f"maxVolumes of templates counts for each CSI driver by itself: {', '.join(drivers)}"
