"""Checks of a decoded object's values, so that nothing unreadable gets beyond the loader.

Contract: `validate` raises `InputError` with the field for a quantity, time, selector, operator or name that Kubernetes
would refuse and that scheduling reads; it changes nothing. It is run on every object of a dump, so the usual pod must
cost microseconds: texts are checked through remembered parsers, and paths are put together only for a fault.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from tutti.exceptions import InputError
from tutti.kube.objects import (
    CSIStorageCapacity,
    KarpenterPool,
    LabelSelector,
    Node,
    Object,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    Quantity,
    Taint,
)
from tutti.kube.quantity import parse_nano
from tutti.kube.reading.pod_validation import (
    EFFECTS,
    check_pod_spec,
    check_quantities,
    check_resources,
    check_selector,
    check_time,
    fault_at,
)

_PERCENT = re.compile(r"[0-9]{1,9}%")


def validate(obj: Object) -> None:
    """Raise `InputError` for the first value that cannot be read."""
    _metadata(obj.metadata)
    check: Callable[[Any], None] | None = _CHECKS.get(obj.KIND)
    if check is not None:
        check(obj)


def _metadata(metadata: ObjectMeta) -> None:
    if not metadata.name:
        raise InputError("a name is required", field="metadata.name")
    if metadata.creation_timestamp is not None:
        check_time(metadata.creation_timestamp, "metadata.creationTimestamp")
    if metadata.deletion_timestamp is not None:
        check_time(metadata.deletion_timestamp, "metadata.deletionTimestamp")


def _pod(pod: Pod) -> None:
    check_pod_spec(pod.spec, "spec")
    status = pod.status
    if status.start_time is not None:
        check_time(status.start_time, "status.startTime")
    for field, statuses in (
        ("containerStatuses", status.container_statuses),
        ("initContainerStatuses", status.init_container_statuses),
    ):
        for place, seen in enumerate(statuses or ()):
            if seen.allocated_resources:
                check_quantities(seen.allocated_resources, ("status.", field, place, ".allocatedResources"))
            if seen.resources is not None:
                check_resources(seen.resources, ("status.", field, place, ".resources"))
    if status.allocated_resources:
        check_quantities(status.allocated_resources, ("status.allocatedResources",))
    if status.resources is not None:
        check_resources(status.resources, ("status.resources",))


def _workload(obj: Any) -> None:
    spec = obj.spec.job_template.spec if obj.KIND == "CronJob" else obj.spec
    path = "spec.jobTemplate.spec" if obj.KIND == "CronJob" else "spec"
    selector = getattr(spec, "selector", None)
    if isinstance(selector, LabelSelector):
        check_selector(selector, (path, ".selector"))
    if spec.template is not None:
        check_pod_spec(spec.template.spec, f"{path}.template.spec")
    for place, claim in enumerate(getattr(spec, "volume_claim_templates", None) or ()):
        if not claim.metadata.name:
            raise fault_at("a name is required", (path, ".volumeClaimTemplates", place, ".metadata.name"))
        if claim.spec.resources is not None:
            check_resources(claim.spec.resources, (path, ".volumeClaimTemplates", place, ".spec.resources"))


def _node(node: Node) -> None:
    check_quantities(node.status.allocatable or {}, ("status.allocatable",))
    check_quantities(node.status.capacity or {}, ("status.capacity",))
    for place, condition in enumerate(node.status.conditions or ()):
        if condition.last_heartbeat_time is not None:
            check_time(condition.last_heartbeat_time, f"status.conditions[{place}].lastHeartbeatTime")
    _taints(node.spec.taints, "spec.taints")


def _taints(taints: Iterable[Taint] | None, path: str) -> None:
    for place, taint in enumerate(taints or ()):
        if taint.effect not in EFFECTS:
            raise fault_at(f'"{taint.effect}" is not an effect', (path, place, ".effect"))


def _karpenter_pool(pool: KarpenterPool) -> None:
    check_quantities(pool.spec.limits or {}, ("spec.limits",))
    _taints(pool.spec.template.spec.taints, "spec.template.spec.taints")


def _quantity(quantity: Quantity | None, path: str) -> None:
    if quantity is not None:
        try:
            parse_nano(quantity)
        except InputError as error:
            raise InputError(error.problem, field=path) from None


def _claim(claim: PersistentVolumeClaim) -> None:
    if claim.spec.resources is not None:
        check_resources(claim.spec.resources, ("spec.resources",))
    if claim.spec.selector is not None:
        check_selector(claim.spec.selector, ("spec.selector",))


def _volume(volume: PersistentVolume) -> None:
    check_quantities(volume.spec.capacity or {}, ("spec.capacity",))


def _capacity(capacity: CSIStorageCapacity) -> None:
    _quantity(capacity.capacity, "capacity")
    _quantity(capacity.maximum_volume_size, "maximumVolumeSize")
    if capacity.node_topology is not None:
        check_selector(capacity.node_topology, ("nodeTopology",))


def _budget(budget: Any) -> None:
    for field, text in (("minAvailable", budget.spec.min_available), ("maxUnavailable", budget.spec.max_unavailable)):
        good = text is None or (text >= 0 if isinstance(text, int) else _PERCENT.fullmatch(text) is not None)
        if not good:
            raise InputError(f'"{text}" is not a number of pods or a percentage', field=f"spec.{field}")
    if budget.spec.selector is not None:
        check_selector(budget.spec.selector, ("spec.selector",))


def _limit_range(limit_range: Any) -> None:
    for place, item in enumerate(limit_range.spec.limits or ()):
        for field in ("default", "default_request", "max", "min"):
            check_quantities(getattr(item, field) or {}, ("spec.limits", place, ".", field))


def _runtime_class(runtime: Any) -> None:
    if runtime.overhead is not None:
        check_quantities(runtime.overhead.pod_fixed or {}, ("overhead.podFixed",))


_CHECKS: dict[str, Callable[[Any], None]] = {
    "Pod": _pod,
    "Node": _node,
    "NodePool.karpenter.sh": _karpenter_pool,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume,
    "CSIStorageCapacity": _capacity,
    "PodDisruptionBudget": _budget,
    "LimitRange": _limit_range,
    "RuntimeClass": _runtime_class,
    **dict.fromkeys(
        ("ReplicationController", "ReplicaSet", "StatefulSet", "Deployment", "DaemonSet", "Job", "CronJob"), _workload
    ),
}
