"""What one group of Kubernetes' own says, field by field.

Contract: each function takes a group's spec, `completed` from its template, and raises `InputError` for what is missing
or not understood.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import Find, agreed, priority_named, required, waiting_or_running, within
from tutti.kube.gangs.gang import DisruptionMode, GangTopology
from tutti.kube.objects import (
    CompositePodGroup,
    GangPolicy,
    GroupPolicy,
    GroupSpec,
    GroupTemplate,
    Pod,
    PodGroup,
    Workload,
)

_PREEMPTS = {"PreemptLowerPriority": True, "Never": False, "": None, None: None}
_MODES = {
    "single": DisruptionMode.SINGLE,
    "pod": DisruptionMode.SINGLE,
    "all": DisruptionMode.ALL,
    "podgroup": DisruptionMode.ALL,
}


def completed(group: PodGroup | CompositePodGroup, find: Find) -> GroupSpec:
    """What a group says, with its template's word where it has no policy of its own."""
    spec = group.spec
    if spec.scheduling_policy is not None or spec.workload_ref is None:
        return spec
    namespace = group.key.partition("/")[0]
    workload = required(find, Workload, f"{namespace}/{spec.workload_ref.workload_name}")
    template = _template(workload.spec, spec.workload_ref.template_name)
    if template is None:
        raise InputError(f"Workload {workload.key} has no template {spec.workload_ref.template_name}")
    missing = {field: getattr(template, field) for field in GroupPolicy.__struct_fields__ if not getattr(spec, field)}
    return replace(spec, **missing)


def _template(within: Any, name: str) -> GroupTemplate | None:
    """The template of a name, wherever in the tree it is."""
    for each in (*(within.pod_group_templates or ()), *(within.composite_pod_group_templates or ())):
        inner: GroupTemplate | None = each if each.name == name else _template(each, name)
        if inner is not None:
            return inner
    return None


def minimum_of(spec: GroupSpec) -> int:
    """How many pods of a group start together."""
    gang = _gang(spec)
    if gang is None:
        return 1
    if gang.min_count is None:
        raise InputError("its gang policy has no minCount")
    return within(gang.min_count, "minCount", least=1)


def groups_needed(spec: GroupSpec) -> int:
    """How many groups of a composite group start together; the groups of a basic one start each for itself."""
    gang = _gang(spec)
    if gang is None:
        return 1
    if gang.min_group_count is None:
        raise InputError("its gang policy has no minGroupCount")
    return within(gang.min_group_count, "minGroupCount", least=1)


def _gang(spec: GroupSpec) -> GangPolicy | None:
    policy = spec.scheduling_policy
    if policy is None or (policy.gang is None) == (policy.basic is None):
        raise InputError("its schedulingPolicy is neither basic nor gang")
    return policy.gang


def topology_of(spec: GroupSpec) -> GangTopology:
    """The node label whose value a group shares."""
    constraints = spec.scheduling_constraints
    keys = [each.key for each in (constraints.topology if constraints else None) or ()]
    if len(keys) > 1:
        raise InputError(f"it has {len(keys)} topology constraints, and one is understood")
    if keys and not keys[0]:
        raise InputError("its topology constraint has no key")
    return GangTopology(required=keys[0] if keys else None)


def disruption_of(spec: GroupSpec) -> DisruptionMode:
    """How a group may be evicted."""
    mode = spec.disruption_mode
    if not mode:
        return DisruptionMode.SINGLE
    said = next(iter(mode)) if isinstance(mode, dict) and len(mode) == 1 else mode
    known = _MODES.get(said.lower()) if isinstance(said, str) else None
    if known is None:
        raise InputError("its disruptionMode is neither single nor all")
    return known


def priority_of(spec: GroupSpec, members: Sequence[Pod], find: Find) -> int | None:
    """The priority of a group."""
    return spec.priority if spec.priority is not None else priority_named(spec.priority_class_name, members, find)


def preempts(spec: GroupSpec) -> bool | None:
    """Whether a group may evict others."""
    if spec.preemption_policy not in _PREEMPTS:
        raise InputError(f'its preemptionPolicy "{spec.preemption_policy}" is not understood')
    return _PREEMPTS[spec.preemption_policy]


def check_alike(members: Sequence[Pod], priority: int | None) -> None:
    """Refuse pods of one group that are scheduled differently."""
    counting = waiting_or_running(members)
    agreed(counting, lambda pod: pod.spec.scheduler_name, what="schedulers")
    agreed(counting, lambda pod: pod.spec.preemption_policy, what="preemption policies")
    theirs = agreed(counting, lambda pod: pod.spec.priority, what="priorities")
    if None not in (priority, theirs) and priority != theirs:
        raise InputError(f"its pods have priority {theirs}, the group has {priority}")
