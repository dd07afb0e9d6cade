"""Defaults that an API server sets whenever it reads an object; only those that can affect scheduling.

Contract: pure and idempotent functions that return the object with its defaults. They may be applied to every object,
dumps of a cluster included: the API server applies the same defaults at every read, so a stored object never changes.
Changes at the creation of an object are in `kube.admission.pod_admission`. An object that lacks no default is returned
unchanged; the usual case costs a few comparisons.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from msgspec.structs import replace

from tutti.kube.objects import (
    Container,
    Job,
    Namespace,
    Node,
    Object,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
)

DEFAULT_SCHEDULER = "default-scheduler"

_Some = TypeVar("_Some", bound=Object)


def with_defaults(obj: _Some) -> _Some:
    """Return the object with the defaults of its kind."""
    set_defaults: Callable[[Any], Any] | None = _DEFAULTERS.get(obj.KIND)
    defaulted: _Some = set_defaults(obj) if set_defaults is not None else obj
    return defaulted


def default_pod(pod: Pod) -> Pod:
    """Set requests from limits, the host ports of a pod with host network, and the scheduler's name."""
    spec = pod.spec
    changes: dict[str, Any] = {}
    host_network = bool(spec.host_network)
    for field, containers in (("containers", spec.containers), ("init_containers", spec.init_containers)):
        for container in containers or ():
            if _lacks_defaults(container, host_network=host_network):
                changes[field] = [_default_container(each, host_network=host_network) for each in containers or ()]
                break
    if not spec.scheduler_name:
        changes["scheduler_name"] = DEFAULT_SCHEDULER
    return replace(pod, spec=replace(spec, **changes)) if changes else pod


def default_node(node: Node) -> Node:
    """Set allocatable from capacity if the node has only capacity."""
    status = node.status
    if status.allocatable is None and status.capacity is not None:
        return replace(node, status=replace(status, allocatable=status.capacity))
    return node


def default_namespace(namespace: Namespace) -> Namespace:
    """Set the label with the namespace's name, for namespace selectors."""
    labels = namespace.metadata.labels or {}
    name = namespace.metadata.name
    if labels.get("kubernetes.io/metadata.name") == name:
        return namespace
    labels = labels | {"kubernetes.io/metadata.name": name}
    return replace(namespace, metadata=replace(namespace.metadata, labels=labels))


def default_storage_class(storage: StorageClass) -> StorageClass:
    """Set the volume binding mode to Immediate if it is absent."""
    return storage if storage.volume_binding_mode else replace(storage, volume_binding_mode="Immediate")


def default_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """Set volume mode Filesystem and phase Pending if they are absent."""
    spec = claim.spec if claim.spec.volume_mode else replace(claim.spec, volume_mode="Filesystem")
    status = claim.status if claim.status.phase else replace(claim.status, phase="Pending")
    if spec is claim.spec and status is claim.status:
        return claim
    return replace(claim, spec=spec, status=status)


def default_volume(volume: PersistentVolume) -> PersistentVolume:
    """Set volume mode Filesystem if it is absent."""
    spec = volume.spec
    return volume if spec.volume_mode else replace(volume, spec=replace(spec, volume_mode="Filesystem"))


def default_job(job: Job) -> Job:
    """Set parallelism 1, and completions 1 if both numbers are absent."""
    spec = job.spec
    if spec.parallelism is not None:
        return job
    completions = 1 if spec.completions is None else spec.completions
    return replace(job, spec=replace(spec, parallelism=1, completions=completions))


def _lacks_defaults(container: Container, *, host_network: bool) -> bool:
    """Whether a container lacks a default."""
    resources = container.resources
    if resources is not None and resources.limits and not resources.limits.keys() <= (resources.requests or {}).keys():
        return True
    return host_network and any(not port.host_port for port in container.ports or ())


def _default_container(container: Container, *, host_network: bool) -> Container:
    changes: dict[str, Any] = {}
    if (resources := container.resources) is not None and resources.limits:
        changes["resources"] = replace(resources, requests=resources.limits | (resources.requests or {}))
    if host_network and container.ports:
        changes["ports"] = [
            port if port.host_port else replace(port, host_port=port.container_port) for port in container.ports
        ]
    return replace(container, **changes) if changes else container


_DEFAULTERS: dict[str, Callable[[Any], Any]] = {
    "Pod": default_pod,
    "Node": default_node,
    "Namespace": default_namespace,
    "StorageClass": default_storage_class,
    "PersistentVolumeClaim": default_claim,
    "PersistentVolume": default_volume,
    "Job": default_job,
}
