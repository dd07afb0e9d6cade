"""Kubernetes' own groups: ``spec.schedulingGroup`` of pods, PodGroup, CompositePodGroup and Workload.

- The policy of a PodGroup is ``gang`` with a minimum, or ``basic``, which means minimum 1. All its pods must have the
  same scheduler, priority and preemption policy, and the group's priority if it has one, as in kube-scheduler.
- A CompositePodGroup and all groups below it are one gang (`kube.gangs.native_composite`).
- Gangs are evicted pod by pod (``single``) unless the disruption mode of the group is ``all``.
- A group without a policy takes its missing fields from the Workload template that it refers to.
- ``resourceClaims`` are not read here: the pods that use the claims name them too.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import Dialect, Find, StringMap, creation_time, find_object, require_object
from tutti.kube.gangs.gang import DisruptionMode, Gang
from tutti.kube.gangs.native_composite import MAX_ANCESTORS, ancestor_chain, read_composite
from tutti.kube.gangs.native_policy import (
    check_same_scheduling,
    completed_spec,
    disruption_of,
    may_preempt,
    minimum_of,
    priority_of,
    topology_of,
)
from tutti.kube.objects import CompositePodGroup, Object, Pod, PodGroup
from tutti.kube.times import micros

INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"
"""The condition of a PodGroup whose minimum was scheduled once."""


class Native(Dialect):
    """The dialect of Kubernetes' own groups; the module's docstring has the rules."""

    NAME = "native"
    DISRUPTION = DisruptionMode.SINGLE

    def group_names(self, pod: Pod, labels: StringMap, annotations: StringMap) -> Sequence[str]:
        """Return the group that a pod names."""
        group = pod.spec.scheduling_group
        return (group.pod_group_name,) if group is not None and group.pod_group_name else ()

    def group_objects(self, key: str, find: Find) -> Sequence[Object]:
        """Return the root group: a PodGroup without a parent, or a CompositePodGroup."""
        group = find_object(find, PodGroup, key)
        is_root = group is not None and not group.spec.parent_composite_pod_group_name
        root = group if is_root else find_object(find, CompositePodGroup, key)
        return () if root is None else (root,)

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """Read the gang from its PodGroup, or from the tree of its CompositePodGroup."""
        pods: dict[str, list[Pod]] = {}
        for pod in members:
            for name in self.group_names(pod, {}, {}):
                pods.setdefault(f"{key.partition('/')[0]}/{name}", []).append(pod)
        if set(pods) == {key} and len(ancestor_chain(key, find)) == 1:
            return self._read_pod_group(require_object(find, PodGroup, key), members, find)
        return read_composite(key, pods, find, dialect=self.NAME)

    def _read_pod_group(self, group: PodGroup, members: Sequence[Pod], find: Find) -> Gang:
        if group.spec.parent_composite_pod_group_name:
            raise InputError(f"its parent groups form a cycle, or are more than {MAX_ANCESTORS}")
        spec = completed_spec(group, find)
        priority = priority_of(spec, members, find)
        check_same_scheduling(members, priority)
        return Gang(
            key=group.key,
            dialect=self.NAME,
            minimum=minimum_of(spec),
            topology=topology_of(spec),
            disruption=disruption_of(spec),
            priority=priority,
            preempts=may_preempt(spec),
            created=creation_time(group),
            whole_since=whole_since(group),
        )


def whole_since(group: PodGroup) -> int | None:
    """Return when all pods that a group needs were first scheduled, as the group's condition says."""
    for condition in group.status.conditions or ():
        if condition.type == INITIALLY_SCHEDULED and condition.status == "True" and condition.last_transition_time:
            return micros(condition.last_transition_time)
    return None
