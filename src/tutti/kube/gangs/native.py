"""Kubernetes' own groups: ``spec.schedulingGroup`` of pods, PodGroup, CompositePodGroup and Workload.

- A PodGroup's policy is ``gang`` with a minimum, or ``basic``, which is a minimum of 1. All its pods share scheduler,
  priority and preemption policy, and the group's priority if it has one; kube-scheduler refuses the others too.
- A CompositePodGroup makes one gang of its groups (`kube.gangs.composite`).
- Gangs are evicted pod by pod (``single``) unless the group says ``all``.
- A group that has no policy of its own takes what it lacks from the Workload template that it refers to.
- ``resourceClaims`` are not read here: pods that use them name them as well.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import Dialect, Find, Texts, created, found, required
from tutti.kube.gangs.gang import DisruptionMode, Gang
from tutti.kube.gangs.native_composite import DEEPEST, chain, read_composite
from tutti.kube.gangs.native_policy import (
    check_alike,
    completed,
    disruption_of,
    minimum_of,
    preempts,
    priority_of,
    topology_of,
)
from tutti.kube.objects import CompositePodGroup, Object, Pod, PodGroup


class Native(Dialect):
    """See the module's contract."""

    NAME = "native"
    DISRUPTION = DisruptionMode.SINGLE

    def names(self, pod: Pod, labels: Texts, annotations: Texts) -> Sequence[str]:
        """The group that a pod names."""
        group = pod.spec.scheduling_group
        return (group.pod_group_name,) if group is not None and group.pod_group_name else ()

    def objects(self, key: str, find: Find) -> Sequence[Object]:
        """The root: a PodGroup on its own, or a CompositePodGroup."""
        group = found(find, PodGroup, key)
        alone = group is not None and not group.spec.parent_composite_pod_group_name
        root = group if alone else found(find, CompositePodGroup, key)
        return () if root is None else (root,)

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """What the groups say."""
        pods: dict[str, list[Pod]] = {}
        for pod in members:
            for name in self.names(pod, {}, {}):
                pods.setdefault(f"{key.partition('/')[0]}/{name}", []).append(pod)
        if set(pods) == {key} and len(chain(key, find)) == 1:
            return self._read_one(required(find, PodGroup, key), members, find)
        return read_composite(key, pods, find, dialect=self.NAME)

    def _read_one(self, group: PodGroup, members: Sequence[Pod], find: Find) -> Gang:
        if group.spec.parent_composite_pod_group_name:
            raise InputError(f"the groups above it go in a circle, or are more than {DEEPEST}")
        spec = completed(group, find)
        priority = priority_of(spec, members, find)
        check_alike(members, priority)
        return Gang(
            key=group.key,
            dialect=self.NAME,
            minimum=minimum_of(spec),
            topology=topology_of(spec),
            disruption=disruption_of(spec),
            priority=priority,
            preempts=preempts(spec),
            created=created(group),
        )
