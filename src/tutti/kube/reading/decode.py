"""Bytes of JSON or YAML as typed Kubernetes objects.

Contract: `decode` takes one file with any number of documents, each an object, a list of objects (``List``,
``PodList``, items with or without their own kind) or a JSON array of them, and gives the objects of the kinds that
Tutti knows in their order; objects of other kinds or API groups are counted. A null means an absent field. Faults raise
`InputError` with file, object and field. Big JSON lists are decoded item by item straight from the file's bytes.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, NamedTuple

import msgspec

from tutti.exceptions import InputError
from tutti.kube.objects import KINDS, Object
from tutti.kube.reading.convert import convert, fault
from tutti.kube.reading.sources import Source
from tutti.kube.reading.yaml_text import parse_yaml

_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_BYTE = re.compile(r" \(byte (\d+)\)")
_USUAL_START = re.compile(rb'\s*\{\s*"apiVersion"\s*:\s*"([^"\\]*)"\s*,\s*"kind"\s*:\s*"([^"\\]*)"')


class _Header(msgspec.Struct, rename="camel"):
    """What an object is, without reading the rest."""

    kind: str | None = None
    api_version: str | None = None
    items: list[msgspec.Raw] | None = None


class _Document(NamedTuple):
    """One JSON value of a file and what it is."""

    header: _Header
    text: memoryview


class _Kind(msgspec.Struct, rename="camel"):
    """The kind alone."""

    kind: str | None = None
    api_version: str | None = None


_HEADER = msgspec.json.Decoder(_Header)
_KIND = msgspec.json.Decoder(_Kind)
_ITEMS = msgspec.json.Decoder(list[msgspec.Raw])
_TYPED: dict[str, msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(cls) for kind, cls in KINDS.items()}
_BY_GROUP: dict[str, dict[str, str]] = {}
"""Kinds by what objects call them, then by API group."""
for _cls in KINDS.values():
    _BY_GROUP.setdefault(_cls.WIRE_KIND, {})[_cls.API_VERSION.rpartition("/")[0]] = _cls.KIND


class Decoded:
    """What one file holds."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.objects: list[Object] = []
        self.skipped: Counter[str] = Counter()
        self.present: set[str] = set()

    def claim(self, kind: str | None, api_version: str | None) -> str | None:
        """The kind to read an object as; None for one to leave out, which is counted."""
        if not kind:
            place = len(self.objects) + self.skipped.total() + 1
            raise InputError("it has no kind", file=self.file, obj=f"object {place}")
        known = _known(kind, api_version)
        if known is not None:
            self.present.add(known)
            return known
        group = (api_version or "").rpartition("/")[0]
        self.skipped[f"{kind}.{group}" if group else kind] += 1
        return None


def _known(kind: str, api_version: str | None) -> str | None:
    """The kind that an object is of, if Tutti reads it; without an API version, the only one of that name."""
    groups = _BY_GROUP.get(kind)
    if groups is None:
        return None
    if api_version is None:
        return next(iter(groups.values())) if len(groups) == 1 else None
    return groups.get(api_version.rpartition("/")[0])


def decode(source: Source) -> Decoded:
    """All objects of a file."""
    try:
        return _decode(source)
    except RecursionError:
        problem = "it is nested too deeply (does a YAML alias contain itself?)"
        raise InputError(problem, file=source.name) from None


def _decode(source: Source) -> Decoded:
    decoded = Decoded(source.name)
    start = source.data[:4096].lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if source.is_json or start in (b"{", b"["):
        documents = _json_documents(source)
        if not isinstance(documents, InputError):
            for document in documents:
                _add_json(decoded, document, source=source)
            return _with_something(decoded, len(documents), source=source)
        if source.is_json:
            raise documents
        # Braces can also start YAML, so the fault may be none.
    trees = [tree for tree in parse_yaml(source) if tree is not None]
    for tree in trees:
        _add_tree(decoded, tree, source=source)
    return _with_something(decoded, len(trees), source=source)


def _with_something(decoded: Decoded, documents: int, *, source: Source) -> Decoded:
    if not documents:
        raise InputError("there is no object in it", file=source.name)
    return decoded


# JSON -----------------------------------------------------------------------------------------------------------------


def _json_documents(source: Source) -> list[_Document] | InputError:
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
        found.append(_Document(header, rest[:end]))
        rest = rest[end:]
        offset += end
    return found


def _header(text: memoryview) -> _Header:
    if text[:64].tobytes().lstrip()[:1] == b"[":
        return _Header(kind="List", items=_ITEMS.decode(text))
    return _HEADER.decode(text)


def _with_line(message: str, data: bytes, *, offset: int) -> str:
    """A parser's message with the line instead of the byte."""
    place = _BYTE.search(message)
    if place is None:
        return "JSON is malformed: it ends too early" if "truncated" in message else message
    line = data.count(b"\n", 0, offset + int(place[1])) + 1
    return _BYTE.sub(f" (line {line})", message)


def _add_json(decoded: Decoded, document: _Document, *, source: Source) -> None:
    header = document.header
    kind = header.kind or "List"
    listed = kind.removesuffix("List")
    known = _known(listed, header.api_version)
    empty = header.items is None and header.kind is not None and (header.kind == "List" or known is not None)
    if not kind.endswith("List") or (header.items is None and not empty):
        _add_item(decoded, document.text, what=(header.kind, header.api_version), source=source)
        return
    if known is not None and not header.items:
        decoded.present.add(known)
    for item in header.items or ():
        what = (listed, header.api_version) if listed else _kind_of(item, source)
        _add_item(decoded, item, what=what, source=source)


def _kind_of(item: msgspec.Raw, source: Source) -> tuple[str | None, str | None]:
    """An item's kind and API version, from its first bytes where they are in the usual order."""
    usual = _USUAL_START.match(memoryview(item)[:256])
    if usual is not None:
        return usual[2].decode(), usual[1].decode()
    try:
        header = _KIND.decode(item)
    except msgspec.ValidationError as error:
        raise fault(error, source) from None
    return header.kind, header.api_version


def _add_item(
    decoded: Decoded, item: msgspec.Raw | memoryview, *, what: tuple[str | None, str | None], source: Source
) -> None:
    kind = decoded.claim(*what)
    if kind is None:
        return
    try:
        decoded.objects.append(_TYPED[kind].decode(item))
    except msgspec.ValidationError:
        # A null for an absent part, or a real fault: the slow way tells.
        decoded.objects.append(convert(msgspec.json.decode(item), kind, source=source))


# YAML, and whatever has become a tree ---------------------------------------------------------------------------------


def _add_tree(decoded: Decoded, tree: Any, *, source: Source) -> None:
    if isinstance(tree, list):
        tree = {"kind": "List", "items": tree}
    if not isinstance(tree, dict):
        raise InputError(f"expected Kubernetes objects, got {type(tree).__name__}", file=source.name)
    kind, items = tree.get("kind"), tree.get("items")
    if "items" in tree and (not kind or str(kind).endswith("List")):
        listed = str(kind or "List").removesuffix("List")
        known = _known(listed, tree.get("apiVersion"))
        if known is not None and not items:
            decoded.present.add(known)
        for item in items or ():
            shared = {"kind": listed, "apiVersion": tree.get("apiVersion")} if listed else {}
            _add_tree(decoded, shared | item if isinstance(item, dict) else item, source=source)
        return
    claimed = decoded.claim(kind, tree.get("apiVersion"))
    if claimed is not None:
        decoded.objects.append(convert(tree, claimed, source=source))
