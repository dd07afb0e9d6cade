"""VolumeBinding: can the pod's claims be met on the node, by bound, available or newly provisioned volumes?

Bound volumes must be reachable from the node. Claims with WaitForFirstConsumer take the smallest available volume that
fits, or a new volume if the storage class and the storage capacity allow it. Nodes that reach the same volumes, classes
and capacities get the same result, so the search runs once per such group of nodes. `reserve` returns the edits with
which a placed pod takes its volumes.
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
from tutti.engine.plugins.base import MAX_SCORE, ClusterPlugin, IncomingPod, PreFilterState, Selection
from tutti.engine.plugins.node_resources_fit import FunctionShape, broken_linear_function
from tutti.engine.plugins.verdict import AttemptError, Reason, Refusal, StatusCodes
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

_MAX_GROUPED_OBJECTS = 64
_NODE_CONFLICT, _BIND_CONFLICT, _NOT_ENOUGH_SPACE, _PV_NOT_EXIST = 1, 2, 3, 4
_COMBINED_CODES = {
    frozenset((_NODE_CONFLICT, _BIND_CONFLICT)): 5,
    frozenset((_NODE_CONFLICT, _NOT_ENOUGH_SPACE)): 6,
    frozenset((_PV_NOT_EXIST, _BIND_CONFLICT)): 7,
    frozenset((_PV_NOT_EXIST, _NOT_ENOUGH_SPACE)): 8,
}
"""All pairs: bound claims have at most one refusal on a node, and so have waiting claims."""
_MESSAGES = {
    _NODE_CONFLICT: "node(s) didn't match PersistentVolume's node affinity",
    _BIND_CONFLICT: "node(s) didn't find available persistent volumes to bind",
    _NOT_ENOUGH_SPACE: "node(s) did not have enough free storage",
    _PV_NOT_EXIST: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class VolumeMatch(NamedTuple):
    """How a pod's claims can be met on a node: volumes to bind, claims to provision, and refusals."""

    bindings: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...] = ()
    provisions: tuple[tuple[PersistentVolumeClaim, CSIStorageCapacity | None], ...] = ()
    refusals: frozenset[int] = frozenset()


class VolumeBinding(ClusterPlugin):
    """kube-scheduler's VolumeBinding: PreFilter, filter, score and reserve."""

    name = "VolumeBinding"
    events_to_register = frozenset((Event.NODE_ADDED, Event.NODE_LABELS, Event.VOLUMES))
    refusals = (
        *(Refusal(_MESSAGES[i], resolvable=False) for i in _MESSAGES),
        *(Refusal(" and ".join(_MESSAGES[i] for i in sorted(both)), resolvable=False) for both in _COMBINED_CODES),
    )

    def __init__(self, shape: FunctionShape = ((0, MAX_SCORE), (MAX_SCORE, 0))) -> None:
        self._shape_scores = broken_linear_function(shape)

    def applies_to(self, incoming: IncomingPod) -> bool:
        """Return whether the pod has volumes."""
        return bool(incoming.spec.volumes)

    def pre_filter(self, incoming: IncomingPod) -> PreFilterState | Reason | None:
        """Split the claims into bound and waiting; a missing, lost or unbound immediate claim refuses all nodes."""
        claims: list[PersistentVolumeClaim] = []
        for volume in incoming.spec.volumes:
            name = volumes.claim_name(incoming.pod, volume)
            if name is None:
                continue
            claim = volumes.find_claim(incoming.cluster, incoming.spec.namespace, name)
            problem = _claim_problem(incoming, claim, name, ephemeral=volume.ephemeral is not None)
            if problem is not None or claim is None:
                return Reason(self.name, (problem or "",), resolvable=False)
            claims.append(claim)
        if not claims:
            return None
        bound = [c for c in claims if _is_bound(c)]
        waiting = [c for c in claims if not _is_bound(c)]
        if any(c.spec.volume_name or not _waits_for_first_consumer(incoming.cluster, c) for c in waiting):
            return Reason(self.name, ("pod has unbound immediate PersistentVolumeClaims",), resolvable=False)
        return _ClaimsState(incoming, bound, waiting)

    def reason(self, incoming: IncomingPod, row: int, code: int) -> Reason:
        """Return all messages of the row."""
        state = self.pre_filter(incoming)
        assert isinstance(state, _ClaimsState)
        match = state.match(row)
        return Reason(self.name, tuple(_MESSAGES[r] for r in sorted(match.refusals)), resolvable=False)

    def count_messages(self, incoming: IncomingPod, rows: Rows, code: int) -> dict[str, int]:
        """Return how many rows have each message."""
        state = self.pre_filter(incoming)
        assert isinstance(state, _ClaimsState)
        counts: dict[str, int] = {}
        for row in rows.tolist():
            for refusal in state.match(row).refusals:
                counts[_MESSAGES[refusal]] = counts.get(_MESSAGES[refusal], 0) + 1
        return counts

    def score(self, incoming: IncomingPod, state: PreFilterState | None, rows: Selection) -> Ints | None:
        """Prefer nodes whose volumes fit the claims closely, by the shape; pods without waiting claims score 0."""
        numbers = np.arange(incoming.cluster.nodes.size)[rows].tolist()
        if not isinstance(state, _ClaimsState) or not state.waiting:
            return np.zeros(len(numbers), dtype=np.int64)
        return np.fromiter((self._utilization_score(state.match(row)) for row in numbers), np.int64, len(numbers))

    def _utilization_score(self, match: VolumeMatch) -> int:
        """Return the average score of the storage classes by their utilization."""
        classes: dict[str, tuple[int, int]] = {}
        if match.bindings:
            for claim, volume in match.bindings:
                requested, size = classes.get(volume.spec.storage_class_name or "", (0, 0))
                classes[volume.spec.storage_class_name or ""] = (
                    requested + _requested_storage(claim), size + value((volume.spec.capacity or {}).get("storage", 0))
                )  # fmt: skip
        else:
            for claim, capacity in match.provisions:
                if capacity is None:
                    continue
                name = claim.spec.storage_class_name or ""
                # The capacity belongs to the class on the node, not to each claim.
                requested = classes.get(name, (0, 0))[0] + _requested_storage(claim)
                classes[name] = (requested, value(capacity.capacity or 0))
        if not classes:
            return 0
        total = 0
        for requested, size in classes.values():
            utilization = MAX_SCORE if size == 0 or requested > size else requested * MAX_SCORE // size
            total += int(self._shape_scores[utilization])
        return int(total / len(classes) + 0.5)


def reserve(incoming: IncomingPod, states: list[PreFilterState | None], row: int) -> list[Edit]:
    """Return the edits by which a placed pod takes its volumes.

    An available volume is bound to its claim; a claim to provision gets the node as its selected node.
    """
    claims = next((s for s in states if isinstance(s, _ClaimsState)), None)
    if claims is None or not claims.waiting:
        return []
    match = claims.match(row)
    edits: list[Edit] = []
    for claim, volume in match.bindings:
        reference = ObjectReference(
            kind="PersistentVolumeClaim",
            namespace=claim.metadata.namespace,
            name=claim.metadata.name,
            uid=claim.metadata.uid,
        )
        spec = msgspec.structs.replace(volume.spec, claim_ref=reference)
        annotations = {**(volume.metadata.annotations or {}), BOUND_BY_CONTROLLER: "yes"}
        meta = msgspec.structs.replace(volume.metadata, annotations=annotations)
        edits.append(Put(msgspec.structs.replace(volume, metadata=meta, spec=spec)))
    for claim, _ in match.provisions:
        annotations = {**(claim.metadata.annotations or {}), SELECTED_NODE: incoming.cluster.nodes.names[row]}
        meta = msgspec.structs.replace(claim.metadata, annotations=annotations)
        edits.append(Put(msgspec.structs.replace(claim, metadata=meta)))
    return edits


def _claim_problem(
    incoming: IncomingPod, claim: PersistentVolumeClaim | None, name: str, *, ephemeral: bool
) -> str | None:
    """Return the message for a claim that refuses all nodes; None for a usable claim."""
    if claim is None:
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{claim.spec.volume_name or ""}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    return volumes.ownership_error(incoming.pod, claim) if ephemeral else None


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BOUND in (claim.metadata.annotations or {})


def _waits_for_first_consumer(cluster: Cluster, claim: PersistentVolumeClaim) -> bool:
    """Return whether the claim's class has the binding mode WaitForFirstConsumer."""
    storage_class = volumes.find_storage_class(cluster, volumes.claim_class_name(claim))
    if storage_class is None:
        return False
    if storage_class.volume_binding_mode is None:
        raise AttemptError(f'VolumeBindingMode not set for StorageClass "{storage_class.metadata.name}"')
    return storage_class.volume_binding_mode == volumes.WAIT_FOR_CONSUMER


def _requested_storage(claim: PersistentVolumeClaim) -> int:
    requests = (claim.spec.resources.requests if claim.spec.resources else None) or {}
    return value(requests.get("storage", 0))


def _requested_nano(claim: PersistentVolumeClaim) -> int:
    return _storage_nano(claim.spec.resources.requests if claim.spec.resources else None)


def _storage_nano(quantities: dict[str, str | int | float] | None) -> int:
    return parse_nano((quantities or {}).get("storage", 0))


class _ClaimsState(PreFilterState):
    """The claims of one pod: bound claims, and claims that wait for their first consumer."""

    def __init__(
        self, incoming: IncomingPod, bound: list[PersistentVolumeClaim], waiting: list[PersistentVolumeClaim]
    ) -> None:
        self._incoming, self._cluster = incoming, incoming.cluster
        self.bound, self.waiting = bound, waiting
        self._matches: dict[int, VolumeMatch] = {}
        self._fitting_volumes: dict[str, list[PersistentVolume]] = {}
        self._reached: dict[str, Bools] = {}
        self._capacities: dict[str, Bools] = {}
        names = {volumes.claim_class_name(c) for c in waiting}
        all_volumes = (
            self._cluster.objects["PersistentVolume"][name]
            for name in sorted(self._cluster.objects["PersistentVolume"])
        )
        self._class_volumes = [
            v
            for v in all_volumes
            if isinstance(v, PersistentVolume) and names and volumes.volume_class_name(v) in names
        ]

    def filter(self, rows: Selection) -> StatusCodes:
        """Refuse nodes where a claim cannot be met."""
        numbers = list(range(self._cluster.nodes.size))[rows] if isinstance(rows, slice) else rows.tolist()
        if not self.waiting:
            refused = np.zeros(len(numbers), dtype=np.uint8)
            unreachable, missing = self._bound_refusals
            refused[unreachable[rows]] = _NODE_CONFLICT
            refused[missing[rows]] = _PV_NOT_EXIST
            return refused
        return np.fromiter((_status_code(self.match(row).refusals) for row in numbers), np.uint8, len(numbers))

    def match(self, row: int) -> VolumeMatch:
        """Return how the claims can be met on a row."""
        group = row if self._groups is None else int(self._groups[row])
        match = self._matches.get(group)
        if match is None:
            match = self._matches[group] = self._find(row)
        return match

    @cached_property
    def _groups(self) -> Rows | None:
        """Number the rows so that rows with equal numbers get equal results; None if too many objects exist."""
        nodes = self._cluster.nodes
        selected = [(c.metadata.annotations or {}).get(SELECTED_NODE) for c in self.waiting]
        names = {volumes.claim_class_name(c) for c in self.waiting}
        capacities = self._cluster.objects["CSIStorageCapacity"]
        class_capacities = [
            (k, c) for k, c in capacities.items() if isinstance(c, CSIStorageCapacity) and c.storage_class_name in names
        ]
        if len(self._class_volumes) + len(class_capacities) > _MAX_GROUPED_OBJECTS:
            return None
        masks = [
            *self._bound_refusals,
            *(self._reach(v) for v in self._class_volumes),
            *(self._accessible(*n) for n in class_capacities),
        ]
        masks += [np.array(nodes.names) == name for name in set(selected) - {None}]
        for name in names:
            storage_class = volumes.find_storage_class(self._cluster, name)
            if storage_class is not None and storage_class.allowed_topologies:
                masks.append(np.array([self._allowed(storage_class, row) for row in range(nodes.size)]))
        groups = np.zeros(nodes.size, dtype=np.intp)
        for mask in masks:
            _, groups = np.unique(2 * groups + mask, return_inverse=True)
        return groups

    @cached_property
    def _bound_refusals(self) -> tuple[Bools, Bools]:
        """Return two masks over all rows: a bound volume is unreachable, or missing; the first such claim decides."""
        size = self._cluster.nodes.size
        unreachable, missing = np.zeros(size, dtype=bool), np.zeros(size, dtype=bool)
        for claim in self.bound:
            volume = volumes.find_volume(self._cluster, claim.spec.volume_name or "")
            if volume is None:
                missing |= ~unreachable
                break
            unreachable |= ~missing & ~self._reach(volume)
        return unreachable, missing

    def _reach(self, volume: PersistentVolume) -> Bools:
        """Return a mask of the rows that reach a volume."""
        name = volume.metadata.name
        reached = self._reached.get(name)
        if reached is None:
            reached = self._reached[name] = reachable_rows(self._cluster, volume)
        return reached

    def _find(self, row: int) -> VolumeMatch:
        """Compute how the claims can be met on a row."""
        refusals: set[int] = set()
        unreachable, missing = self._bound_refusals if self.bound else (None, None)
        if unreachable is not None and unreachable[row]:
            refusals.add(_NODE_CONFLICT)
        if missing is not None and missing[row]:
            refusals.add(_PV_NOT_EXIST)
        node = self._cluster.nodes.names[row]
        matching, provisioning = [], []
        for claim in self.waiting:
            selected = (claim.metadata.annotations or {}).get(SELECTED_NODE)
            if selected is None:
                matching.append(claim)
            elif selected == node:
                provisioning.append(claim)
            else:
                return VolumeMatch(refusals=frozenset(refusals | {_BIND_CONFLICT}))
        bindings, unmatched = self._match_volumes(matching, row)
        refused, provisions = self._provision([*provisioning, *unmatched], row)
        if refused:
            refusals.add(refused)
        return VolumeMatch(tuple(bindings), tuple(provisions), frozenset(refusals))

    def _match_volumes(
        self, claims: list[PersistentVolumeClaim], row: int
    ) -> tuple[list[tuple[PersistentVolumeClaim, PersistentVolume]], list[PersistentVolumeClaim]]:
        """Assign to each claim, in order of size, the smallest available volume that fits."""
        bindings: list[tuple[PersistentVolumeClaim, PersistentVolume]] = []
        unmatched = []
        taken: set[str] = set()
        for claim in sorted(claims, key=_requested_nano):
            volume = self._smallest(claim, row, taken)
            if volume is None:
                unmatched.append(claim)
            else:
                taken.add(volume.metadata.name)
                bindings.append((claim, volume))
        return bindings, unmatched

    def _smallest(self, claim: PersistentVolumeClaim, row: int, taken: set[str]) -> PersistentVolume | None:
        """Return the first fitting volume that the row reaches and no other claim has taken."""
        for volume in self._fitting(claim):
            if volume.metadata.name in taken:
                continue
            reached = bool(self._reach(volume)[row])
            if volume.spec.claim_ref is not None:
                return volume if reached else None
            if reached:
                return volume
        return None

    def _fitting(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """Return the volumes that fit a claim on some node: reserved volumes first, then in order of size."""
        known = self._fitting_volumes.get(claim.key)
        if known is None:
            fitting = [v for v in self._class_volumes if _fits(v, claim)]
            fitting.sort(key=lambda v: (v.spec.claim_ref is None, _storage_nano(v.spec.capacity)))
            known = self._fitting_volumes[claim.key] = fitting
        return known

    def _provision(
        self, claims: list[PersistentVolumeClaim], row: int
    ) -> tuple[int, list[tuple[PersistentVolumeClaim, CSIStorageCapacity | None]]]:
        """Return a refusal code, or 0 and the storage capacity from which each claim is provisioned."""
        provisions: list[tuple[PersistentVolumeClaim, CSIStorageCapacity | None]] = []
        for claim in claims:
            name = volumes.claim_class_name(claim)
            storage_class = volumes.find_storage_class(self._cluster, name)
            if storage_class is None:
                raise AttemptError(f'failed to find storage class "{name}"')
            if storage_class.provisioner in ("", NO_PROVISIONER) or not self._allowed(storage_class, row):
                return _BIND_CONFLICT, []
            has_space, capacity = self._space(claim, storage_class, row)
            if not has_space:
                return _NOT_ENOUGH_SPACE, []
            provisions.append((claim, capacity))
        return 0, provisions

    def _allowed(self, storage_class: StorageClass, row: int) -> bool:
        """Return whether the class allows the topology of a row."""
        terms = storage_class.allowed_topologies
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
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, row: int
    ) -> tuple[bool, CSIStorageCapacity | None]:
        """Return whether the class can provision the volume for the row; without CSIStorageCapacity it always can."""
        requests = (claim.spec.resources.requests if claim.spec.resources else None) or {}
        driver = self._cluster.objects["CSIDriver"].get(storage_class.provisioner)
        if "storage" not in requests or not isinstance(driver, CSIDriver) or not driver.spec.storage_capacity:
            return True, None
        size = value(requests["storage"])
        capacities = self._cluster.objects["CSIStorageCapacity"]
        for key in sorted(capacities):
            capacity = capacities[key]
            assert isinstance(capacity, CSIStorageCapacity)
            limit = capacity.maximum_volume_size if capacity.maximum_volume_size is not None else capacity.capacity
            if capacity.storage_class_name != storage_class.metadata.name or limit is None or value(limit) < size:
                continue
            if self._accessible(key, capacity)[row]:
                return True, capacity
        return False, None

    def _accessible(self, key: str, capacity: CSIStorageCapacity) -> Bools:
        """Return a mask of the rows that can use a storage capacity."""
        rows = self._capacities.get(key)
        if rows is None:
            selector = parse_label_selector(capacity.node_topology)
            nodes = self._cluster.nodes
            rows = (
                np.zeros(nodes.size, dtype=bool)
                if selector.nothing
                else nodes.matches_all(selector.requirements, slice(None))
            )
            self._capacities[key] = rows
        return rows


def _status_code(refusals: frozenset[int]) -> int:
    if len(refusals) < 2:
        return next(iter(refusals), 0)
    return _COMBINED_CODES[refusals]


def _fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume could be bound to a claim, regardless of nodes."""
    spec, wanted = volume.spec, claim.spec
    if volumes.volume_class_name(volume) != volumes.claim_class_name(claim):
        return False
    if volume.metadata.deletion_timestamp is not None:
        return False
    if _storage_nano(spec.capacity) < _storage_nano(wanted.resources.requests if wanted.resources else None):
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
