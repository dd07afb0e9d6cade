"""The fields of one PodGroup or CompositePodGroup of Kubernetes.

Contract: each function takes a group's spec, completed from its template by `completed_spec`, and raises `InputError`
for a missing or unsupported field.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.gangs.dialect import Find, agreed_value, checked_count, class_priority, require_object, unfinished_pods
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


def completed_spec(group: PodGroup | CompositePodGroup, find: Find) -> GroupSpec:
    """Return a group's spec; without a policy of its own, with the missing fields of its Workload template."""
    spec = group.spec
    if spec.scheduling_policy is not None or spec.workload_ref is None:
        return spec
    namespace = group.key.partition("/")[0]
    workload = require_object(find, Workload, f"{namespace}/{spec.workload_ref.workload_name}")
    template = _template(workload.spec, spec.workload_ref.template_name)
    if template is None:
        raise InputError(f"Workload {workload.key} has no template {spec.workload_ref.template_name}")
    missing = {field: getattr(template, field) for field in GroupPolicy.__struct_fields__ if not getattr(spec, field)}
    return replace(spec, **missing)


def _template(templates: Any, name: str) -> GroupTemplate | None:
    """Return the template with a name, from the whole tree of templates; None if there is none."""
    for each in (*(templates.pod_group_templates or ()), *(templates.composite_pod_group_templates or ())):
        template: GroupTemplate | None = each if each.name == name else _template(each, name)
        if template is not None:
            return template
    return None


def minimum_of(spec: GroupSpec) -> int:
    """Return how many pods of a group start together."""
    gang = _gang(spec)
    if gang is None:
        return 1
    if gang.min_count is None:
        raise InputError("its gang policy has no minCount")
    return checked_count(gang.min_count, "minCount", least=1)


def groups_needed(spec: GroupSpec) -> int:
    """Return how many groups of a composite group start together; 1 for policy basic."""
    gang = _gang(spec)
    if gang is None:
        return 1
    if gang.min_group_count is None:
        raise InputError("its gang policy has no minGroupCount")
    return checked_count(gang.min_group_count, "minGroupCount", least=1)


def _gang(spec: GroupSpec) -> GangPolicy | None:
    policy = spec.scheduling_policy
    if policy is None or (policy.gang is None) == (policy.basic is None):
        raise InputError("its schedulingPolicy is neither basic nor gang")
    return policy.gang


def topology_of(spec: GroupSpec) -> GangTopology:
    """Return the required topology of a group: at most one node label."""
    constraints = spec.scheduling_constraints
    keys = [each.key for each in (constraints.topology if constraints else None) or ()]
    if len(keys) > 1:
        raise InputError(f"it has {len(keys)} topology constraints; only one is supported")
    if keys and not keys[0]:
        raise InputError("its topology constraint has no key")
    return GangTopology(required=keys[0] if keys else None)


def disruption_of(spec: GroupSpec) -> DisruptionMode:
    """Return the disruption mode of a group; the default is single."""
    mode = spec.disruption_mode
    if not mode:
        return DisruptionMode.SINGLE
    name = next(iter(mode)) if isinstance(mode, dict) and len(mode) == 1 else mode
    known = _MODES.get(name.lower()) if isinstance(name, str) else None
    if known is None:
        raise InputError("its disruptionMode is neither single nor all")
    return known


def priority_of(spec: GroupSpec, members: Sequence[Pod], find: Find) -> int | None:
    """Return the priority of a group; None if it has neither a priority nor a priority class."""
    return spec.priority if spec.priority is not None else class_priority(spec.priority_class_name, members, find)


def may_preempt(spec: GroupSpec) -> bool | None:
    """Whether a group may evict other pods; None if it has no preemption policy."""
    if spec.preemption_policy not in _PREEMPTS:
        raise InputError(f'its preemptionPolicy "{spec.preemption_policy}" is not understood')
    return _PREEMPTS[spec.preemption_policy]


def check_same_scheduling(members: Sequence[Pod], priority: int | None) -> None:
    """Raise `InputError` if pods of a group differ in scheduler, preemption policy or priority."""
    pods = unfinished_pods(members)
    agreed_value(pods, lambda pod: pod.spec.scheduler_name, what="schedulers")
    agreed_value(pods, lambda pod: pod.spec.preemption_policy, what="preemption policies")
    pod_priority = agreed_value(pods, lambda pod: pod.spec.priority, what="priorities")
    if None not in (priority, pod_priority) and priority != pod_priority:
        raise InputError(f"its pods have priority {pod_priority}, the group has {priority}")
