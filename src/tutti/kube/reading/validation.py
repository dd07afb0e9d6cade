"""Checks of the values of a decoded object, so that no invalid value passes the loader.

Contract: `validate` raises `InputError` with the field for the first quantity, time, selector, operator or name that
Kubernetes would refuse, among the fields that Tutti reads. It changes nothing. It runs on every object of a dump, so it
takes microseconds for a typical pod: the parsers cache their results, and paths are joined only for an error.
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
    field_error,
)

_PERCENT = re.compile(r"[0-9]{1,9}%")


def validate(obj: Object) -> None:
    """Raise `InputError` for the first invalid value."""
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
        for index, container_status in enumerate(statuses or ()):
            if container_status.allocated_resources:
                path = ("status.", field, index, ".allocatedResources")
                check_quantities(container_status.allocated_resources, path)
            if container_status.resources is not None:
                check_resources(container_status.resources, ("status.", field, index, ".resources"))
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
    for index, claim in enumerate(getattr(spec, "volume_claim_templates", None) or ()):
        if not claim.metadata.name:
            raise field_error("a name is required", (path, ".volumeClaimTemplates", index, ".metadata.name"))
        if claim.spec.resources is not None:
            check_resources(claim.spec.resources, (path, ".volumeClaimTemplates", index, ".spec.resources"))


def _node(node: Node) -> None:
    check_quantities(node.status.allocatable or {}, ("status.allocatable",))
    check_quantities(node.status.capacity or {}, ("status.capacity",))
    for index, condition in enumerate(node.status.conditions or ()):
        if condition.last_heartbeat_time is not None:
            check_time(condition.last_heartbeat_time, f"status.conditions[{index}].lastHeartbeatTime")
    _taints(node.spec.taints, "spec.taints")


def _taints(taints: Iterable[Taint] | None, path: str) -> None:
    for index, taint in enumerate(taints or ()):
        if taint.effect not in EFFECTS:
            raise field_error(f'"{taint.effect}" is not an effect', (path, index, ".effect"))


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
    for field, value in (("minAvailable", budget.spec.min_available), ("maxUnavailable", budget.spec.max_unavailable)):
        is_valid = value is None or (value >= 0 if isinstance(value, int) else _PERCENT.fullmatch(value) is not None)
        if not is_valid:
            raise InputError(f'"{value}" is not a number of pods or a percentage', field=f"spec.{field}")
    if budget.spec.selector is not None:
        check_selector(budget.spec.selector, ("spec.selector",))


def _limit_range(limit_range: Any) -> None:
    for index, item in enumerate(limit_range.spec.limits or ()):
        for field, quantities in (
            ("default", item.default),
            ("defaultRequest", item.default_request),
            ("max", item.max),
            ("min", item.min),
        ):
            check_quantities(quantities or {}, ("spec.limits", index, ".", field))


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
