"""Object readers: who has looked up which object, so that a change of the object concerns only those."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from tutti.kube.gangs.dialect import Find
from tutti.kube.objects import Object

T = TypeVar("T", bound=Hashable)


class ObjectReaders(Generic[T]):
    """The readers of each object, and the objects of each reader."""

    def __init__(self) -> None:
        self._readers: dict[tuple[str, str], set[T]] = {}
        self._objects: dict[T, list[tuple[str, str]]] = {}

    def of(self, obj: tuple[str, str]) -> Iterable[T]:
        """Return the readers of an object, by kind and key."""
        return self._readers.get(obj, ())

    def recorder(self, reader: T, find: Find) -> Find:
        """Return a lookup that records what a reader looks up, after forgetting what it looked up before."""
        self.forget(reader)
        objects: list[tuple[str, str]] = []

        def recording(kind: str, key: str) -> Object | None:
            readers = self._readers.setdefault((kind, key), set())
            if reader not in readers:
                readers.add(reader)
                objects.append((kind, key))
                self._objects[reader] = objects
            return find(kind, key)

        return recording

    def forget(self, reader: T) -> None:
        """Forget what a reader looked up."""
        for obj in self._objects.pop(reader, ()):
            readers = self._readers[obj]
            readers.discard(reader)
            if not readers:
                del self._readers[obj]
