"""VolumeBinding: the pod's claims can be met on the node, by bound volumes, free ones or new ones.

Bound volumes must be reachable from the node. Claims that wait for their first consumer take the smallest free volume
that fits, or a new one where the class and the storage capacity allow it. Nodes that reach the same volumes, classes
and capacities get the same answer, so the search runs once per such group of nodes. `reserve` gives the edits with
which a placed pod takes what was found.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import msgspec
import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.edits import Edit, Put
from tutti.cluster.events import Event
from tutti.engine.plugins import volumes
from tutti.engine.plugins.base import MAX_SCORE, ClusterPlugin, IncomingPod, PreparedPlugin, Selection
from tutti.engine.plugins.node_resources_fit import Shape, broken_line
from tutti.engine.plugins.verdict import AttemptError, Reason, Refusal, Variants
from tutti.kube.objects import (
    CSIDriver,
    CSIStorageCapacity,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
)
from tutti.kube.quantity import parse_nano, value
from tutti.kube.selectors import NodeTerm, Requirement, parse_label_selector, parse_node_selector

BOUND = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_ZONES = ("topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone")

_FEW = 64
_WRONG_NODE, _NO_VOLUME, _NO_SPACE, _GONE = 1, 2, 3, 4
_BOTH = {
    frozenset((_WRONG_NODE, _NO_VOLUME)): 5,
    frozenset((_WRONG_NODE, _NO_SPACE)): 6,
    frozenset((_GONE, _NO_VOLUME)): 7,
}
_MESSAGES = {
    _WRONG_NODE: "node(s) didn't match PersistentVolume's node affinity",
    _NO_VOLUME: "node(s) didn't find available persistent volumes to bind",
    _NO_SPACE: "node(s) did not have enough free storage",
    _GONE: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class VolumeMatch(NamedTuple):
    """How a pod's claims can be met on a node: free volumes to bind, and claims for which one is made."""

    bindings: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...] = ()
    provisions: tuple[tuple[PersistentVolumeClaim, CSIStorageCapacity | None], ...] = ()
    refusals: frozenset[int] = frozenset()


class VolumeBinding(ClusterPlugin):
    """See the module."""

    name = "VolumeBinding"
    cures = frozenset((Event.NODE_ADDED, Event.NODE_LABELS, Event.VOLUMES))
    refusals = (
        *(Refusal(_MESSAGES[i], resolvable=False) for i in _MESSAGES),
        *(Refusal(" and ".join(_MESSAGES[i] for i in sorted(both)), resolvable=False) for both in _BOTH),
    )

    def __init__(self, shape: Shape = ((0, MAX_SCORE), (MAX_SCORE, 0))) -> None:
        self._line = broken_line(shape)

    def concerns(self, incoming: IncomingPod) -> bool:
        """Only pods with volumes."""
        return bool(incoming.spec.volumes)

    def prepare(self, incoming: IncomingPod) -> PreparedPlugin | Reason | None:
        """Sort the pod's claims; one that is missing, lost or should be bound by now ends the attempt."""
        wishes: list[PersistentVolumeClaim] = []
        for volume in incoming.spec.volumes:
            name = volumes.claim_name(incoming.pod, volume)
            if name is None:
                continue
            wish = volumes.claim(incoming.cluster, incoming.spec.namespace, name)
            problem = _problem(incoming, wish, name, ephemeral=volume.ephemeral is not None)
            if problem is not None or wish is None:
                return Reason(self.name, (problem or "",), resolvable=False)
            wishes.append(wish)
        if not wishes:
            return None
        bound = [w for w in wishes if _is_bound(w)]
        waiting = [w for w in wishes if not _is_bound(w)]
        if any(w.spec.volume_name or not _waits(incoming.cluster, w) for w in waiting):
            return Reason(self.name, ("pod has unbound immediate PersistentVolumeClaims",), resolvable=False)
        return _Claims(incoming, bound, waiting)

    def reason(self, incoming: IncomingPod, row: int, variant: int) -> Reason:
        """Give every message of the row."""
        prepared = self.prepare(incoming)
        assert isinstance(prepared, _Claims)
        found = prepared.found(row)
        return Reason(self.name, tuple(_MESSAGES[r] for r in sorted(found.refusals)), resolvable=False)

    def tally(self, incoming: IncomingPod, rows: Rows, variant: int) -> dict[str, int]:
        """Count every message."""
        prepared = self.prepare(incoming)
        assert isinstance(prepared, _Claims)
        counts: dict[str, int] = {}
        for row in rows.tolist():
            for refusal in prepared.found(row).refusals:
                counts[_MESSAGES[refusal]] = counts.get(_MESSAGES[refusal], 0) + 1
        return counts

    def score(self, incoming: IncomingPod, prepared: PreparedPlugin | None, rows: Selection) -> Ints | None:
        """Prefer nodes where the volumes leave little unused; pods without claims get 0."""
        numbers = np.arange(incoming.cluster.nodes.size)[rows].tolist()
        if not isinstance(prepared, _Claims) or not prepared.waiting:
            return np.zeros(len(numbers), dtype=np.int64)
        return np.fromiter((self._fullness(prepared.found(row)) for row in numbers), np.int64, len(numbers))

    def _fullness(self, found: VolumeMatch) -> int:
        classes: dict[str, tuple[int, int]] = {}
        if found.bindings:
            for wish, volume in found.bindings:
                incoming, size = classes.get(volume.spec.storage_class_name or "", (0, 0))
                classes[volume.spec.storage_class_name or ""] = (
                    incoming + _requested(wish), size + value((volume.spec.capacity or {}).get("storage", 0))
                )  # fmt: skip
        else:
            for wish, capacity in found.provisions:
                if capacity is None:
                    continue
                name = wish.spec.storage_class_name or ""
                # The capacity is that of the class on the node, not one per claim.
                classes[name] = (classes.get(name, (0, 0))[0] + _requested(wish), value(capacity.capacity or 0))
        if not classes:
            return 0
        total = 0
        for incoming, size in classes.values():
            total += int(self._line[MAX_SCORE if size == 0 or incoming > size else incoming * MAX_SCORE // size])
        return int(total / len(classes) + 0.5)


def reserve(incoming: IncomingPod, prepared: list[PreparedPlugin | None], row: int) -> list[Edit]:
    """Give the edits by which a placed pod takes its volumes: free ones bound, new ones bound to come on the node."""
    claims = next((p for p in prepared if isinstance(p, _Claims)), None)
    if claims is None or not claims.waiting:
        return []
    found = claims.found(row)
    edits: list[Edit] = []
    for wish, volume in found.bindings:
        reference = ObjectReference(
            kind="PersistentVolumeClaim",
            namespace=wish.metadata.namespace,
            name=wish.metadata.name,
            uid=wish.metadata.uid,
        )
        spec = msgspec.structs.replace(volume.spec, claim_ref=reference)
        note = {**(volume.metadata.annotations or {}), BOUND_BY_CONTROLLER: "yes"}
        meta = msgspec.structs.replace(volume.metadata, annotations=note)
        edits.append(Put(msgspec.structs.replace(volume, metadata=meta, spec=spec)))
    for wish, _ in found.provisions:
        note = {**(wish.metadata.annotations or {}), SELECTED_NODE: incoming.cluster.nodes.names[row]}
        edits.append(
            Put(msgspec.structs.replace(wish, metadata=msgspec.structs.replace(wish.metadata, annotations=note)))
        )
    return edits


def _problem(incoming: IncomingPod, wish: PersistentVolumeClaim | None, name: str, *, ephemeral: bool) -> str | None:
    if wish is None:
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if wish.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{wish.spec.volume_name or ""}"'
    if wish.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    return volumes.not_created_for(incoming.pod, wish) if ephemeral else None


def _is_bound(wish: PersistentVolumeClaim) -> bool:
    return bool(wish.spec.volume_name) and BOUND in (wish.metadata.annotations or {})


def _waits(cluster: Cluster, wish: PersistentVolumeClaim) -> bool:
    """Say whether the claim is bound when its first pod is placed."""
    found = volumes.storage_class(cluster, volumes.class_name(wish))
    if found is None:
        return False
    if found.volume_binding_mode is None:
        raise AttemptError(f'VolumeBindingMode not set for StorageClass "{found.metadata.name}"')
    return found.volume_binding_mode == volumes.WAIT_FOR_CONSUMER


def _requested(wish: PersistentVolumeClaim) -> int:
    requests = (wish.spec.resources.requests if wish.spec.resources else None) or {}
    return value(requests.get("storage", 0))


def _size(quantities: dict[str, str | int | float] | None) -> int:
    return parse_nano((quantities or {}).get("storage", 0))


class _Claims(PreparedPlugin):
    """The claims of one pod: those that are bound, and those that wait."""

    def __init__(
        self, incoming: IncomingPod, bound: list[PersistentVolumeClaim], waiting: list[PersistentVolumeClaim]
    ) -> None:
        self._incoming, self._cluster = incoming, incoming.cluster
        self.bound, self.waiting = bound, waiting
        self._found: dict[int, VolumeMatch] = {}
        self._fits: dict[str, list[PersistentVolume]] = {}
        self._reached: dict[str, Bools] = {}
        self._capacities: dict[str, Bools] = {}
        names = {volumes.class_name(w) for w in waiting}
        everything = (
            self._cluster.objects["PersistentVolume"][name]
            for name in sorted(self._cluster.objects["PersistentVolume"])
        )
        self._free = [
            v for v in everything if isinstance(v, PersistentVolume) and names and volumes.volume_class_name(v) in names
        ]

    def filter(self, rows: Selection) -> Variants:
        """Refuse nodes where a claim cannot be met."""
        numbers = list(range(self._cluster.nodes.size))[rows] if isinstance(rows, slice) else rows.tolist()
        if not self.waiting:
            refused = np.zeros(len(numbers), dtype=np.uint8)
            wrong, gone = self._bound_refusals
            refused[wrong[rows]] = _WRONG_NODE
            refused[gone[rows]] = _GONE
            return refused
        return np.fromiter((_variant(self.found(row).refusals) for row in numbers), np.uint8, len(numbers))

    def found(self, row: int) -> VolumeMatch:
        """Say how the claims can be met on a row."""
        group = row if self._groups is None else int(self._groups[row])
        found = self._found.get(group)
        if found is None:
            found = self._found[group] = self._find(row)
        return found

    @cached_property
    def _groups(self) -> Rows | None:
        """Number the rows so that rows with the same number get the same answer; None when that is not worth while."""
        nodes = self._cluster.nodes
        selected = [(w.metadata.annotations or {}).get(SELECTED_NODE) for w in self.waiting]
        names = {volumes.class_name(w) for w in self.waiting}
        capacities = self._cluster.objects["CSIStorageCapacity"]
        nearby = [
            (k, c) for k, c in capacities.items() if isinstance(c, CSIStorageCapacity) and c.storage_class_name in names
        ]
        if len(self._free) + len(nearby) > _FEW:
            return None
        masks = [*self._bound_refusals, *(self._reach(v) for v in self._free), *(self._accessible(*n) for n in nearby)]
        masks += [np.array(nodes.names) == name for name in set(selected) - {None}]
        for name in names:
            made_by = volumes.storage_class(self._cluster, name)
            if made_by is not None and made_by.allowed_topologies:
                masks.append(np.array([self._allowed(made_by, row) for row in range(nodes.size)]))
        groups = np.zeros(nodes.size, dtype=np.intp)
        for mask in masks:
            _, groups = np.unique(2 * groups + mask, return_inverse=True)
        return groups

    @cached_property
    def _bound_refusals(self) -> tuple[Bools, Bools]:
        """Say for every row whether a bound volume is out of reach, or not there; the first such claim decides."""
        size = self._cluster.nodes.size
        wrong, gone = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        for wish in self.bound:
            volume = volumes.volume(self._cluster, wish.spec.volume_name or "")
            if volume is None:
                gone |= ~wrong
                break
            wrong |= ~gone & ~self._reach(volume)
        return wrong, gone

    def _reach(self, volume: PersistentVolume) -> Bools:
        """Say which rows reach a volume."""
        name = volume.metadata.name
        reached = self._reached.get(name)
        if reached is None:
            reached = self._reached[name] = reachable(self._cluster, volume)
        return reached

    def _find(self, row: int) -> VolumeMatch:
        refusals: set[int] = set()
        wrong, gone = self._bound_refusals if self.bound else (None, None)
        if wrong is not None and wrong[row]:
            refusals.add(_WRONG_NODE)
        if gone is not None and gone[row]:
            refusals.add(_GONE)
        node = self._cluster.nodes.names[row]
        matching, provisioning = [], []
        for wish in self.waiting:
            selected = (wish.metadata.annotations or {}).get(SELECTED_NODE)
            if selected is None:
                matching.append(wish)
            elif selected == node:
                provisioning.append(wish)
            else:
                return VolumeMatch(refusals=frozenset(refusals | {_NO_VOLUME}))
        bindings, unmatched = self._match(matching, row)
        refused, provisions = self._provision([*provisioning, *unmatched], row)
        if refused:
            refusals.add(refused)
        return VolumeMatch(tuple(bindings), tuple(provisions), frozenset(refusals))

    def _match(
        self, wishes: list[PersistentVolumeClaim], row: int
    ) -> tuple[list[tuple[PersistentVolumeClaim, PersistentVolume]], list[PersistentVolumeClaim]]:
        """Give each claim, the smallest first, the smallest free volume that fits."""
        bindings: list[tuple[PersistentVolumeClaim, PersistentVolume]] = []
        unmatched = []
        taken: set[str] = set()
        for wish in sorted(wishes, key=lambda w: _size(w.spec.resources.requests if w.spec.resources else None)):
            volume = self._smallest(wish, row, taken)
            if volume is None:
                unmatched.append(wish)
            else:
                taken.add(volume.metadata.name)
                bindings.append((wish, volume))
        return bindings, unmatched

    def _smallest(self, wish: PersistentVolumeClaim, row: int, taken: set[str]) -> PersistentVolume | None:
        for volume in self._fitting(wish):
            if volume.metadata.name in taken:
                continue
            reached = bool(self._reach(volume)[row])
            if volume.spec.claim_ref is not None:
                return volume if reached else None
            if reached:
                return volume
        return None

    def _fitting(self, wish: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Give the volumes that a claim could have wherever it is: one kept for it first, then the smallest."""
        known = self._fits.get(wish.key)
        if known is None:
            fitting = [v for v in self._free if _fits(v, wish)]
            fitting.sort(key=lambda v: (v.spec.claim_ref is None, _size(v.spec.capacity)))
            known = self._fits[wish.key] = fitting
        return known

    def _provision(
        self, wishes: list[PersistentVolumeClaim], row: int
    ) -> tuple[int, list[tuple[PersistentVolumeClaim, CSIStorageCapacity | None]]]:
        """Say whether volumes can be made for the claims on a row: a refusal, or where the space comes from."""
        provisions: list[tuple[PersistentVolumeClaim, CSIStorageCapacity | None]] = []
        for wish in wishes:
            name = volumes.class_name(wish)
            made_by = volumes.storage_class(self._cluster, name)
            if made_by is None:
                raise AttemptError(f'failed to find storage class "{name}"')
            if made_by.provisioner in ("", NO_PROVISIONER) or not self._allowed(made_by, row):
                return _NO_VOLUME, []
            enough, capacity = self._space(wish, made_by, row)
            if not enough:
                return _NO_SPACE, []
            provisions.append((wish, capacity))
        return 0, provisions

    def _allowed(self, made_by: StorageClass, row: int) -> bool:
        terms = made_by.allowed_topologies
        if not terms:
            return True
        node = self._cluster.nodes.objects[row]
        labels = (node.metadata.labels if node is not None else None) or {}
        return any(
            term.match_label_expressions
            and all(labels.get(e.key) in (e.values or ()) for e in term.match_label_expressions)
            for term in terms
        )

    def _space(
        self, wish: PersistentVolumeClaim, made_by: StorageClass, row: int
    ) -> tuple[bool, CSIStorageCapacity | None]:
        """Say whether the class can make the volume for the row, if its driver tells how much it can make."""
        requests = (wish.spec.resources.requests if wish.spec.resources else None) or {}
        driver = self._cluster.objects["CSIDriver"].get(made_by.provisioner)
        if "storage" not in requests or not isinstance(driver, CSIDriver) or not driver.spec.storage_capacity:
            return True, None
        size = value(requests["storage"])
        capacities = self._cluster.objects["CSIStorageCapacity"]
        for key in sorted(capacities):
            capacity = capacities[key]
            assert isinstance(capacity, CSIStorageCapacity)
            limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
            if capacity.storage_class_name != made_by.metadata.name or limit is None or value(limit) < size:
                continue
            if self._accessible(key, capacity)[row]:
                return True, capacity
        return False, None

    def _accessible(self, key: str, capacity: CSIStorageCapacity) -> Bools:
        rows = self._capacities.get(key)
        if rows is None:
            selector = parse_label_selector(capacity.node_topology)
            nodes = self._cluster.nodes
            rows = (
                np.zeros(nodes.size, dtype=bool)
                if selector.nothing
                else nodes.meeting(selector.requirements, slice(None))
            )
            self._capacities[key] = rows
        return rows


def _variant(refusals: frozenset[int]) -> int:
    if len(refusals) < 2:
        return next(iter(refusals), 0)
    return _BOTH.get(refusals, 7)


def _fits(volume: PersistentVolume, wish: PersistentVolumeClaim) -> bool:
    """Say whether a volume could be bound to a claim, its nodes aside."""
    spec, wanted = volume.spec, wish.spec
    if volumes.volume_class_name(volume) != volumes.class_name(wish) or volume.metadata.deletion_timestamp is not None:
        return False
    if _size(spec.capacity) < _size(wanted.resources.requests if wanted.resources else None):
        return False
    if (spec.volume_mode or "Filesystem") != (wanted.volume_mode or "Filesystem"):
        return False
    if (spec.volume_attributes_class_name or "") != (wanted.volume_attributes_class_name or ""):
        return False
    if spec.claim_ref is not None:
        return _meant_for(spec.claim_ref, wish)
    if volume.status.phase != "Available" or not set(wanted.access_modes or ()) <= set(spec.access_modes or ()):
        return False
    return wanted.selector is None or parse_label_selector(wanted.selector).matches(volume.metadata.labels or {})


def _meant_for(reference: ObjectReference, wish: PersistentVolumeClaim) -> bool:
    """Say whether a volume is kept for a claim."""
    if reference.name != wish.metadata.name or (reference.namespace or "") != (wish.metadata.namespace or ""):
        return False
    return not reference.uid or reference.uid == wish.metadata.uid


def reachable(cluster: Cluster, volume: PersistentVolume) -> Bools:
    """Say which rows reach a volume; on nodes whose driver moved to CSI, zones go by the driver's own label."""
    nodes = cluster.nodes
    terms = parse_node_selector(volume.spec.node_affinity.required if volume.spec.node_affinity else None)
    reached = np.ones(nodes.size, dtype=bool) if terms is None else nodes.in_any_term(terms, slice(None))
    moved = volumes.in_tree(volume.spec)
    if moved is None or not moved.zone_key:
        return reached
    migrated = np.zeros(nodes.size, dtype=bool)
    for name, row in nodes.row_of.items():
        node = volumes.csi_node(cluster, name)
        marks = (node.metadata.annotations or {}).get(volumes.MIGRATED_ANNOTATION, "") if node is not None else ""
        migrated[row] = moved.plugin in marks.split(",")
    if not migrated.any():
        return reached
    translated = nodes.in_any_term(_translated(volume, terms or (), moved.zone_key), slice(None))
    if terms is None and not _label_zones(volume):
        translated = reached
    return np.where(migrated, translated, reached)


def _label_zones(volume: PersistentVolume) -> list[str]:
    labels = volume.metadata.labels or {}
    text = next((labels[key] for key in _ZONES if key in labels), "")
    return [zone.strip() for zone in text.split("__") if zone.strip()]


def _translated(volume: PersistentVolume, terms: tuple[NodeTerm, ...], key: str) -> tuple[NodeTerm, ...]:
    """Name zones by the driver's label; zones that only stand in the volume's labels are added."""
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
