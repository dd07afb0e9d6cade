"""What Karpenter's model chooses from, as columns: the offerings of each pool, and the nodes that are there.

Contract: rows are offerings (or nodes), one array per resource or label. What a requirement selects is worked out once
per requirement and kept. A label's values are bits of an integer, in the order of their names, so that a set of zones
is one number and its first zone the lowest bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tutti.cluster.columns import Bools, Ints
from tutti.kube.objects import DaemonSet, Pod, PodSpec, Taint, Toleration
from tutti.kube.resources import allocatable, host_ports, incoming_requests
from tutti.kube.selectors import NodeTerm, Requirement, equal_to, parse_node_selector
from tutti.kube.taints import HARD_EFFECTS, tolerates
from tutti.kube.workloads.daemon_sets import daemon_tolerations
from tutti.market.offerings import Limit, NodePool, Offering, takes

HOSTNAME = "kubernetes.io/hostname"
Port = tuple[str, str, int]
_EVERYWHERE = ("0.0.0.0", "::", "")
_CAPACITY_TYPES = ("on-demand", "reserved", "spot")


class LabelRows:
    """Rows with labels and taints."""

    def __init__(self, labels: Sequence[Mapping[str, str]], taints: Sequence[Sequence[Taint]]) -> None:
        self.labels = labels
        self.count = len(labels)
        self._held: dict[Requirement, Bools] = {}
        kinds: dict[tuple[Taint, ...], int] = {}
        self._taints: Ints = np.array([kinds.setdefault(tuple(each), len(kinds)) for each in taints], dtype=np.int64)
        self._kinds = list(kinds)

    def holds(self, requirement: Requirement) -> Bools:
        """The rows whose label meets a requirement."""
        known = self._held.get(requirement)
        if known is None:
            key = requirement.key
            known = np.fromiter((requirement.holds(each.get(key)) for each in self.labels), bool, self.count)
            self._held[requirement] = known
        return known

    def within(self, requirements: Iterable[Requirement]) -> Bools:
        """The rows that meet all requirements."""
        mask: Bools = np.ones(self.count, dtype=bool)
        for requirement in requirements:
            mask &= self.holds(requirement)
        return mask

    def bearable(self, tolerations: Sequence[Toleration], *, hard_only: bool) -> Bools:
        """The rows whose taints are all tolerated."""
        borne = [
            all(any(tolerates(t, taint) for t in tolerations) for taint in kind if _counts(taint, hard_only))
            for kind in self._kinds
        ]
        return np.array(borne, dtype=bool)[self._taints] if self.count else np.zeros(0, dtype=bool)

    @property
    def some_prefer(self) -> bool:
        """Whether some row has a taint that only asks to stay away."""
        return any(taint.effect not in HARD_EFFECTS for kind in self._kinds for taint in kind)


def _counts(taint: Taint, hard_only: bool) -> bool:
    return not hard_only or taint.effect in HARD_EFFECTS


class Shelf:
    """The offerings of one pool."""

    def __init__(self, pool: NodePool, daemon_sets: Sequence[DaemonSet], resources: Sequence[str]) -> None:
        self.pool, self.offerings = pool, pool.offerings
        labels = [_without_host(each) for each in pool.offerings]
        self.rows = LabelRows(labels, [each.node.spec.taints or () for each in pool.offerings])
        room = [allocatable(each.node) for each in pool.offerings]
        self.free: Ints = np.array([[each.get(name, 0) for each in room] for name in resources], dtype=np.int64)
        self.free = self.free.reshape(len(resources), len(room))
        self._types = np.unique([each.instance_type for each in pool.offerings], return_inverse=True)[1]
        self._ports: list[tuple[tuple[Port, ...], Bools]] = []
        for daemon_set in daemon_sets:
            self._start(daemon_set.spec.template.spec, resources)
        self.rank = _ranks(pool.offerings)

    def _start(self, spec: PodSpec, resources: Sequence[str]) -> None:
        """Take what a daemon takes from every type that some offering of would run it."""
        mask = selected_by(spec, self.rows) & self.rows.bearable(daemon_tolerations(spec), hard_only=True)
        mask = np.isin(self._types, self._types[mask])
        pod = Pod(spec=spec)
        needs = {**incoming_requests(pod), "pods": 1}
        taken = np.array([needs.get(name, 0) for name in resources], dtype=np.int64)
        self.free[:, mask] -= taken[:, None]
        if ports := host_ports(pod):
            self._ports.append((ports, mask))

    def without_clash(self, ports: Sequence[Port]) -> Bools:
        """The rows whose daemons leave these host ports."""
        mask: Bools = np.ones(len(self.offerings), dtype=bool)
        for taken, where in self._ports:
            if clash(ports, taken):
                mask &= ~where
        return mask

    def takes(self, limit: Limit) -> Ints:
        """How much of a limit a node of each row takes."""
        return np.array([takes(limit, each) for each in self.offerings], dtype=np.int64)


def clash(ports: Iterable[Port], taken: Sequence[Port]) -> bool:
    """Whether two sets of host ports cannot be on one node."""
    for address, protocol, port in ports:
        for other, spoken, number in taken:
            same = address == other or address in _EVERYWHERE or other in _EVERYWHERE
            if same and protocol == spoken and port == number:
                return True
    return False


class Domains:
    """The values of one label over all rows, as bits in the order of their names."""

    def __init__(self, key: str, shelves: Sequence[Shelf], nodes: LabelRows) -> None:
        tables = [*(shelf.rows for shelf in shelves), nodes]
        self.values = sorted({each[key] for table in tables for each in table.labels if key in each})
        self.place = {name: place for place, name in enumerate(self.values)}
        columns = [self._column(table, key) for table in tables]
        self.columns, self.node_column = columns[:-1], columns[-1].tolist()
        self.of_shelf = [self.bits(np.unique(column[column >= 0]).tolist()) for column in self.columns]
        self._masks: dict[tuple[int, int], Bools] = {}

    def _column(self, table: LabelRows, key: str) -> Ints:
        none = {"": -1}
        places = (self.place[each[key]] if key in each else none[""] for each in table.labels)
        return np.fromiter(places, np.int64, table.count)

    @staticmethod
    def bits(places: Iterable[int]) -> int:
        """The set of some places."""
        return sum(1 << place for place in places)

    def meeting(self, requirements: Iterable[Requirement]) -> int:
        """The values that meet all requirements; -1, every value, when there is none."""
        wanted = list(requirements)
        if not wanted:
            return -1
        return self.bits(place for place, name in enumerate(self.values) if all(each.holds(name) for each in wanted))

    def mask(self, shelf: int, bits: int) -> Bools:
        """The rows of a shelf whose value is one of the set."""
        known = self._masks.get((shelf, bits))
        if known is None:
            inside = np.array([*(bool(bits >> place & 1) for place in range(len(self.values))), False])
            known = self._masks[shelf, bits] = inside[self.columns[shelf]]
        return known


def _without_host(offering: Offering) -> dict[str, str]:
    """The labels of a node to come: its name, which nobody knows yet, is none that a pod could ask for."""
    return {**(offering.node.metadata.labels or {}), HOSTNAME: ""}


def selected_by(spec: PodSpec, rows: LabelRows) -> Bools:
    """The rows that a pod's node selector and one of its required terms select."""
    mask = rows.within(equal_to(spec.node_selector or {}).requirements)
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    terms = parse_node_selector(affinity.required) if affinity is not None else None
    return mask if terms is None else mask & any_term(terms, rows)


def any_term(terms: Iterable[NodeTerm], rows: LabelRows) -> Bools:
    """The rows that one of the terms selects, as far as labels tell."""
    mask: Bools = np.zeros(rows.count, dtype=bool)
    for term in terms:
        if not term.broken:
            mask |= rows.within(term.labels)
    return mask


def _ranks(offerings: Sequence[Offering]) -> Ints:
    """The order in which a lowest-price launch takes offerings."""

    def order(place: int) -> tuple[bool, int, int, str, int, str]:
        each = offerings[place]
        size = 0 if each.price is not None else allocatable(each.node).get("cpu", 0)
        kind = _CAPACITY_TYPES.index(each.capacity_type) if each.capacity_type in _CAPACITY_TYPES else 3
        return each.price is None, each.price or 0, size, each.instance_type, kind, each.zone

    ranks: Ints = np.empty(len(offerings), dtype=np.int64)
    ranks[sorted(range(len(offerings)), key=order)] = np.arange(len(offerings))
    return ranks
