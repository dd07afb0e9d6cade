"""The packing problem alone: items of classes, kinds of nodes, limits, and nodes that are there.

Contract: frozen arrays. A *kind* is something to buy; a *pattern* is how many items of each class one node of some kind
takes. `most` and `apart` and `shared` are rules within a node. `bound_most` is the weaker form of `most` that every
plan obeys, also those that this search would not find: bounds use it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Bools, Floats, Ints

Pattern = tuple[int, ...]


class PackingInput(NamedTuple):
    """See the module's contract."""

    requests: Floats
    """Class x resource."""
    demand: Ints
    most: Ints
    bound_most: Ints
    apart: Bools
    shared: tuple[tuple[Bools, int], ...]
    free: Floats
    """Kind x resource."""
    allowed: Bools
    """Kind x class."""
    price: Floats
    takes: Floats
    """Limit x kind."""
    left: Floats
    room: Floats
    """Existing node x resource."""
    welcome: Bools
    """Existing node x class."""
    room_most: Ints
    """Existing node x class: how many go there at most."""

    def with_demand(self, demand: Ints) -> PackingInput:
        """The same with another demand."""
        return self._replace(demand=demand)

    def without_rooms(self) -> PackingInput:
        """The same without the nodes that are there."""
        return self._replace(room=self.room[:0], welcome=self.welcome[:0], room_most=self.room_most[:0])

    def fits(self, counts: Ints) -> Bools:
        """Which kinds take a pattern."""
        used = counts @ self.requests
        fits: Bools = (self.free >= used).all(axis=1) & (self.allowed | (counts == 0)).all(axis=1)
        return fits

    def obeys(self, counts: Ints) -> bool:
        """Whether a pattern keeps the rules within a node."""
        there = counts > 0
        if (counts > self.most).any() or self.apart[np.ix_(there, there)].any():
            return False
        return all(int(counts[group].sum()) <= most for group, most in self.shared)

    def cheapest(self, counts: Ints, price: Floats | None = None) -> int:
        """The cheapest kind that takes a pattern, -1 when none does."""
        price = self.price if price is None else price
        costs = np.where(self.fits(counts), price, np.inf)
        best = int(costs.argmin()) if len(costs) else -1
        return best if best >= 0 and np.isfinite(costs[best]) else -1


def undominated(flat: PackingInput) -> list[int]:
    """The kinds that no other replaces at the same price or less: as large, open to as many, using no more limits."""
    order = np.lexsort((np.arange(len(flat.price)), -flat.free.sum(axis=1), flat.price))
    kept: list[int] = []
    for kind in order.tolist():
        if not flat.allowed[kind].any():
            continue
        if kept:
            rivals = np.array(kept)
            better = (flat.free[rivals] >= flat.free[kind]).all(axis=1)
            better &= (flat.allowed[rivals] | ~flat.allowed[kind]).all(axis=1)
            if len(flat.takes):
                better &= (flat.takes[:, rivals] <= flat.takes[:, [kind]]).all(axis=0)
            if better.any():
                continue
        kept.append(kind)
    return sorted(kept)


def only(flat: PackingInput, kinds: list[int]) -> PackingInput:
    """The same with some of the kinds."""
    return flat._replace(
        free=flat.free[kinds], allowed=flat.allowed[kinds], price=flat.price[kinds], takes=flat.takes[:, kinds]
    )
