"""Fluence, old and new: the name and the size of the group on every pod, as labels or as annotations.

==================================== ================================================
``fluence.group``                    ``fluence.group-size``
``fluence.flux-framework.org/group`` ``fluence.flux-framework.org/group-size``
``scheduling.x-k8s.io/pod-group``    one of these sizes (written by the webhook)
==================================== ================================================

Pods with a size need no PodGroup. The size of an existing PodGroup (of scheduling.x-k8s.io or of Kubernetes) must
agree, and applies if no pod has a size. Without any size, all pods that name the group start together. The creation
time of a group is that in the status, which Fluence writes with microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.exceptions import InputError
from tutti.kube.gangs.coscheduling import LABEL, min_member
from tutti.kube.gangs.dialect import (
    Dialect,
    Find,
    StringMap,
    agreed_value,
    checked_count,
    creation_time,
    distinct_names,
    find_object,
    label_or_annotation,
    parse_count,
)
from tutti.kube.gangs.gang import Gang
from tutti.kube.gangs.tutti_annotations import minimum_from_members
from tutti.kube.objects import CoschedulingPodGroup, Object, Pod, PodGroup
from tutti.kube.times import micros

_NAMES = ("fluence.group", "fluence.flux-framework.org/group")
_SIZES = ("fluence.group-size", "fluence.flux-framework.org/group-size")
_REQUIREMENT_PREFIX = "fluence.flux-framework.org/require-"


class Fluence(Dialect):
    """The dialect of Fluence; the module's docstring has the rules."""

    NAME = "fluence"
    GROUP_KEYS = frozenset((*_NAMES, *_SIZES))

    def group_names(self, pod: Pod, labels: StringMap, annotations: StringMap) -> Sequence[str]:
        """Return the groups that a pod names."""
        has_size = any(key in labels or key in annotations for key in _SIZES)
        names = [strings.get(key) for key in _NAMES for strings in (labels, annotations)]
        return distinct_names(*names, labels.get(LABEL) if has_size else None)

    def group_objects(self, key: str, find: Find) -> Sequence[Object]:
        """Return the PodGroups of this name."""
        return [
            group for group in (find_object(find, CoschedulingPodGroup, key), find_object(find, PodGroup, key)) if group
        ]

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """Read the gang from the pods, or from their PodGroup."""
        for pod in members:
            _check_supported(pod)
        group = find_object(find, CoschedulingPodGroup, key)
        native = find_object(find, PodGroup, key)
        size = agreed_value(members, _pod_size, what="sizes")
        for group_size in (_group_size(group), _group_size(native)):
            if size is not None and group_size is not None and group_size != size:
                raise InputError(f"it has two sizes: {size} and the {group_size} of its PodGroup")
            size = size or group_size
        is_counted = False
        if not size:
            size, is_counted = minimum_from_members(members, self.group_objects(key, find))
        return Gang(
            key=key,
            dialect=self.NAME,
            minimum=size,
            is_counted=is_counted,
            created=_creation_time(group) or creation_time(native),
        )


def _group_size(group: CoschedulingPodGroup | PodGroup | None) -> int | None:
    """Return the size of a PodGroup; None if it states none."""
    if isinstance(group, CoschedulingPodGroup):
        return min_member(group) if group.spec.min_member else None
    gang = group.spec.scheduling_policy.gang if group is not None and group.spec.scheduling_policy is not None else None
    return None if gang is None or gang.min_count is None else checked_count(gang.min_count, "minCount", least=1)


def _pod_size(pod: Pod) -> int | None:
    sizes = {
        parse_count(text, key, least=1): None for key in _SIZES if (text := label_or_annotation(pod, key)) is not None
    }
    if len(sizes) > 1:
        raise InputError(f"pod {pod.metadata.name} names two sizes: {' and '.join(map(str, sizes))}")
    return next(iter(sizes), None)


def _creation_time(group: CoschedulingPodGroup | None) -> int | None:
    text = (group.status.creation_time or group.status.schedule_start_time) if group is not None else None
    return micros(text) if text else creation_time(group)


def _check_supported(pod: Pod) -> None:
    """Raise `InputError` for requirements that Fluxion would match and Tutti does not support."""
    for key in sorted({**(pod.metadata.labels or {}), **(pod.metadata.annotations or {})}):
        if key.startswith(_REQUIREMENT_PREFIX) or "jobspec" in key:
            raise InputError(f"{key} of pod {pod.metadata.name} is not understood")
