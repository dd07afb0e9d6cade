"""The text of one file, parsed as far as its documents: JSON values with their headers, or YAML trees.

Contract: `parse_file` decides once whether a file is JSON or YAML. JSON is not decoded yet: a document is its header
(kind, API version, items as undecoded bytes) and its text, so that `kube.reading.decode` decodes every object once,
straight into its record. YAML has no such halfway state and becomes trees. Malformed text raises `InputError` with the
file and the line. `parsed_trees` is for objects that a caller has as dicts already.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from tutti.exceptions import InputError
from tutti.kube.reading.convert import fault
from tutti.kube.reading.sources import Source
from tutti.kube.reading.yaml_text import parse_yaml

_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_BYTE = re.compile(r" \(byte (\d+)\)")
_USUAL_START = re.compile(rb'\s*\{\s*"apiVersion"\s*:\s*"([^"\\]*)"\s*,\s*"kind"\s*:\s*"([^"\\]*)"')
TOO_DEEP = "it is nested too deeply (does a YAML alias contain itself?)"


class _KindHeader(msgspec.Struct, rename="camel"):
    """The kind of an object, without the rest of it."""

    kind: str | None = None
    api_version: str | None = None


class Header(_KindHeader):
    """The kind of an object, and its items undecoded where it is a list."""

    items: list[msgspec.Raw] | None = None


class JsonDocument(NamedTuple):
    """One JSON value of a file: its header and its whole text."""

    header: Header
    text: memoryview


class ParsedFile(NamedTuple):
    """The documents of one file: JSON values or YAML trees, never both."""

    source: Source
    json: list[JsonDocument]
    trees: list[Any]


_HEADER = msgspec.json.Decoder(Header)
_KIND = msgspec.json.Decoder(_KindHeader)
_TEXT = msgspec.json.Decoder(str | None)
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_OPTIONAL_ITEMS = msgspec.json.Decoder(list[msgspec.Raw] | None)


def parse_file(source: Source, fields: Mapping[str, msgspec.Raw] | None = None) -> ParsedFile:
    """The documents of a file; `fields` are the top-level fields of its only JSON object, where a caller has them."""
    try:
        return _parse_file(source, fields)
    except RecursionError:
        raise InputError(TOO_DEEP, file=source.name) from None


def parsed_trees(trees: Iterable[Any], name: str) -> ParsedFile:
    """Objects that are dicts with the names of Kubernetes' JSON; times may be datetimes, None is an absent field."""
    try:
        return ParsedFile(Source(name, b""), [], [_without_none(msgspec.to_builtins(tree)) for tree in trees])
    except RecursionError:
        raise InputError("it is nested too deeply", file=name) from None
    except TypeError as error:
        raise InputError(f"want dicts of plain values: {error}", file=name) from None


def kind_and_version(item: msgspec.Raw | memoryview) -> tuple[str | None, str | None]:
    """An item's kind and API version, from its first bytes where they are in the usual order."""
    usual = _USUAL_START.match(memoryview(item)[:256])
    if usual is not None:
        return usual[2].decode(), usual[1].decode()
    header = _KIND.decode(item)
    return header.kind, header.api_version


def _without_none(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {key: _without_none(value) for key, value in tree.items() if value is not None}
    return [_without_none(value) for value in tree] if isinstance(tree, list) else tree


def _parse_file(source: Source, fields: Mapping[str, msgspec.Raw] | None) -> ParsedFile:
    if fields is not None and (header := _header_of_fields(fields)) is not None:
        return ParsedFile(source, [JsonDocument(header, memoryview(source.data))], [])
    start = source.data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if source.is_json or start in (b"{", b"["):
        documents = _json_documents(source)
        if not isinstance(documents, InputError):
            return ParsedFile(source, documents, [])
        if source.is_json:
            raise documents
        # YAML may begin with a brace too: the YAML parser decides whether the text is malformed.
    return ParsedFile(source, [], [tree for tree in parse_yaml(source) if tree is not None])


def _header_of_fields(fields: Mapping[str, msgspec.Raw]) -> Header | None:
    """The header that an object's fields make; None where one is faulty, so that the whole text is parsed for it."""
    try:
        return Header(
            kind=_TEXT.decode(fields["kind"]) if "kind" in fields else None,
            api_version=_TEXT.decode(fields["apiVersion"]) if "apiVersion" in fields else None,
            items=_OPTIONAL_ITEMS.decode(fields["items"]) if "items" in fields else None,
        )
    except msgspec.DecodeError:
        return None


def _json_documents(source: Source) -> list[JsonDocument] | InputError:
    """The JSON values of a file, one after another; or what is wrong with the text."""
    rest = memoryview(source.data.removeprefix(b"\xef\xbb\xbf"))
    found = []
    offset = 0
    while rest[:4096].tobytes().strip() or rest.tobytes().strip():
        end = len(rest)
        try:
            header = _header(rest)
        except msgspec.ValidationError as error:
            raise fault(error, source) from None
        except msgspec.DecodeError as error:
            trailing = _TRAILING.search(str(error))
            if trailing is None:
                return InputError(_with_line(str(error), source.data, offset=offset), file=source.name)
            end = int(trailing[1]) - 1  # the byte after the one that is too much
            header = _header(rest[:end])
        found.append(JsonDocument(header, rest[:end]))
        rest = rest[end:]
        offset += end
    return found


def _header(text: memoryview) -> Header:
    if text[:64].tobytes().lstrip()[:1] == b"[":
        return Header(kind="List", items=_ITEMS.decode(text))
    return _HEADER.decode(text)


def _with_line(message: str, data: bytes, *, offset: int) -> str:
    """A parser's message with the line instead of the byte."""
    place = _BYTE.search(message)
    if place is None:
        return "JSON is malformed: it ends too early" if "truncated" in message else message
    line = data.count(b"\n", 0, offset + int(place[1])) + 1
    return _BYTE.sub(f" (line {line})", message)
