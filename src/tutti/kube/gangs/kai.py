"""The KAI scheduler: the annotation ``pod-group-name`` on pods, and a PodGroup of scheduling.run.ai.

- ``minMember`` is the minimum. ``subGroups`` are parts, and parts of parts by ``parent``; pods name theirs in the label
  ``kai.scheduler/subgroup-name``. A sub-group has a ``minMember`` (1 when it says nothing and has no sub-groups), or a
  ``minSubGroup`` (all when it says nothing).
- Topology levels are node labels. KAI's Topology objects are not read, so an alias in place of a label is a label that
  no node has; blocks of a fixed size (``kai.scheduler/segment-size``) are a problem.
- A priority class that is not there and is one of KAI's own has KAI's value.
- ``preemptibility`` is not read: which gangs may be evicted follows from priorities alone, as in Kubernetes. Queues
  are not read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tutti.exceptions import InputError
from tutti.kube.admission.pod_admission import SYSTEM_PRIORITIES
from tutti.kube.gangs.dialect import Dialect, Find, Texts, created, found, priority_named, required, within
from tutti.kube.gangs.gang import Gang, GangPart, GangTopology
from tutti.kube.objects import KaiPodGroup, KaiSubGroup, KaiTopology, Object, Pod

_NAME = "pod-group-name"
_SUB_GROUP = "kai.scheduler/subgroup-name"
_SEGMENTS = "kai.scheduler/segment-size"
_PRIORITIES = SYSTEM_PRIORITIES | {"train": 50, "interactive-preemptible": 75, "build": 100, "inference": 125}


class Kai(Dialect):
    """See the module's contract."""

    NAME = "kai"
    MARKS = frozenset((_NAME,))

    def names(self, pod: Pod, labels: Texts, annotations: Texts) -> Sequence[str]:
        """The group that a pod names."""
        name = annotations.get(_NAME)
        return (name,) if name else ()

    def part(self, labels: Texts, annotations: Texts) -> str:
        """The sub-group that a pod is in."""
        return labels.get(_SUB_GROUP, "")

    def objects(self, key: str, find: Find) -> Sequence[Object]:
        """The PodGroup, if it is there."""
        group = found(find, KaiPodGroup, key)
        return () if group is None else (group,)

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """What the PodGroup says."""
        group = required(find, KaiPodGroup, key)
        if any(_SEGMENTS in (obj.metadata.annotations or {}) for obj in (group, *members)):
            raise InputError(f"annotation {_SEGMENTS} is not understood")
        spec = group.spec
        parts = _parts(spec.sub_groups or ())
        return Gang(
            key=key,
            dialect=self.NAME,
            minimum=1 if spec.min_member is None else max(1, within(spec.min_member, "minMember")),
            topology=_topology(spec.topology_constraint),
            parts=parts,
            parts_needed=_needed(spec.min_sub_group, parts),
            priority=priority_named(spec.priority_class_name, members, find, known=_PRIORITIES),
            created=created(group),
        )


def _topology(constraint: KaiTopology | None) -> GangTopology:
    if constraint is None:
        return GangTopology()
    wanted = constraint.preferred_topology_level
    return GangTopology(constraint.required_topology_level or None, (wanted,) if wanted else ())


def _parts(groups: Sequence[KaiSubGroup]) -> tuple[GangPart, ...]:
    """The tree of sub-groups, from the list in which each names its parent."""
    names = {group.name for group in groups}
    below: dict[str, list[KaiSubGroup]] = {}
    for group in groups:
        if not group.name:
            raise InputError("a sub-group has no name")
        if group.parent and group.parent not in names:
            raise InputError(f"sub-group {group.name} is below {group.parent}, which is not there")
        below.setdefault(group.parent or "", []).append(group)
    made: list[str] = []
    parts = tuple(_part(group, below, made) for group in below.get("", ()))
    if len(made) < len(groups):
        raise InputError("its sub-groups go in a circle, or two have one name")
    return parts


def _part(group: KaiSubGroup, below: Mapping[str, Sequence[KaiSubGroup]], made: list[str]) -> GangPart:
    if group.name in made:
        raise InputError(f"it has two sub-groups of the name {group.name}")
    made.append(group.name)
    inner = tuple(_part(each, below, made) for each in below.get(group.name, ()))
    least = 0 if inner else 1
    return GangPart(
        name=group.name,
        minimum=least if group.min_member is None else within(group.min_member, f"minMember of {group.name}"),
        topology=_topology(group.topology_constraint),
        parts=inner,
        parts_needed=_needed(group.min_sub_group, inner),
    )


def _needed(said: int | None, parts: Sequence[GangPart]) -> int | None:
    if said is not None and within(said, "minSubGroup") > len(parts):
        raise InputError(f"minSubGroup {said} is more than the {len(parts)} sub-groups")
    return said
