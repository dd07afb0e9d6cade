"""Limit ranges: what the containers of a new pod get from their namespace.

Contract: pure; only the defaults are applied. The bounds of a limit range, which make an API server refuse a pod, are
not checked: they never change where a pod goes.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tutti.kube.objects import Container, LimitRange, Pod, Quantities, ResourceRequirements


def within_limits(pod: Pod, defaults: ResourceRequirements) -> Pod:
    """The pod with requests and limits for the containers that have none."""
    spec = pod.spec
    return replace(
        pod,
        spec=replace(
            spec,
            containers=[_limited(container, defaults) for container in spec.containers or ()],
            init_containers=[_limited(container, defaults) for container in spec.init_containers or ()] or None,
        ),
    )


def limit_defaults(limit_ranges: Iterable[LimitRange]) -> dict[str, ResourceRequirements]:
    """Per namespace what a container gets that asks for nothing; of several ranges the first by name decides."""
    found: dict[str, ResourceRequirements] = {}
    for limit_range in sorted(limit_ranges, key=lambda each: each.key):
        limits: Quantities = {}
        requests: Quantities = {}
        for item in limit_range.spec.limits or ():
            if item.type == "Container":
                most = (item.max or {}) | (item.default or {})
                limits |= most
                requests |= (item.min or {}) | most | (item.default_request or {})
        namespace = limit_range.metadata.namespace or "default"
        before = found.get(namespace, ResourceRequirements())
        found[namespace] = ResourceRequirements(
            requests=requests | (before.requests or {}), limits=limits | (before.limits or {})
        )
    return found


def _limited(container: Container, defaults: ResourceRequirements) -> Container:
    resources = container.resources or ResourceRequirements()
    requests = (defaults.requests or {}) | (resources.requests or {})
    limits = (defaults.limits or {}) | (resources.limits or {})
    return replace(container, resources=replace(resources, requests=requests, limits=limits))
