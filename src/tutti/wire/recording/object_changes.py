"""What changed in an object since its last version, so that a recording does not repeat the rest.

Contract: pure. `changed_fields(old, new)` returns the fields that differ, by their names in JSON: those of metadata,
spec and status one level deeper, and None for a field that is back at its default. `with_changes(old, changes)` returns
the new object. A heartbeat is an update that says only that a node is still alive.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from tutti.cluster.object_versions import is_older, version_of
from tutti.exceptions import InputError
from tutti.kube.objects import Condition, KubeStruct, Node, Object
from tutti.kube.reading.convert import decode_error
from tutti.kube.reading.sources import Source

Changes = dict[str, Any]
"""New values by field; those of metadata, spec and status are one level deeper."""


class _ObjectField(NamedTuple):
    """A field of an object, or of its metadata, spec or status."""

    name: str
    default: Any
    type: Any
    is_part: bool
    """Whether the field has fields of its own and is always there, as metadata, spec and status."""
    is_text: bool
    """Whether every text is a value of the field, so that it needs no check."""


@cache
def _fields(cls: type[KubeStruct]) -> dict[str, _ObjectField]:
    """Return the fields of a class by their names in JSON."""
    described = {}
    for field in msgspec.structs.fields(cls):
        is_part = isinstance(field.type, type) and issubclass(field.type, KubeStruct)
        is_text = field.type in (str, str | None)
        described[field.encode_name] = _ObjectField(field.name, field.default, field.type, is_part, is_text)
    return described


def changed_fields(old: Object, new: Object) -> Changes:
    """Return the fields in which two objects of one kind differ."""
    return _changed_fields(old, new, is_object=True)


def _changed_fields(old: KubeStruct, new: KubeStruct, *, is_object: bool) -> Changes:
    changes: Changes = {}
    for wire_name, field in _fields(type(new)).items():
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before is after or before == after:
            continue
        if is_object and field.is_part:
            changes[wire_name] = _changed_fields(before, after, is_object=False)
        else:
            changes[wire_name] = None if after == field.default else after
    return changes


def is_next_version(old: Object, new: Object) -> bool:
    """Return whether an update is not older than the recorded version: later changes refer to it."""
    return not is_older(new.metadata, version_of(old.metadata))


def is_heartbeat(old: Object, changes: Changes) -> bool:
    """Return whether changes are at most a new resourceVersion and new heartbeat times of a node's conditions."""
    metadata, status = changes.get("metadata", {}), changes.get("status", {})
    if not isinstance(old, Node) or metadata.keys() - {"resourceVersion"} or status.keys() - {"conditions"}:
        return False
    if changes.keys() - {"metadata", "status"}:
        return False
    before = old.status.conditions
    return _without_heartbeats(before) == _without_heartbeats(status.get("conditions", before))


def _without_heartbeats(conditions: list[Condition] | None) -> list[Condition]:
    return [replace(condition, last_heartbeat_time=None) for condition in conditions or ()]


def with_changes(old: Object, changes: Changes) -> Object:
    """Return an object with new values in some fields; raise `InputError` for a field or a value that does not fit."""
    obj: Object = _replaced(old, changes, path="")
    return obj


def _replaced(old: KubeStruct, changes: Changes, *, path: str) -> Any:
    values: dict[str, Any] = {}
    fields = _fields(type(old))
    for wire_name, value in changes.items():
        field, place = fields.get(wire_name), f"{path}{wire_name}"
        if field is None:
            raise InputError("there is no such field", field=place)
        if value is None:
            values[field.name] = field.default
        elif field.is_text and isinstance(value, str):  # most changes: versions, nodes, phases, times
            values[field.name] = value
        elif field.is_part and not path and isinstance(value, dict):
            values[field.name] = _replaced(getattr(old, field.name), value, path=f"{place}.")
        else:
            values[field.name] = _converted(value, field.type, place)
    return replace(old, **values)


def _converted(value: Any, kind: Any, place: str) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        found = decode_error(error, Source("", b""), tree=value)
        is_step = not found.field or found.field.startswith(("[", "."))
        raise InputError(found.problem, field=f"{place}{'' if is_step else '.'}{found.field}") from None
