"""Gangs of Kubernetes' composite groups: a tree of groups, found from the pods upward.

Groups name their parents, so the tree holds the groups that have pods; ``minGroupCount`` may ask for more of them than
there are, and the gang then waits. Leaves are parts with their own minimum and topology. The composite groups above
them are parts that need ``minGroupCount`` of their parts; where their policy is basic, one. The root speaks for the
gang: its topology, priority and preemption policy. If any group of the tree is evicted as a whole, so is the gang: more
goes than must, never less. Minimums are carried by the leaves; the reader adds up what the gang needs at least.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import Find, created, found, required
from tutti.kube.gangs.gang import DisruptionMode, Gang, GangPart
from tutti.kube.gangs.native_policy import (
    check_alike,
    completed,
    disruption_of,
    groups_needed,
    minimum_of,
    preempts,
    priority_of,
    topology_of,
)
from tutti.kube.gangs.tutti_annotations import DOMAIN
from tutti.kube.objects import CompositePodGroup, GroupSpec, Pod, PodGroup

DEEPEST = 4
"""How many composite groups may stand above a group."""

_Group = tuple[str, bool]
"""A group by key, and whether it is a leaf: a leaf and a composite group may have one name."""


def chain(group: str, find: Find) -> tuple[str, ...]:
    """The keys of a group and of the composite groups above it, the root last.

    A group whose ancestors go in a circle, or too high, stands alone.
    """
    leaf = found(find, PodGroup, group)
    above = _parent(leaf)
    keys = [group]
    while above is not None:
        if above in keys[1:] or len(keys) > DEEPEST:
            return (group,)
        keys.append(above)
        above = _parent(found(find, CompositePodGroup, above))
    return tuple(keys)


def _parent(group: PodGroup | CompositePodGroup | None) -> str | None:
    name = group.spec.parent_composite_pod_group_name if group is not None else None
    return f"{group.metadata.namespace or 'default'}/{name}" if group is not None and name else None


def read_composite(key: str, pods: Mapping[str, Sequence[Pod]], find: Find, *, dialect: str) -> Gang:
    """The gang of a root, from the pods of each group under it."""
    root = required(find, CompositePodGroup, key)
    below: dict[str, set[_Group]] = {}
    for leaf in pods:
        keys = chain(leaf, find)
        if leaf == key:
            raise InputError(f"a PodGroup and a CompositePodGroup are both called {key}")
        for place, child in enumerate(keys[:-1]):
            below.setdefault(keys[place + 1], set()).add((child, place == 0))
    specs = {group: _spec(group, find) for group in sorted(set().union(*below.values()))}
    spec = completed(root, find)
    for leaf, members in pods.items():
        check_alike(members, priority_of(specs[leaf, True], members, find))
    whole = any(disruption_of(each) is DisruptionMode.ALL for each in (spec, *specs.values()))
    return Gang(
        key=key,
        dialect=dialect,
        topology=topology_of(spec),
        parts=_parts(key, below, specs),
        parts_needed=groups_needed(spec),
        disruption=DisruptionMode.ALL if whole else DisruptionMode.SINGLE,
        priority=priority_of(spec, [pod for each in pods.values() for pod in each], find),
        preempts=preempts(spec),
        created=created(root),
    )


def _spec(group: _Group, find: Find) -> GroupSpec:
    key, is_leaf = group
    obj = required(find, PodGroup, key) if is_leaf else required(find, CompositePodGroup, key)
    own = sorted(each for each in obj.metadata.annotations or () if each.startswith(DOMAIN))
    if own:
        raise InputError(f"annotation {own[0]} of {obj.WIRE_KIND} {key} is not read: it is for the group at the root")
    return completed(obj, find)


def _parts(key: str, below: Mapping[str, set[_Group]], specs: Mapping[_Group, GroupSpec]) -> tuple[GangPart, ...]:
    return tuple(_part(group, below, specs) for group in sorted(below[key]))


def _part(group: _Group, below: Mapping[str, set[_Group]], specs: Mapping[_Group, GroupSpec]) -> GangPart:
    key, is_leaf = group
    spec, name = specs[group], key.partition("/")[2]
    try:
        if is_leaf:
            return GangPart(name, minimum_of(spec), topology_of(spec))
        return GangPart(name, 0, topology_of(spec), _parts(key, below, specs), groups_needed(spec))
    except InputError as error:
        raise InputError(f"group {key}: {error.problem}") from None
