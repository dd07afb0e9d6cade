"""Base classes of Kubernetes objects: a frozen struct with metadata and a kind.

Contract: every field has a default, because every field may be absent or null in the input. Structs are frozen and have
no reference cycles; ``gc=False`` excludes them from garbage collection, which would be slow with 50,000 pods. Structs
encode without default values, so two specs with equal bytes are the same to the scheduler.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

Quantity = str | int | float
Quantities = dict[str, Quantity]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class KubeStruct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """The base of all structs: a Kubernetes object or a part of one, with camelCase field names when encoded."""


class OwnerReference(KubeStruct, frozen=True):
    """A reference to the owner of an object, such as the ReplicaSet of a pod."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(KubeStruct, frozen=True):
    """Name, namespace, uid, labels, annotations, timestamps and owners of an object."""

    name: str = ""
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    resource_version: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: list[OwnerReference] | None = None


class Object(KubeStruct, frozen=True):
    """A Kubernetes object; each kind is a subclass."""

    KIND: ClassVar[str] = ""
    """The unique name of the kind. If several API groups have such a kind, with the group: ``PodGroup.example.com``."""
    WIRE_KIND: ClassVar[str] = ""
    """The value of the field ``kind`` in the object: `KIND` without the group."""
    API_VERSION: ClassVar[str] = "v1"
    NAMESPACED: ClassVar[bool] = False

    metadata: ObjectMeta = ObjectMeta()

    def __init_subclass__(cls) -> None:
        cls.WIRE_KIND = cls.KIND.partition(".")[0]

    @property
    def key(self) -> str:
        """``namespace/name`` of a namespaced object, ``name`` of a cluster-scoped object."""
        if self.NAMESPACED:
            return f"{self.metadata.namespace or 'default'}/{self.metadata.name}"
        return self.metadata.name
