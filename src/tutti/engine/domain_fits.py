"""How much of a gang each domain of a label could take, and what stops the rest there.

Contract: a what-if; the cluster is as before afterwards. Pods are placed one by one as the engine would. Only domains
with the most room by arithmetic are tried.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
import numpy as np
from msgspec.structs import replace

from tutti.engine.engine import Decision
from tutti.engine.failure import fit_error
from tutti.engine.gang import GangPlacer
from tutti.engine.plugins.base import Area
from tutti.engine.standing import Need

_TRIED, _KEPT = 20, 10


class DomainFit(msgspec.Struct, frozen=True, rename="camel"):
    """What one domain could take."""

    name: str
    nodes: int
    fits: int
    """How many of the pods that are needed fit."""
    wanted: int
    stopped_by: str | None = None
    """What most nodes of the domain say to the first pod that is left over."""


def domain_fits(placer: GangPlacer, need: Need) -> tuple[str | None, int, list[DomainFit]]:
    """Give the label that the gang, or the first of its parts that is, is bound to, how many domains, and the best."""
    bound = _bound(need)
    if bound is None or bound.topology.required is None:
        return None, 0, []
    key, areas = bound.topology.required, placer.areas
    nodes = placer.engine.cluster.nodes
    digits = nodes.domains(key).digits
    there = np.unique(digits[nodes.on]).tolist()
    taken = areas.values_of(bound.running, key)
    copies = areas.copies(bound, key, None)
    candidates = [digit for digit in there if digit and (not taken or digit in taken)]
    candidates.sort(key=lambda digit: (-int(copies[digit]), areas.name(key, digit)))
    found = [
        _fit(placer, bound, areas.domain(key, digit), name=areas.name(key, digit)) for digit in candidates[:_TRIED]
    ]
    return key, len(candidates), sorted(found, key=lambda each: (-each.fits, each.name))[:_KEPT]


def _bound(need: Need) -> Need | None:
    if need.topology.required is not None:
        return need
    return next((found for part in need.parts if part.least and (found := _bound(part)) is not None), None)


def _fit(placer: GangPlacer, need: Need, area: Area, *, name: str) -> DomainFit:
    cluster = placer.engine.cluster
    mark = cluster.mark()
    fits, left = 0, None
    try:
        for leaf, within in _leaves(placer, replace(need, topology=replace(need.topology, required=None)), area):
            keys = [cluster.pods.keys[row] for row in leaf.waiting]
            decisions = placer.engine.place(keys, within)
            bound = sum(decision.node is not None for decision in decisions)
            fits += bound
            if left is None or bound < leaf.lack:
                left = next((decision for decision in decisions if decision.node is None), left)
    finally:
        cluster.rollback(mark)
    on = int(cluster.nodes.on[area.rows].sum())
    return DomainFit(name, on, min(fits, need.least), need.least, None if left is None else _top(left))


def _leaves(placer: GangPlacer, need: Need, area: Area) -> Iterator[tuple[Need, Area]]:
    """Give the needs that name pods, each in the area with the most room for it."""
    key = need.topology.required
    if key is not None:
        taken = placer.areas.values_of(need.running, key)
        digit = min(taken) if taken else placer.areas.roomiest(need, key, area)
        if not digit:  # stands for nodes without the label
            return
        area = placer.areas.domain(key, digit, area)
    for part in need.parts:
        yield from _leaves(placer, part, area)
    if need.waiting:
        yield need, area


def _top(decision: Decision) -> str:
    """Give what most nodes say."""
    if decision.reasons:
        return min(decision.reasons.items(), key=lambda pair: (-pair[1], pair[0]))[0]
    return fit_error(decision)
