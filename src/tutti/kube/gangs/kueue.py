"""Kueue's plain pod groups: a label names the group, annotations say its size and where it runs.

- The label ``kueue.x-k8s.io/pod-group-name`` and the annotation ``pod-group-total-count``: all of that many pods start
  together. Serving groups and groups with fast admission have the same size.
- ``podset-required-topology`` and ``podset-preferred-topology`` hold for one pod set: the pods with one
  ``podset-group-name``, or else with one ``role-hash``, which Kueue writes. With several pod sets, of which some ask
  for a topology, each is a part; its minimum is 0, for the gang's minimum is all pods.
- Slices and other ``podset-`` annotations are a problem. Queues, quotas and Kueue's own priority classes, which order
  its queues and nothing else, are not read.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import Dialect, Find, NoGroupError, Texts, agreed, annotation_of, number
from tutti.kube.gangs.gang import Gang, GangPart, GangTopology
from tutti.kube.gangs.tutti_annotations import SUB_GROUP
from tutti.kube.objects import Pod

_DOMAIN = "kueue.x-k8s.io/"
_NAME = f"{_DOMAIN}pod-group-name"
_COUNT = f"{_DOMAIN}pod-group-total-count"
_ROLE = f"{_DOMAIN}role-hash"
_POD_SET = f"{_DOMAIN}podset-"
_TOGETHER = f"{_POD_SET}group-name"
_REQUIRED = f"{_POD_SET}required-topology"
_PREFERRED = f"{_POD_SET}preferred-topology"
_UNCONSTRAINED = f"{_POD_SET}unconstrained-topology"
_KNOWN = frozenset((_TOGETHER, _REQUIRED, _PREFERRED, _UNCONSTRAINED))


class Kueue(Dialect):
    """See the module's contract."""

    NAME = "kueue"
    MARKS = frozenset((_NAME,))

    def names(self, pod: Pod, labels: Texts, annotations: Texts) -> Sequence[str]:
        """The group that a pod names."""
        name = labels.get(_NAME)
        return (name,) if name else ()

    def part(self, labels: Texts, annotations: Texts) -> str:
        """The pod set that a pod is in, unless it says better than a hash can."""
        return "" if SUB_GROUP in labels else annotations.get(_TOGETHER) or annotations.get(_ROLE, "")

    def read(self, key: str, members: Sequence[Pod], find: Find) -> Gang:
        """What the pods say."""
        count = agreed(members, _count, what="sizes")
        if count is None:
            raise NoGroupError(f"no pod of it says {_COUNT}")
        sets: dict[str, list[Pod]] = {}
        for pod in members:
            _check_understood(pod)
            sets.setdefault(self.part({}, pod.metadata.annotations or {}), []).append(pod)
        topologies = {name: _topology(pods) for name, pods in sorted(sets.items())}
        if len(topologies) == 1:
            return Gang(key=key, dialect=self.NAME, minimum=count, topology=next(iter(topologies.values())))
        if topologies.pop("", GangTopology()) != GangTopology():
            raise InputError(f"its pods ask for a topology, and only some of them say {_ROLE}")
        parts = tuple(GangPart(name, 0, topology) for name, topology in topologies.items())
        asked = any(part.topology != GangTopology() for part in parts)
        return Gang(key=key, dialect=self.NAME, minimum=count, parts=parts if asked else ())


def _count(pod: Pod) -> int | None:
    text = annotation_of(pod, _COUNT)
    return None if text is None else number(text, "pod-group-total-count", least=1)


def _topology(pods: Sequence[Pod]) -> GangTopology:
    """What the pods of one set ask for."""
    needed = agreed(pods, lambda pod: annotation_of(pod, _REQUIRED), what="required topologies")
    wanted = agreed(pods, lambda pod: annotation_of(pod, _PREFERRED), what="preferred topologies")
    return GangTopology(needed, (wanted,) if wanted else ())


def _check_understood(pod: Pod) -> None:
    for key in sorted(pod.metadata.annotations or ()):
        if key.startswith(_POD_SET) and key not in _KNOWN:
            raise InputError(f"annotation {key} of pod {pod.metadata.name} is not understood")
