"""Domain room: how many pods of a need fit in each domain, by arithmetic on free amounts.

Contract: never fewer than truly fit. Room is counted for each kind of pod by itself, in every domain of the need's
required label (without one, the whole cluster is one domain). Rules between pods are not counted.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.engine.gangs.areas import PodKind, mandatory_needs
from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.capacity import sum_by
from tutti.engine.plugins.base import Area

_NO_ROOM = -(2**60)
"""Free amounts of a row that must not be used; no usage makes up for it."""


class DomainRoom:
    """See the module's docstring."""

    def __init__(self, placer: GangPlacer, need: Need, area: Area | None = None) -> None:
        """Count the room for a need; with an area, only that of its rows."""
        self._placer, self._need = placer, need
        self._cluster = placer.engine.cluster
        self.groups: list[tuple[list[PodKind], int]] = [
            (placer.areas.kinds(each.all_waiting), each.least) for each in mandatory_needs(need)
        ]
        """The kinds of pods of the need and of each mandatory part, and how many pods each needs."""
        self.kinds = self.groups[0][0]
        self.free = placer.capacity.free(kind.incoming for kind in self.kinds)
        """The free amounts now, by resource and row, less the room that is held for others."""
        if area is not None:
            self.free = np.where(area.mask, self.free, _NO_ROOM)

    def free_without(self, pods: Rows) -> Ints:
        """Return the free amounts of every row without some pods."""
        cluster, free = self._cluster, self.free.copy()
        is_removed = np.zeros(cluster.pods.length, dtype=bool)
        is_removed[pods] = True  # each pod counts once
        pods = np.flatnonzero(is_removed)
        np.add.at(free.T, cluster.pods.node[pods], cluster.usages.matrix[cluster.pods.usage[pods]])
        return free

    def free_when_empty(self) -> Ints:
        """Return the free amounts of every row without any pod."""
        nodes = self._cluster.nodes
        empty: Ints = self.free + nodes.used
        return empty

    def has_enough(self, free: Ints) -> bool:
        """Return whether the need fits some domain with these free amounts."""
        return bool((self.surplus_by_domain(free) >= 0).any())

    def first_enough(self, pods: Rows) -> int | None:
        """Return how many of some distinct pods must end, in this order, until the need fits by arithmetic.

        None if all of them are too few. Only for needs of one kind of pods without a required label.
        """
        cluster, ((kinds, count),) = self._cluster, self.groups
        (kind,) = kinds
        capacity, most = self._placer.capacity, len(kind.rows)
        now = np.minimum(capacity.copies_with_free(kind.incoming, self.free, slice(None)), most)
        missing = count - int(now.sum())
        if missing <= 0:
            return 0
        rows = cluster.pods.node[pods].astype(np.intp)
        by_row = np.argsort(rows, kind="stable")
        sorted_rows = rows[by_row]
        is_first = np.r_[True, sorted_rows[1:] != sorted_rows[:-1]][: len(rows)]
        freed = np.cumsum(cluster.usages.matrix[cluster.pods.usage[pods[by_row]]], axis=0)
        before = np.zeros_like(freed)
        before[1:] = freed[:-1]
        freed -= before[np.maximum.accumulate(np.where(is_first, np.arange(len(rows)), 0))]
        free = self.free[:, sorted_rows]
        free[: freed.shape[1]] += freed.T
        copies = np.minimum(capacity.copies_with_free(kind.incoming, free, sorted_rows), most)
        more = copies - np.where(is_first, now[sorted_rows], np.r_[0, copies[:-1]][: len(rows)])
        in_order = np.empty_like(more)
        in_order[by_row] = more
        enough = np.flatnonzero(np.cumsum(in_order) >= missing)
        return int(enough[0]) + 1 if len(enough) else None

    @property
    def is_simple(self) -> bool:
        """Whether the need has one kind of pods and no required label or parts."""
        return len(self.groups) == 1 and len(self.kinds) == 1 and self._need.topology.required is None

    def surplus_by_domain(self, free: Ints) -> Ints:
        """Return for each domain how many pods fit beyond the need; negative where room is missing."""
        return self._surplus_by_domain([self._copies(kinds, free) for kinds, _ in self.groups])

    def _copies(self, kinds: list[PodKind], free: Ints) -> list[Ints]:
        """Return for each kind how many pods fit each row with these free amounts."""
        capacity = self._placer.capacity
        return [capacity.copies_with_free(kind.incoming, free, slice(None)) for kind in kinds]

    def _surplus_by_domain(self, copies_by_group: list[list[Ints]]) -> Ints:
        digits, length, allowed = self.domains()
        surplus = np.full(length, 2**40)
        for (kinds, count), copies_of_kinds in zip(self.groups, copies_by_group, strict=True):
            fits = np.zeros(length, dtype=np.int64)
            for kind, copies in zip(kinds, copies_of_kinds, strict=True):
                fits += np.minimum(sum_by(digits, np.minimum(copies, len(kind.rows)), length), len(kind.rows))
            surplus = np.minimum(surplus, fits - count)
        return np.where(allowed, surplus, -(2**40))

    def rows_with_room(self, free: Ints) -> Bools:
        """Return for each row whether a pod of the need fits, in a domain with enough room."""
        digits, _, _ = self.domains()
        copies_by_group = [self._copies(kinds, free) for kinds, _ in self.groups]
        has_room: Bools = np.logical_or.reduce([copies > 0 for copies in copies_by_group[0]])
        return has_room & (self._surplus_by_domain(copies_by_group) >= 0)[digits]

    def domains(self) -> tuple[Rows, int, Bools]:
        """Return the domain of each row, the number of domains, and which of them the need may use."""
        nodes, key = self._cluster.nodes, self._need.topology.required
        if key is None:
            return np.zeros(nodes.size, dtype=np.intp), 1, np.ones(1, dtype=bool)
        domains = nodes.domains(key)
        allowed = np.ones(len(domains.nodes_in), dtype=bool)
        allowed[0] = False
        running_domains = self._placer.areas.domains_of(self._need.running, key)
        if running_domains:
            allowed[:] = False
            if len(running_domains) == 1:
                allowed[list(running_domains)] = 0 not in running_domains
        return domains.indices, len(allowed), allowed
