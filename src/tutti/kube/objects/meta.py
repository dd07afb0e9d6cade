"""The base of every Kubernetes object: a frozen struct with metadata and a kind.

Contract: every field may be absent or null on the wire, so every field has a default; structs are frozen, hold no
cycles (``gc=False`` keeps a cluster of 50,000 pods out of the garbage collector's way) and encode without their
defaults, so equal bytes mean that the scheduler cannot tell two specs apart.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

Quantity = str | int | float
Quantities = dict[str, Quantity]
Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


class Wire(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """A part of a Kubernetes object."""


class OwnerReference(Wire, frozen=True):
    """Who made an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None


class ObjectMeta(Wire, frozen=True):
    """Name, labels and owners of an object."""

    name: str = ""
    generate_name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: list[OwnerReference] | None = None


class Object(Wire, frozen=True):
    """A whole object; its kind is its class."""

    KIND: ClassVar[str] = ""
    """The kind's name; where several API groups have a kind of that name, with the group: ``PodGroup.example.com``."""
    WIRE_KIND: ClassVar[str] = ""
    """What an object calls its own kind: `KIND` without a group."""
    API_VERSION: ClassVar[str] = "v1"
    NAMESPACED: ClassVar[bool] = False

    metadata: ObjectMeta = ObjectMeta()

    def __init_subclass__(cls) -> None:
        cls.WIRE_KIND = cls.KIND.partition(".")[0]

    @property
    def key(self) -> str:
        """``namespace/name`` of a namespaced object, ``name`` of another."""
        if self.NAMESPACED:
            return f"{self.metadata.namespace or 'default'}/{self.metadata.name}"
        return self.metadata.name
