"""Which gangs would not start: too few of their pods have a node, or they are not as near to each other as they must.

Contract: pure; looks at the picture as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tutti.cluster.groups import NO_GROUP
from tutti.engine.standing import Standing
from tutti.kube.gangs.gang import Part, Topology
from tutti.recommend.picture import Picture


def gangs_short(picture: Picture, pods: Iterable[str]) -> list[str]:
    """The gangs of some pods that would not start whole, in the order of the pods."""
    cluster, table = picture.cluster, picture.cluster.pods
    rows = [table.row_of[pod] for pod in pods]
    grouped = [row for row in rows if table.group[row] != NO_GROUP]
    waiting: dict[str, list[int]] = {}
    for row in grouped:
        gang = picture.gangs.key_of(row)
        if gang is not None:
            mine = waiting.setdefault(gang, [])
            if cluster.pods.node_names[row] is None:
                mine.append(row)
    found = []
    for gang, left in waiting.items():
        standing = picture.gangs.standing(gang, left)
        if (left and standing.need().least) or not _is_near(picture, standing):
            found.append(gang)
    return found


def _is_near(picture: Picture, standing: Standing) -> bool:
    """Whether the pods of a gang, and of its parts, run where their labels say that they must."""
    gang = standing.gang
    return _in_one(picture, gang.topology, standing.running) and all(
        _part_is_near(picture, part, standing) for part in gang.parts
    )


def _part_is_near(picture: Picture, part: Part, standing: Standing) -> bool:
    running = [row for row in standing.running if standing.part_of.get(row) == part.name]
    return _in_one(picture, part.topology, running) and all(
        _part_is_near(picture, inner, standing) for inner in part.parts
    )


def _in_one(picture: Picture, topology: Topology, running: Iterable[int]) -> bool:
    if topology.required is None:
        return True
    column = picture.cluster.nodes.column(topology.required)
    values = np.unique(column.ids[picture.cluster.pods.node[list(running)]])
    return len(values) <= 1 and not (values < 0).any()
