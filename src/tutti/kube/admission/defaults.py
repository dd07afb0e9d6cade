"""Defaults that an API server fills in whenever it reads an object, where they change a scheduling answer.

Contract: pure functions from an object to an equal or a fuller one. They are idempotent and may be applied to
everything, dumps of a cluster included, because the API server itself applies them at every read: they never change an
object that it has already stored. What happens only once, when a new object is created, is in `kube.admission`.
An object that needs nothing is given back as it is, so the usual case costs a few checks.
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
    """The object as an API server would read it."""
    fill: Callable[[Any], Any] | None = _FILLERS.get(obj.KIND)
    filled: _Some = fill(obj) if fill is not None else obj
    return filled


def default_pod(pod: Pod) -> Pod:
    """Requests from limits, host ports of a pod in the host's network, the scheduler's name."""
    spec = pod.spec
    changes: dict[str, Any] = {}
    host_network = bool(spec.host_network)
    for field, containers in (("containers", spec.containers), ("init_containers", spec.init_containers)):
        for container in containers or ():
            if _lacks(container, host_network=host_network):
                changes[field] = [_default_container(each, host_network=host_network) for each in containers or ()]
                break
    if not spec.scheduler_name:
        changes["scheduler_name"] = DEFAULT_SCHEDULER
    return replace(pod, spec=replace(spec, **changes)) if changes else pod


def default_node(node: Node) -> Node:
    """A node that says only what it has offers all of it."""
    status = node.status
    if status.allocatable is None and status.capacity is not None:
        return replace(node, status=replace(status, allocatable=status.capacity))
    return node


def default_namespace(namespace: Namespace) -> Namespace:
    """Every namespace has its name as a label, for namespace selectors."""
    labels = namespace.metadata.labels or {}
    name = namespace.metadata.name
    if labels.get("kubernetes.io/metadata.name") == name:
        return namespace
    labelled = labels | {"kubernetes.io/metadata.name": name}
    return replace(namespace, metadata=replace(namespace.metadata, labels=labelled))


def default_storage_class(storage: StorageClass) -> StorageClass:
    """Volumes are bound at once unless the class says otherwise."""
    return storage if storage.volume_binding_mode else replace(storage, volume_binding_mode="Immediate")


def default_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    """A claim asks for a file system and is pending unless it says otherwise."""
    spec = claim.spec if claim.spec.volume_mode else replace(claim.spec, volume_mode="Filesystem")
    status = claim.status if claim.status.phase else replace(claim.status, phase="Pending")
    if spec is claim.spec and status is claim.status:
        return claim
    return replace(claim, spec=spec, status=status)


def default_volume(volume: PersistentVolume) -> PersistentVolume:
    """A volume has a file system unless it says otherwise."""
    spec = volume.spec
    return volume if spec.volume_mode else replace(volume, spec=replace(spec, volume_mode="Filesystem"))


def default_job(job: Job) -> Job:
    """A job runs one pod at a time; without any number it runs just one."""
    spec = job.spec
    if spec.parallelism is not None:
        return job
    completions = 1 if spec.completions is None else spec.completions
    return replace(job, spec=replace(spec, parallelism=1, completions=completions))


def _lacks(container: Container, *, host_network: bool) -> bool:
    """Whether a default is missing."""
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


_FILLERS: dict[str, Callable[[Any], Any]] = {
    "Pod": default_pod,
    "Node": default_node,
    "Namespace": default_namespace,
    "StorageClass": default_storage_class,
    "PersistentVolumeClaim": default_claim,
    "PersistentVolume": default_volume,
    "Job": default_job,
}
