"""A snapshot: the objects of a cluster as they came from files or from an API server.

Contract: frozen; at most one object for a kind and key. Objects are kept by kind, in the order they came in, with what
was left out and what has to be told to the user.
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
    present: frozenset[str] = frozenset()
    """Kinds that were given, were it as an empty list."""
    skipped: dict[str, int] = {}
    """How many objects of other kinds were left out."""
    missing: frozenset[str] = frozenset()
    """Kinds that were not given and would have been looked at."""
    notes: tuple[str, ...] = ()
    """Lines for the user about what was ambiguous."""

    def of(self, kind: type[_Some]) -> list[_Some]:
        """All objects of one kind."""
        return self.objects.get(kind.KIND, [])  # type: ignore[return-value]

    def every(self) -> list[Object]:
        """All objects, kind by kind."""
        return [obj for objects in self.objects.values() for obj in objects]

    def given(self, kind: type[_Some]) -> list[_Some] | None:
        """All objects of one kind; None when nobody gave that kind."""
        return self.of(kind) if kind.KIND in self.present else None

    @property
    def pods(self) -> list[Pod]:
        """All pods."""
        return self.of(Pod)

    @property
    def nodes(self) -> list[Node]:
        """All nodes."""
        return self.of(Node)

    def __len__(self) -> int:
        return sum(map(len, self.objects.values()))


def by_kind(objects: Iterable[Object]) -> dict[str, list[Object]]:
    """Objects sorted into lists by kind."""
    found: dict[str, list[Object]] = {}
    for obj in objects:
        found.setdefault(obj.KIND, []).append(obj)
    return found
