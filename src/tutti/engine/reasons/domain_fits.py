"""How much of a gang each domain of a label could take, and what stops the rest there.

Contract: a what-if; the cluster is as before afterwards. Pods are placed one by one as the engine would. Only domains
with the most room by arithmetic are tried.
"""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace

from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.engine import Decision
from tutti.engine.plugins.base import Area
from tutti.engine.reasons.gang_shortage import as_many_as_fit
from tutti.engine.reasons.pod_failure import fit_error

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
    digits = nodes.domains(key).indices
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
    nodes = placer.engine.cluster.nodes
    inside = replace(need, topology=replace(need.topology, required=None))
    fits, left = as_many_as_fit(placer, inside, area)
    on = int(nodes.on[area.rows].sum())
    return DomainFit(name, on, fits, need.least, None if left is None else _top(left.decision))


def _top(decision: Decision) -> str:
    """Give what most nodes say."""
    if decision.reasons:
        return min(decision.reasons.items(), key=lambda pair: (-pair[1], pair[0]))[0]
    return fit_error(decision)
