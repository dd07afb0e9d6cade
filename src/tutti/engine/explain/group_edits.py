"""What a gang's group says, said otherwise: another minimum, no topology, another priority, a group that is missing.

Contract: pure. A gang is described by objects, by annotations and by labels, in several dialects at once if webhooks
have been at work; every place that states a thing is changed alike, so that nothing contradicts itself afterwards.
Whether the gang then says what it should is for the caller to see: a dialect may have no words for it.
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
"""Labels and annotations that state how many pods start together."""

_Some = TypeVar("_Some", bound=Object)
_Texts = dict[str, str] | None


def group_objects(groups: Iterable[str], find: Find) -> list[Object]:
    """All objects that describe the groups that pods name, and the groups above them."""
    keys = dict.fromkeys(key for group in sorted(set(groups)) for key in ancestor_chain(group, find))
    kinds = [kind for kind in GROUP_KINDS if kind != Workload.KIND]
    return [obj for key in keys for kind in kinds if (obj := find(kind, key)) is not None]


# Minimum --------------------------------------------------------------------------------------------------------------


def with_minimum(objects: Sequence[Object], pods: Sequence[Pod], minimum: int, find: Find) -> list[Object]:
    """The objects and pods that change when a gang without parts needs so many pods; said on the pods if nowhere."""
    changed = [new for obj in (*objects, *pods) if (new := _sized(obj, minimum, find)) is not obj]
    if changed:
        return changed
    return [_annotated(pod, lambda texts: {**(texts or {}), MIN_MEMBER: str(minimum)}) for pod in pods]


def _sized(obj: Object, minimum: int, find: Find) -> Object:
    obj = _texts_changed(obj, lambda texts: _sized_texts(texts, str(minimum)))
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


def _sized_texts(texts: _Texts, minimum: str) -> _Texts:
    if not texts or _SIZES.isdisjoint(texts):
        return texts
    return {key: minimum if key in _SIZES else value for key, value in texts.items()}


# Topology -------------------------------------------------------------------------------------------------------------


def without_topology(objects: Iterable[Object], label: str, find: Find) -> list[Object]:
    """The objects and pods that change when a label is required no more."""
    return [new for obj in objects if (new := _free(obj, label, find)) is not obj]


def _free(obj: Object, label: str, find: Find) -> Object:
    obj = _annotated(obj, lambda texts: _free_texts(texts, label))
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
                _needs(each, label)
                for each in (spec_.topology_constraint, *(p.topology_constraint for p in parts or ()))
            ):
                freed = [
                    replace(part, topology_constraint=_freed(part.topology_constraint, label)) for part in parts or ()
                ]
                own = _freed(spec_.topology_constraint, label)
                return replace(obj, spec=replace(spec_, topology_constraint=own, sub_groups=freed or None))
    return obj


def _needs(constraint: KaiTopology | None, label: str) -> bool:
    return constraint is not None and constraint.required_topology_level == label


def _freed(constraint: KaiTopology | None, label: str) -> KaiTopology | None:
    if constraint is None or not _needs(constraint, label):
        return constraint
    return replace(constraint, required_topology_level=None)


def _free_texts(texts: _Texts, label: str) -> _Texts:
    if not texts:
        return texts
    kept = {key: value for key, value in texts.items() if key not in (REQUIRED, _KUEUE_REQUIRED) or value != label}
    if SUB_GROUPS in kept:
        kept[SUB_GROUPS] = _free_parts(kept[SUB_GROUPS], label)
    return texts if kept == texts else kept


def _free_parts(text: str, label: str) -> str:
    """The JSON of the sub-groups without a required label."""
    try:
        parts: list[dict[str, Any]] = msgspec.json.decode(text, type=list[dict[str, Any]])
    except (msgspec.DecodeError, ValueError, RecursionError):
        return text
    found = [part["topology"] for part in parts if isinstance(part.get("topology"), dict)]
    found = [topology for topology in found if topology.get("required") == label]
    for topology in found:
        del topology["required"]
    return msgspec.json.encode(parts).decode() if found else text


# Priority -------------------------------------------------------------------------------------------------------------


def with_priority(objects: Iterable[Object], priority: int, find: Find) -> list[Object]:
    """The objects that change when a group's priority is that of its pods, or this one where it is a number."""
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
    """The object that a gang's pods name and that is not there, and what to say of its size."""
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
        below = len({ancestor_chain(group, find)[-2] for group in groups})
        policy = SchedulingPolicy(gang=GangPolicy(min_group_count=below))
        return CompositePodGroup(metadata=metadata, spec=GroupSpec(scheduling_policy=policy)), f"minGroupCount {below}"
    return None


# Texts ----------------------------------------------------------------------------------------------------------------


def _completed(group: PodGroup | CompositePodGroup, find: Find) -> GroupSpec:
    try:
        return completed_spec(group, find)
    except InputError:
        return group.spec


def _annotated(obj: _Some, change: Callable[[_Texts], _Texts]) -> _Some:
    annotations = change(obj.metadata.annotations)
    if annotations is obj.metadata.annotations:
        return obj
    return replace(obj, metadata=replace(obj.metadata, annotations=annotations or None))


def _texts_changed(obj: _Some, change: Callable[[_Texts], _Texts]) -> _Some:
    obj = _annotated(obj, change)
    labels = change(obj.metadata.labels)
    return obj if labels is obj.metadata.labels else replace(obj, metadata=replace(obj.metadata, labels=labels))
