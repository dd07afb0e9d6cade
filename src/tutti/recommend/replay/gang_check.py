"""Which gangs would not start: too few of their pods have a node, or they are not as near to each other as they must.

Contract: pure; looks at the picture as it stands.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np

from tutti.cluster.groups import NO_GROUP
from tutti.engine.gangs.gang_state import GangState, names_below
from tutti.kube.gangs.gang import GangPart, GangTopology
from tutti.market.planning_cluster import PlanningCluster


def gangs_lacking(planning: PlanningCluster, pods: Iterable[str]) -> set[str]:
    """The gangs of some waiting pods that could not start if all of them had a node: they lack pods, or are faulty."""
    found = set()
    for gang, rows in _gangs(planning, pods).items():
        standing = planning.gangs.state(gang, rows)
        whole = GangState(standing.gang, (*standing.running, *rows), (), standing.part_of)
        if standing.gang.problem is not None or whole.need().least:
            found.add(gang)
    return found


def gangs_short(planning: PlanningCluster, pods: Collection[str]) -> list[str]:
    """The gangs of some pods, with a node or without, that would not start whole, in the order of the pods."""
    names, found = planning.cluster.pods.node_names, []
    for gang, rows in _gangs(planning, pods).items():
        standing = planning.gangs.state(gang, [row for row in rows if names[row] is None])
        if standing.need().least or not _is_near(planning, standing, frozenset(rows)):
            found.append(gang)
    return found


def _gangs(planning: PlanningCluster, pods: Iterable[str]) -> dict[str, list[int]]:
    """The gangs of some pods, with the rows of these."""
    table = planning.cluster.pods
    found: dict[str, list[int]] = {}
    for row in (table.row_of[pod] for pod in pods):
        gang = planning.gangs.key_of(row) if table.group[row] != NO_GROUP else None
        if gang is not None:
            found.setdefault(gang, []).append(row)
    return found


def _is_near(planning: PlanningCluster, standing: GangState, new: frozenset[int]) -> bool:
    """Whether the pods of a gang, and of its parts, run where their labels say that they must.

    Pods that ran before and are not, are nobody's fault here.
    """
    whole = GangPart(standing.gang.key, topology=standing.gang.topology, parts=standing.gang.parts)
    return _in_one(planning, whole.topology, standing.running, new) and all(
        _part_is_near(planning, part, standing, new) for part in whole.parts
    )


def _part_is_near(planning: PlanningCluster, part: GangPart, standing: GangState, new: frozenset[int]) -> bool:
    names = {part.name, *names_below(part)}
    running = [row for row in standing.running if standing.part_of.get(row) in names]
    return _in_one(planning, part.topology, running, new) and all(
        _part_is_near(planning, inner, standing, new) for inner in part.parts
    )


def _in_one(planning: PlanningCluster, topology: GangTopology, running: Iterable[int], new: frozenset[int]) -> bool:
    if topology.required is None:
        return True
    column, rows = planning.cluster.nodes.column(topology.required), list(running)
    before = np.unique(column.ids[planning.cluster.pods.node[[row for row in rows if row not in new]]])
    values = np.unique(column.ids[planning.cluster.pods.node[rows]])
    return len(values) <= max(len(before), 1) and not (values < 0).any()
