"""Why a gang waits: how many of its pods would fit at best, and what stops the next pod.

Contract: a what-if that leaves the cluster unchanged. `GangShortage` has the answer as data and as one sentence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tutti.cluster.events import Event
from tutti.cluster.trial import Trial
from tutti.engine.gangs.areas import mandatory_needs
from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.engine import Decision
from tutti.engine.placement.evaluator import Evaluator
from tutti.engine.plugins.base import Area
from tutti.engine.reasons.pod_failure import fit_error

_ROOM_EVENTS = frozenset((Event.NODE_ADDED, Event.POD_REMOVED))
_TOPOLOGY_EVENTS = _ROOM_EVENTS | {
    Event.NODE_ALLOCATABLE, Event.NODE_LABELS, Event.NODE_TAINTS, Event.NODE_FEATURES, Event.NODE_REMOVED,
}  # fmt: skip
"""Events that may cure a gang with a required label: nodes of other domains than the reported one may change too."""
_ANY_PLUGIN = frozenset(("?",))
"""An unknown plugin, so that every event may be a cure."""


class GangShortage(msgspec.Struct, frozen=True):
    """What a gang lacks to start."""

    message: str
    reasons: dict[str, int] = {}
    """The number of nodes that refuse the first pod without a place, by message, in the area where most pods fit."""
    plugins: frozenset[str] = frozenset()
    """The plugins that refuse that pod; empty when no change of the cluster can let the gang start."""
    best: int = 0
    """The number of needed pods that fit at best."""
    wanted: int = 0
    where: tuple[tuple[str, str], ...] = ()
    """Labels and values of the area in which `best` pods fit."""
    decision: Decision | None = None
    """The refusal of the first pod without a place."""
    has_required_label: bool = False
    """Whether the gang or a part of it requires a topology label."""
    is_blocked_by_budgets: bool = False
    """Whether evictions would make room, but hard disruption budgets forbid them."""

    @property
    def needs_room(self) -> bool:
        """Whether more free resources would help."""
        return "NodeResourcesFit" in self.plugins

    def cures(self, evaluator: Evaluator) -> frozenset[Event]:
        """Return the events after which the gang may fit."""
        if not self.plugins:
            return frozenset()
        return evaluator.retry_events(self.plugins) | (_TOPOLOGY_EVENTS if self.has_required_label else _ROOM_EVENTS)


class _LeafNeed(NamedTuple):
    """A need that names pods, with the area to which the required labels limit those pods."""

    need: Need
    area: Area | None
    where: tuple[tuple[str, str], ...]


class UnplacedPod(NamedTuple):
    """The first pod that does not fit, with the area in which most pods of its need fit."""

    leaf: _LeafNeed
    decision: Decision


def gang_shortage(placer: GangPlacer, need: Need) -> GangShortage:
    """Return what stops a gang that cannot start now."""
    problem = _topology_problem(placer, need)
    if problem is not None:
        return GangShortage(problem, {}, frozenset(("NodeAffinity",)), 0, need.least, has_required_label=True)
    return _shortage(placer, need, *count_fitting_pods(placer, need))


def count_fitting_pods(placer: GangPlacer, need: Need, area: Area | None = None) -> tuple[int, UnplacedPod | None]:
    """Place needed pods one by one; return how many fit, and the first pod that does not. A what-if."""
    placed_count = 0
    unplaced: UnplacedPod | None = None
    with Trial(placer.engine.cluster):
        for leaf in _leaves(placer, need, area, ()):
            bound, refused = _bind_fitting_pods(placer, leaf)
            placed_count += bound
            if refused is not None and (unplaced is None or leaf.need.missing > bound):
                unplaced = UnplacedPod(leaf, refused)
    return min(placed_count, need.least), unplaced


def _topology_problem(placer: GangPlacer, need: Need) -> str | None:
    """Return why no domain of a required label can hold the gang, regardless of free resources."""
    for part in mandatory_needs(need):
        key = part.topology.required
        if key is None:
            continue
        running_digits = placer.areas.domains_of(part.running, key)
        if len(running_digits) > 1:
            names = ", ".join(sorted(placer.areas.domain_name(key, digit) or "<none>" for digit in running_digits))
            return f"its running pods are not in one {key}, but in {names}"
        if not placer.engine.cluster.nodes.domains(key).nodes_in[1:].any():
            return f"no node has the label {key}"
    return None


def _bind_fitting_pods(placer: GangPlacer, leaf: _LeafNeed) -> tuple[int, Decision | None]:
    """Bind as many pods as fit, kind by kind; return their number, and the refusal of the first other pod."""
    engine, keys = placer.engine, placer.engine.cluster.pods.keys
    bound = 0
    first_refusal: Decision | None = None
    for kind in placer.areas.kinds(leaf.need.waiting):
        decisions = engine.place([keys[row] for row in kind.rows], leaf.area, give_up=True)
        bound += len(decisions)
        if decisions[-1].node is None:
            bound -= 1
            first_refusal = first_refusal or engine.decide(decisions[-1].pod, leaf.area)
    return bound, first_refusal


def _leaves(
    placer: GangPlacer, need: Need, area: Area | None, where: tuple[tuple[str, str], ...]
) -> Iterator[_LeafNeed]:
    """Yield the needs that name pods, each with the area in which most of its pods fit."""
    key = need.topology.required
    if key is not None:
        digit = placer.areas.current_domain(need, key, area)
        where = (*where, (key, placer.areas.domain_name(key, digit) if digit else ""))
        area = placer.areas.domain(key, digit, area)
    for part in need.parts:
        yield from _leaves(placer, part, area, where)
    if need.waiting:
        yield _LeafNeed(need, area, where)


def _shortage(placer: GangPlacer, need: Need, placed_count: int, unplaced: UnplacedPod | None) -> GangShortage:
    wanted = need.least
    if unplaced is None:
        text = f"{placed_count} of {wanted} pods fit one by one, but not together as the gang requires"
        return GangShortage(text, {}, _ANY_PLUGIN, placed_count, wanted)
    leaf, decision = unplaced
    location = "".join(f" in {key} {value}" if value else f" where {key} is set" for key, value in leaf.where)
    nodes = placer.engine.cluster.nodes
    node_count = nodes.count if leaf.area is None else int(nodes.on[leaf.area.rows].sum())
    refused, error, reasons = decision.refused, decision.error, decision.reasons
    in_area = Decision(decision.pod, refused=refused, error=error, nodes=node_count, reasons=reasons)
    if leaf.need is not need:
        fits = f"{placed_count} of {wanted} pods fit; for the next of part {leaf.need.name}{location}:"
    else:
        some_fit = f"{placed_count} of {wanted} pods fit{location}; for the next:"
        fits = some_fit if placed_count else f"no pod fits{location}:"
    text = f"{fits} {fit_error(in_area)}"
    plugins = frozenset((refused.plugin,)) if refused is not None else decision.plugins
    has_label = any(part.topology.required for part in mandatory_needs(need))
    return GangShortage(text, reasons, plugins or _ANY_PLUGIN, placed_count, wanted, leaf.where, decision, has_label)
