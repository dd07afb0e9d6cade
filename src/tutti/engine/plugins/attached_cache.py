"""Attached caches: typed values that one module keeps with an object of another module.

Contract: a cache is declared once, with a function that computes the value for an owner: a cluster, an engine, the
gangs of a cluster. `of` returns the owner's value and computes it at its first use. The value lives as long as its
owner; a copy of a cluster starts without values. Only this module writes an owner's `caches`, so the result of `of`
always has the type that the function returns.

    _SELECTORS: AttachedCache[Cluster, dict[int, Selector]] = AttachedCache(lambda _: {})
    selectors = _SELECTORS.of(cluster)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar


class CacheOwner(Protocol):
    """An object that stores values that other modules derive from it."""

    caches: dict[Any, Any]


O_contra = TypeVar("O_contra", bound=CacheOwner, contravariant=True)
T = TypeVar("T")


class AttachedCache(Generic[O_contra, T]):
    """A cache with one value per owner; see the module's contract."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[O_contra], T]) -> None:
        self._make = make

    def of(self, owner: O_contra) -> T:
        """Return the owner's value; compute it at its first use."""
        try:
            value: T = owner.caches[self]
        except KeyError:
            value = owner.caches[self] = self._make(owner)
        return value
