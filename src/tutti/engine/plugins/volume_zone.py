"""VolumeZone: only nodes in the zones and regions of a volume's labels can use the volume."""

from __future__ import annotations

import numpy as np

from tutti.cluster.events import Event
from tutti.engine.plugins import volumes
from tutti.engine.plugins.base import ClusterPlugin, IncomingPod, PreFilterState, Selection
from tutti.engine.plugins.verdict import Reason, Refusal, StatusCodes
from tutti.kube.objects import PersistentVolume, PersistentVolumeClaim
from tutti.kube.selectors import Requirement

_CURRENT_LABEL = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
_ZONE_LABELS = (*_CURRENT_LABEL, *_CURRENT_LABEL.values())


class VolumeZone(ClusterPlugin):
    """kube-scheduler's VolumeZone: PreFilter and filter."""

    name = "VolumeZone"
    events_to_register = frozenset((Event.NODE_ADDED, Event.NODE_LABELS, Event.VOLUMES))
    refusals = (Refusal("node(s) had no available volume zone", resolvable=False),)

    def applies_to(self, incoming: IncomingPod) -> bool:
        """Return whether the pod has volumes."""
        return bool(incoming.spec.volumes)

    def pre_filter(self, incoming: IncomingPod) -> PreFilterState | Reason | None:
        """Collect the zones of the pod's bound volumes; a missing claim or volume refuses all nodes."""
        requirements: list[Requirement] = []
        for volume in incoming.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = volumes.find_claim(incoming.cluster, incoming.spec.namespace, name)
            if claim is None:
                return self._refuse(f'persistentvolumeclaim "{name}" not found')
            if not claim.spec.volume_name:
                problem = self._unbound_claim_problem(incoming, claim)
                if problem is not None:
                    return problem
                continue
            obj = volumes.find_volume(incoming.cluster, claim.spec.volume_name)
            if obj is None:
                return self._refuse(f'persistentvolume "{claim.spec.volume_name}" not found')
            requirements += _zones(obj)
        return _ZoneState(incoming, requirements) if requirements else None

    def _unbound_claim_problem(self, incoming: IncomingPod, claim: PersistentVolumeClaim) -> Reason | None:
        name = volumes.claim_class_name(claim)
        if not name:
            return self._refuse("PersistentVolumeClaim had no pv name and storageClass name")
        obj = volumes.find_storage_class(incoming.cluster, name)
        if obj is None:
            return self._refuse(f'storageclass.storage.k8s.io "{name}" not found')
        if obj.volume_binding_mode is None:
            return self._refuse(f'VolumeBindingMode not set for StorageClass "{name}"')
        if obj.volume_binding_mode != volumes.WAIT_FOR_CONSUMER:
            return self._refuse("PersistentVolume had no name")
        return None

    def _refuse(self, message: str) -> Reason:
        return Reason(self.name, (message,), resolvable=False)


def _zones(obj: PersistentVolume) -> list[Requirement]:
    """Parse the zone and region labels of a volume; ignore a label with an empty zone."""
    requirements = []
    for key in _ZONE_LABELS:
        value = (obj.metadata.labels or {}).get(key)
        zones = [zone.strip() for zone in value.split("__")] if value is not None else []
        if zones and all(zones):
            requirements.append(Requirement(key, "In", frozenset(zones)))
    return requirements


class _ZoneState(PreFilterState):
    """The zones and regions of one pod's volumes."""

    def __init__(self, incoming: IncomingPod, requirements: list[Requirement]) -> None:
        self._incoming, self._requirements = incoming, requirements

    def filter(self, rows: Selection) -> StatusCodes:
        """Refuse nodes in other zones; nodes without zone labels pass, because they belong to a single-zone cluster."""
        nodes = self._incoming.cluster.nodes
        has_zone_label = np.zeros(len(nodes.on[rows]), dtype=bool)
        for key in _ZONE_LABELS:
            has_zone_label |= nodes.column(key).ids[rows] >= 0
        fits = np.ones(len(has_zone_label), dtype=bool)
        for requirement in self._requirements:
            column = nodes.column(requirement.key)
            matches = column.matches(requirement, rows)
            current_label = _CURRENT_LABEL.get(requirement.key)
            if current_label is not None:
                absent = column.ids[rows] < 0
                matches |= absent & nodes.column(current_label).matches(requirement, rows)
            fits &= matches
        return (has_zone_label & ~fits).astype(np.uint8)
