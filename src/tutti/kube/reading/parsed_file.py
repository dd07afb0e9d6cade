"""The documents of one file: JSON values with their headers, or YAML trees.

Contract: `parse_file` decides whether a file is JSON or YAML. A JSON document is not decoded yet: it is a header (kind,
API version, items as undecoded bytes) and its text, so that `kube.reading.decode` decodes each object once, directly to
its struct. YAML is parsed completely, to trees of dicts and lists. Malformed text raises `InputError` with file and
line. `parsed_trees` accepts objects that the caller already has as dicts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from tutti.exceptions import InputError
from tutti.kube.reading.convert import decode_error
from tutti.kube.reading.sources import Source
from tutti.kube.reading.yaml_text import parse_yaml

_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_BYTE = re.compile(r" \(byte (\d+)\)")
_USUAL_START = re.compile(rb'\s*\{\s*"apiVersion"\s*:\s*"([^"\\]*)"\s*,\s*"kind"\s*:\s*"([^"\\]*)"')
NESTED_TOO_DEEPLY = "it is nested too deeply (does a YAML alias contain itself?)"


class _KindHeader(msgspec.Struct, rename="camel"):
    """Kind and API version of an object."""

    kind: str | None = None
    api_version: str | None = None


class Header(_KindHeader):
    """Kind and API version of an object, and the undecoded items of a list."""

    items: list[msgspec.Raw] | None = None


class JsonDocument(NamedTuple):
    """One JSON value of a file: its header and its text."""

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
    """Parse a file into documents.

    `fields` are the undecoded top-level fields of the file's only JSON object, if the caller already has them.
    """
    try:
        return _parse_file(source, fields)
    except RecursionError:
        raise InputError(NESTED_TOO_DEEPLY, file=source.name) from None


def parsed_trees(trees: Iterable[Any], name: str) -> ParsedFile:
    """Return dicts with Kubernetes' JSON field names as a parsed file; times may be datetimes, None means absent."""
    try:
        return ParsedFile(Source(name, b""), [], [_without_none(msgspec.to_builtins(tree)) for tree in trees])
    except RecursionError:
        raise InputError("it is nested too deeply", file=name) from None
    except TypeError as error:
        raise InputError(f"want dicts of plain values: {error}", file=name) from None


def kind_and_version(item: msgspec.Raw | memoryview) -> tuple[str | None, str | None]:
    """Return kind and API version of an item; read only the first bytes if the fields are in the usual order."""
    match = _USUAL_START.match(memoryview(item)[:256])
    if match is not None:
        return match[2].decode(), match[1].decode()
    header = _KIND.decode(item)
    return header.kind, header.api_version


def json_document(item: msgspec.Raw) -> JsonDocument:
    """Return an item of a list as a document of its own: the item is a list, too."""
    text = memoryview(item)
    return JsonDocument(_header(text), text)


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
        # YAML may begin with a brace too, so the YAML parser decides whether the text is malformed.
    return ParsedFile(source, [], [tree for tree in parse_yaml(source) if tree is not None])


def _header_of_fields(fields: Mapping[str, msgspec.Raw]) -> Header | None:
    """Build the header from an object's fields; None if a field is invalid: parsing the text then gives the error."""
    try:
        return Header(
            kind=_TEXT.decode(fields["kind"]) if "kind" in fields else None,
            api_version=_TEXT.decode(fields["apiVersion"]) if "apiVersion" in fields else None,
            items=_OPTIONAL_ITEMS.decode(fields["items"]) if "items" in fields else None,
        )
    except msgspec.DecodeError:
        return None


def _json_documents(source: Source) -> list[JsonDocument] | InputError:
    """Return the JSON values of a file, in order; or the error if the text is not JSON."""
    rest = memoryview(source.data.removeprefix(b"\xef\xbb\xbf"))
    documents = []
    offset = 0
    while rest[:4096].tobytes().strip() or rest.tobytes().strip():
        end = len(rest)
        try:
            header = _header(rest)
        except msgspec.ValidationError as error:
            raise decode_error(error, source) from None
        except msgspec.DecodeError as error:
            trailing = _TRAILING.search(str(error))
            if trailing is None:
                return InputError(_with_line(str(error), source.data, offset=offset), file=source.name)
            end = int(trailing[1]) - 1  # msgspec reports the byte after the first trailing one
            header = _header(rest[:end])
        documents.append(JsonDocument(header, rest[:end]))
        rest = rest[end:]
        offset += end
    return documents


def _header(text: memoryview) -> Header:
    if text[:64].tobytes().lstrip()[:1] == b"[":
        return Header(kind="List", items=_ITEMS.decode(text))
    return _HEADER.decode(text)


def _with_line(message: str, data: bytes, *, offset: int) -> str:
    """Replace the byte position in a parser's message with the line number."""
    position = _BYTE.search(message)
    if position is None:
        return "JSON is malformed: it ends too early" if "truncated" in message else message
    line = data.count(b"\n", 0, offset + int(position[1])) + 1
    return _BYTE.sub(f" (line {line})", message)
