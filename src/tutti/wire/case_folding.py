"""Documents whose field names may be in any case, as Go reads them.

Contract: pure. `fold` returns a tree with the field names of a record type, whatever their case in the document; an
exact name takes precedence. Unknown names and nulls are left out. Keys of mappings (labels, resources) are data and
stay unchanged. `fault_at` turns a decoder's error into an `InputError` with the document's names:
``WorkerPools[0].Maximum: want an integer``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import inspect

from tutti.exceptions import InputError
from tutti.kube.reading.convert import decode_error
from tutti.kube.reading.sources import Source
from tutti.wire.wire_document import WireDocument

_WANTED = re.compile(r"expected (.*?)(?:, got (.*))?")
_WORDS = {
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "str": "text",
    "null": "nothing",
    "a mapping": "an object",
    "str | int | float": "a quantity",
    "int | float | str": "a quantity",
    "int | str": "an integer or text",
    "a list": "a list",
}
_BYTE = re.compile(r" \(byte (\d+)\)")


class _Shape(NamedTuple):
    """The field names of a record, or of the items of a list or mapping."""

    fields: dict[str, tuple[str, _Shape | None]] | None = None
    """By exact and by lower-case name: the exact name, and the shape of its value."""
    inner: _Shape | None = None
    is_mapping: bool = False


def fold(tree: Any, kind: type[msgspec.Struct]) -> Any:
    """Return a tree with the field names of a record type."""
    return _fold(tree, _shape(kind))


@lru_cache(maxsize=64)
def _shape(kind: type[msgspec.Struct]) -> _Shape:
    found = _shape_of(inspect.type_info(kind))
    assert found is not None
    return found


def _shape_of(info: inspect.Type) -> _Shape | None:
    if isinstance(info, inspect.UnionType):
        return next((shape for each in info.types if (shape := _shape_of(each)) is not None), None)
    if isinstance(info, inspect.StructType):
        fields: dict[str, tuple[str, _Shape | None]] = {}
        for each in info.fields:
            entry = (each.encode_name, _shape_of(each.type))
            fields[each.encode_name.lower()] = entry
            fields[each.encode_name] = entry
        return _Shape(fields=fields)
    if isinstance(info, inspect.ListType):
        inner = _shape_of(info.item_type)
        return _Shape(inner=inner) if inner is not None else None
    if isinstance(info, inspect.DictType):
        return _Shape(inner=_shape_of(info.value_type), is_mapping=True)
    return None


def _fold(tree: Any, shape: _Shape | None) -> Any:
    if shape is None:
        return tree
    if isinstance(tree, dict):
        if shape.fields is not None:
            return _folded_record(tree, shape.fields)
        if shape.is_mapping:
            return {key: _fold(value, shape.inner) for key, value in tree.items() if value is not None}
    elif isinstance(tree, list) and shape.inner is not None:
        # Go makes an empty record of a null in a list of records.
        empty: dict[str, Any] | None = {} if shape.inner.fields is not None else None
        return [_fold(empty if each is None else each, shape.inner) for each in tree]
    return tree


def _folded_record(tree: dict[str, Any], fields: dict[str, tuple[str, _Shape | None]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in tree.items():
        if value is None:
            continue
        entry = fields.get(key) or fields.get(key.lower())
        if entry is not None and (key == entry[0] or entry[0] not in tree):
            found[entry[0]] = _fold(value, entry[1])
    return found


def fault_at(
    error: msgspec.ValidationError, source: Source, *, tree: Any = None, under: str = "", called: str = ""
) -> InputError:
    """Return the `InputError` for a decoder's error; `under` is the path of the decoded part in the document."""
    found = decode_error(error, source, called=called, tree=tree)
    problem, field = found.problem, found.field
    parts = _WANTED.fullmatch(problem)
    if parts is not None:
        wanted = parts[1].replace("array", "a list").replace(" | null", "")
        problem = f"want {_worded(wanted)}"
        if parts[2]:
            problem += f", not {_worded(parts[2])}"
    elif problem.startswith("object missing required field "):
        field = ".".join(filter(None, (field, problem.removeprefix("object missing required field "))))
        problem = "it is required"
    path = ".".join(filter(None, (under, field))).replace(".[", "[")
    return InputError(problem, file=found.file, obj=called, field=path)


def _worded(kinds: str) -> str:
    name, _, bound = kinds.partition(" >")
    if bound:
        return f"{_WORDS.get(name, name)} >{bound}"
    name, _, bound = kinds.partition(" <")
    if bound:
        return f"{_WORDS.get(name, name)} <{bound}"
    return _WORDS.get(kinds, kinds)


def tree_of(document: WireDocument) -> Any:
    """Return the tree of a JSON document, each field decoded once; an `InputError` names the line."""
    if document.fields is None:
        return parse_json(document.source)
    try:
        return {name: msgspec.json.decode(field) for name, field in document.fields.items()}
    except (msgspec.DecodeError, RecursionError):
        return parse_json(document.source)  # to find the line of the error


def parse_json(source: Source) -> Any:
    """Return the tree of JSON text; an `InputError` names the line."""
    try:
        return msgspec.json.decode(source.data)
    except msgspec.DecodeError as error:
        raise malformed(error, source) from None
    except RecursionError:
        raise InputError("it is nested too deeply", file=source.name) from None


def malformed(error: msgspec.DecodeError, source: Source) -> InputError:
    """Return the `InputError` for text that is not JSON, with the line."""
    message = str(error)
    place = _BYTE.search(message)
    if not source.data.strip():
        message = "it is empty"
    elif place is None:
        message = "JSON is malformed: it ends too early" if "truncated" in message else message
    else:
        line = source.data.count(b"\n", 0, int(place[1])) + 1
        message = _BYTE.sub(f" (line {line})", message)
    return InputError(message, file=source.name)
