"""What pods ask for and nodes offer, in the integers that kube-scheduler compares.

Contract: pure functions from an object to ``{resource: amount}``; cpu in millicores, everything else in whole units.
Sums are exact (nano-units) and rounded up once, at the end. Only resources that the scheduler looks at are kept:
cpu, memory, ephemeral-storage, and scalar resources (extended, huge pages, attachable volumes, ``*kubernetes.io/``).
A request of zero keeps its key, because an explicit zero is not a missing request.

Three views of a pod's requests exist because the scheduler has three:
- `incoming_requests`: what the NodeResourcesFit filter checks; the spec alone.
- `placed_requests`: what the pod takes from its node; also looks at the status, for resizes. Its ``requests`` are as
  well what NodeResourcesBalancedAllocation scores an incoming pod with.
- `score_requests`: what NodeResourcesFit scores an incoming pod with; container requests and overhead alone.
"""

from __future__ import annotations

import msgspec

from tutti.kube.container_totals import (
    Nano,
    add,
    has_pod_level,
    is_sidecar,
    nano_of,
    pod_total,
    requests_of,
    resize_infeasible,
    spec_total,
    status_total,
)
from tutti.kube.objects import Node, Pod, Quantities
from tutti.kube.quantity import milli, milli_of_nano, value, value_of_nano
from tutti.kube.resource_names import is_counted

NONZERO_CPU = 100
"""Millicores that a container without a cpu request counts with in scores."""
NONZERO_MEMORY = 200 * 1024 * 1024
"""Bytes that a container without a memory request counts with in scores."""

_NONZERO_NANO = {"cpu": NONZERO_CPU * 10**6, "memory": NONZERO_MEMORY * 10**9}


class PlacedRequests(msgspec.Struct, frozen=True, gc=False):
    """What a pod takes from its node."""

    requests: dict[str, int]
    nonzero_cpu: int
    """Millicores with the default for containers that name none; scores of later pods count these."""
    nonzero_memory: int
    """The same for bytes of memory."""


def incoming_requests(pod: Pod) -> dict[str, int]:
    """What a node must have free for the pod."""
    spec = pod.spec
    containers = spec.containers or []
    if len(containers) == 1 and not spec.init_containers and not spec.overhead and spec.resources is None:
        return _amounts(requests_of(containers[0]))
    return _rounded(pod_total(pod, spec_total(pod), status=False))


def placed_requests(pod: Pod) -> PlacedRequests:
    """What the pod takes from the node it is on."""
    spec = pod.spec
    containers = spec.containers or []
    settled = _is_settled(pod)
    plain = len(containers) == 1 and not spec.init_containers and not spec.overhead and spec.resources is None
    if settled and plain and _status_agrees(pod, requests_of(containers[0])):
        requests = _amounts(requests_of(containers[0]))
        return PlacedRequests(requests, requests.get("cpu", NONZERO_CPU), requests.get("memory", NONZERO_MEMORY))
    total = status_total(pod, nonzero={}, settled=settled)
    missing = _NONZERO_NANO
    if has_pod_level(pod):
        missing = {name: amount for name, amount in _NONZERO_NANO.items() if name not in total}
    elif settled and all("cpu" in named and "memory" in named for named in _all_requests(pod)):
        missing = {}
    nonzero = status_total(pod, nonzero=missing, settled=settled) if missing else total
    return PlacedRequests(
        _rounded(total), milli_of_nano(nonzero.get("cpu", 0)), value_of_nano(nonzero.get("memory", 0))
    )


def score_requests(pod: Pod) -> dict[str, int]:
    """What the resource score of an incoming pod is made of: pod-level requests do not count here."""
    spec = pod.spec
    containers = spec.containers or []
    if len(containers) == 1 and not spec.init_containers and not spec.overhead:
        return {"cpu": NONZERO_CPU, "memory": NONZERO_MEMORY} | _amounts(requests_of(containers[0]))
    total = spec_total(pod, nonzero=_NONZERO_NANO)
    add(total, nano_of(spec.overhead))
    return _rounded(total)


def host_ports(pod: Pod) -> tuple[tuple[str, str, int], ...]:
    """Address, protocol and port that the pod takes of its node; of init containers only sidecars count."""
    spec = pod.spec
    return tuple(
        (port.host_ip or "0.0.0.0", port.protocol or "TCP", port.host_port)
        for container in (*filter(is_sidecar, spec.init_containers or ()), *(spec.containers or ()))
        for port in container.ports or ()
        if port.host_port is not None and port.host_port > 0
    )


def allocatable(node: Node) -> dict[str, int]:
    """What a node offers, the number of pods included."""
    offered = node.status.allocatable or {}
    amounts = _amounts(offered)
    if "pods" in offered:
        amounts["pods"] = value(offered["pods"])
    return amounts


def _all_requests(pod: Pod) -> list[Quantities]:
    return [requests_of(container) for container in (*(pod.spec.containers or ()), *(pod.spec.init_containers or ()))]


def _amounts(quantities: Quantities) -> dict[str, int]:
    return {
        name: milli(quantity) if name == "cpu" else value(quantity)
        for name, quantity in quantities.items()
        if is_counted(name)
    }


def _is_settled(pod: Pod) -> bool:
    """Whether every container has just what its spec asks for: no resize is under way, the usual case."""
    status = pod.status
    for containers, statuses in (
        (pod.spec.containers, status.container_statuses),
        (pod.spec.init_containers, status.init_container_statuses),
    ):
        if not statuses:
            continue
        requests = {container.name: requests_of(container) for container in containers or ()}
        for seen in statuses:
            expected = requests.get(seen.name)
            actual = seen.resources.requests if seen.resources is not None else None
            if expected is None or not _same(seen.allocated_resources, expected) or not _same(actual, expected):
                return False
    return not resize_infeasible(pod)


def _status_agrees(pod: Pod, requests: Quantities) -> bool:
    """Whether the status of the pod as a whole, if it has one, names just these requests."""
    status = pod.status
    actual = status.resources.requests if status.resources is not None else None
    return status.allocated_resources is None or (
        _same(status.allocated_resources, requests) and _same(actual, requests)
    )


def _same(reported: Quantities | None, requests: Quantities) -> bool:
    return reported is None or reported == requests


def _rounded(total: Nano) -> dict[str, int]:
    return {
        name: milli_of_nano(amount) if name == "cpu" else value_of_nano(amount)
        for name, amount in total.items()
        if is_counted(name)
    }
