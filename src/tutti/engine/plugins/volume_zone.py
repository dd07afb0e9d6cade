"""VolumeZone: a volume with zone or region labels is reached from nodes of those zones and regions only."""

from __future__ import annotations

import numpy as np

from tutti.cluster.events import Event
from tutti.engine.plugins import volumes
from tutti.engine.plugins.base import ClusterPlugin, IncomingPod, PreparedPlugin, Selection
from tutti.engine.plugins.verdict import Reason, Refusal, Variants
from tutti.kube.objects import PersistentVolume, PersistentVolumeClaim
from tutti.kube.selectors import Requirement

_NEW_NAME = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_LABELS = (*_NEW_NAME, *_NEW_NAME.values())


class VolumeZone(ClusterPlugin):
    """See the module."""

    name = "VolumeZone"
    cures = frozenset((Event.NODE_ADDED, Event.NODE_LABELS, Event.VOLUMES))
    refusals = (Refusal("node(s) had no available volume zone", resolvable=False),)

    def concerns(self, incoming: IncomingPod) -> bool:
        """Only pods with volumes."""
        return bool(incoming.spec.volumes)

    def prepare(self, incoming: IncomingPod) -> PreparedPlugin | Reason | None:
        """Collect the zones of the pod's bound volumes; a volume that is missing ends the attempt."""
        wanted: list[Requirement] = []
        for volume in incoming.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            wish = volumes.claim(incoming.cluster, incoming.spec.namespace, name)
            if wish is None:
                return self._refuse(f'persistentvolumeclaim "{name}" not found')
            if not wish.spec.volume_name:
                problem = self._unbound(incoming, wish)
                if problem is not None:
                    return problem
                continue
            found = volumes.volume(incoming.cluster, wish.spec.volume_name)
            if found is None:
                return self._refuse(f'persistentvolume "{wish.spec.volume_name}" not found')
            wanted += _zones(found)
        return _Zoned(incoming, wanted) if wanted else None

    def _unbound(self, incoming: IncomingPod, wish: PersistentVolumeClaim) -> Reason | None:
        name = volumes.class_name(wish)
        if not name:
            return self._refuse("PersistentVolumeClaim had no pv name and storageClass name")
        found = volumes.storage_class(incoming.cluster, name)
        if found is None:
            return self._refuse(f'storageclass.storage.k8s.io "{name}" not found')
        if found.volume_binding_mode is None:
            return self._refuse(f'VolumeBindingMode not set for StorageClass "{name}"')
        if found.volume_binding_mode != volumes.WAIT_FOR_CONSUMER:
            return self._refuse("PersistentVolume had no name")
        return None

    def _refuse(self, message: str) -> Reason:
        return Reason(self.name, (message,), resolvable=False)


def _zones(found: PersistentVolume) -> list[Requirement]:
    """Read the zone and region labels; a label that holds an empty zone is ignored."""
    wanted = []
    for key in _LABELS:
        value = (found.metadata.labels or {}).get(key)
        zones = [zone.strip() for zone in value.split("__")] if value is not None else []
        if zones and all(zones):
            wanted.append(Requirement(key, "In", frozenset(zones)))
    return wanted


class _Zoned(PreparedPlugin):
    """The zones that one pod's volumes are in."""

    def __init__(self, incoming: IncomingPod, wanted: list[Requirement]) -> None:
        self._incoming, self._wanted = incoming, wanted

    def filter(self, rows: Selection) -> Variants:
        """Refuse nodes of other zones; nodes without any zone label are those of a single-zone cluster."""
        nodes = self._incoming.cluster.nodes
        zoned = np.zeros(len(nodes.on[rows]), dtype=bool)
        for key in _LABELS:
            zoned |= nodes.column(key).ids[rows] >= 0
        fits = np.ones(len(zoned), dtype=bool)
        for wanted in self._wanted:
            column = nodes.column(wanted.key)
            met = column.meeting(wanted, rows)
            new_name = _NEW_NAME.get(wanted.key)
            if new_name is not None:
                absent = column.ids[rows] < 0
                met |= absent & nodes.column(new_name).meeting(wanted, rows)
            fits &= met
        return (zoned & ~fits).astype(np.uint8)
