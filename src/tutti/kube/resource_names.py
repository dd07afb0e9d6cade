"""Which resources the scheduler counts, by resource name.

Contract: pure, and cached. The rules are those of kube-scheduler, not those of API validation.
"""

from __future__ import annotations

import re
from functools import lru_cache

_NATIVE = frozenset(("cpu", "memory", "ephemeral-storage"))
_DNS_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")


@lru_cache(maxsize=4096)
def is_scalar(resource: str) -> bool:
    """Whether a resource is a scalar resource: the scheduler counts it, besides cpu, memory and ephemeral storage."""
    if resource.startswith(("hugepages-", "attachable-volumes-")) or "kubernetes.io/" in resource:
        return True
    return _is_extended(resource)


@lru_cache(maxsize=4096)
def is_counted(resource: str) -> bool:
    """Whether the scheduler counts a resource."""
    return resource in _NATIVE or is_scalar(resource)


def is_pod_level(resource: str) -> bool:
    """Whether a resource may be in the pod-level requests."""
    return resource in ("cpu", "memory") or resource.startswith("hugepages-")


def _is_extended(resource: str) -> bool:
    """Whether a name is a valid extended resource: valid also with the prefix "requests.", which quotas add."""
    domain, slash, name = resource.partition("/")
    quota_domain = f"requests.{domain}"
    return (
        slash == "/"
        and not resource.startswith("requests.")
        and len(quota_domain) <= 253
        and len(name) <= 63
        and _DNS_NAME.fullmatch(quota_domain) is not None
        and _QUALIFIED.fullmatch(name) is not None
    )


def is_gpu(resource: str) -> bool:
    """Whether a resource counts GPUs, of any vendor."""
    return resource.endswith("/gpu")
