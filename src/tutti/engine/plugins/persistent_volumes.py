"""PersistentVolumes: which claims does a volume fit, and which nodes reach it?

Contract: pure. Whether a volume fits a claim does not depend on nodes; which nodes reach it does not depend on claims.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools
from tutti.engine.plugins import volumes
from tutti.kube.objects import ObjectReference, PersistentVolume, PersistentVolumeClaim
from tutti.kube.quantity import parse_nano
from tutti.kube.selectors import NodeTerm, Requirement, parse_label_selector, parse_node_selector

_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")


def fits_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume could be bound to a claim, regardless of nodes."""
    spec, wanted = volume.spec, claim.spec
    if volumes.volume_class_name(volume) != volumes.claim_class_name(claim):
        return False
    if volume.metadata.deletion_timestamp is not None:
        return False
    if storage_nano(spec.capacity) < storage_nano(wanted.resources.requests if wanted.resources else None):
        return False
    if (spec.volume_mode or "Filesystem") != (wanted.volume_mode or "Filesystem"):
        return False
    if (spec.volume_attributes_class_name or "") != (wanted.volume_attributes_class_name or ""):
        return False
    if spec.claim_ref is not None:
        return _is_reserved_for(spec.claim_ref, claim)
    if volume.status.phase != "Available" or not set(wanted.access_modes or ()) <= set(spec.access_modes or ()):
        return False
    return wanted.selector is None or parse_label_selector(wanted.selector).matches(volume.metadata.labels or {})


def _is_reserved_for(reference: ObjectReference, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume's claimRef names the claim."""
    if reference.name != claim.metadata.name or (reference.namespace or "") != (claim.metadata.namespace or ""):
        return False
    return not reference.uid or reference.uid == claim.metadata.uid


def requested_nano(claim: PersistentVolumeClaim) -> int:
    """Return the storage that a claim requests, in billionths of a byte."""
    return storage_nano(claim.spec.resources.requests if claim.spec.resources else None)


def storage_nano(quantities: dict[str, str | int | float] | None) -> int:
    """Return the quantity of storage, in billionths of a byte."""
    return parse_nano((quantities or {}).get("storage", 0))


def reachable_rows(cluster: Cluster, volume: PersistentVolume) -> Bools:
    """Return a mask of the rows that reach a volume.

    On nodes whose in-tree plugin migrated to CSI, zones are compared by the CSI driver's own label.
    """
    nodes = cluster.nodes
    terms = parse_node_selector(volume.spec.node_affinity.required if volume.spec.node_affinity else None)
    reached = np.ones(nodes.size, dtype=bool) if terms is None else nodes.matches_any_term(terms, slice(None))
    migrated_driver = volumes.migrated_driver(volume.spec)
    if migrated_driver is None or not migrated_driver.zone_key:
        return reached
    migrated = np.zeros(nodes.size, dtype=bool)
    for name, row in nodes.row_of.items():
        node = volumes.find_csi_node(cluster, name)
        migrated_plugins = (
            (node.metadata.annotations or {}).get(volumes.MIGRATED_ANNOTATION, "") if node is not None else ""
        )
        migrated[row] = migrated_driver.plugin in migrated_plugins.split(",")
    if not migrated.any():
        return reached
    translated = nodes.matches_any_term(_translated(volume, terms or (), migrated_driver.zone_key), slice(None))
    if terms is None and not _label_zones(volume):
        translated = reached
    return np.where(migrated, translated, reached)


def _label_zones(volume: PersistentVolume) -> list[str]:
    labels = volume.metadata.labels or {}
    text = next((labels[key] for key in _ZONES if key in labels), "")
    return [zone.strip() for zone in text.split("__") if zone.strip()]


def _translated(volume: PersistentVolume, terms: tuple[NodeTerm, ...], key: str) -> tuple[NodeTerm, ...]:
    """Rename zone labels to the CSI driver's label; add the zones of the volume's labels if the terms have none."""
    if any(r.key in _ZONES for term in terms for r in term.labels):
        return tuple(
            term._replace(labels=tuple(r._replace(key=key) if r.key in _ZONES else r for r in term.labels))
            for term in terms
        )
    zones = _label_zones(volume)
    if not zones:
        return terms
    added = Requirement(key, "In", frozenset(zones))
    return tuple(t._replace(labels=(*t.labels, added)) for t in terms or (NodeTerm(),))
