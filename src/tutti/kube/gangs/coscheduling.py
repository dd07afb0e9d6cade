"""The coscheduling plugin of scheduler-plugins: a label on pods, and a PodGroup of scheduling.x-k8s.io.

``spec.minMember`` is the minimum; the default is 1. Two fields are not read, because they cannot affect the placement:
``scheduleTimeoutSeconds`` (in Tutti no pod waits on a node for other pods) and ``minResources`` (Tutti checks the
requests of each pod).

The older labels ``pod-group.scheduling.sigs.k8s.io/name`` and ``/min-available``, which need no PodGroup, also work.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import (
    Dialect,
    Find,
    NoGroupError,
    StringMap,
    agreed_value,
    checked_count,
    creation_time,
    distinct_names,
    find_object,
    label_of,
    parse_count,
)
from tutti.kube.gangs.gang import Gang
from tutti.kube.objects import CoschedulingPodGroup, Object, Pod

LABEL = "scheduling.x-k8s.io/pod-group"
"""The label with the name of a pod's group."""
_OLD_NAME = "pod-group.scheduling.sigs.k8s.io/name"
_OLD_MINIMUM = "pod-group.scheduling.sigs.k8s.io/min-available"


class Coscheduling(Dialect):
    """The dialect of the coscheduling plugin; the module's docstring has the rules."""

    NAME = "coscheduling"
    GROUP_KEYS = frozenset((LABEL, _OLD_NAME))

    def group_names(self, pod: Pod, labels: StringMap, annotations: StringMap) -> Sequence[str]:
        """Return the groups that a pod names."""
        return distinct_names(labels.get(LABEL), labels.get(_OLD_NAME))

    def group_objects(self, key: str, find: Find) -> Sequence[Object]:
        """Return the PodGroup, if it exists."""
        group = find_object(find, CoschedulingPodGroup, key)
        return () if group is None else (group,)

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """Read the gang from the PodGroup, or from the old labels."""
        group = find_object(find, CoschedulingPodGroup, key)
        label_minimum = agreed_value(members, _label_minimum, what="sizes")
        if group is None and label_minimum is None:
            raise NoGroupError(f"PodGroup {key} is not there")
        minimum = label_minimum or 1 if group is None else min_member(group)
        if label_minimum is not None and label_minimum != minimum:
            raise InputError(f"its pods name the size {label_minimum}, its PodGroup says {minimum}")
        return Gang(key=key, dialect=self.NAME, minimum=minimum, created=creation_time(group))


def min_member(group: CoschedulingPodGroup) -> int:
    """Return the minimum of a PodGroup."""
    minimum = group.spec.min_member
    return 1 if minimum is None else max(1, checked_count(minimum, "minMember"))


def _label_minimum(pod: Pod) -> int | None:
    text = label_of(pod, _OLD_MINIMUM)
    return None if text is None else parse_count(text, "min-available", least=1)
