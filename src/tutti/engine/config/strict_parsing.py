"""Parse a configuration file into typed parts, as strictly as kube-scheduler does.

Contract: an unknown field, a repeated key and a value of the wrong type each raise `InputError` with the file and the
full path of the field. No part of the file is ignored silently.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml

from tutti.exceptions import InputError
from tutti.kube.reading.convert import decode_error
from tutti.kube.reading.sources import Source
from tutti.kube.reading.yaml_text import parse_yaml

T = TypeVar("T")
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class FieldPath(NamedTuple):
    """The file and the path of a field; integers are positions in lists."""

    file: str
    steps: tuple[str | int, ...] = ()

    def at(self, *steps: str | int) -> FieldPath:
        """Return the path of a part of this field."""
        return FieldPath(self.file, (*self.steps, *steps))

    def error(self, problem: str) -> InputError:
        """Return an error for this field."""
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.steps)
        return InputError(problem, file=self.file, field=text.removeprefix("."))


def convert_tree(tree: Any, kind: type[T], path: FieldPath) -> T:
    """Convert a parsed tree into a typed part."""
    try:
        part = msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        converted = decode_error(error, Source(path.file, b""), tree=tree)
        raise (path.at(converted.field) if converted.field else path).error(converted.problem) from None
    _refuse_unknown_fields(tree, part, path)
    return part


def _refuse_unknown_fields(tree: Any, part: Any, path: FieldPath) -> None:
    """Raise an error for a field of the tree that the typed part does not have."""
    if isinstance(part, msgspec.Struct):
        names = {field.encode_name: field.name for field in msgspec.structs.fields(part)}
        for key, value in tree.items():
            if key not in names:
                raise path.at(str(key)).error("kube-scheduler has no such field")
            _refuse_unknown_fields(value, getattr(part, names[key]), path.at(key))
    elif isinstance(part, list | tuple):
        for number, (value, value_part) in enumerate(zip(tree, part, strict=True)):
            _refuse_unknown_fields(value, value_part, path.at(number))


def parse_document(text: bytes, file: str) -> Any:
    """Parse the only document of a file, JSON or YAML."""
    source = Source(file, text)
    try:
        return json.loads(text, object_pairs_hook=_without_repeated_keys)
    except InputError as error:
        raise InputError(error.problem, file=file) from None
    except ValueError as error:
        if source.is_json:
            raise InputError(f"JSON is malformed: {error}", file=file) from None
    documents = [document for document in parse_yaml(source) if document is not None]
    if len(documents) != 1:
        raise InputError(f"expected one document, got {len(documents)}", file=file)
    visited: set[int] = set()
    for node in yaml.compose_all(text, Loader=_Loader):
        _refuse_repeated_keys(node, visited, file)
    return documents[0]


def _without_repeated_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return the pairs as a mapping; raise an error for a repeated key."""
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        raise InputError(f'"{next(k for k in keys if keys.count(k) > 1)}" is there twice in one mapping')
    return mapping


def _refuse_repeated_keys(node: Any, visited: set[int], file: str) -> None:
    """Raise an error for a repeated key; `visited` stops the recursion at aliases, which may be cyclic."""
    if id(node) in visited:
        return
    visited.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if key.value in keys:
                line = key.start_mark.line + 1
                raise InputError(f'"{key.value}" is there twice in one mapping (line {line})', file=file)
            keys.add(key.value)
            _refuse_repeated_keys(value, visited, file)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_repeated_keys(value, visited, file)
