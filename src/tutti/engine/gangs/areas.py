"""Areas: where in the cluster a gang may go, the best area first.

A gang that is bound to a label goes where the label has one value: a domain. Domains that cannot hold the gang are
refused by arithmetic; of the others the tightest comes first, the one with the least room that is enough, so that
larger holes stay whole. Members that run pin the domain. A label that is only preferred narrows the choice while one
of its domains can hold the gang; after that come as few domains as can, and then all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints
from tutti.engine.gangs.gang_state import Need
from tutti.engine.placement.capacity import Capacity, sum_by
from tutti.engine.placement.evaluator import Evaluator
from tutti.engine.plugins.base import Area, IncomingPod

_MOST = 4_096
"""Areas that are kept."""


class PodKind:
    """Pods of one need that cannot be told apart."""

    __slots__ = ("incoming", "rows")

    def __init__(self, incoming: IncomingPod) -> None:
        self.incoming = incoming
        self.rows: list[int] = []


class Areas:
    """The areas of one cluster."""

    def __init__(self, evaluator: Evaluator, capacity: Capacity) -> None:
        self._evaluator, self._capacity = evaluator, capacity
        self._cluster: Cluster = evaluator.cluster
        self._known: dict[tuple[str, int], Area] = {}
        self._version = -1
        self._ranked: dict[str, Ints] = {}
        self._last: tuple[Sequence[int], int, list[PodKind]] = ((), -1, [])

    # Which areas ------------------------------------------------------------------------------------------------------

    def of(self, need: Need, within: Area | None) -> Iterator[Area | None]:
        """Give the areas in which a need may be met, the best first; None stands for the whole cluster."""
        required = need.topology.required
        outer: Iterable[Area | None] = (within,)
        if required is not None:
            outer = self._domains(need, required, within)
        for area in outer:
            yield from self._preferred(need, area)

    def _preferred(self, need: Need, within: Area | None) -> Iterator[Area | None]:
        for key in need.topology.preferred:
            yield from self._domains(need, key, within, pinned=False)
        if need.topology.preferred:
            few = self._fewest(need, need.topology.preferred[-1], within)
            if few is not None:
                yield few
        yield within

    def _domains(self, need: Need, key: str, within: Area | None, *, pinned: bool = True) -> Iterator[Area]:
        """Give the domains of a label that have room by arithmetic, the tightest first."""
        taken = self.values_of(need.running, key)
        if taken and pinned:
            if len(taken) == 1 and 0 not in taken:
                yield self.domain(key, taken.pop(), within)
            return
        room = self.room(need, key, within)
        room[0] = -1  # stands for nodes without the label
        enough = np.flatnonzero(room >= 0)
        order = enough[np.lexsort((self.ranks(key)[enough], room[enough]))].tolist()
        for digit in sorted(order, key=lambda digit: digit not in taken) if taken else order:
            yield self.domain(key, digit, within)

    def _fewest(self, need: Need, key: str, within: Area | None) -> Area | None:
        """Give as few domains as can hold the need together, the roomiest first; None when that is all of them."""
        digits = self._cluster.nodes.domains(key).indices
        room = self.copies(need, key, within)
        order = [d for d in np.lexsort((self.ranks(key), -room)).tolist() if d and room[d]]
        total, chosen = 0, np.zeros(len(room), dtype=bool)
        for digit in order:
            total += int(room[digit])
            chosen[digit] = True
            if total >= need.least:
                mask = chosen[digits]
                return Area(mask if within is None else mask & within.mask)
        return None

    # Room -------------------------------------------------------------------------------------------------------------

    def room(self, need: Need, key: str, within: Area | None) -> Ints:
        """Say for each domain how many copies there is room for; negative where that cannot be enough."""
        if not need.parts and len(alike := self.kinds(need.waiting)) == 1:
            sums = self._sums(alike[0].incoming, key, within)
            return np.where(sums < need.lack, -1, sums)
        room = np.zeros(len(self._cluster.nodes.domains(key).nodes_in), dtype=np.int64)
        short = np.zeros(len(room), dtype=bool)
        for each in lacking(need):
            pods = each.everybody
            kinds = self.kinds(pods)
            fits = np.zeros(len(room), dtype=np.int64)
            for kind in kinds:
                sums = self._sums(kind.incoming, key, within)
                if each is need:
                    room += sums
                fits += np.minimum(sums, len(kind.rows))
            short |= fits < each.least
            if len(kinds) > 1 and each.least == len(pods):
                short |= self._lacks(kinds, key, within)
        return np.where(short, -1, room)

    def copies(self, need: Need, key: str, within: Area | None) -> Ints:
        """Say for each domain how many of the pods it has room for, kind by kind."""
        fits = np.zeros(len(self._cluster.nodes.domains(key).nodes_in), dtype=np.int64)
        for kind in self.kinds(need.everybody):
            fits += np.minimum(self._sums(kind.incoming, key, within), len(kind.rows))
        return fits

    def roomiest(self, need: Need, key: str, within: Area | None) -> int:
        """Give the domain with room for the most pods, the first by name; 0 when no node has the label."""
        copies = self.copies(need, key, within)
        copies[0] = -1
        best = np.flatnonzero(copies == copies.max())
        return int(best[self.ranks(key)[best].argmin()])

    def _sums(self, incoming: IncomingPod, key: str, within: Area | None) -> Ints:
        if within is None:
            return self._capacity.in_domains(incoming, key)
        domains = self._cluster.nodes.domains(key)
        copies = self._capacity.copies(incoming)
        return sum_by(domains.indices[within.rows], copies[within.rows], len(domains.nodes_in))

    def _lacks(
        self, kinds: Sequence[PodKind], key: str, within: Area | None
    ) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Say for each domain whether all kinds together want more of something than is free there."""
        nodes, domains = self._cluster.nodes, self._cluster.nodes.domains(key)
        wanted: dict[int, int] = {}
        for kind in kinds:
            for place, amount in self._evaluator.room_wanted(kind.incoming):
                wanted[place] = wanted.get(place, 0) + amount * len(kind.rows)
        on = nodes.on if within is None else nodes.on & within.mask
        lacks = np.zeros(len(domains.nodes_in), dtype=bool)
        for place, amount in wanted.items():
            free = np.where(on, np.maximum(nodes.alloc[place] - nodes.used[place], 0), 0)
            lacks |= sum_by(domains.indices, free, len(lacks)) < amount
        return lacks

    def kinds(self, rows: Sequence[int]) -> list[PodKind]:
        """Sort pods into kinds that cannot be told apart, in the order in which they come."""
        cluster = self._cluster
        version = cluster.labels.version + cluster.workloads_version + len(cluster.labels.watched)
        if self._last[0] is rows and self._last[1] == version:
            return self._last[2]
        found: dict[tuple[int, int], PodKind] = {}
        wanted = np.array(rows, dtype=np.intp)
        specs = cluster.pods.spec[wanted].tolist()
        for row in dict(zip(specs, rows, strict=True)).values():
            cluster.pod_counters.label_class_of(row)  # so that pods are told apart by what their own specs look at
        for row, spec, label in zip(rows, specs, cluster.pods.labels[wanted].tolist(), strict=True):
            kind = found.get((spec, label))
            if kind is None:
                kind = found[spec, label] = PodKind(self._evaluator.incoming_pod(row))
            kind.rows.append(row)
        self._last = rows, version, list(found.values())
        return self._last[2]

    def settled(self, need: Need, key: str, within: Area | None) -> int:
        """Give the domain in which a need has pods by now; where it has none yet, the one with the most room."""
        there = self.values_of((*need.running, *need.everybody), key)
        return min(there, key=partial(self.name, key)) if there else self.roomiest(need, key, within)

    # Domains ----------------------------------------------------------------------------------------------------------

    def domain(self, key: str, digit: int, within: Area | None = None) -> Area:
        """Give one domain of a label; nodes without the label, which 0 stands for, are none."""
        nodes = self._cluster.nodes
        domains = nodes.domains(key)
        if self._version != nodes.touched.length or len(self._known) > _MOST:
            self._version, self._known = nodes.touched.length, {}
        area = self._known.get((key, digit))
        if area is None:
            area = self._known[key, digit] = Area((domains.indices == digit) & (digit > 0))
        return area if within is None else area & within.mask

    def values_of(self, rows: Iterable[int], key: str) -> set[int]:
        """Give the domains in which pods run."""
        pods, digits = self._cluster.pods, self._cluster.nodes.domains(key).indices
        return {int(digits[pods.node[row]]) for row in rows if pods.node[row] >= 0}

    def name(self, key: str, digit: int) -> str:
        """Give the value of a label that a domain stands for."""
        return self._names(key)[digit]

    def ranks(self, key: str) -> Ints:
        """Give the places of a label's values in the order of their names."""
        values = self._cluster.nodes.column(key).values
        known = self._ranked.get(key)
        if known is None or len(known) != len(values) + 1:
            known = self._ranked[key] = np.zeros(len(values) + 1, dtype=np.int64)
            for place, value in enumerate(sorted(values), start=1):
                known[values[value] + 1] = place
        return known

    def _names(self, key: str) -> list[str]:
        return ["", *self._cluster.nodes.column(key).values]


def lacking(need: Need) -> Iterator[Need]:
    """Give a need and those of its parts that must be met with it."""
    yield need
    if need.takes_all:
        for part in need.parts:
            if part.least:
                yield from lacking(part)
