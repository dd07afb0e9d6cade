"""Configuration files as typed parts, read as strictly as kube-scheduler reads them.

Contract: a field that the part does not have, a key that is there twice and a value of the wrong type raise
`InputError` with the file and the whole path of the field; nothing is left out silently.
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
    """Where something stands: the file and the path of a field, in which numbers are places in lists."""

    file: str
    path: tuple[str | int, ...] = ()

    def at(self, *steps: str | int) -> FieldPath:
        """Go down to a part."""
        return FieldPath(self.file, (*self.path, *steps))

    def fault(self, problem: str) -> InputError:
        """Say what is wrong here."""
        text = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in self.path)
        return InputError(problem, file=self.file, field=text.removeprefix("."))


def read(tree: Any, kind: type[T], place: FieldPath) -> T:
    """Turn a tree into a typed part."""
    try:
        found = msgspec.convert(tree, kind)
    except msgspec.ValidationError as error:
        said = decode_error(error, Source(place.file, b""), tree=tree)
        raise (place.at(said.field) if said.field else place).fault(said.problem) from None
    _refuse_unknown(tree, found, place)
    return found


def _refuse_unknown(tree: Any, found: Any, place: FieldPath) -> None:
    if isinstance(found, msgspec.Struct):
        names = {field.encode_name: field.name for field in msgspec.structs.fields(found)}
        for key, value in tree.items():
            if key not in names:
                raise place.at(str(key)).fault("kube-scheduler has no such field")
            _refuse_unknown(value, getattr(found, names[key]), place.at(key))
    elif isinstance(found, list | tuple):
        for number, (value, part) in enumerate(zip(tree, found, strict=True)):
            _refuse_unknown(value, part, place.at(number))


def parse_one(text: bytes, file: str) -> Any:
    """Parse the one document of a file, JSON or YAML."""
    source = Source(file, text)
    try:
        return json.loads(text, object_pairs_hook=_only_once)
    except InputError as error:
        raise InputError(error.problem, file=file) from None
    except ValueError as error:
        if source.is_json:
            raise InputError(f"JSON is malformed: {error}", file=file) from None
    documents = [document for document in parse_yaml(source) if document is not None]
    if len(documents) != 1:
        raise InputError(f"expected one document, got {len(documents)}", file=file)
    nodes: set[int] = set()
    for node in yaml.compose_all(text, Loader=_Loader):
        _refuse_repeated(node, nodes, file)
    return documents[0]


def _only_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise InputError(f'"{next(k for k in keys if keys.count(k) > 1)}" is there twice in one mapping')
    return found


def _refuse_repeated(node: Any, done: set[int], file: str) -> None:
    """Refuse a mapping that has a key twice; aliases lead to the same node again, even to one that is above."""
    if id(node) in done:
        return
    done.add(id(node))
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, value in node.value:
            if key.value in keys:
                line = key.start_mark.line + 1
                raise InputError(f'"{key.value}" is there twice in one mapping (line {line})', file=file)
            keys.add(key.value)
            _refuse_repeated(value, done, file)
    elif isinstance(node, yaml.SequenceNode):
        for value in node.value:
            _refuse_repeated(value, done, file)
