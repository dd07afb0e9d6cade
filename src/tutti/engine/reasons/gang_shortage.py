"""Why a gang waits: the best it could get, and what stops the rest, as data and in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from tutti.cluster.events import Event
from tutti.cluster.trial import Trial
from tutti.engine.gangs.areas import lacking
from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.engine import Decision
from tutti.engine.placement.evaluator import Evaluator
from tutti.engine.plugins.base import Area
from tutti.engine.reasons.pod_failure import fit_error

_HERE = frozenset((Event.NODE_ADDED, Event.POD_REMOVED))
_ANYWHERE = _HERE | {Event.NODE_ALLOCATABLE, Event.NODE_LABELS, Event.NODE_TAINTS, Event.NODE_REMOVED}
"""What may cure a gang that is bound to labels: nodes of other domains than the one that is told about may change."""
_UNKNOWN = frozenset(("?",))
"""No plugin, so that anything may be a cure."""


class GangShortage(msgspec.Struct, frozen=True):
    """What a gang lacks."""

    message: str
    reasons: dict[str, int] = {}
    """How many nodes refuse the first pod that is left over with each message, where most of the gang would fit."""
    plugins: frozenset[str] = frozenset()
    """Who refuses it; nobody when it is not the cluster that the gang waits for."""
    best: int = 0
    """How many pods of those needed could start."""
    wanted: int = 0
    where: tuple[tuple[str, str], ...] = ()
    """Labels and values of the area in which these are."""
    decision: Decision | None = None
    near: bool = False
    """Whether it is bound to labels."""

    @property
    def room(self) -> bool:
        """Whether room would help."""
        return "NodeResourcesFit" in self.plugins

    def cures(self, evaluator: Evaluator) -> frozenset[Event]:
        """Give the events after which it may fit."""
        if not self.plugins:
            return frozenset()
        return evaluator.cures(self.plugins) | (_ANYWHERE if self.near else _HERE)


class _Leaf(NamedTuple):
    need: Need
    within: Area | None
    where: tuple[tuple[str, str], ...]


class UnplacedPod(NamedTuple):
    """The first pod that does not fit, and where most of its like would."""

    leaf: _Leaf
    decision: Decision


def why(placer: GangPlacer, need: Need) -> GangShortage:
    """Say what stops a gang that cannot start now."""
    impossible = _impossible(placer, need)
    if impossible is not None:
        return GangShortage(impossible, {}, frozenset(("NodeAffinity",)), 0, need.least, near=True)
    return _worded(placer, need, *as_many_as_fit(placer, need))


def as_many_as_fit(placer: GangPlacer, need: Need, within: Area | None = None) -> tuple[int, UnplacedPod | None]:
    """Say how many of the pods that are needed fit one by one, and why the first of the others does not; a what-if."""
    placed = 0
    left: UnplacedPod | None = None
    with Trial(placer.engine.cluster):
        for leaf in _leaves(placer, need, within, ()):
            bound, refused = _bound_of(placer, leaf)
            placed += bound
            if refused is not None and (left is None or leaf.need.lack > bound):
                left = UnplacedPod(leaf, refused)
    return min(placed, need.least), left


def _impossible(placer: GangPlacer, need: Need) -> str | None:
    """Say why no domain can do, whatever the room."""
    for each in lacking(need):
        key = each.topology.required
        if key is None:
            continue
        taken = placer.areas.values_of(each.running, key)
        if len(taken) > 1:
            names = ", ".join(sorted(placer.areas.name(key, digit) or "<none>" for digit in taken))
            return f"its running pods are not in one {key}, but in {names}"
        if not placer.engine.cluster.nodes.domains(key).nodes_in[1:].any():
            return f"no node has the label {key}"
    return None


def _bound_of(placer: GangPlacer, leaf: _Leaf) -> tuple[int, Decision | None]:
    """Bind as many pods as fit, kind by kind; say how many, and why the first of the others does not fit."""
    engine, keys = placer.engine, placer.engine.cluster.pods.keys
    bound = 0
    first: Decision | None = None
    for kind in placer.areas.kinds(leaf.need.waiting):
        decisions = engine.place([keys[row] for row in kind.rows], leaf.within, give_up=True)
        bound += len(decisions)
        if decisions[-1].node is None:
            bound -= 1
            first = first or engine.decide(decisions[-1].pod, leaf.within)
    return bound, first


def _leaves(placer: GangPlacer, need: Need, within: Area | None, where: tuple[tuple[str, str], ...]) -> Iterator[_Leaf]:
    """Give the needs that name pods, each in the area where most of it would fit."""
    key = need.topology.required
    if key is not None:
        digit = placer.areas.settled(need, key, within)
        where = (*where, (key, placer.areas.name(key, digit) if digit else ""))
        within = placer.areas.domain(key, digit, within)
    for part in need.parts:
        yield from _leaves(placer, part, within, where)
    if need.waiting:
        yield _Leaf(need, within, where)


def _worded(placer: GangPlacer, need: Need, placed: int, left: UnplacedPod | None) -> GangShortage:
    wanted = need.least
    if left is None:
        text = f"{placed} of {wanted} pods fit one by one, but not all in the way that it asks for"
        return GangShortage(text, {}, _UNKNOWN, placed, wanted)
    leaf, decision = left
    place = "".join(f" in {key} {value}" if value else f" where {key} is set" for key, value in leaf.where)
    nodes = placer.engine.cluster.nodes
    on = nodes.count if leaf.within is None else int(nodes.on[leaf.within.rows].sum())
    said = Decision(decision.pod, refused=decision.refused, error=decision.error, nodes=on, reasons=decision.reasons)
    if leaf.need is not need:
        fits = f"{placed} of {wanted} pods fit; for the next of part {leaf.need.name}{place}:"
    else:
        fits = f"{placed} of {wanted} pods fit{place}; for the next:" if placed else f"no pod fits{place}:"
    text = f"{fits} {fit_error(said)}"
    plugins = frozenset((decision.refused.plugin,)) if decision.refused is not None else decision.plugins
    near = any(each.topology.required for each in lacking(need))
    return GangShortage(text, decision.reasons, plugins or _UNKNOWN, placed, wanted, leaf.where, decision, near)
