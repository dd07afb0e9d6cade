"""Gangs of Kubernetes' CompositePodGroups: a tree of groups, built from the pods up to the root.

Groups name their parents, so the tree has only groups with pods. If ``minGroupCount`` is more than the number of groups
with pods, the gang waits. A leaf (PodGroup) is a part with its own minimum and topology. A composite group below the
root is a part that needs ``minGroupCount`` of its parts; with policy ``basic`` it needs one. Topology, priority and
preemption policy of the gang are those of the root. If any group of the tree has disruption mode ``all``, the gang has:
more pods may be evicted than necessary, never fewer. Only leaves have minimums; the reader computes the gang's minimum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import Find, creation_time, find_object, require_object
from tutti.kube.gangs.gang import DisruptionMode, Gang, GangPart
from tutti.kube.gangs.native_policy import (
    check_same_scheduling,
    completed_spec,
    disruption_of,
    groups_needed,
    may_preempt,
    minimum_of,
    priority_of,
    topology_of,
)
from tutti.kube.gangs.tutti_annotations import DOMAIN
from tutti.kube.objects import CompositePodGroup, GroupSpec, Pod, PodGroup

MAX_ANCESTORS = 4
"""The largest number of composite groups above a group."""

_Group = tuple[str, bool]
"""Key of a group, and whether it is a leaf: a leaf and a composite group may have the same name."""


def ancestor_chain(group: str, find: Find) -> tuple[str, ...]:
    """Return the keys of a group and of the composite groups above it, the root last.

    If the ancestors form a cycle or are more than `MAX_ANCESTORS`, return only the group's own key.
    """
    leaf = find_object(find, PodGroup, group)
    parent = _parent(leaf)
    keys = [group]
    while parent is not None:
        if parent in keys[1:] or len(keys) > MAX_ANCESTORS:
            return (group,)
        keys.append(parent)
        parent = _parent(find_object(find, CompositePodGroup, parent))
    return tuple(keys)


def _parent(group: PodGroup | CompositePodGroup | None) -> str | None:
    name = group.spec.parent_composite_pod_group_name if group is not None else None
    return f"{group.metadata.namespace or 'default'}/{name}" if group is not None and name else None


def read_composite(key: str, pods: Mapping[str, Sequence[Pod]], find: Find, *, dialect: str) -> Gang:
    """Read the gang of a root group; `pods` has the pods of each PodGroup below the root."""
    root = require_object(find, CompositePodGroup, key)
    children: dict[str, set[_Group]] = {}
    for leaf in pods:
        keys = ancestor_chain(leaf, find)
        if leaf == key:
            raise InputError(f"a PodGroup and a CompositePodGroup are both called {key}")
        for level, child in enumerate(keys[:-1]):
            children.setdefault(keys[level + 1], set()).add((child, level == 0))
    specs = {group: _spec(group, find) for group in sorted(set().union(*children.values()))}
    spec = completed_spec(root, find)
    for leaf, members in pods.items():
        check_same_scheduling(members, priority_of(specs[leaf, True], members, find))
    evict_all = any(disruption_of(each) is DisruptionMode.ALL for each in (spec, *specs.values()))
    return Gang(
        key=key,
        dialect=dialect,
        topology=topology_of(spec),
        parts=_parts(key, children, specs),
        parts_needed=groups_needed(spec),
        disruption=DisruptionMode.ALL if evict_all else DisruptionMode.SINGLE,
        priority=priority_of(spec, [pod for each in pods.values() for pod in each], find),
        preempts=may_preempt(spec),
        created=creation_time(root),
    )


def _spec(group: _Group, find: Find) -> GroupSpec:
    key, is_leaf = group
    obj = require_object(find, PodGroup, key) if is_leaf else require_object(find, CompositePodGroup, key)
    annotations = sorted(each for each in obj.metadata.annotations or () if each.startswith(DOMAIN))
    if annotations:
        raise InputError(f"annotation {annotations[0]} of {obj.WIRE_KIND} {key} is not read: set it on the root group")
    return completed_spec(obj, find)


def _parts(key: str, children: Mapping[str, set[_Group]], specs: Mapping[_Group, GroupSpec]) -> tuple[GangPart, ...]:
    return tuple(_part(group, children, specs) for group in sorted(children[key]))


def _part(group: _Group, children: Mapping[str, set[_Group]], specs: Mapping[_Group, GroupSpec]) -> GangPart:
    key, is_leaf = group
    spec, name = specs[group], key.partition("/")[2]
    try:
        if is_leaf:
            return GangPart(name, minimum_of(spec), topology_of(spec))
        return GangPart(name, 0, topology_of(spec), _parts(key, children, specs), groups_needed(spec))
    except InputError as error:
        raise InputError(f"group {key}: {error.problem}") from None
