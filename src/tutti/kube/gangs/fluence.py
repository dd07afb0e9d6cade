"""Fluence, both generations: a group's name and size on every pod, as labels or as annotations.

==================================== ================================================
``fluence.group``                    ``fluence.group-size``
``fluence.flux-framework.org/group`` ``fluence.flux-framework.org/group-size``
``scheduling.x-k8s.io/pod-group``    with one of these sizes: what the webhook writes
==================================== ================================================

A size makes the PodGroup unnecessary. One that is there (of scheduling.x-k8s.io or of Kubernetes itself) must say the
same, and stands in for a size that no pod says; without either, all pods that name the group start together. A group's
time is the one that Fluence keeps in its status, in microseconds.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.exceptions import InputError
from tutti.kube.gangs.coscheduling import LABEL, min_member
from tutti.kube.gangs.dialect import Dialect, Find, Texts, agreed, created, distinct, either_of, found, number, within
from tutti.kube.gangs.gang import Gang
from tutti.kube.gangs.tutti_annotations import counted_minimum
from tutti.kube.objects import CoschedulingPodGroup, Object, Pod, PodGroup
from tutti.kube.times import micros

_NAMES = ("fluence.group", "fluence.flux-framework.org/group")
_SIZES = ("fluence.group-size", "fluence.flux-framework.org/group-size")
_DEMANDS = "fluence.flux-framework.org/require-"


class Fluence(Dialect):
    """See the module's contract."""

    NAME = "fluence"
    MARKS = frozenset((*_NAMES, *_SIZES))

    def names(self, pod: Pod, labels: Texts, annotations: Texts) -> Sequence[str]:
        """The groups that a pod names."""
        sized = any(key in labels or key in annotations for key in _SIZES)
        own = [texts.get(key) for key in _NAMES for texts in (labels, annotations)]
        return distinct(*own, labels.get(LABEL) if sized else None)

    def objects(self, key: str, find: Find) -> Sequence[Object]:
        """The PodGroups of that name."""
        return [group for group in (found(find, CoschedulingPodGroup, key), found(find, PodGroup, key)) if group]

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """What the pods say, or their PodGroup."""
        for pod in members:
            _check_understood(pod)
        group = found(find, CoschedulingPodGroup, key)
        native = found(find, PodGroup, key)
        size = agreed(members, _size, what="sizes")
        for said in (_said_by(group), _said_by(native)):
            if size is not None and said is not None and said != size:
                raise InputError(f"it has two sizes: {size} and the {said} of its PodGroup")
            size = size or said
        return Gang(
            key=key,
            dialect=self.NAME,
            minimum=size or counted_minimum(members, self.objects(key, find)),
            created=_created(group) or created(native),
        )


def _said_by(group: CoschedulingPodGroup | PodGroup | None) -> int | None:
    """The size that a PodGroup states, if it does."""
    if isinstance(group, CoschedulingPodGroup):
        return min_member(group) if group.spec.min_member else None
    gang = group.spec.scheduling_policy.gang if group is not None and group.spec.scheduling_policy is not None else None
    return None if gang is None or gang.min_count is None else within(gang.min_count, "minCount", least=1)


def _size(pod: Pod) -> int | None:
    said = {number(text, key, least=1): None for key in _SIZES if (text := either_of(pod, key)) is not None}
    if len(said) > 1:
        raise InputError(f"pod {pod.metadata.name} names two sizes: {' and '.join(map(str, said))}")
    return next(iter(said), None)


def _created(group: CoschedulingPodGroup | None) -> int | None:
    kept = (group.status.creation_time or group.status.schedule_start_time) if group is not None else None
    return micros(kept) if kept else created(group)


def _check_understood(pod: Pod) -> None:
    """Refuse what Fluxion would match on and nothing here does."""
    for key in sorted({**(pod.metadata.labels or {}), **(pod.metadata.annotations or {})}):
        if key.startswith(_DEMANDS) or "jobspec" in key:
            raise InputError(f"{key} of pod {pod.metadata.name} is not understood")
