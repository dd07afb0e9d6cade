"""Limit ranges: the default requests and limits of a namespace for the containers of new pods.

Contract: pure. Only the defaults are applied. The bounds of a limit range are not checked: an API server refuses a pod
outside the bounds, but the bounds never affect the placement of a pod.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from tutti.kube.objects import Container, LimitRange, Pod, Quantities, ResourceRequirements


def with_limit_defaults(pod: Pod, defaults: ResourceRequirements) -> Pod:
    """Return the pod with default requests and limits for the resources that its containers omit."""
    spec = pod.spec
    return replace(
        pod,
        spec=replace(
            spec,
            containers=[_with_defaults(container, defaults) for container in spec.containers or ()],
            init_containers=[_with_defaults(container, defaults) for container in spec.init_containers or ()] or None,
        ),
    )


def limit_range_defaults(limit_ranges: Iterable[LimitRange]) -> dict[str, ResourceRequirements]:
    """Return the default requests and limits of a container by namespace; of several ranges the first by name wins."""
    defaults: dict[str, ResourceRequirements] = {}
    for limit_range in sorted(limit_ranges, key=lambda each: each.key):
        limits: Quantities = {}
        requests: Quantities = {}
        for item in limit_range.spec.limits or ():
            if item.type == "Container":
                default_limits = (item.max or {}) | (item.default or {})
                limits |= default_limits
                requests |= (item.min or {}) | default_limits | (item.default_request or {})
        namespace = limit_range.metadata.namespace or "default"
        earlier = defaults.get(namespace, ResourceRequirements())
        defaults[namespace] = ResourceRequirements(
            requests=requests | (earlier.requests or {}), limits=limits | (earlier.limits or {})
        )
    return defaults


def _with_defaults(container: Container, defaults: ResourceRequirements) -> Container:
    resources = container.resources or ResourceRequirements()
    requests = (defaults.requests or {}) | (resources.requests or {})
    limits = (defaults.limits or {}) | (resources.limits or {})
    return replace(container, resources=replace(resources, requests=requests, limits=limits))
