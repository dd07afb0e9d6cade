"""Kueue's plain pod groups: a label has the name of the group, annotations have its size and its topology.

- The label ``kueue.x-k8s.io/pod-group-name`` is the name; the annotation ``pod-group-total-count`` is the number of
  pods, which all start together; also for serving groups and groups with fast admission.
- ``podset-required-topology`` and ``podset-preferred-topology`` apply to one pod set: the pods with the same
  ``podset-group-name``, or without it the pods with the same ``role-hash``, which Kueue writes. If there are several
  pod sets and some of them have a topology, each pod set is a part with minimum 0: the gang's minimum covers all pods.
- Slices and other ``podset-`` annotations are not supported: the gang gets a problem. Queues, quotas and Kueue's own
  priority classes, which only order its queues, are not read.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import Dialect, Find, NoGroupError, StringMap, agreed_value, annotation_of, parse_count
from tutti.kube.gangs.gang import Gang, GangPart, GangTopology
from tutti.kube.gangs.tutti_annotations import SUB_GROUP
from tutti.kube.objects import Pod

_DOMAIN = "kueue.x-k8s.io/"
_NAME = f"{_DOMAIN}pod-group-name"
_COUNT = f"{_DOMAIN}pod-group-total-count"
_ROLE = f"{_DOMAIN}role-hash"
_POD_SET = f"{_DOMAIN}podset-"
_POD_SET_GROUP = f"{_POD_SET}group-name"
_REQUIRED = f"{_POD_SET}required-topology"
_PREFERRED = f"{_POD_SET}preferred-topology"
_UNCONSTRAINED = f"{_POD_SET}unconstrained-topology"
_SUPPORTED = frozenset((_POD_SET_GROUP, _REQUIRED, _PREFERRED, _UNCONSTRAINED))


class Kueue(Dialect):
    """The dialect of Kueue; the module's docstring has the rules."""

    NAME = "kueue"
    GROUP_KEYS = frozenset((_NAME,))

    def group_names(self, pod: Pod, labels: StringMap, annotations: StringMap) -> Sequence[str]:
        """Return the group that a pod names."""
        name = labels.get(_NAME)
        return (name,) if name else ()

    def part_name(self, labels: StringMap, annotations: StringMap) -> str:
        """Return the pod set of a pod; empty if the pod has the label tutti.dev/sub-group, which wins."""
        return "" if SUB_GROUP in labels else annotations.get(_POD_SET_GROUP) or annotations.get(_ROLE, "")

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """Read the gang from the annotations of the pods."""
        count = agreed_value(members, _count, what="sizes")
        if count is None:
            raise NoGroupError(f"none of its pods has {_COUNT}")
        pod_sets: dict[str, list[Pod]] = {}
        for pod in members:
            _check_supported(pod)
            pod_sets.setdefault(self.part_name({}, pod.metadata.annotations or {}), []).append(pod)
        topologies = {name: _topology(pods) for name, pods in sorted(pod_sets.items())}
        if len(topologies) == 1:
            return Gang(key=key, dialect=self.NAME, minimum=count, topology=next(iter(topologies.values())))
        if topologies.pop("", GangTopology()) != GangTopology():
            raise InputError(f"its pods request a topology, but only some of them have {_ROLE}")
        parts = tuple(GangPart(name, 0, topology) for name, topology in topologies.items())
        has_topology = any(part.topology != GangTopology() for part in parts)
        return Gang(key=key, dialect=self.NAME, minimum=count, parts=parts if has_topology else ())


def _count(pod: Pod) -> int | None:
    text = annotation_of(pod, _COUNT)
    return None if text is None else parse_count(text, "pod-group-total-count", least=1)


def _topology(pods: Sequence[Pod]) -> GangTopology:
    """Return the topology of the pods of one pod set."""
    required = agreed_value(pods, lambda pod: annotation_of(pod, _REQUIRED), what="required topologies")
    preferred = agreed_value(pods, lambda pod: annotation_of(pod, _PREFERRED), what="preferred topologies")
    return GangTopology(required, (preferred,) if preferred else ())


def _check_supported(pod: Pod) -> None:
    for key in sorted(pod.metadata.annotations or ()):
        if key.startswith(_POD_SET) and key not in _SUPPORTED:
            raise InputError(f"annotation {key} of pod {pod.metadata.name} is not understood")
