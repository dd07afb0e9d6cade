"""Volcano: an annotation on pods, and a PodGroup of scheduling.volcano.sh.

- ``minMember`` is the minimum. ``minTaskMember`` makes parts of the tasks that pods name in ``volcano.sh/task-spec``;
  as in Volcano, it counts only if ``minMember`` is not less than its sum.
- Without a PodGroup, pods may say the minimum themselves: ``scheduling.volcano.sh/group-min-member``.
- Hyper nodes are not read, so a hard network topology is a problem; a soft one is only a wish and left out. Sub-groups
  by label selector that need something of their own are a problem as well.
- ``minResources`` cannot change an answer: requests are judged pod by pod. Queues are not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import (
    Dialect,
    Find,
    NoGroupError,
    Texts,
    agreed,
    annotation_of,
    created,
    distinct,
    found,
    number,
    priority_named,
    within,
)
from tutti.kube.gangs.gang import Gang, GangPart
from tutti.kube.objects import Object, Pod, VolcanoPodGroup

_NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
_MINIMUM = "scheduling.volcano.sh/group-min-member"
_TASK = "volcano.sh/task-spec"
_MODE = "volcano.sh/network-topology-mode"


class Volcano(Dialect):
    """See the module's contract."""

    NAME = "volcano"
    MARKS = frozenset(_NAMES)

    def names(self, pod: Pod, labels: Texts, annotations: Texts) -> Sequence[str]:
        """The groups that a pod names."""
        return distinct(*(annotations.get(key) for key in _NAMES))

    def part(self, labels: Texts, annotations: Texts) -> str:
        """The task that a pod belongs to."""
        return annotations.get(_TASK, "")

    def objects(self, key: str, find: Find) -> Sequence[Object]:
        """The PodGroup, if it is there."""
        group = found(find, VolcanoPodGroup, key)
        return () if group is None else (group,)

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """What the PodGroup says, or its pods."""
        group = found(find, VolcanoPodGroup, key)
        if group is None:
            return self._read_pods(key, members)
        spec = group.spec
        if spec.network_topology is not None and spec.network_topology.mode != "soft":
            raise InputError("its networkTopology is hard, and hyper nodes are not read")
        for policy in spec.sub_group_policy or ():
            _check_idle(policy)
        minimum = 1 if spec.min_member is None else max(1, within(spec.min_member, "minMember"))
        return Gang(
            key=key,
            dialect=self.NAME,
            minimum=minimum,
            parts=_tasks(group, minimum, members),
            priority=priority_named(spec.priority_class_name, members, find),
            created=created(group),
        )

    def _read_pods(self, key: str, members: Sequence[Pod]) -> Gang:
        minimum = agreed(members, _said_minimum, what="sizes")
        if minimum is None:
            raise NoGroupError(f"PodGroup {key} is not there")
        if agreed(members, lambda pod: annotation_of(pod, _MODE), what="network topologies") not in (None, "soft"):
            raise InputError("its network topology is hard, and hyper nodes are not read")
        return Gang(key=key, dialect=self.NAME, minimum=minimum)


def _said_minimum(pod: Pod) -> int | None:
    text = annotation_of(pod, _MINIMUM)
    return None if text is None else number(text, _MINIMUM, least=1)


def _tasks(group: VolcanoPodGroup, minimum: int, members: Sequence[Pod]) -> tuple[GangPart, ...]:
    """Tasks with a minimum, and those without that pods are in."""
    said = {
        name: within(count, f"minTaskMember of {name}") for name, count in (group.spec.min_task_member or {}).items()
    }
    if not said or sum(said.values()) > minimum:
        return ()
    named = {annotation_of(pod, _TASK) for pod in members} - {None}
    return tuple(GangPart(name, said.get(name, 0)) for name in sorted(said.keys() | {name for name in named if name}))


def _check_idle(policy: dict[str, Any]) -> None:
    """Refuse sub-groups that must be complete, or near to each other."""
    topology = policy.get("networkTopology")
    soft = not topology or (isinstance(topology, dict) and topology.get("mode") == "soft")
    if policy.get("minSubGroups") or not soft:
        raise InputError(f"its subGroupPolicy {policy.get('name', '')} is not understood")
