"""How many pods of a gang fit into each domain of its required topology label, and what stops the next pod there.

Contract: a what-if that leaves the cluster unchanged. The engine places the pods one by one. Only the domains with the
most room by arithmetic are tried.
"""

from __future__ import annotations

import msgspec
import numpy as np
from msgspec.structs import replace

from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.engine import Decision
from tutti.engine.plugins.base import Area
from tutti.engine.reasons.gang_shortage import count_fitting_pods
from tutti.engine.reasons.pod_failure import fit_error

_MAX_TRIED, _MAX_RETURNED = 20, 10


class DomainFit(msgspec.Struct, frozen=True, rename="camel"):
    """How many pods of a gang fit into one domain."""

    name: str
    nodes: int
    fits: int
    """The number of needed pods that fit."""
    wanted: int
    stopped_by: str | None = None
    """The reason with which most nodes of the domain refuse the first pod that does not fit."""


def domain_fits(placer: GangPlacer, need: Need) -> tuple[str | None, int, list[DomainFit]]:
    """Return the required label of the gang or of its first part that has one, the number of domains, and the best.

    Without a required label the result is (None, 0, []).
    """
    limited = _need_with_label(need)
    if limited is None or limited.topology.required is None:
        return None, 0, []
    key, areas = limited.topology.required, placer.areas
    nodes = placer.engine.cluster.nodes
    digits = nodes.domains(key).indices
    domains = np.unique(digits[nodes.on]).tolist()
    occupied = areas.domains_of(limited.running, key)
    copies = areas.fitting_pods(limited, key, None)
    candidates = [digit for digit in domains if digit and (not occupied or digit in occupied)]
    candidates.sort(key=lambda digit: (-int(copies[digit]), areas.domain_name(key, digit)))
    fits = [
        _fit(placer, limited, areas.domain(key, digit), name=areas.domain_name(key, digit))
        for digit in candidates[:_MAX_TRIED]
    ]
    return key, len(candidates), sorted(fits, key=lambda fit: (-fit.fits, fit.name))[:_MAX_RETURNED]


def _need_with_label(need: Need) -> Need | None:
    """Return the need itself, or its first unmet part, that requires a topology label."""
    if need.topology.required is not None:
        return need
    return next((inner for part in need.parts if part.least and (inner := _need_with_label(part)) is not None), None)


def _fit(placer: GangPlacer, need: Need, area: Area, *, name: str) -> DomainFit:
    nodes = placer.engine.cluster.nodes
    without_label = replace(need, topology=replace(need.topology, required=None))
    fits, unplaced = count_fitting_pods(placer, without_label, area)
    node_count = int(nodes.on[area.rows].sum())
    reason = None if unplaced is None else _most_common_reason(unplaced.decision)
    return DomainFit(name, node_count, fits, need.least, reason)


def _most_common_reason(decision: Decision) -> str:
    """Return the reason that most nodes give for their refusal."""
    if decision.reasons:
        return min(decision.reasons.items(), key=lambda pair: (-pair[1], pair[0]))[0]
    return fit_error(decision)
