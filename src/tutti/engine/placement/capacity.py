"""How many more copies of a pod there is room for, per node and per domain: arithmetic on columns.

Contract: never fewer than truly fit. What the pod asks of nodes themselves and room for its requests are counted;
other pods (affinity, spreading) and holds are not. Where `exact` is said, it is just as many as fit. Numbers are kept
per spec class and follow the log of touched rows, so that asking again costs what has changed.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.engine.placement.evaluator import Evaluator
from tutti.engine.plugins.base import IncomingPod, Selection
from tutti.engine.plugins.verdict import Reason

MANY = 1 << 30
_FEW = 8
"""Rows up to which plain numbers are faster than columns."""
_MOST = 2_000
"""Specs for which numbers are kept."""


class _Copies:
    """The numbers for one spec class."""

    def __init__(self) -> None:
        self.column: Ints = np.zeros(0, dtype=np.int64)
        self.read = self.generation = -1
        self.sums: dict[str, tuple[int, Ints]] = {}
        """By label key: as of which change of nodes, and the sums by domain number."""


class Capacity:
    """See the module's contract."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._known: dict[int, _Copies] = {}

    def copies(self, incoming: IncomingPod) -> Ints:
        """Give the number of copies that each row has room for."""
        return self._sync(incoming).column

    def in_domains(self, incoming: IncomingPod, key: str) -> Ints:
        """Give the number of copies for each value of a label, numbered as `Domains` does; 0 are those without it."""
        known = self._sync(incoming)
        domains = self._evaluator.cluster.nodes.domains(key)
        version = self._evaluator.cluster.nodes.touched.length
        found = known.sums.get(key)
        if found is None or found[0] != version:
            sums = sum_by(domains.indices, known.column, len(domains.nodes_in))
            found = known.sums[key] = (version, sums)
        return found[1]

    def _sync(self, incoming: IncomingPod) -> _Copies:
        """Follow the cluster."""
        cluster = self._evaluator.cluster
        tier = self._evaluator.row_table(incoming).tier
        tier.sync()
        known = self._known.get(incoming.spec.number)
        if known is None:
            if len(self._known) >= _MOST:
                self._known.clear()
            known = self._known[incoming.spec.number] = _Copies()
        if known.read == cluster.touched.length and known.generation == tier.generation:
            return known
        rows = cluster.touched.since(known.read)
        if known.generation != tier.generation or 2 * len(rows) > len(known.column):
            known.column = self._count(incoming, slice(None))
            known.sums.clear()
        elif len(rows) <= _FEW:
            self._update_few(incoming, known, set(rows.tolist()))
        else:
            rows = np.unique(rows)
            self._update(known, rows, self._count(incoming, rows))
        known.read, known.generation = cluster.touched.length, tier.generation
        return known

    def _update_few(self, incoming: IncomingPod, known: _Copies, rows: set[int]) -> None:
        """Follow a few rows in plain numbers, which is faster than columns."""
        nodes = self._evaluator.cluster.nodes
        tier, wanted = self._evaluator.row_table(incoming).tier, self._evaluator.room_wanted(incoming)
        if tier.narrowed is not None or incoming.spec.ports:
            some = np.array(sorted(rows))
            self._update(known, some, self._count(incoming, some))
            return
        column, version = known.column, nodes.touched.length
        sums = []
        for key, (read, by_domain) in list(known.sums.items()):
            if read == version:
                sums.append((nodes.domains(key).indices, by_domain))
            else:
                del known.sums[key]
        for row in rows:
            if tier.base[row] < 0:
                now = 0
            else:
                free = (nodes.alloc[:, row] - nodes.used[:, row]).tolist()
                now = max(min([free[place] // amount for place, amount in wanted], default=MANY), 0)
            more = now - column[row]
            column[row] = now
            for digits, by_domain in sums:
                by_domain[digits[row]] += more

    def _update(self, known: _Copies, rows: Rows, now: Ints) -> None:
        more = now - known.column[rows]
        known.column[rows] = now
        version = self._evaluator.cluster.nodes.touched.length
        for key, (read, sums) in list(known.sums.items()):
            if read == version:
                np.add.at(sums, self._evaluator.cluster.nodes.domains(key).indices[rows], more)
            else:
                del known.sums[key]

    def _count(self, incoming: IncomingPod, rows: Selection) -> Ints:
        nodes = self._evaluator.cluster.nodes
        return self.count(incoming, nodes.alloc[:, rows] - nodes.used[:, rows], rows)

    def count(self, incoming: IncomingPod, free: Ints, rows: Selection) -> Ints:
        """Give the number of copies for which rows would have room with so much free (a column per row)."""
        most = np.where(self.welcome(incoming, rows), 1 if incoming.spec.ports else MANY, 0)
        for place, amount in self._evaluator.room_wanted(incoming):
            np.minimum(most, free[place] // amount, out=most)
        return np.maximum(most, 0, out=most)

    def share(self, incoming: IncomingPod) -> float:
        """Give how much of the largest node a pod takes, of what it takes most of."""
        nodes = self._evaluator.cluster.nodes
        most = nodes.alloc[:, : nodes.length].max(axis=1, initial=1).tolist()
        return max((amount / most[place] for place, amount in self._evaluator.room_wanted(incoming)), default=0.0)

    def welcome(self, incoming: IncomingPod, rows: Selection) -> Bools:
        """Say of which rows the nodes themselves would take the pod, were there room."""
        tier, nodes = self._evaluator.row_table(incoming).tier, self._evaluator.cluster.nodes
        tier.sync()
        welcome: Bools = tier.base[rows] >= 0
        if isinstance(tier.narrowed, Reason):
            return np.zeros(len(welcome), dtype=bool)
        if tier.narrowed is not None:
            named = np.zeros(nodes.size, dtype=bool)
            named[[row for row in map(nodes.row_of.get, tier.narrowed) if row is not None]] = True
            welcome = welcome & named[rows]
        return welcome


def sum_by(digits: Rows, values: Ints, length: int) -> Ints:
    """Sum values by their domains."""
    sums = np.zeros(length, dtype=np.int64)
    np.add.at(sums, digits, values)
    return sums
