"""Exact totals over a pod's containers, in nano-units: the general case behind `kube.resources`.

Contract: pure. The totals are not rounded and include every resource. The rules are those of Kubernetes' resource
helper: sidecars run at the same time as the containers, init containers run one after another, pod-level requests
replace the sum, and a resize counts with the largest of the requested, allocated and actual amounts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tutti.kube.objects import Container, ContainerStatus, Pod, Quantities
from tutti.kube.quantity import parse_nano
from tutti.kube.resource_names import is_pod_level

NanoAmounts = dict[str, int]
"""Amounts in nano-units by resource name."""
_ContainerQuantities = Callable[[Container, ContainerStatus | None, bool], Quantities | None]
"""Returns a container's quantities from its spec, its status, and whether the resize is infeasible."""


def spec_total(pod: Pod, *, nonzero: Mapping[str, int] | None = None) -> NanoAmounts:
    """Return the total requests of the containers; `nonzero` has defaults for resources that a container omits."""
    return _aggregate(pod, _spec_requests, status=False, nonzero=nonzero or {})


def limits_total(pod: Pod) -> NanoAmounts:
    """Return the total limits of the containers."""
    return _aggregate(pod, _spec_limits, status=False, nonzero={})


def container_requests(container: Container) -> Quantities:
    """Return the requests of a container's spec."""
    resources = container.resources
    return (resources.requests if resources is not None else None) or {}


def is_sidecar(container: Container) -> bool:
    """Whether an init container is a sidecar: it keeps running while the containers run."""
    return container.restart_policy == "Always"


def status_total(pod: Pod, *, nonzero: Mapping[str, int], status_matches_spec: bool) -> NanoAmounts:
    """Return the pod's total, status included: the largest of the requested, allocated and actual amounts.

    `status_matches_spec` says that no container's status differs from its spec; the status totals are then skipped.
    """
    status = pod.status
    actual = status.resources.requests if status.resources is not None else None
    reported: tuple[NanoAmounts, ...] = ()
    if status.allocated_resources is not None and actual is not None:
        reported = nano_amounts(actual), nano_amounts(status.allocated_resources)
    elif not status_matches_spec:
        reported = (
            _aggregate(pod, _actual_requests, status=True, nonzero=nonzero),
            _aggregate(pod, _allocated_requests, status=True, nonzero=nonzero),
        )
    total: NanoAmounts = {}
    if not reported or not resize_infeasible(pod):
        total = spec_total(pod, nonzero=nonzero)
    for other in reported:
        _raise_to_maximum(total, other)
    return pod_total(pod, total, status=True)


def pod_total(pod: Pod, total: NanoAmounts, *, status: bool) -> NanoAmounts:
    """Return `total` (changed in place) with pod-level requests in place of the container sum, plus the overhead."""
    spec = pod.spec
    if has_pod_level_requests(pod):
        whole = nano_amounts(spec.resources.requests) if spec.resources is not None else {}
        if status and pod.status.resources is not None:
            if resize_infeasible(pod):
                whole = {}
            _raise_to_maximum(whole, nano_amounts(pod.status.resources.requests))
            _raise_to_maximum(whole, nano_amounts(pod.status.allocated_resources))
        total.update((name, amount) for name, amount in whole.items() if is_pod_level(name))
    add_amounts(total, nano_amounts(spec.overhead))
    return total


def _aggregate(pod: Pod, quantities: _ContainerQuantities, *, status: bool, nonzero: Mapping[str, int]) -> NanoAmounts:
    """Return the larger of two sums: containers plus sidecars, or one init container plus the sidecars before it."""
    infeasible = status and resize_infeasible(pod)

    def amounts(container: Container) -> NanoAmounts:
        container_status = _container_status(pod, container.name) if status else None
        return {**nonzero, **nano_amounts(quantities(container, container_status, infeasible))}

    total: NanoAmounts = {}
    for container in pod.spec.containers or ():
        add_amounts(total, amounts(container))
    sidecars: NanoAmounts = {}
    init_peak: NanoAmounts = {}
    for container in pod.spec.init_containers or ():
        requested = amounts(container)
        if is_sidecar(container):
            add_amounts(total, requested)
            add_amounts(sidecars, requested)
            _raise_to_maximum(init_peak, sidecars)
        else:
            add_amounts(requested, sidecars)
            _raise_to_maximum(init_peak, requested)
    _raise_to_maximum(total, init_peak)
    return total


def _spec_requests(container: Container, _status: ContainerStatus | None, _infeasible: bool) -> Quantities | None:
    return container_requests(container)


def _spec_limits(container: Container, _status: ContainerStatus | None, _infeasible: bool) -> Quantities | None:
    return container.resources.limits if container.resources is not None else None


def _allocated_requests(container: Container, status: ContainerStatus | None, infeasible: bool) -> Quantities | None:
    if status is not None and status.allocated_resources is not None:
        return status.allocated_resources
    return None if infeasible else container_requests(container)


def _actual_requests(container: Container, status: ContainerStatus | None, infeasible: bool) -> Quantities | None:
    if status is not None and status.resources is not None and status.resources.requests is not None:
        return status.resources.requests
    return _allocated_requests(container, status, infeasible)


def _container_status(pod: Pod, name: str) -> ContainerStatus | None:
    for statuses in (pod.status.container_statuses, pod.status.init_container_statuses):
        for status in statuses or ():
            if status.name == name:
                return status
    return None


def resize_infeasible(pod: Pod) -> bool:
    """Whether the node has refused the resize that the spec requests."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def has_pod_level_requests(pod: Pod) -> bool:
    """Whether the pod has pod-level requests."""
    resources = pod.spec.resources
    return resources is not None and any(map(is_pod_level, resources.requests or ()))


def nano_amounts(quantities: Quantities | None) -> NanoAmounts:
    """Return quantities in nano-units."""
    return {name: parse_nano(quantity) for name, quantity in (quantities or {}).items()}


def add_amounts(total: NanoAmounts, amounts: NanoAmounts) -> None:
    """Add amounts to a total, in place."""
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _raise_to_maximum(total: NanoAmounts, other: NanoAmounts) -> None:
    """Raise every amount of `total` to the amount of `other`, where that is larger; in place."""
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount
