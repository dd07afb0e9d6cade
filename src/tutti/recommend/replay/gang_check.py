"""Gangs that would not start: too few of their pods have a node, or the pods do not share the required domain.

Contract: pure; reads the planning cluster as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from tutti.cluster.indexes.groups import NO_GROUP
from tutti.engine.gangs.gang_state import GangState, names_below
from tutti.kube.gangs.gang import GangPart, GangTopology
from tutti.market.planning_cluster import PlanningCluster


def incomplete_gangs(planning: PlanningCluster, pods: Iterable[str]) -> set[str]:
    """Return the gangs of some pending pods that could not start even if all these pods had a node.

    Such a gang lacks pods, or its definition is faulty.
    """
    incomplete = set()
    for gang, rows in _gangs(planning, pods).items():
        state = planning.gangs.state(gang, rows)
        if state.gang.problem is not None or state.with_more_running(rows).is_short:
            incomplete.add(gang)
    return incomplete


def unstarted_gangs(planning: PlanningCluster, pods: Collection[str]) -> list[str]:
    """Return the gangs of some pods, with a node or without, that would not start whole, in the order of the pods."""
    names, unstarted = planning.cluster.pods.node_names, []
    for gang, rows in _gangs(planning, pods).items():
        state = planning.gangs.state(gang, [row for row in rows if names[row] is None])
        if state.is_short or not _shares_domains(planning, state, frozenset(rows)):
            unstarted.append(gang)
    return unstarted


def _gangs(planning: PlanningCluster, pods: Iterable[str]) -> dict[str, list[int]]:
    """Return the gangs of some pods, with the rows of these pods."""
    table = planning.cluster.pods
    gangs_of_pods: dict[str, list[int]] = {}
    for row in (table.row_of[pod] for pod in pods):
        gang = planning.gangs.key_of(row) if table.group[row] != NO_GROUP else None
        if gang is not None:
            gangs_of_pods.setdefault(gang, []).append(row)
    return gangs_of_pods


def _shares_domains(planning: PlanningCluster, state: GangState, new: frozenset[int]) -> bool:
    """Return whether the pods of a gang, and of its parts, share the domains that they must share.

    Pods that were running in several domains before do not count against the gang.
    """
    whole = GangPart(state.gang.key, topology=state.gang.topology, parts=state.gang.parts)
    return _in_one_domain(planning, whole.topology, state.running, new) and all(
        _part_shares_domains(planning, part, state, new) for part in whole.parts
    )


def _part_shares_domains(planning: PlanningCluster, part: GangPart, state: GangState, new: frozenset[int]) -> bool:
    names = {part.name, *names_below(part)}
    running = [row for row in state.running if state.part_of.get(row) in names]
    return _in_one_domain(planning, part.topology, running, new) and all(
        _part_shares_domains(planning, inner, state, new) for inner in part.parts
    )


def _in_one_domain(
    planning: PlanningCluster, topology: GangTopology, running: Iterable[int], new: frozenset[int]
) -> bool:
    if topology.required is None:
        return True
    column, rows = planning.cluster.nodes.column(topology.required), list(running)
    domains_before = np.unique(column.ids[planning.cluster.pods.node[[row for row in rows if row not in new]]])
    domains = np.unique(column.ids[planning.cluster.pods.node[rows]])
    return len(domains) <= max(len(domains_before), 1) and not (domains < 0).any()
