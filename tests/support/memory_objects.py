"""The objects of an API server in memory: versions, a history, patches and deletions as kube-apiserver has them.

Contract: an object that was stored is never changed in place. Every change has a new version, and stays in `history`
for ever; `compact` only forbids watches and pages from before. `RefusedError` is what a client is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import msgspec

from tutti.client.resources import EVENTS, LEASES, Resource
from tutti.kube import objects as k
from tutti.kube.times import timestamp

Document = dict[str, Any]
_FINISHED = ("Succeeded", "Failed")


class RefusedError(Exception):
    """An error answer of the API server."""

    def __init__(
        self, status: int, reason: str, message: str, *, causes: tuple[str, ...] = (), retry_after: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message
        self.causes, self.retry_after = causes, retry_after


class StoredChange(NamedTuple):
    """A change of an object, as watches report it."""

    version: int
    resource: str
    type: str
    key: str
    obj: Document
    line: bytes


def plural(wire_kind: str) -> str:
    """Return the name of a kind in paths."""
    name = wire_kind.lower()
    if name.endswith("s"):
        return name + "es"
    return name[:-1] + "ies" if name.endswith("y") else name + "s"


def resource_of(kind: str) -> Resource:
    """Return the resource of a key of `KINDS`."""
    cls = k.KINDS[kind]
    group, _, version = cls.API_VERSION.rpartition("/")
    return Resource(group, version, plural(cls.WIRE_KIND), cls.NAMESPACED, kind)


class MemoryObjects:
    """See the module's docstring; all kinds of `KINDS`, events and leases are served, except those `without`."""

    def __init__(self, without: tuple[str, ...] = ()) -> None:
        self.resources: dict[str, Resource] = {"Event": EVENTS, "Lease": LEASES}
        """The kinds that are served, by their key."""
        self.resources |= {kind: resource_of(kind) for kind in k.KINDS if kind not in without}
        self.history: list[StoredChange] = []
        self.version = 100
        self.oldest = 0
        """The oldest version from which a watch can go on."""
        self.seconds_ahead = 0.0
        """How far the server's clock is ahead of this machine's."""
        self.on_change: Callable[[], None] = lambda: None
        self._objects: dict[str, dict[str, Document]] = {}
        self._uids = 0

    def now(self) -> int:
        """Return the server's time in whole seconds, as microseconds since 1970."""
        return int(time.time() + self.seconds_ahead) * 1_000_000

    # Kinds ------------------------------------------------------------------------------------------------------------

    def add_kind(self, kind: str) -> None:
        """Serve a kind from now on, as if its CustomResourceDefinition were created."""
        self.resources[kind] = resource_of(kind)

    def remove_kind(self, kind: str) -> None:
        """Serve a kind no more, and forget its objects."""
        name = self.resources[kind].name
        for key in list(self._objects.get(name, ())):
            self.remove(kind, key)
        del self.resources[kind]

    # Reading ----------------------------------------------------------------------------------------------------------

    def all(self, kind: str, namespace: str = "") -> list[Document]:
        """Return all objects of a kind, sorted by key."""
        objects = sorted(self._objects.get(self.resources[kind].name, {}).items())
        return [obj for key, obj in objects if not namespace or key.startswith(f"{namespace}/")]

    def find(self, kind: str, key: str) -> Document | None:
        """Return an object."""
        return self._objects.get(self.resources[kind].name, {}).get(key)

    def get(self, kind: str, key: str) -> Document:
        """Return an object that there is."""
        obj = self.find(kind, key)
        if obj is None:
            raise RefusedError(404, "NotFound", f'{self.resources[kind].name} "{key}" not found')
        return obj

    def changes_of(self, kind: str, key: str = "") -> Iterator[StoredChange]:
        """Yield the history of a kind or of one object."""
        name = self.resources[kind].name
        return (each for each in self.history if each.resource == name and key in ("", each.key))

    # Writing ----------------------------------------------------------------------------------------------------------

    def create(self, obj: k.Object | Document, kind: str = "") -> Document:
        """Store a new object, with a uid and the time."""
        if not isinstance(obj, dict):
            kind = obj.KIND
            obj = {"apiVersion": obj.API_VERSION, "kind": obj.WIRE_KIND, **msgspec.to_builtins(obj)}
        metadata = dict(obj["metadata"])
        if self.resources[kind].namespaced:
            metadata.setdefault("namespace", "default")
        self._uids += 1
        metadata["uid"] = f"uid-{self._uids}"
        metadata.setdefault("creationTimestamp", timestamp(self.now()))
        obj = {**obj, "metadata": metadata}
        key = key_of(obj)
        if self.find(kind, key) is not None:
            raise RefusedError(409, "AlreadyExists", f'{self.resources[kind].name} "{key}" already exists')
        return self._store(kind, key, obj, "ADDED")

    def replace(self, kind: str, key: str, new: Document) -> Document:
        """Store a new version; one that changes nothing is none."""
        old = self.get(kind, key)
        if _without_version(new) == _without_version(old):
            return old
        had_finalizers, metadata = bool(old["metadata"].get("finalizers")), new["metadata"]
        if had_finalizers and not metadata.get("finalizers") and metadata.get("deletionTimestamp"):
            return self.remove(kind, key)
        return self._store(kind, key, new, "MODIFIED")

    def patch(self, kind: str, key: str, change: Document, *, merges_lists: bool = False) -> Document:
        """Merge a change; with `merges_lists` as a strategic merge patch does, conditions by their type."""
        old = self.get(kind, key)
        new = merged(old, change, merges_lists=merges_lists)
        if new["metadata"].get("uid") != old["metadata"]["uid"]:
            raise RefusedError(422, "Invalid", f"{key} is invalid: metadata.uid: Invalid value: field is immutable")
        self._check_version(change, old)
        return self.replace(kind, key, new)

    def update(self, kind: str, key: str, new: Document) -> Document:
        """Store what a client sends instead of the old object."""
        old = self.get(kind, key)
        self._check_version(new, old)
        metadata = {**new["metadata"], "uid": old["metadata"]["uid"]}
        metadata.setdefault("creationTimestamp", old["metadata"].get("creationTimestamp"))
        return self.replace(kind, key, {**new, "metadata": metadata})

    def delete(self, kind: str, key: str, options: Document | None = None) -> Document:
        """Delete an object: a pod on a node and an object with a finalizer only begin to leave."""
        obj = self.get(kind, key)
        wanted = ((options or {}).get("preconditions") or {}).get("uid")
        uid = obj["metadata"]["uid"]
        if wanted is not None and wanted != uid:
            text = f"the UID in the precondition ({wanted}) does not match the UID in record ({uid})"
            raise RefusedError(409, "Conflict", f"Operation cannot be fulfilled on {key}: {text}")
        grace = (options or {}).get("gracePeriodSeconds", (obj.get("spec") or {}).get("terminationGracePeriodSeconds"))
        if grace == 0 or not (_terminates_slowly(kind, obj) or obj["metadata"].get("finalizers")):
            return self.remove(kind, key)
        if obj["metadata"].get("deletionTimestamp"):
            return obj
        seconds = 30 if grace is None else grace
        leaving = {
            "deletionTimestamp": timestamp(self.now() + seconds * 1_000_000),
            "deletionGracePeriodSeconds": seconds,
        }
        return self._store(kind, key, {**obj, "metadata": {**obj["metadata"], **leaving}}, "MODIFIED")

    def remove(self, kind: str, key: str) -> Document:
        """Remove an object at once, as a kubelet does when the containers have ended."""
        obj = self._objects[self.resources[kind].name].pop(key)
        return self._note(kind, key, obj, "DELETED")

    def compact(self) -> None:
        """Forget old versions: watches and pages from before are answered with 410."""
        self.oldest = self.version

    def _check_version(self, new: Document, old: Document) -> None:
        wanted = new["metadata"].get("resourceVersion") if "metadata" in new else None
        if wanted and wanted != old["metadata"]["resourceVersion"]:
            text = "the object has been modified; please apply your changes to the latest version and try again"
            raise RefusedError(409, "Conflict", f"Operation cannot be fulfilled: {text}")

    def _store(self, kind: str, key: str, obj: Document, change: str) -> Document:
        stored = self._note(kind, key, obj, change)
        self._objects.setdefault(self.resources[kind].name, {})[key] = stored
        return stored

    def _note(self, kind: str, key: str, obj: Document, change: str) -> Document:
        self.version += 1
        resource = self.resources[kind]
        metadata = {**obj["metadata"], "resourceVersion": str(self.version)}
        wire_kind = k.KINDS[kind].WIRE_KIND if kind in k.KINDS else kind
        obj = {**obj, "apiVersion": resource.api_version, "kind": wire_kind, "metadata": metadata}
        line = watch_line(change, obj)
        stored: Document = msgspec.json.decode(line)["object"]  # shares nothing with what the caller has
        self.history.append(StoredChange(self.version, resource.name, change, key, stored, line))
        self.on_change()
        return stored


def watch_line(change: str, obj: Document) -> bytes:
    """Return an event of a watch."""
    return msgspec.json.encode({"type": change, "object": obj}) + b"\n"


def merged(old: Any, change: Any, *, merges_lists: bool) -> Any:
    """Return what a merge patch makes of a document."""
    if not isinstance(change, dict):
        return change
    new = dict(old) if isinstance(old, dict) else {}
    for name, value in change.items():
        if value is None:
            new.pop(name, None)
        elif merges_lists and name == "conditions":
            by_type = {each["type"]: each for each in new.get(name) or ()}
            for each in value:
                by_type[each["type"]] = by_type.get(each["type"], {}) | each
            new[name] = list(by_type.values())
        else:
            new[name] = merged(new.get(name), value, merges_lists=merges_lists)
    return new


def _terminates_slowly(kind: str, obj: Document) -> bool:
    """Return whether a kubelet ends the object: a pod on a node that has not finished."""
    has_node = bool((obj.get("spec") or {}).get("nodeName"))
    return kind == "Pod" and has_node and (obj.get("status") or {}).get("phase") not in _FINISHED


def key_of(obj: Document) -> str:
    """Return namespace and name of an object."""
    metadata = obj["metadata"]
    return f"{metadata['namespace']}/{metadata['name']}" if metadata.get("namespace") else str(metadata["name"])


def _without_version(obj: Document) -> Document:
    return {**obj, "metadata": {**obj["metadata"], "resourceVersion": ""}}
