"""Who owns which pods, and pods made from templates.

Contract: pure. An owner is recognised by uid where both sides have one, else by kind and name, in its own namespace.
Pods that are finished or on their way out do not count for their owner, as for Kubernetes' own controllers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from tutti.kube.generated_names import made_uid
from tutti.kube.objects import Object, ObjectMeta, OwnerReference, Pod, PodSpec, PodTemplate


class OwnerKey(NamedTuple):
    """An owner as its pods name it."""

    namespace: str
    kind: str
    name: str


class OwnedPods:
    """The pods that are there, by their owners; asked before new ones are made."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._by_owner: dict[OwnerKey, list[Pod]] = {}
        self._names: set[str] = set()
        for pod in pods:
            self._names.add(pod.key)
            if is_active(pod) and (owner := controller_of(pod)) is not None:
                key = OwnerKey(pod.metadata.namespace or "default", owner.kind, owner.name)
                self._by_owner.setdefault(key, []).append(pod)

    def of(self, owner: Object) -> list[Pod]:
        """The active pods of an owner."""
        key = OwnerKey(owner.metadata.namespace or "default", owner.KIND, owner.metadata.name)
        uid = owner.metadata.uid
        return [pod for pod in self._by_owner.get(key, ()) if not uid or _uid_of(pod) in ("", uid)]

    def owners(self, kind: str, namespace: str) -> list[OwnerKey]:
        """Owners of a kind that have pods in a namespace, whether or not they are there themselves."""
        return [key for key in self._by_owner if key.kind == kind and key.namespace == namespace]

    def named(self, owner: OwnerKey) -> list[Pod]:
        """The active pods that name an owner."""
        return self._by_owner.get(owner, [])

    def taken(self, key: str) -> bool:
        """Whether a pod of this namespace and name is there."""
        return key in self._names


def is_active(pod: Pod) -> bool:
    """Whether a pod is neither finished nor on its way out."""
    return pod.status.phase not in ("Succeeded", "Failed") and pod.metadata.deletion_timestamp is None


def controller_of(obj: Object) -> OwnerReference | None:
    """The owner that manages an object."""
    for owner in obj.metadata.owner_references or ():
        if owner.controller:
            return owner
    return None


def owner_reference(owner: Object) -> OwnerReference:
    """The reference that an object made by the owner bears."""
    return OwnerReference(
        api_version=owner.API_VERSION,
        kind=owner.KIND,
        name=owner.metadata.name,
        uid=owner.metadata.uid or uid_for(owner),
        controller=True,
    )


def uid_for(obj: Object) -> str:
    """The uid that stands in for one that no API server has given."""
    return made_uid(f"{obj.KIND}/{obj.key}")


def pod_from(
    template: PodTemplate,
    owner: Object,
    *,
    name: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: PodSpec | None = None,
) -> Pod:
    """A pod that an owner makes from its template."""
    namespace = owner.metadata.namespace or "default"
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        uid=made_uid(f"Pod/{namespace}/{name}"),
        labels={**(template.metadata.labels or {}), **(labels or {})} or None,
        annotations={**(template.metadata.annotations or {}), **(annotations or {})} or None,
        owner_references=[owner_reference(owner)],
    )
    return Pod(metadata=metadata, spec=spec or template.spec)


def with_uid(obj: Object) -> Object:
    """The object with a uid, made up if it has none, so that its pods can name it."""
    if obj.metadata.uid:
        return obj
    return replace(obj, metadata=replace(obj.metadata, uid=uid_for(obj)))


def _uid_of(pod: Pod) -> str:
    owner = controller_of(pod)
    return owner.uid if owner is not None else ""
