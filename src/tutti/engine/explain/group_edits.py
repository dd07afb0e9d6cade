"""Changes of a gang's description: another minimum, no required topology, another priority, a missing group object.

Contract: pure. Objects, annotations and labels describe a gang, in several dialects at once if webhooks have added
some. Every place that states a value is changed, so that the places do not contradict each other afterwards. The caller
checks whether the gang then has the wanted value, because a dialect may be unable to express it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import Find
from tutti.kube.gangs.native_composite import ancestor_chain
from tutti.kube.gangs.native_policy import completed_spec
from tutti.kube.gangs.reader import GROUP_KINDS
from tutti.kube.gangs.tutti_annotations import MIN_MEMBER, REQUIRED, SUB_GROUPS
from tutti.kube.objects import (
    CompositePodGroup,
    CoschedulingPodGroup,
    CoschedulingSpec,
    GangPolicy,
    GroupSpec,
    KaiPodGroup,
    KaiSpec,
    KaiTopology,
    Object,
    ObjectMeta,
    Pod,
    PodGroup,
    SchedulingPolicy,
    VolcanoPodGroup,
    VolcanoSpec,
    Workload,
)

_KUEUE_REQUIRED = "kueue.x-k8s.io/podset-required-topology"
_KUEUE_SIZE = "kueue.x-k8s.io/pod-group-total-count"
_SIZES = frozenset((
    MIN_MEMBER, _KUEUE_SIZE, "fluence.group-size", "fluence.flux-framework.org/group-size",
    "pod-group.scheduling.sigs.k8s.io/min-available", "scheduling.volcano.sh/group-min-member",
))  # fmt: skip
"""Keys of labels and annotations that state how many pods start together."""

_ObjectT = TypeVar("_ObjectT", bound=Object)
_StringMap = dict[str, str] | None


def group_objects(groups: Iterable[str], find: Find) -> list[Object]:
    """Return all objects that describe the groups that pods name, and the groups above them."""
    keys = dict.fromkeys(key for group in sorted(set(groups)) for key in ancestor_chain(group, find))
    kinds = [kind for kind in GROUP_KINDS if kind != Workload.KIND]
    return [obj for key in keys for kind in kinds if (obj := find(kind, key)) is not None]


# Minimum --------------------------------------------------------------------------------------------------------------


def with_minimum(objects: Sequence[Object], pods: Sequence[Pod], minimum: int, find: Find) -> list[Object]:
    """Return the changed objects and pods of a gang without parts whose minimum becomes `minimum`.

    If no object or pod states the minimum, the annotation `tutti.dev/min-member` on every pod does.
    """
    changed = [new for obj in (*objects, *pods) if (new := _with_minimum(obj, minimum, find)) is not obj]
    if changed:
        return changed
    return [_with_annotations(pod, lambda strings: {**(strings or {}), MIN_MEMBER: str(minimum)}) for pod in pods]


def _with_minimum(obj: Object, minimum: int, find: Find) -> Object:
    obj = _with_labels_and_annotations(obj, lambda strings: _sizes_replaced(strings, str(minimum)))
    match obj:
        case CoschedulingPodGroup() if obj.spec.min_member is not None:
            return replace(obj, spec=replace(obj.spec, min_member=minimum))
        case VolcanoPodGroup() if obj.spec.min_member is not None:
            return replace(obj, spec=replace(obj.spec, min_member=minimum))
        case KaiPodGroup() if obj.spec.min_member is not None:
            return replace(obj, spec=replace(obj.spec, min_member=minimum))
        case PodGroup():
            spec = _completed(obj, find)
            if spec.scheduling_policy is not None and spec.scheduling_policy.gang is not None:
                policy = SchedulingPolicy(gang=GangPolicy(min_count=minimum))
                return replace(obj, spec=replace(spec, scheduling_policy=policy))
    return obj


def _sizes_replaced(strings: _StringMap, minimum: str) -> _StringMap:
    if not strings or _SIZES.isdisjoint(strings):
        return strings
    return {key: minimum if key in _SIZES else value for key, value in strings.items()}


# Topology -------------------------------------------------------------------------------------------------------------


def without_topology(objects: Iterable[Object], label: str, find: Find) -> list[Object]:
    """Return the changed objects and pods of a gang that no longer requires a topology label."""
    return [new for obj in objects if (new := _without_label(obj, label, find)) is not obj]


def _without_label(obj: Object, label: str, find: Find) -> Object:
    obj = _with_annotations(obj, lambda strings: _annotations_without_label(strings, label))
    match obj:
        case PodGroup() | CompositePodGroup():
            spec = _completed(obj, find)
            constraints = spec.scheduling_constraints
            if constraints is not None and any(each.key == label for each in constraints.topology or ()):
                return replace(obj, spec=replace(spec, scheduling_constraints=None))
        case KaiPodGroup():
            spec_ = obj.spec
            parts = spec_.sub_groups
            if any(
                _requires(each, label)
                for each in (spec_.topology_constraint, *(p.topology_constraint for p in parts or ()))
            ):
                freed = [
                    replace(part, topology_constraint=_without_required_level(part.topology_constraint, label))
                    for part in parts or ()
                ]
                own = _without_required_level(spec_.topology_constraint, label)
                return replace(obj, spec=replace(spec_, topology_constraint=own, sub_groups=freed or None))
    return obj


def _requires(constraint: KaiTopology | None, label: str) -> bool:
    return constraint is not None and constraint.required_topology_level == label


def _without_required_level(constraint: KaiTopology | None, label: str) -> KaiTopology | None:
    if constraint is None or not _requires(constraint, label):
        return constraint
    return replace(constraint, required_topology_level=None)


def _annotations_without_label(strings: _StringMap, label: str) -> _StringMap:
    if not strings:
        return strings
    kept = {key: value for key, value in strings.items() if key not in (REQUIRED, _KUEUE_REQUIRED) or value != label}
    if SUB_GROUPS in kept:
        kept[SUB_GROUPS] = _sub_groups_without_label(kept[SUB_GROUPS], label)
    return strings if kept == strings else kept


def _sub_groups_without_label(text: str, label: str) -> str:
    """Return the JSON of the annotation `tutti.dev/sub-groups` without a required label."""
    try:
        parts: list[dict[str, Any]] = msgspec.json.decode(text, type=list[dict[str, Any]])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text
    topologies = [part["topology"] for part in parts if isinstance(part.get("topology"), dict)]
    topologies = [topology for topology in topologies if topology.get("required") == label]
    for topology in topologies:
        del topology["required"]
    return msgspec.json.encode(parts).decode() if topologies else text


# Priority -------------------------------------------------------------------------------------------------------------


def with_priority(objects: Iterable[Object], priority: int, find: Find) -> list[Object]:
    """Return the changed group objects: priority classes are dropped, and numeric priorities become `priority`."""
    changed: list[Object] = []
    for obj in objects:
        match obj:
            case PodGroup() | CompositePodGroup():
                spec = _completed(obj, find)
                if spec.priority is not None or spec.priority_class_name:
                    changed.append(replace(obj, spec=replace(spec, priority=priority, priority_class_name=None)))
            case VolcanoPodGroup() if obj.spec.priority_class_name:
                changed.append(replace(obj, spec=replace(obj.spec, priority_class_name=None)))
            case KaiPodGroup() if obj.spec.priority_class_name:
                changed.append(replace(obj, spec=replace(obj.spec, priority_class_name=None)))
    return changed


# Missing groups -------------------------------------------------------------------------------------------------------


def missing_group(key: str, dialect: str, groups: Sequence[str], pods: int, find: Find) -> tuple[Object, str] | None:
    """Return the missing group object that a gang's pods name, and its size as a text such as ``minMember 4``."""
    namespace, _, name = key.partition("/")
    metadata = ObjectMeta(name=name, namespace=namespace)
    if dialect == "coscheduling" and find(CoschedulingPodGroup.KIND, key) is None:
        return CoschedulingPodGroup(metadata=metadata, spec=CoschedulingSpec(min_member=pods)), f"minMember {pods}"
    if dialect == "volcano" and find(VolcanoPodGroup.KIND, key) is None:
        return VolcanoPodGroup(metadata=metadata, spec=VolcanoSpec(min_member=pods)), f"minMember {pods}"
    if dialect == "kai" and find(KaiPodGroup.KIND, key) is None:
        return KaiPodGroup(metadata=metadata, spec=KaiSpec(min_member=pods)), f"minMember {pods}"
    if dialect != "native":
        return None
    if set(groups) == {key} and find(PodGroup.KIND, key) is None:
        policy = SchedulingPolicy(gang=GangPolicy(min_count=pods))
        return PodGroup(metadata=metadata, spec=GroupSpec(scheduling_policy=policy)), f"minCount {pods}"
    if key not in groups and find(CompositePodGroup.KIND, key) is None:
        child_count = len({ancestor_chain(group, find)[-2] for group in groups})
        policy = SchedulingPolicy(gang=GangPolicy(min_group_count=child_count))
        return CompositePodGroup(
            metadata=metadata, spec=GroupSpec(scheduling_policy=policy)
        ), f"minGroupCount {child_count}"
    return None


# Specs, labels and annotations ----------------------------------------------------------------------------------------


def _completed(group: PodGroup | CompositePodGroup, find: Find) -> GroupSpec:
    try:
        return completed_spec(group, find)
    except InputError:
        return group.spec


def _with_annotations(obj: _ObjectT, change: Callable[[_StringMap], _StringMap]) -> _ObjectT:
    annotations = change(obj.metadata.annotations)
    if annotations is obj.metadata.annotations:
        return obj
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations or None))


def _with_labels_and_annotations(obj: _ObjectT, change: Callable[[_StringMap], _StringMap]) -> _ObjectT:
    obj = _with_annotations(obj, change)
    labels = change(obj.metadata.labels)
    return obj if labels is obj.metadata.labels else replace(obj, metadata=replace(obj.metadata, labels=labels))
