"""The coscheduling plugin of scheduler-plugins: a label on pods, and a PodGroup of scheduling.x-k8s.io.

``spec.minMember`` is the minimum, 1 when it is absent. Not read, because they cannot change an answer here:
``scheduleTimeoutSeconds`` (no pod waits on a node for the others) and ``minResources`` (requests are judged pod by
pod).

Labels from before there were PodGroups still work, without an object: ``pod-group.scheduling.sigs.k8s.io/name`` and
``/min-available``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import (
    Dialect,
    Find,
    NoGroupError,
    Texts,
    agreed,
    created,
    distinct,
    found,
    label_of,
    number,
    within,
)
from tutti.kube.gangs.gang import Gang
from tutti.kube.objects import CoschedulingPodGroup, Object, Pod

LABEL = "scheduling.x-k8s.io/pod-group"
"""The label that names a pod's group."""
_OLD_NAME = "pod-group.scheduling.sigs.k8s.io/name"
_OLD_MINIMUM = "pod-group.scheduling.sigs.k8s.io/min-available"


class Coscheduling(Dialect):
    """See the module's contract."""

    NAME = "coscheduling"
    MARKS = frozenset((LABEL, _OLD_NAME))

    def names(self, pod: Pod, labels: Texts, annotations: Texts) -> Sequence[str]:
        """The groups that a pod names."""
        return distinct(labels.get(LABEL), labels.get(_OLD_NAME))

    def objects(self, key: str, find: Find) -> Sequence[Object]:
        """The PodGroup, if it is there."""
        group = found(find, CoschedulingPodGroup, key)
        return () if group is None else (group,)

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """What the PodGroup says, or the old labels."""
        group = found(find, CoschedulingPodGroup, key)
        said = agreed(members, _old_minimum, what="sizes")
        if group is None and said is None:
            raise NoGroupError(f"PodGroup {key} is not there")
        minimum = said or 1 if group is None else min_member(group)
        if said is not None and said != minimum:
            raise InputError(f"its pods name the size {said}, its PodGroup says {minimum}")
        return Gang(key=key, dialect=self.NAME, minimum=minimum, created=created(group))


def min_member(group: CoschedulingPodGroup) -> int:
    """The minimum that a PodGroup says."""
    said = group.spec.min_member
    return 1 if said is None else max(1, within(said, "minMember"))


def _old_minimum(pod: Pod) -> int | None:
    text = label_of(pod, _OLD_MINIMUM)
    return None if text is None else number(text, "min-available", least=1)
