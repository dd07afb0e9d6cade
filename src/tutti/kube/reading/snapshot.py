"""A snapshot: the objects of a cluster, from files or from an API server.

Contract: frozen; at most one object per kind and key. The objects are grouped by kind, in input order. The snapshot
also has the counts of skipped objects and the notes for the user.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from tutti.kube.objects import Node, Object, Pod

_Some = TypeVar("_Some", bound=Object)


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a cluster."""

    objects: dict[str, list[Object]] = {}
    """Objects by kind."""
    present_kinds: frozenset[str] = frozenset()
    """Kinds that the input has, also as an empty list."""
    skipped: dict[str, int] = {}
    """Number of skipped objects by kind."""
    missing_kinds: frozenset[str] = frozenset()
    """Kinds that preparation looked up and the input does not have."""
    notes: tuple[str, ...] = ()
    """Notes for the user about ambiguous input, one line each."""

    def objects_of(self, kind: type[_Some]) -> list[_Some]:
        """Return all objects of a kind."""
        return self.objects.get(kind.KIND, [])  # type: ignore[return-value]

    def all_objects(self) -> list[Object]:
        """Return all objects, grouped by kind."""
        return [obj for objects in self.objects.values() for obj in objects]

    def objects_if_given(self, kind: type[_Some]) -> list[_Some] | None:
        """Return all objects of a kind; None if the input does not have the kind."""
        return self.objects_of(kind) if kind.KIND in self.present_kinds else None

    @property
    def pods(self) -> list[Pod]:
        """All pods."""
        return self.objects_of(Pod)

    @property
    def nodes(self) -> list[Node]:
        """All nodes."""
        return self.objects_of(Node)

    def __len__(self) -> int:
        return sum(map(len, self.objects.values()))


def by_kind(objects: Iterable[Object]) -> dict[str, list[Object]]:
    """Group objects by kind."""
    groups: dict[str, list[Object]] = {}
    for obj in objects:
        groups.setdefault(obj.KIND, []).append(obj)
    return groups
