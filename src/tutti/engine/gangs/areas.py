"""Areas: the sets of nodes to which a gang may go, the best area first.

A gang with a required topology label goes to one domain, the nodes with one value of the label. Domains without enough
room are excluded by arithmetic. Of the others, the domain with the least sufficient room comes first, so that larger
domains stay free. Running members pin the domain. A preferred label limits the gang to one of its domains while one has
enough room; next comes the smallest set of domains with enough room, and then the whole cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints
from tutti.cluster.node_table import LabelColumn
from tutti.engine.gangs.gang_state import Need
from tutti.engine.placement.capacity import Capacity, sum_by
from tutti.engine.placement.evaluator import Evaluator
from tutti.engine.plugins.base import Area, IncomingPod

_MAX_AREAS = 4_096
"""Largest number of cached areas."""


class PodKind:
    """Pods of one need that the scheduler cannot tell apart."""

    __slots__ = ("incoming", "rows")

    def __init__(self, incoming: IncomingPod) -> None:
        self.incoming = incoming
        self.rows: list[int] = []


class Areas:
    """The areas of one cluster.

    A label's domains are numbered as in `Domains`; a parameter `digit` is such a number, and 0 stands for nodes without
    the label. `outer` limits results to the nodes of an enclosing area; None stands for the whole cluster.
    """

    def __init__(self, evaluator: Evaluator, capacity: Capacity) -> None:
        self._evaluator, self._capacity = evaluator, capacity
        self._cluster: Cluster = evaluator.cluster
        self._area_of: dict[tuple[str, int], Area] = {}
        self._version = -1
        self._ranks: dict[str, tuple[LabelColumn, Ints]] = {}
        """By label: the column whose domain numbers were ranked, and the ranks."""
        self._last_kinds: tuple[Sequence[int], int, list[PodKind]] = ((), -1, [])

    # Candidate areas --------------------------------------------------------------------------------------------------

    def candidates(self, need: Need, outer: Area | None) -> Iterator[Area | None]:
        """Yield the areas in which a need may be met, the best first; None stands for the whole cluster."""
        required = need.topology.required
        areas: Iterable[Area | None] = (outer,)
        if required is not None:
            areas = self._domains_with_room(need, required, outer)
        for area in areas:
            yield from self._preferred_areas(need, area)

    def _preferred_areas(self, need: Need, outer: Area | None) -> Iterator[Area | None]:
        """Yield the preferred areas within an area, and last the area itself."""
        for key in need.topology.preferred:
            yield from self._domains_with_room(need, key, outer, is_required=False)
        if need.topology.preferred:
            few = self._fewest_domains(need, need.topology.preferred[-1], outer)
            if few is not None:
                yield few
        yield outer

    def _domains_with_room(
        self, need: Need, key: str, outer: Area | None, *, is_required: bool = True
    ) -> Iterator[Area]:
        """Yield the domains of a label with enough room by arithmetic, those with the least room first."""
        running_domains = self.domains_of(need.running, key)
        if running_domains and is_required:
            if len(running_domains) == 1 and 0 not in running_domains:
                yield self.domain(key, running_domains.pop(), outer)
            return
        room = self.room_by_domain(need, key, outer)
        room[0] = -1  # domain 0: nodes without the label
        enough = np.flatnonzero(room >= 0)
        order = enough[np.lexsort((self.domain_ranks(key)[enough], room[enough]))].tolist()
        for digit in sorted(order, key=lambda digit: digit not in running_domains) if running_domains else order:
            yield self.domain(key, digit, outer)

    def _fewest_domains(self, need: Need, key: str, outer: Area | None) -> Area | None:
        """Return the smallest set of domains with enough room together; None if all domains together are too small."""
        digits = self._cluster.nodes.domains(key).indices
        fitting = self.fitting_pods(need, key, outer)
        order = [digit for digit in np.lexsort((self.domain_ranks(key), -fitting)).tolist() if digit and fitting[digit]]
        total, chosen = 0, np.zeros(len(fitting), dtype=bool)
        for digit in order:
            total += int(fitting[digit])
            chosen[digit] = True
            if total >= need.least:
                mask = chosen[digits]
                return Area(mask if outer is None else mask & outer.mask)
        return None

    # Room -------------------------------------------------------------------------------------------------------------

    def room_by_domain(self, need: Need, key: str, outer: Area | None) -> Ints:
        """Return for each domain how many copies fit; negative where the need cannot be met."""
        if not need.parts and len(alike := self.kinds(need.waiting)) == 1:
            sums = self._copies_by_domain(alike[0].incoming, key, outer)
            return np.where(sums < need.missing, -1, sums)
        room = np.zeros(len(self._cluster.nodes.domains(key).nodes_in), dtype=np.int64)
        short = np.zeros(len(room), dtype=bool)
        for each in mandatory_needs(need):
            pods = each.all_waiting
            kinds = self.kinds(pods)
            fits = np.zeros(len(room), dtype=np.int64)
            for kind in kinds:
                sums = self._copies_by_domain(kind.incoming, key, outer)
                if each is need:
                    room += sums
                fits += np.minimum(sums, len(kind.rows))
            short |= fits < each.least
            if len(kinds) > 1 and each.least == len(pods):
                short |= self._lacks_resources(kinds, key, outer)
        return np.where(short, -1, room)

    def fitting_pods(self, need: Need, key: str, outer: Area | None) -> Ints:
        """Return for each domain how many of the waiting pods fit, each kind counted on its own."""
        fits = np.zeros(len(self._cluster.nodes.domains(key).nodes_in), dtype=np.int64)
        for kind in self.kinds(need.all_waiting):
            fits += np.minimum(self._copies_by_domain(kind.incoming, key, outer), len(kind.rows))
        return fits

    def domain_with_most_room(self, need: Need, key: str, outer: Area | None) -> int:
        """Return the domain in which the most waiting pods fit, the first by name among equals; 0 without domains."""
        fitting = self.fitting_pods(need, key, outer)
        fitting[0] = -1
        best = np.flatnonzero(fitting == fitting.max())
        return int(best[self.domain_ranks(key)[best].argmin()])

    def _copies_by_domain(self, incoming: IncomingPod, key: str, outer: Area | None) -> Ints:
        """Return for each domain how many copies of a pod fit."""
        if outer is None:
            return self._capacity.copies_by_domain(incoming, key)
        domains = self._cluster.nodes.domains(key)
        copies = self._capacity.copies(incoming)
        return sum_by(domains.indices[outer.rows], copies[outer.rows], len(domains.nodes_in))

    def _lacks_resources(
        self, kinds: Sequence[PodKind], key: str, outer: Area | None
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Return for each domain whether all kinds together request more of a resource than is free there."""
        nodes, domains = self._cluster.nodes, self._cluster.nodes.domains(key)
        requested: dict[int, int] = {}
        for kind in kinds:
            for resource, amount in self._evaluator.resource_requests(kind.incoming):
                requested[resource] = requested.get(resource, 0) + amount * len(kind.rows)
        on = nodes.on if outer is None else nodes.on & outer.mask
        lacks = np.zeros(len(domains.nodes_in), dtype=bool)
        all_free = self._capacity.free(kind.incoming for kind in kinds)
        for resource, amount in requested.items():
            free = np.where(on, np.maximum(all_free[resource], 0), 0)
            lacks |= sum_by(domains.indices, free, len(lacks)) < amount
        return lacks

    def kinds(self, rows: Sequence[int]) -> list[PodKind]:
        """Return the kinds of some pods, in the order of their first pods; cached for the same `rows` object."""
        cluster = self._cluster
        version = cluster.labels.version + cluster.workloads_version + len(cluster.labels.watched)
        if self._last_kinds[0] is rows and self._last_kinds[1] == version:
            return self._last_kinds[2]
        kind_of: dict[tuple[int, int], PodKind] = {}
        row_array = np.array(rows, dtype=np.intp)
        specs = cluster.pods.spec[row_array].tolist()
        for row in dict(zip(specs, rows, strict=True)).values():
            cluster.pod_counters.label_class_of(row)  # registers the labels that the pod's own terms select
        for row, spec, label_class in zip(rows, specs, cluster.pods.labels[row_array].tolist(), strict=True):
            kind = kind_of.get((spec, label_class))
            if kind is None:
                kind = kind_of[spec, label_class] = PodKind(self._evaluator.incoming_pod(row))
            kind.rows.append(row)
        self._last_kinds = rows, version, list(kind_of.values())
        return self._last_kinds[2]

    def current_domain(self, need: Need, key: str, outer: Area | None) -> int:
        """Return the domain of the pods that are placed by now; without such pods, the domain with the most room."""
        placed = [row for row in need.all_waiting if self._cluster.pods.node[row] >= 0]
        domains = self.domains_of((*need.running, *placed), key)
        if not domains:
            return self.domain_with_most_room(need, key, outer)
        return min(domains, key=partial(self.domain_name, key))

    # Domains ----------------------------------------------------------------------------------------------------------

    def domain(self, key: str, digit: int, outer: Area | None = None) -> Area:
        """Return one domain of a label as an area; domain 0 (nodes without the label) is an empty area."""
        nodes = self._cluster.nodes
        domains = nodes.domains(key)
        if self._version != nodes.touched.length or len(self._area_of) > _MAX_AREAS:
            self._version, self._area_of = nodes.touched.length, {}
        area = self._area_of.get((key, digit))
        if area is None:
            area = self._area_of[key, digit] = Area((domains.indices == digit) & (digit > 0))
        return area if outer is None else area & outer.mask

    def domains_of(self, rows: Iterable[int], key: str) -> set[int]:
        """Return the domains in which pods run, or in which room is held for them."""
        digits = self._cluster.nodes.domains(key).indices
        return {int(digits[node]) for row in rows if (node := self._node_of(row)) >= 0}

    def _node_of(self, row: int) -> int:
        """Return the row of a pod's node, or of the node where room is held for the pod; -1 without either."""
        pods, holds = self._cluster.pods, self._cluster.holds
        node = int(pods.node[row])
        if node >= 0 or not holds or pods.keys[row] not in holds:
            return node
        return self._cluster.nodes.row_of.get(holds[pods.keys[row]].node, -1)

    def domain_name(self, key: str, digit: int) -> str:
        """Return the label value of a domain."""
        return self._names(key)[digit]

    def domain_ranks(self, key: str) -> Ints:
        """Return the rank of each domain by its label value."""
        column = self._cluster.nodes.column(key)
        values, known = column.values, self._ranks.get(key)
        if known is None or known[0] is not column or len(known[1]) != len(values) + 1:
            ranks = np.zeros(len(values) + 1, dtype=np.int64)
            for rank, value in enumerate(sorted(values), start=1):
                ranks[values[value] + 1] = rank
            known = self._ranks[key] = column, ranks
        return known[1]

    def _names(self, key: str) -> list[str]:
        return ["", *self._cluster.nodes.column(key).values]


def mandatory_needs(need: Need) -> Iterator[Need]:
    """Yield a need and the needs of all parts that must be met with it."""
    yield need
    if need.needs_every_part:
        for part in need.parts:
            if part.least:
                yield from mandatory_needs(part)
