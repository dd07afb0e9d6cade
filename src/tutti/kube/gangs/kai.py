"""The KAI scheduler: the annotation ``pod-group-name`` on pods, and a PodGroup of scheduling.run.ai.

- ``minMember`` is the minimum. ``subGroups`` are parts; a sub-group with a ``parent`` is a part of that part. A pod
  names its sub-group in the label ``kai.scheduler/subgroup-name``. A sub-group has a ``minMember`` (default 1 if it has
  no sub-groups, otherwise 0) and a ``minSubGroup`` (default all sub-groups).
- Topology levels are node labels. KAI's Topology objects are not read, so an alias of a level is taken as a label that
  no node has. Blocks of a fixed size (``kai.scheduler/segment-size``) are not supported: the gang gets a problem.
- A missing priority class with the name of one of KAI's own classes has KAI's value.
- ``preemptibility`` and queues are not read: priorities alone decide which gangs may be evicted, as in Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tutti.exceptions import InputError
from tutti.kube.admission.pod_admission import SYSTEM_PRIORITIES
from tutti.kube.gangs.dialect import (
    Dialect,
    Find,
    StringMap,
    checked_count,
    class_priority,
    creation_time,
    find_object,
    require_object,
)
from tutti.kube.gangs.gang import Gang, GangPart, GangTopology
from tutti.kube.objects import KaiPodGroup, KaiSubGroup, KaiTopology, Object, Pod

_NAME = "pod-group-name"
_SUB_GROUP = "kai.scheduler/subgroup-name"
_SEGMENT_SIZE = "kai.scheduler/segment-size"
_PRIORITIES = SYSTEM_PRIORITIES | {"train": 50, "interactive-preemptible": 75, "build": 100, "inference": 125}


class Kai(Dialect):
    """The dialect of the KAI scheduler; the module's docstring has the rules."""

    NAME = "kai"
    GROUP_KEYS = frozenset((_NAME,))

    def group_names(self, pod: Pod, labels: StringMap, annotations: StringMap) -> Sequence[str]:
        """Return the group that a pod names."""
        name = annotations.get(_NAME)
        return (name,) if name else ()

    def part_name(self, labels: StringMap, annotations: StringMap) -> str:
        """Return the sub-group that a pod names."""
        return labels.get(_SUB_GROUP, "")

    def group_objects(self, key: str, find: Find) -> Sequence[Object]:
        """Return the PodGroup, if it exists."""
        group = find_object(find, KaiPodGroup, key)
        return () if group is None else (group,)

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """Read the gang from the PodGroup."""
        group = require_object(find, KaiPodGroup, key)
        if any(_SEGMENT_SIZE in (obj.metadata.annotations or {}) for obj in (group, *members)):
            raise InputError(f"annotation {_SEGMENT_SIZE} is not understood")
        spec = group.spec
        parts = _parts(spec.sub_groups or ())
        return Gang(
            key=key,
            dialect=self.NAME,
            minimum=1 if spec.min_member is None else max(1, checked_count(spec.min_member, "minMember")),
            topology=_topology(spec.topology_constraint),
            parts=parts,
            parts_needed=_parts_needed(spec.min_sub_group, parts),
            priority=class_priority(spec.priority_class_name, members, find, known=_PRIORITIES),
            created=creation_time(group),
        )


def _topology(constraint: KaiTopology | None) -> GangTopology:
    if constraint is None:
        return GangTopology()
    preferred = constraint.preferred_topology_level
    return GangTopology(constraint.required_topology_level or None, (preferred,) if preferred else ())


def _parts(groups: Sequence[KaiSubGroup]) -> tuple[GangPart, ...]:
    """Build the tree of parts from the list of sub-groups, of which each names its parent."""
    names = {group.name for group in groups}
    children: dict[str, list[KaiSubGroup]] = {}
    for group in groups:
        if not group.name:
            raise InputError("a sub-group has no name")
        if group.parent and group.parent not in names:
            raise InputError(f"sub-group {group.name} is below {group.parent}, which does not exist")
        children.setdefault(group.parent or "", []).append(group)
    visited: list[str] = []
    parts = tuple(_part(group, children, visited) for group in children.get("", ()))
    if len(visited) < len(groups):
        raise InputError("its sub-groups form a cycle, or two have the same name")
    return parts


def _part(group: KaiSubGroup, children: Mapping[str, Sequence[KaiSubGroup]], visited: list[str]) -> GangPart:
    if group.name in visited:
        raise InputError(f"it has two sub-groups named {group.name}")
    visited.append(group.name)
    parts = tuple(_part(each, children, visited) for each in children.get(group.name, ()))
    default_minimum = 0 if parts else 1
    return GangPart(
        name=group.name,
        minimum=default_minimum
        if group.min_member is None
        else checked_count(group.min_member, f"minMember of {group.name}"),
        topology=_topology(group.topology_constraint),
        parts=parts,
        parts_needed=_parts_needed(group.min_sub_group, parts),
    )


def _parts_needed(min_sub_group: int | None, parts: Sequence[GangPart]) -> int | None:
    if min_sub_group is not None and checked_count(min_sub_group, "minSubGroup") > len(parts):
        raise InputError(f"minSubGroup {min_sub_group} is more than the {len(parts)} sub-groups")
    return min_sub_group
