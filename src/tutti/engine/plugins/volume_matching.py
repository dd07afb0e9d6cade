"""The volumes that meet a pod's claims on a node: bound, available, or newly provisioned.

Bound volumes must be reachable from the node. Claims with WaitForFirstConsumer take the smallest available volume that
fits, or a new volume if the storage class and the storage capacity allow it. Nodes that reach the same volumes, classes
and capacities get the same result, so the search runs once per such group of nodes.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from tutti.cluster.assumed_volumes import SELECTED_NODE
from tutti.cluster.columns import Bools, Rows
from tutti.engine.plugins import volumes
from tutti.engine.plugins.base import IncomingPod, PreFilterState, Selection
from tutti.engine.plugins.persistent_volumes import fits_claim, reachable_rows, requested_nano, storage_nano
from tutti.engine.plugins.verdict import AttemptError, StatusCodes
from tutti.kube.objects import CSIDriver, CSIStorageCapacity, PersistentVolume, PersistentVolumeClaim, StorageClass
from tutti.kube.quantity import value
from tutti.kube.selectors import parse_label_selector

NO_PROVISIONER = "kubernetes.io/no-provisioner"

_MAX_GROUPED_OBJECTS = 64
NODE_CONFLICT, BIND_CONFLICT, NOT_ENOUGH_SPACE, PV_NOT_EXIST = 1, 2, 3, 4
COMBINED_CODES = {
    frozenset((NODE_CONFLICT, BIND_CONFLICT)): 5,
    frozenset((NODE_CONFLICT, NOT_ENOUGH_SPACE)): 6,
    frozenset((PV_NOT_EXIST, BIND_CONFLICT)): 7,
    frozenset((PV_NOT_EXIST, NOT_ENOUGH_SPACE)): 8,
}
"""All pairs: bound claims have at most one refusal on a node, and so have waiting claims."""


class VolumeMatch(NamedTuple):
    """How a pod's claims can be met on a node: volumes to bind, claims to provision, and refusals."""

    bindings: tuple[tuple[PersistentVolumeClaim, PersistentVolume], ...] = ()
    provisions: tuple[tuple[PersistentVolumeClaim, CSIStorageCapacity | None], ...] = ()
    refusals: frozenset[int] = frozenset()


class ClaimsState(PreFilterState):
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
            refused[unreachable[rows]] = NODE_CONFLICT
            refused[missing[rows]] = PV_NOT_EXIST
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
            refusals.add(NODE_CONFLICT)
        if missing is not None and missing[row]:
            refusals.add(PV_NOT_EXIST)
        node = self._cluster.nodes.names[row]
        matching, provisioning = [], []
        for claim in self.waiting:
            selected = (claim.metadata.annotations or {}).get(SELECTED_NODE)
            if selected is None:
                matching.append(claim)
            elif selected == node:
                provisioning.append(claim)
            else:
                return VolumeMatch(refusals=frozenset(refusals | {BIND_CONFLICT}))
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
        for claim in sorted(claims, key=requested_nano):
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
            fitting = [v for v in self._class_volumes if fits_claim(v, claim)]
            fitting.sort(key=lambda v: (v.spec.claim_ref is None, storage_nano(v.spec.capacity)))
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
                return BIND_CONFLICT, []
            has_space, capacity = self._space(claim, storage_class, row)
            if not has_space:
                return NOT_ENOUGH_SPACE, []
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
    return COMBINED_CODES[refusals]
