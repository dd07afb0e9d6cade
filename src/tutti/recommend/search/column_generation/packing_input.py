"""The input of the packing problem: classes of items, kinds of nodes, limits, and existing nodes.

Contract: arrays that are never changed. An *item* is a pod, or a bundle of pods that share a node. A *kind* is a type
of node that can be bought (an offering). A *pattern* says how many items of each class one node takes. `max_per_node`,
`conflicts` and `group_limits` are the rules within a node. `bound_max_per_node` is weaker than `max_per_node`: every
plan obeys it, also plans that this search does not find, so bounds use it.
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
    """Number of items of each class."""
    max_per_node: Ints
    """How many items of each class one node takes at most."""
    bound_max_per_node: Ints
    conflicts: Bools
    """Class x class: which classes cannot share a node."""
    group_limits: tuple[tuple[Bools, int], ...]
    """Groups of classes, each with the number of items of the group that one node takes at most."""
    free: Floats
    """Kind x resource: the free amounts of an empty node."""
    allowed: Bools
    """Kind x class: whether a node of the kind takes an item of the class."""
    price: Floats
    """Price of one node of each kind."""
    limit_usage: Floats
    """Limit x kind: how much of the limit one node of the kind takes."""
    limit_left: Floats
    """What is left of each limit."""
    node_free: Floats
    """Existing node x resource: the free amounts."""
    node_feasible: Bools
    """Existing node x class: whether the node takes an item of the class."""
    node_max: Ints
    """Existing node x class: how many items the node takes at most."""

    def with_demand(self, demand: Ints) -> PackingInput:
        """Return the input with another demand."""
        return self._replace(demand=demand)

    def without_existing_nodes(self) -> PackingInput:
        """Return the input without the existing nodes."""
        return self._replace(
            node_free=self.node_free[:0], node_feasible=self.node_feasible[:0], node_max=self.node_max[:0]
        )

    def fitting_kinds(self, counts: Ints) -> Bools:
        """Return which kinds have the room for a pattern and allow its classes."""
        used = counts @ self.requests
        fitting: Bools = (self.free >= used).all(axis=1) & (self.allowed | (counts == 0)).all(axis=1)
        return fitting

    def obeys_node_rules(self, counts: Ints) -> bool:
        """Return whether a pattern obeys the rules within a node."""
        is_used = counts > 0
        if (counts > self.max_per_node).any() or self.conflicts[np.ix_(is_used, is_used)].any():
            return False
        return all(int(counts[group].sum()) <= max_pods for group, max_pods in self.group_limits)

    def cheapest_kind(self, counts: Ints, prices: Floats | None = None) -> int:
        """Return the cheapest kind that takes a pattern, or -1."""
        prices = self.price if prices is None else prices
        candidates = np.where(self.fitting_kinds(counts), prices, np.inf)
        best = int(candidates.argmin()) if len(candidates) else -1
        return best if best >= 0 and np.isfinite(candidates[best]) else -1


def undominated_kinds(inputs: PackingInput) -> list[int]:
    """Return the kinds that no other kind replaces.

    A kind replaces another if it costs no more, has at least the room, allows all its classes, and uses no more of any
    limit.
    """
    order = np.lexsort((np.arange(len(inputs.price)), -inputs.free.sum(axis=1), inputs.price))
    kept: list[int] = []
    for kind in order.tolist():
        if not inputs.allowed[kind].any():
            continue
        if kept:
            kept_kinds = np.array(kept)
            is_replaced = (inputs.free[kept_kinds] >= inputs.free[kind]).all(axis=1)
            is_replaced &= (inputs.allowed[kept_kinds] | ~inputs.allowed[kind]).all(axis=1)
            if len(inputs.limit_usage):
                is_replaced &= (inputs.limit_usage[:, kept_kinds] <= inputs.limit_usage[:, [kind]]).all(axis=0)
            if is_replaced.any():
                continue
        kept.append(kind)
    return sorted(kept)


def select_kinds(inputs: PackingInput, kinds: list[int]) -> PackingInput:
    """Return the input with some of the kinds."""
    return inputs._replace(
        free=inputs.free[kinds],
        allowed=inputs.allowed[kinds],
        price=inputs.price[kinds],
        limit_usage=inputs.limit_usage[:, kinds],
    )
