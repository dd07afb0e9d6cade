"""Cures that change nodes: add nodes like an existing one, or uncordon nodes.

A node kind is what a gang can distinguish: the node's size, its taints, and the labels that the gang or its pods
select by. New nodes copy all labels, so for a gang that requires a rack the kind determines the rack of the new nodes.
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

_MAX_KINDS_TRIED, _MAX_KINDS_RETURNED = 8, 3
"""The maximum number of node kinds that are tried, and that are returned."""
_MAX_NEW_NODES = 256
"""The maximum number of new nodes in a cure."""
_MAX_CORDONED = 32
"""The maximum number of cordoned nodes that are tried."""


def new_node_cures(trials: CureTrials) -> list[Cure]:
    """Return, per node kind, the fewest new nodes with which the gang starts; fewest and smallest nodes first."""
    need = trials.gang_state().need()
    maximum = min(need.least, _MAX_NEW_NODES)
    best: list[tuple[int, int, str]] = []
    capacity = _capacity_when_empty(trials)
    for name in _node_kinds(trials, need, capacity):
        count = smallest_number(partial(_starts_with, trials, name), maximum)
        if count is not None:
            best = sorted([*best, (count, capacity[name], name)])[:_MAX_KINDS_RETURNED]
            maximum = best[-1][0] if len(best) == _MAX_KINDS_RETURNED else maximum
    keys = sorted({topology.required for topology in topologies(need) if topology.required})
    return [_new_nodes_cure(trials, count, name, keys) for count, _, name in best]


def _starts_with(trials: CureTrials, name: str, number: int) -> bool:
    return trials.fits(new_node_edits(trials.cluster, name, number))


def _new_nodes_cure(trials: CureTrials, count: int, name: str, keys: Iterable[str]) -> Cure:
    labels = node_of(trials.cluster, name).metadata.labels or {}
    where = ", ".join(f"{key} {labels[key]}" for key in keys if key in labels and key != HOSTNAME)
    text = f"add {count} node{'' if count == 1 else 's'} like {name}{f' (in {where})' if where else ''}"
    return Cure(kind="nodes", text=text, edits=tuple(new_node_edits(trials.cluster, name, count)), nodes=count)


def smallest_number(is_enough: Callable[[int], bool], maximum: int) -> int | None:
    """Return the smallest number from 1 to `maximum` that is enough; None if `maximum` is not enough.

    `is_enough` must be monotonic: every number above one that is enough is enough too.
    """
    low, high = 0, 1
    while not is_enough(high):
        if high >= maximum:
            return None
        low, high = high, min(2 * high, maximum)
    while high - low > 1:
        middle = (low + high) // 2
        if is_enough(middle):
            high = middle
        else:
            low = middle
    return high


# Node kinds -----------------------------------------------------------------------------------------------------------


def _node_kinds(trials: CureTrials, need: Need, capacity: dict[str, int]) -> list[str]:
    """Return one node of each kind: kinds whose domain has the most room first, then kinds of large nodes."""
    cluster = trials.cluster
    keys = sorted(_relevant_labels(trials, need) - {HOSTNAME})
    name_by_kind: dict[tuple[object, ...], str] = {}
    for name in sorted(cluster.nodes.row_of):
        node = node_of(cluster, name)
        if cluster.nodes.on[cluster.nodes.row_of[name]]:
            labels = node.metadata.labels or {}
            name_by_kind.setdefault((_shape(node), tuple(labels.get(key) for key in keys)), name)
    domain_room = _room_in_domain(trials, need)
    ranked = [name for name in name_by_kind.values() if capacity[name]]
    ranked.sort(key=lambda name: (-domain_room.get(name, 0), -capacity[name], name))
    # The best kind of every shape comes before the second best kind of any shape.
    count_by_shape: dict[object, int] = {}
    rank_in_shape = {}
    for name in ranked:
        shape = _shape(node_of(cluster, name))
        count_by_shape[shape] = rank_in_shape[name] = count_by_shape.get(shape, -1) + 1
    return sorted(ranked, key=lambda name: rank_in_shape[name])[:_MAX_KINDS_TRIED]


def _shape(node: Node) -> tuple[object, ...]:
    """Return the allocatable resources and the lasting taints of a node."""
    taints = sorted((t.key, t.value or "", t.effect) for t in node.spec.taints or () if not is_transient_taint(t))
    return tuple(sorted((key, str(value)) for key, value in (node.status.allocatable or {}).items())), tuple(taints)


def _capacity_when_empty(trials: CureTrials) -> dict[str, int]:
    """Return for each node how many of the gang's pods fit on it when empty, by resources alone.

    Pods of different kinds are counted separately, and the largest count is returned.
    """
    nodes, evaluator = trials.cluster.nodes, trials.engine.evaluator
    best = np.zeros(nodes.size, dtype=np.int64)
    for kind in trials.placer.areas.kinds(trials.gang_state().waiting):
        copies = np.full(nodes.size, len(kind.rows), dtype=np.int64)
        for resource_index, amount in evaluator.resource_requests(kind.incoming):
            np.minimum(copies, nodes.alloc[resource_index] // amount, out=copies)
        np.maximum(best, copies, out=best)
    return {name: int(best[row]) for name, row in nodes.row_of.items()}


def _room_in_domain(trials: CureTrials, need: Need) -> dict[str, int]:
    """Return for each node how many pods fit into its domain now; empty for a gang without a required label."""
    key = need.topology.required
    if key is None:
        return {}
    nodes, copies = trials.cluster.nodes, trials.placer.areas.fitting_pods(need, key, None)
    copies[0] = 0
    digits = nodes.domains(key).indices
    return {name: int(copies[digits[row]]) for name, row in nodes.row_of.items()}


def topologies(part: Need | GangPart) -> Iterator[GangTopology]:
    """Yield the topologies of a need or a part, and of all its inner parts."""
    yield part.topology
    for each in part.parts:
        yield from topologies(each)


def _relevant_labels(trials: CureTrials, need: Need) -> set[str]:
    """Return the keys of node labels that affect where the gang's pods may run."""
    keys = {key for each in topologies(need) for key in (each.required, *each.preferred) if key}
    for kind in trials.placer.areas.kinds(trials.gang_state().waiting):
        keys |= set(_label_keys(kind.incoming.pod))
    return keys


def _label_keys(pod: Pod) -> Iterator[str]:
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
    """Return the cure that uncordons the first node that is enough alone, or otherwise a minimal set of nodes."""
    cluster = trials.cluster
    names = [name for name in sorted(cluster.nodes.row_of) if is_cordoned(node_of(cluster, name))][:_MAX_CORDONED]
    puts = {name: Put(uncordoned(node_of(cluster, name))) for name in names}
    if not puts or not trials.fits(puts.values()):
        return []
    chosen = next(([name] for name in names if trials.fits((puts[name],))), None)
    if chosen is None:
        chosen = names
        for name in reversed(names):
            fewer = [each for each in chosen if each != name]
            if trials.fits(puts[each] for each in fewer):
                chosen = fewer
    return [Cure(kind="uncordon", text=f"uncordon {', '.join(chosen)}", edits=tuple(puts[name] for name in chosen))]
