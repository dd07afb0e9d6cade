"""Bind pods on nodes that are already chosen: those that preemption chose, or those where room is held for the pods.

Contract: all pods are bound, or the cluster is unchanged. Each pod is filtered on its own node alone, as kube-scheduler
filters the nominated node of a pod first. A gang that evicted pods thus starts on the nodes for which it evicted them,
whether its victims vanish at once or terminate first.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.cluster.trial import Trial
from tutti.engine.gangs.gang_state import Need
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.engine import Decision, Engine
from tutti.engine.plugins.base import Area


def bind_on_chosen_nodes(engine: Engine, chosen: Sequence[tuple[str, str]]) -> list[Decision] | None:
    """Bind each pod on its chosen node, in this order; None if one of them does not fit there."""
    cluster = engine.cluster
    bound = []
    with Trial(cluster) as trial:
        for pod, node in chosen:
            row = cluster.nodes.row_of.get(node)
            if row is None:
                return None
            placed = engine.place([pod], Area.of_row(row, cluster.nodes.size), give_up=True)[0]
            if placed.node is None:
                return None
            bound.append(placed)
        trial.keep()
        return bound


def place_on_held_nodes(placer: GangPlacer, need: Need, area: Area | None = None) -> list[Decision] | None:
    """Bind the pods of a need for which room is held, if they are what the need lacks; otherwise return None."""
    cluster = placer.engine.cluster
    if not cluster.holds:
        return None
    own_pods = {cluster.pods.keys[row] for row in need.all_waiting}
    # In the order in which the room was held: rules between pods may depend on the order.
    chosen = [(owner, hold.node) for owner, hold in cluster.holds.items() if owner in own_pods]
    # A need with parts may take more pods than the least, if not its smallest parts were chosen.
    is_exact = len(chosen) == need.least or (bool(need.parts) and len(chosen) > need.least)
    if not is_exact or not _is_within(placer, chosen, area):
        return None
    with Trial(cluster) as trial:
        bound = bind_on_chosen_nodes(placer.engine, chosen)
        if bound is None or not _has_enough(placer, need) or not _shares_domains(placer, need):
            return None
        trial.keep()
        return bound


def _is_within(placer: GangPlacer, chosen: Sequence[tuple[str, str]], area: Area | None) -> bool:
    row_of = placer.engine.cluster.nodes.row_of
    return area is None or all(node in row_of and area.mask[row_of[node]] for _, node in chosen)


def _has_enough(placer: GangPlacer, need: Need) -> bool:
    """Return whether the pods that are bound by now reach the minimums of a need."""
    nodes = placer.engine.cluster.pods.node
    bound_count = sum(1 for row in need.all_waiting if nodes[row] >= 0)
    reached = sum(1 for part in need.parts if part.least and _has_enough(placer, part))
    return bound_count >= need.missing and reached >= need.parts_needed


def _shares_domains(placer: GangPlacer, need: Need) -> bool:
    """Return whether the pods of a need, and of each part, are on nodes with one value of their required label."""
    key, nodes = need.topology.required, placer.engine.cluster.pods.node
    rows = (*need.running, *(row for row in need.all_waiting if nodes[row] >= 0))
    domains = placer.areas.domains_of(rows, key) if key is not None else set()
    return len(domains) <= 1 and 0 not in domains and all(_shares_domains(placer, part) for part in need.parts)
