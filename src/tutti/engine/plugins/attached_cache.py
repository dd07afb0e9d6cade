"""Attached caches: values that one module keeps with an object of another module, with a type.

Contract: a cache is declared once, with a function that makes the value for an owner: a cluster, an engine, the gangs
of a cluster. `of` gives the owner's value and makes it when there is none. The value lives as long as its owner; a copy
of a cluster starts without values. Only this module writes an owner's `caches`, so what `of` gives has the type of what
the function makes.

    _SELECTORS: AttachedCache[Cluster, dict[int, Selector]] = AttachedCache(lambda _: {})
    selectors = _SELECTORS.of(cluster)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar


class CacheOwner(Protocol):
    """An object with which others keep what they derive from it."""

    caches: dict[Any, Any]


O_contra = TypeVar("O_contra", bound=CacheOwner, contravariant=True)
T = TypeVar("T")


class AttachedCache(Generic[O_contra, T]):
    """See the module's contract."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[O_contra], T]) -> None:
        self._make = make

    def of(self, owner: O_contra) -> T:
        """The value that is kept with an owner."""
        try:
            value: T = owner.caches[self]
        except KeyError:
            value = owner.caches[self] = self._make(owner)
        return value
