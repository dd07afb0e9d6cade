"""Exact totals over a pod's containers, in nano-units: the general case behind `kube.resources`.

Contract: pure; nothing is rounded and no resource is left out here. The rules are those of Kubernetes' own resource
helper: sidecars run beside the containers, init containers one after another, requests of the pod as a whole replace
the sum, a resize counts with the largest of what is asked for, allocated and in force.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tutti.kube.objects import Container, ContainerStatus, Pod, Quantities
from tutti.kube.quantity import parse_nano
from tutti.kube.resource_names import is_pod_level

Nano = dict[str, int]
_Choice = Callable[[Container, ContainerStatus | None, bool], Quantities | None]


def spec_total(pod: Pod, *, nonzero: Mapping[str, int] | None = None) -> Nano:
    """What the containers ask for together; `nonzero` is counted for a container that does not name a resource."""
    return _aggregate(pod, _spec_requests, status=False, nonzero=nonzero or {})


def limits_total(pod: Pod) -> Nano:
    """What the containers are limited to together."""
    return _aggregate(pod, _spec_limits, status=False, nonzero={})


def requests_of(container: Container) -> Quantities:
    """What a container asks for."""
    resources = container.resources
    return (resources.requests if resources is not None else None) or {}


def is_sidecar(container: Container) -> bool:
    """Whether an init container keeps running beside the others."""
    return container.restart_policy == "Always"


def status_total(pod: Pod, *, nonzero: Mapping[str, int], settled: bool) -> Nano:
    """The pod's total with its status: the largest of what is asked for, allocated and in force.

    `settled` says that no container's status differs from its spec, which saves looking.
    """
    status = pod.status
    actual = status.resources.requests if status.resources is not None else None
    reported: tuple[Nano, ...] = ()
    if status.allocated_resources is not None and actual is not None:
        reported = nano_of(actual), nano_of(status.allocated_resources)
    elif not settled:
        reported = (
            _aggregate(pod, _actual_requests, status=True, nonzero=nonzero),
            _aggregate(pod, _allocated_requests, status=True, nonzero=nonzero),
        )
    total: Nano = {}
    if not reported or not resize_infeasible(pod):
        total = spec_total(pod, nonzero=nonzero)
    for other in reported:
        _raise(total, other)
    return pod_total(pod, total, status=True)


def pod_total(pod: Pod, total: Nano, *, status: bool) -> Nano:
    """The sum over containers, replaced by pod-level requests where there are any, plus the overhead."""
    spec = pod.spec
    if has_pod_level(pod):
        whole = nano_of(spec.resources.requests) if spec.resources is not None else {}
        if status and pod.status.resources is not None:
            if resize_infeasible(pod):
                whole = {}
            _raise(whole, nano_of(pod.status.resources.requests))
            _raise(whole, nano_of(pod.status.allocated_resources))
        total.update((name, amount) for name, amount in whole.items() if is_pod_level(name))
    add(total, nano_of(spec.overhead))
    return total


def _aggregate(pod: Pod, choose: _Choice, *, status: bool, nonzero: Mapping[str, int]) -> Nano:
    """Containers and sidecars together, or the most that one init container needs beside the sidecars before it."""
    infeasible = status and resize_infeasible(pod)

    def amounts(container: Container) -> Nano:
        seen = _status_of(pod, container.name) if status else None
        return {**nonzero, **nano_of(choose(container, seen, infeasible))}

    total: Nano = {}
    for container in pod.spec.containers or ():
        add(total, amounts(container))
    sidecars: Nano = {}
    peak: Nano = {}
    for container in pod.spec.init_containers or ():
        own = amounts(container)
        if is_sidecar(container):
            add(total, own)
            add(sidecars, own)
            _raise(peak, sidecars)
        else:
            add(own, sidecars)
            _raise(peak, own)
    _raise(total, peak)
    return total


def _spec_requests(container: Container, _seen: ContainerStatus | None, _infeasible: bool) -> Quantities | None:
    return requests_of(container)


def _spec_limits(container: Container, _seen: ContainerStatus | None, _infeasible: bool) -> Quantities | None:
    return container.resources.limits if container.resources is not None else None


def _allocated_requests(container: Container, seen: ContainerStatus | None, infeasible: bool) -> Quantities | None:
    if seen is not None and seen.allocated_resources is not None:
        return seen.allocated_resources
    return None if infeasible else requests_of(container)


def _actual_requests(container: Container, seen: ContainerStatus | None, infeasible: bool) -> Quantities | None:
    if seen is not None and seen.resources is not None and seen.resources.requests is not None:
        return seen.resources.requests
    return _allocated_requests(container, seen, infeasible)


def _status_of(pod: Pod, name: str) -> ContainerStatus | None:
    for statuses in (pod.status.container_statuses, pod.status.init_container_statuses):
        for seen in statuses or ():
            if seen.name == name:
                return seen
    return None


def resize_infeasible(pod: Pod) -> bool:
    """Whether the node has refused the resize that the spec asks for."""
    for condition in pod.status.conditions or ():
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def has_pod_level(pod: Pod) -> bool:
    """Whether the pod as a whole asks for something."""
    resources = pod.spec.resources
    return resources is not None and any(map(is_pod_level, resources.requests or ()))


def nano_of(quantities: Quantities | None) -> Nano:
    """Quantities in nano-units."""
    return {name: parse_nano(quantity) for name, quantity in (quantities or {}).items()}


def add(total: Nano, more: Nano) -> None:
    """Add amounts to a total."""
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


def _raise(total: Nano, other: Nano) -> None:
    """Make every amount at least the other's."""
    for name, amount in other.items():
        if name not in total or amount > total[name]:
            total[name] = amount
