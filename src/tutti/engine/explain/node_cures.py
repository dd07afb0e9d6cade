"""Cures in nodes: new ones of a make that is there, and cordoned ones that could be used again.

A make is what a gang can tell of a node: its size, its taints, and those labels that the gang or its pods look at. New
nodes copy all labels, so for a gang that is bound to a rack the make says in which rack they stand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

import numpy as np

from tutti.cluster.edits import Put
from tutti.cluster.node_edits import HOSTNAME, is_cordoned, is_transient_taint, new_node_edits, node_of, uncordoned
from tutti.engine.explain.cure_trials import Cure, CureTrials
from tutti.engine.gangs.gang_state import Need
from tutti.kube.gangs.gang import GangPart, GangTopology
from tutti.kube.objects import Node, Pod

_MAKES, _KEPT = 8, 3
"""Makes that are tried, and those that are given."""
_MOST = 256
"""New nodes at most."""
_CORDONED = 32
"""Cordoned nodes that are looked at."""


def new_node_cures(trials: CureTrials) -> list[Cure]:
    """The least numbers of new nodes with which the gang starts: the fewest first, and of them the smallest."""
    standing = trials.standing()
    need = standing.need()
    most = min(need.least, _MOST)
    found: list[tuple[int, int, str]] = []
    room = _room_when_empty(trials)
    for name in _makes(trials, need, room):
        count = smallest(partial(_starts_with, trials, name), most)
        if count is not None:
            found = sorted([*found, (count, room[name], name)])[:_KEPT]
            most = found[-1][0] if len(found) == _KEPT else most
    keys = sorted({topology.required for topology in topologies(need) if topology.required})
    return [_worded(trials, count, name, keys) for count, _, name in found]


def _starts_with(trials: CureTrials, name: str, number: int) -> bool:
    return trials.fits(new_node_edits(trials.cluster, name, number))


def _worded(trials: CureTrials, count: int, name: str, keys: Iterable[str]) -> Cure:
    labels = node_of(trials.cluster, name).metadata.labels or {}
    where = ", ".join(f"{key} {labels[key]}" for key in keys if key in labels and key != HOSTNAME)
    text = f"add {count} node{'' if count == 1 else 's'} like {name}{f' (in {where})' if where else ''}"
    return Cure(kind="nodes", text=text, edits=tuple(new_node_edits(trials.cluster, name, count)), nodes=count)


def smallest(works: Callable[[int], bool], most: int) -> int | None:
    """The least number up to `most` that works, if more always works when fewer do."""
    low, high = 0, 1
    while not works(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > 1:
        middle = (low + high) // 2
        if works(middle):
            high = middle
        else:
            low = middle
    return high


# Makes ----------------------------------------------------------------------------------------------------------------


def _makes(trials: CureTrials, need: Need, room: dict[str, int]) -> list[str]:
    """Nodes, one of each make, the most promising first: where most of the gang fits already, and large ones."""
    cluster = trials.cluster
    keys = sorted(_labels_looked_at(trials, need) - {HOSTNAME})
    first: dict[tuple[object, ...], str] = {}
    for name in sorted(cluster.nodes.row_of):
        node = node_of(cluster, name)
        if cluster.nodes.on[cluster.nodes.row_of[name]]:
            labels = node.metadata.labels or {}
            first.setdefault((_shape(node), tuple(labels.get(key) for key in keys)), name)
    near = _room_nearby(trials, need)
    ranked = [name for name in first.values() if room[name]]
    ranked.sort(key=lambda name: (-near.get(name, 0), -room[name], name))
    # The best of every shape come before the second best of any.
    seen: dict[object, int] = {}
    places = {}
    for name in ranked:
        shape = _shape(node_of(cluster, name))
        seen[shape] = places[name] = seen.get(shape, -1) + 1
    return sorted(ranked, key=lambda name: places[name])[:_MAKES]


def _shape(node: Node) -> tuple[object, ...]:
    taints = sorted((t.key, t.value or "", t.effect) for t in node.spec.taints or () if not is_transient_taint(t))
    return tuple(sorted((key, str(value)) for key, value in (node.status.allocatable or {}).items())), tuple(taints)


def _room_when_empty(trials: CureTrials) -> dict[str, int]:
    """How many pods of the kind that fits best an empty node would hold, by room alone."""
    nodes, evaluator = trials.cluster.nodes, trials.engine.evaluator
    best = np.zeros(nodes.size, dtype=np.int64)
    for kind in trials.placer.areas.kinds(trials.standing().waiting):
        copies = np.full(nodes.size, len(kind.rows), dtype=np.int64)
        for place, amount in evaluator.room_wanted(kind.incoming):
            np.minimum(copies, nodes.alloc[place] // amount, out=copies)
        np.maximum(best, copies, out=best)
    return {name: int(best[row]) for name, row in nodes.row_of.items()}


def _room_nearby(trials: CureTrials, need: Need) -> dict[str, int]:
    """How many pods the domain of a node has room for now; nothing for a gang that is bound to no label."""
    key = need.topology.required
    if key is None:
        return {}
    nodes, copies = trials.cluster.nodes, trials.placer.areas.copies(need, key, None)
    copies[0] = 0
    digits = nodes.domains(key).indices
    return {name: int(copies[digits[row]]) for name, row in nodes.row_of.items()}


def topologies(part: Need | GangPart) -> Iterator[GangTopology]:
    """The topologies of a need, or of a part, and of all below it."""
    yield part.topology
    for each in part.parts:
        yield from topologies(each)


def _labels_looked_at(trials: CureTrials, need: Need) -> set[str]:
    """The node labels that make a difference to the gang."""
    keys = {key for each in topologies(need) for key in (each.required, *each.preferred) if key}
    for kind in trials.placer.areas.kinds(trials.standing().waiting):
        keys |= set(_keys_of(kind.incoming.pod))
    return keys


def _keys_of(pod: Pod) -> Iterator[str]:
    spec, affinity = pod.spec, pod.spec.affinity
    yield from spec.node_selector or ()
    yield from (each.topology_key for each in spec.topology_spread_constraints or ())
    if affinity is None:
        return
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity):
        yield from (term.topology_key for term in (side.required if side is not None else None) or ())
    required = affinity.node_affinity.required if affinity.node_affinity is not None else None
    for term in (required.node_selector_terms if required is not None else None) or ():
        yield from (each.key for each in term.match_expressions or ())


# Cordoned nodes -------------------------------------------------------------------------------------------------------


def uncordon_cures(trials: CureTrials) -> list[Cure]:
    """The first cordoned node that is enough by itself; failing that, as few as are enough together."""
    cluster = trials.cluster
    names = [name for name in sorted(cluster.nodes.row_of) if is_cordoned(node_of(cluster, name))][:_CORDONED]
    puts = {name: Put(uncordoned(node_of(cluster, name))) for name in names}
    if not puts or not trials.fits(puts.values()):
        return []
    kept = next(([name] for name in names if trials.fits((puts[name],))), None)
    if kept is None:
        kept = names
        for name in reversed(names):
            fewer = [each for each in kept if each != name]
            if trials.fits(puts[each] for each in fewer):
                kept = fewer
    return [Cure(kind="uncordon", text=f"uncordon {', '.join(kept)}", edits=tuple(puts[name] for name in kept))]
