"""Gangs as they are drawn, and the objects, labels and annotations that describe them in each dialect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import msgspec

from tests.support.builders import COSCHEDULING_LABEL
from tutti.kube import objects as k
from tutti.kube.gangs import tutti_annotations as additions
from tutti.kube.objects import (
    CompositePodGroup,
    CoschedulingPodGroup,
    CoschedulingSpec,
    GangPolicy,
    GroupSpec,
    KaiPodGroup,
    KaiSpec,
    KaiSubGroup,
    KaiTopology,
    Object,
    ObjectMeta,
    PodGroup,
    SchedulingConstraints,
    SchedulingPolicy,
    TopologyConstraint,
    VolcanoPodGroup,
    VolcanoSpec,
)

DIALECTS = ("annotation", "coscheduling", "native", "composite", "fluence", "volcano", "kueue", "kai")
WITH_PARTS = ("annotation", "coscheduling", "composite", "volcano", "kai")

Amounts = tuple[int, int, int]
"""Millicores, MiB, GPUs."""


@dataclass
class DrawnGang:
    """A gang before it is described in a dialect."""

    name: str
    dialect: str
    size: int
    minimum: int
    priority: int = 0
    never: bool = False
    """Whether the gang must not evict other pods."""
    required: str | None = None
    preferred: str | None = None
    disruption: str | None = None
    parts: list[tuple[str, int, str | None]] = field(default_factory=list)
    """Name, minimum and required label."""
    parts_needed: int | None = None
    missing: bool = False
    """Whether its group is not there."""
    asks: list[Amounts] = field(default_factory=list)
    rules: dict[str, object] = field(default_factory=dict)
    """What the pods ask of each other, as fields of their spec."""
    created: str = ""


def tutti_annotations(made: DrawnGang, *, minimum: bool = False) -> dict[str, str]:
    """The annotations of Tutti's own that a gang has."""
    texts = {}
    if minimum and made.minimum != made.size:
        texts[additions.MIN_MEMBER] = str(made.minimum)
    if made.required:
        texts[additions.REQUIRED] = made.required
    if made.preferred:
        texts[additions.PREFERRED] = made.preferred
    if made.disruption:
        texts[additions.DISRUPTION] = made.disruption
    if made.parts:
        parts = [
            {"name": name, "minMember": least, "topology": {"required": label} if label else {}}
            for name, least, label in made.parts
        ]
        texts[additions.SUB_GROUPS] = msgspec.json.encode(parts).decode()
    return texts


def membership_of(made: DrawnGang, part: str) -> tuple[dict[str, str], dict[str, str], dict[str, object]]:
    """Labels, annotations and fields of the spec by which a pod names its gang and part."""
    sub = {additions.SUB_GROUP: part} if part else {}
    match made.dialect:
        case "annotation":
            return sub, {"pod-group": made.name, **tutti_annotations(made, minimum=True)}, {}
        case "coscheduling":
            return {COSCHEDULING_LABEL: made.name, **sub}, {}, {}
        case "native":
            return {}, {}, {"scheduling_group": k.SchedulingGroup(pod_group_name=made.name)}
        case "composite":
            return {}, {}, {"scheduling_group": k.SchedulingGroup(pod_group_name=f"{made.name}-{part}")}
        case "fluence":
            return {"fluence.group": made.name, "fluence.group-size": str(made.minimum)}, tutti_annotations(made), {}
        case "volcano":
            task = {"volcano.sh/task-spec": part} if part else {}
            return {}, {"scheduling.k8s.io/group-name": made.name, **task}, {}
        case "kueue":
            domain = "kueue.x-k8s.io/"
            texts = {f"{domain}pod-group-total-count": str(made.minimum)}
            if made.required:
                texts[f"{domain}podset-required-topology"] = made.required
            if made.preferred:
                texts[f"{domain}podset-preferred-topology"] = made.preferred
            if made.disruption:
                texts[additions.DISRUPTION] = made.disruption
            return {f"{domain}pod-group-name": made.name}, texts, {}
        case _:
            return {"kai.scheduler/subgroup-name": part} if part else {}, {"pod-group-name": made.name}, {}


def group_objects(made: DrawnGang) -> list[Object]:
    """The objects that describe a gang."""
    texts = tutti_annotations(made)
    match made.dialect:
        case "coscheduling":
            return [CoschedulingPodGroup(metadata=_meta(made, texts), spec=CoschedulingSpec(min_member=made.minimum))]
        case "native":
            return [_native(made)]
        case "composite":
            return list(_composite(made))
        case "volcano":
            texts.pop(additions.SUB_GROUPS, None)
            tasks = {name: least for name, least, _ in made.parts}
            spec = VolcanoSpec(min_member=made.minimum, min_task_member=tasks or None)
            return [VolcanoPodGroup(metadata=_meta(made, texts), spec=spec)]
        case "kai":
            return [_kai(made)]
        case _:
            return []


def _meta(made: DrawnGang, texts: dict[str, str] | None = None) -> ObjectMeta:
    return ObjectMeta(name=made.name, namespace="default", annotations=texts or None, creation_timestamp=made.created)


def _near(label: str | None) -> SchedulingConstraints | None:
    return SchedulingConstraints(topology=[TopologyConstraint(key=label)]) if label else None


def _whole_or_not(made: DrawnGang) -> tuple[dict[str, object] | None, dict[str, str]]:
    """Kubernetes' own word for how a gang may be evicted, and Tutti's where it has none."""
    if made.disruption == "whole":
        return None, {additions.DISRUPTION: "whole"}
    return ({made.disruption: {}} if made.disruption else None), {}


def _native(made: DrawnGang) -> PodGroup:
    mode, texts = _whole_or_not(made)
    spec = GroupSpec(
        scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=made.minimum)),
        scheduling_constraints=_near(made.required), disruption_mode=mode, priority=made.priority,
        preemption_policy="Never" if made.never else None,
    )  # fmt: skip
    return PodGroup(metadata=_meta(made, texts), spec=spec)


def _composite(made: DrawnGang) -> Iterator[Object]:
    mode, texts = _whole_or_not(made)
    groups = len(made.parts) if made.parts_needed is None else made.parts_needed
    above = GroupSpec(
        scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_group_count=groups)),
        scheduling_constraints=_near(made.required), disruption_mode=mode, priority=made.priority,
    )  # fmt: skip
    yield CompositePodGroup(metadata=_meta(made, texts), spec=above)
    for name, least, label in made.parts:
        spec = GroupSpec(
            scheduling_policy=SchedulingPolicy(gang=GangPolicy(min_count=least)),
            scheduling_constraints=_near(label), parent_composite_pod_group_name=made.name,
        )  # fmt: skip
        yield PodGroup(metadata=ObjectMeta(name=f"{made.name}-{name}", namespace="default"), spec=spec)


def _kai(made: DrawnGang) -> KaiPodGroup:
    texts = {additions.DISRUPTION: made.disruption} if made.disruption else None
    near = partial(KaiTopology, topology="t")
    parts = [
        KaiSubGroup(
            name=name, min_member=least, topology_constraint=near(required_topology_level=label) if label else None
        )
        for name, least, label in made.parts
    ]
    spec = KaiSpec(
        min_member=made.minimum, min_sub_group=made.parts_needed, sub_groups=parts or None,
        topology_constraint=near(required_topology_level=made.required, preferred_topology_level=made.preferred),
    )  # fmt: skip
    return KaiPodGroup(metadata=_meta(made, texts), spec=spec)
