"""The requests of pods and the allocatable resources of nodes, as the integers that kube-scheduler compares.

Contract: pure functions from an object to ``{resource: amount}``; cpu in millicores, all other resources in whole
units. Sums are exact (nano-units) and rounded up once, at the end. The result has only resources that the scheduler
counts: cpu, memory, ephemeral-storage, and scalar resources (extended, huge pages, attachable volumes,
``*kubernetes.io/``). A request of zero keeps its key, because an explicit zero is not a missing request.

There are three views of a pod's requests, because the scheduler has three:
- `incoming_requests`: the amounts that the NodeResourcesFit filter checks; from the spec alone.
- `placed_requests`: the amounts that the pod takes from its node; from spec and status, because of resizes. Its
  ``requests`` are also the amounts with which NodeResourcesBalancedAllocation scores an incoming pod.
- `score_requests`: the amounts with which NodeResourcesFit scores an incoming pod; container requests and overhead.
"""

from __future__ import annotations

import msgspec

from tutti.kube.container_totals import (
    NanoAmounts,
    add_amounts,
    container_requests,
    has_pod_level_requests,
    is_sidecar,
    nano_amounts,
    pod_total,
    resize_infeasible,
    spec_total,
    status_total,
)
from tutti.kube.objects import Node, Pod, Quantities
from tutti.kube.quantity import milli, milli_of_nano, value, value_of_nano
from tutti.kube.resource_names import is_counted

NONZERO_CPU = 100
"""Millicores that scores count for a container without a cpu request."""
NONZERO_MEMORY = 200 * 1024 * 1024
"""Bytes that scores count for a container without a memory request."""

_NONZERO_NANO = {"cpu": NONZERO_CPU * 10**6, "memory": NONZERO_MEMORY * 10**9}


class PlacedRequests(msgspec.Struct, frozen=True, gc=False):
    """The resources that a pod takes from its node."""

    requests: dict[str, int]
    nonzero_cpu: int
    """Millicores, with the default for containers without a cpu request; scores of later pods count them."""
    nonzero_memory: int
    """Bytes of memory, with the default for containers without a memory request."""


def incoming_requests(pod: Pod) -> dict[str, int]:
    """Return the amounts that must be free on a node for the pod."""
    spec = pod.spec
    containers = spec.containers or []
    if len(containers) == 1 and not spec.init_containers and not spec.overhead and spec.resources is None:
        return _amounts(container_requests(containers[0]))
    return _rounded(pod_total(pod, spec_total(pod), status=False))


def placed_requests(pod: Pod) -> PlacedRequests:
    """Return the amounts that the pod takes from its node."""
    spec = pod.spec
    containers = spec.containers or []
    status_matches_spec = _status_matches_spec(pod)
    plain = len(containers) == 1 and not spec.init_containers and not spec.overhead and spec.resources is None
    if status_matches_spec and plain and _status_agrees(pod, container_requests(containers[0])):
        requests = _amounts(container_requests(containers[0]))
        return PlacedRequests(requests, requests.get("cpu", NONZERO_CPU), requests.get("memory", NONZERO_MEMORY))
    total = status_total(pod, nonzero={}, status_matches_spec=status_matches_spec)
    missing = _NONZERO_NANO
    if has_pod_level_requests(pod):
        missing = {name: amount for name, amount in _NONZERO_NANO.items() if name not in total}
    elif status_matches_spec and all("cpu" in requests and "memory" in requests for requests in _all_requests(pod)):
        missing = {}
    nonzero = status_total(pod, nonzero=missing, status_matches_spec=status_matches_spec) if missing else total
    return PlacedRequests(
        _rounded(total), milli_of_nano(nonzero.get("cpu", 0)), value_of_nano(nonzero.get("memory", 0))
    )


def score_requests(pod: Pod) -> dict[str, int]:
    """Return the amounts of an incoming pod for the NodeResourcesFit score; pod-level requests do not count."""
    spec = pod.spec
    containers = spec.containers or []
    if len(containers) == 1 and not spec.init_containers and not spec.overhead:
        return {"cpu": NONZERO_CPU, "memory": NONZERO_MEMORY} | _amounts(container_requests(containers[0]))
    total = spec_total(pod, nonzero=_NONZERO_NANO)
    add_amounts(total, nano_amounts(spec.overhead))
    return _rounded(total)


def host_ports(pod: Pod) -> tuple[tuple[str, str, int], ...]:
    """Return address, protocol and port of each host port; of the init containers only sidecars count."""
    spec = pod.spec
    return tuple(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in (*filter(is_sidecar, spec.init_containers or ()), *(spec.containers or ()))
        for port in container.ports or ()
        if port.host_port is not None and port.host_port > 0
    )


def allocatable(node: Node) -> dict[str, int]:
    """Return the allocatable resources of a node, the number of pods included."""
    offered = node.status.allocatable or {}
    amounts = _amounts(offered)
    if "pods" in offered:
        amounts["pods"] = value(offered["pods"])
    return amounts


def _all_requests(pod: Pod) -> list[Quantities]:
    return [
        container_requests(container) for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))
    ]


def _amounts(quantities: Quantities) -> dict[str, int]:
    return {
        name: milli(quantity) if name == "cpu" else value(quantity)
        for name, quantity in quantities.items()
        if is_counted(name)
    }


def _status_matches_spec(pod: Pod) -> bool:
    """Whether every container's status equals its spec: no resize is in progress, the usual case."""
    status = pod.status
    for containers, statuses in (
        (pod.spec.containers, status.container_statuses),
        (pod.spec.init_containers, status.init_container_statuses),
    ):
        if not statuses:
            continue
        requests = {container.name: container_requests(container) for container in containers or ()}
        for container_status in statuses:
            expected = requests.get(container_status.name)
            allocated = container_status.allocated_resources
            actual = container_status.resources.requests if container_status.resources is not None else None
            if expected is None or not _same(allocated, expected) or not _same(actual, expected):
                return False
    return not resize_infeasible(pod)


def _status_agrees(pod: Pod, requests: Quantities) -> bool:
    """Whether the pod-level resources of the status, if present, equal these requests."""
    status = pod.status
    actual = status.resources.requests if status.resources is not None else None
    return status.allocated_resources is None or (
        _same(status.allocated_resources, requests) and _same(actual, requests)
    )


def _same(reported: Quantities | None, requests: Quantities) -> bool:
    return reported is None or reported == requests


def _rounded(total: NanoAmounts) -> dict[str, int]:
    return {
        name: milli_of_nano(amount) if name == "cpu" else value_of_nano(amount)
        for name, amount in total.items()
        if is_counted(name)
    }
