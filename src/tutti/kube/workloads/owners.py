"""The pods of each controller, and the creation of pods from templates.

Contract: pure. A pod belongs to an owner if namespace, kind and name agree, and also the uid if both sides have one.
Finished and terminating pods do not count, as in Kubernetes' controllers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec.structs import replace

from tutti.kube.generated_names import made_uid
from tutti.kube.objects import Object, ObjectMeta, OwnerReference, Pod, PodSpec, PodTemplate


class OwnerKey(NamedTuple):
    """An owner as the owner references of its pods name it."""

    namespace: str
    kind: str
    name: str


class OwnedPods:
    """An index of existing pods by owner and by name."""

    def __init__(self, pods: Iterable[Pod]) -> None:
        self._by_owner: dict[OwnerKey, list[Pod]] = {}
        self._names: set[str] = set()
        for pod in pods:
            self._names.add(pod.key)
            if is_active(pod) and (owner := controller_of(pod)) is not None:
                key = OwnerKey(pod.metadata.namespace or "default", owner.kind, owner.name)
                self._by_owner.setdefault(key, []).append(pod)

    def active_pods(self, owner: Object) -> list[Pod]:
        """Return the active pods of an owner."""
        key = OwnerKey(owner.metadata.namespace or "default", owner.KIND, owner.metadata.name)
        uid = owner.metadata.uid
        return [pod for pod in self._by_owner.get(key, ()) if not uid or _owner_uid(pod) in ("", uid)]

    def owner_keys(self, kind: str, namespace: str) -> list[OwnerKey]:
        """Return the owners of a kind that have active pods in a namespace; the owner objects need not exist."""
        return [key for key in self._by_owner if key.kind == kind and key.namespace == namespace]

    def pods_of_key(self, owner: OwnerKey) -> list[Pod]:
        """Return the active pods whose owner reference has this key."""
        return self._by_owner.get(owner, [])

    def has_pod(self, key: str) -> bool:
        """Whether a pod with this ``namespace/name`` exists."""
        return key in self._names


def is_active(pod: Pod) -> bool:
    """Whether a pod is neither finished nor terminating."""
    return pod.status.phase not in ("Succeeded", "Failed") and pod.metadata.deletion_timestamp is None


def controller_of(obj: Object) -> OwnerReference | None:
    """Return the reference to the controller of an object; None if there is none."""
    for owner in obj.metadata.owner_references or ():
        if owner.controller:
            return owner
    return None


def owner_reference(owner: Object) -> OwnerReference:
    """Return the owner reference for an object that the owner creates."""
    return OwnerReference(
        api_version=owner.API_VERSION,
        kind=owner.KIND,
        name=owner.metadata.name,
        uid=owner.metadata.uid or placeholder_uid(owner),
        controller=True,
    )


def placeholder_uid(obj: Object) -> str:
    """Return a generated uid for an object that no API server has stored."""
    return made_uid(f"{obj.KIND}/{obj.key}")


def pod_from_template(
    template: PodTemplate,
    owner: Object,
    *,
    name: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    spec: PodSpec | None = None,
) -> Pod:
    """Return a pod that an owner creates from its template."""
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
    """Return the object with a uid, generated if it has none, so that owner references can have it."""
    if obj.metadata.uid:
        return obj
    return replace(obj, metadata=replace(obj.metadata, uid=placeholder_uid(obj)))


def _owner_uid(pod: Pod) -> str:
    owner = controller_of(pod)
    return owner.uid if owner is not None else ""
