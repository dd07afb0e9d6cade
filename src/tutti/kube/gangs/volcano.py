"""Volcano: an annotation on pods, and a PodGroup of scheduling.volcano.sh.

- ``minMember`` is the minimum. With ``minTaskMember`` each task (named by the pods in ``volcano.sh/task-spec``) is a
  part; as in Volcano, ``minTaskMember`` counts only if its sum is at most ``minMember``.
- Without a PodGroup, the minimum is the pods' annotation ``scheduling.volcano.sh/group-min-member``.
- HyperNodes are not read: a gang with a hard network topology gets a problem, a soft network topology is ignored. A
  sub-group policy with a minimum or a hard topology of its own is a problem too.
- ``minResources`` is not read: it cannot affect the placement, because Tutti checks the requests of each pod. Queues
  are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import (
    Dialect,
    Find,
    NoGroupError,
    StringMap,
    agreed_value,
    annotation_of,
    checked_count,
    class_priority,
    creation_time,
    distinct_names,
    find_object,
    parse_count,
)
from tutti.kube.gangs.gang import Gang, GangPart
from tutti.kube.objects import Object, Pod, VolcanoPodGroup

_NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_MINIMUM = "scheduling.volcano.sh/group-min-member"
_TASK = "volcano.sh/task-spec"
_TOPOLOGY_MODE = "volcano.sh/network-topology-mode"


class Volcano(Dialect):
    """The dialect of Volcano; the module's docstring has the rules."""

    NAME = "volcano"
    GROUP_KEYS = frozenset(_NAMES)

    def group_names(self, pod: Pod, labels: StringMap, annotations: StringMap) -> Sequence[str]:
        """Return the groups that a pod names."""
        return distinct_names(*(annotations.get(key) for key in _NAMES))

    def part_name(self, labels: StringMap, annotations: StringMap) -> str:
        """Return the task of a pod."""
        return annotations.get(_TASK, "")

    def group_objects(self, key: str, find: Find) -> Sequence[Object]:
        """Return the PodGroup, if it exists."""
        group = find_object(find, VolcanoPodGroup, key)
        return () if group is None else (group,)

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """Read the gang from the PodGroup, or from the pods if there is no PodGroup."""
        group = find_object(find, VolcanoPodGroup, key)
        if group is None:
            return self._read_pods(key, members)
        spec = group.spec
        if spec.network_topology is not None and spec.network_topology.mode != "soft":
            raise InputError("its networkTopology is hard, but Tutti does not read HyperNodes")
        for policy in spec.sub_group_policy or ():
            _check_supported(policy)
        minimum = 1 if spec.min_member is None else max(1, checked_count(spec.min_member, "minMember"))
        return Gang(
            key=key,
            dialect=self.NAME,
            minimum=minimum,
            parts=_tasks(group, minimum, members),
            priority=class_priority(spec.priority_class_name, members, find),
            created=creation_time(group),
        )

    def _read_pods(self, key: str, members: Sequence[Pod]) -> Gang:
        minimum = agreed_value(members, _annotated_minimum, what="sizes")
        if minimum is None:
            raise NoGroupError(f"PodGroup {key} is not there")
        if agreed_value(members, lambda pod: annotation_of(pod, _TOPOLOGY_MODE), what="network topologies") not in (
            None,
            "soft",
        ):
            raise InputError("its network topology is hard, but Tutti does not read HyperNodes")
        return Gang(key=key, dialect=self.NAME, minimum=minimum)


def _annotated_minimum(pod: Pod) -> int | None:
    text = annotation_of(pod, _MINIMUM)
    return None if text is None else parse_count(text, _MINIMUM, least=1)


def _tasks(group: VolcanoPodGroup, minimum: int, members: Sequence[Pod]) -> tuple[GangPart, ...]:
    """Return the parts: the tasks with a minimum, and the other tasks of the members."""
    minimums = {
        name: checked_count(count, f"minTaskMember of {name}")
        for name, count in (group.spec.min_task_member or {}).items()
    }
    if not minimums or sum(minimums.values()) > minimum:
        return ()
    member_tasks = {annotation_of(pod, _TASK) for pod in members} - {None}
    names = minimums.keys() | {name for name in member_tasks if name}
    return tuple(GangPart(name, minimums.get(name, 0)) for name in sorted(names))


def _check_supported(policy: dict[str, Any]) -> None:
    """Raise `InputError` for a sub-group policy with a minimum or a hard topology."""
    topology = policy.get("networkTopology")
    is_soft = not topology or (isinstance(topology, dict) and topology.get("mode") == "soft")
    if policy.get("minSubGroups") or not is_soft:
        raise InputError(f"its subGroupPolicy {policy.get('name', '')} is not understood")
