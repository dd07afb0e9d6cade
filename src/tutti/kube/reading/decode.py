"""Decoding of parsed files to typed Kubernetes objects.

Contract: `decode_objects` takes one parsed file with any number of documents. A document is an object, a list of
objects (``List``, ``PodList``; items with or without their own kind) or a JSON array of objects. A list may contain
lists; an empty list of a kind says that the cluster has no object of this kind. The result has the objects of all kinds
in `KINDS`, in file order; objects of other kinds or API groups are only counted. Each object is decoded once; JSON
directly from the file's bytes. A null means an absent field. An invalid document raises `InputError` with file, object
and field.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from tutti.exceptions import InputError
from tutti.kube.objects import KINDS, Object
from tutti.kube.reading.convert import convert, decode_error
from tutti.kube.reading.parsed_file import NESTED_TOO_DEEPLY, JsonDocument, ParsedFile, json_document, kind_and_version
from tutti.kube.reading.sources import Source

_DECODERS: dict[str, msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(cls) for kind, cls in KINDS.items()}
_KINDS_BY_GROUP: dict[str, dict[str, str]] = {}
"""`KIND` by the object's field ``kind``, then by API group."""
for _cls in KINDS.values():
    _KINDS_BY_GROUP.setdefault(_cls.WIRE_KIND, {})[_cls.API_VERSION.rpartition("/")[0]] = _cls.KIND


class DecodedFile:
    """The objects of one file, the kinds in the file, and the number of skipped objects by kind."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.objects: list[Object] = []
        self.skipped: Counter[str] = Counter()
        self.present_kinds: set[str] = set()

    def record_kind(self, kind: str | None, api_version: str | None) -> str | None:
        """Return the key in `KINDS` for an object and record the kind; count an unknown kind and return None."""
        if not kind:
            number = len(self.objects) + self.skipped.total() + 1
            raise InputError("it has no kind", file=self.file, obj=f"object {number}")
        known = _known_kind(kind, api_version)
        if known is not None:
            self.present_kinds.add(known)
            return known
        group = (api_version or "").rpartition("/")[0]
        self.skipped[f"{kind}.{group}" if group else kind] += 1
        return None


def _known_kind(kind: str, api_version: str | None) -> str | None:
    """Return the key in `KINDS`; None for an unknown kind, or if the API version is absent and the kind ambiguous."""
    groups = _KINDS_BY_GROUP.get(kind)
    if groups is None:
        return None
    if api_version is None:
        return next(iter(groups.values())) if len(groups) == 1 else None
    return groups.get(str(api_version).rpartition("/")[0])


def decode_objects(parsed: ParsedFile) -> DecodedFile:
    """Decode all objects of a parsed file."""
    decoded = DecodedFile(parsed.source.name)
    try:
        for document in parsed.json:
            _add_json(decoded, document, source=parsed.source)
        for tree in parsed.trees:
            _add_tree(decoded, tree, source=parsed.source)
    except RecursionError:
        raise InputError(NESTED_TOO_DEEPLY, file=parsed.source.name) from None
    if not parsed.json and not parsed.trees:
        raise InputError("there is no object in it", file=parsed.source.name)
    return decoded


def _add_json(decoded: DecodedFile, document: JsonDocument, *, source: Source) -> None:
    header = document.header
    kind = header.kind or "List"
    item_kind = kind.removesuffix("List")
    known = _known_kind(item_kind, header.api_version)
    is_empty = header.items is None and header.kind is not None and (header.kind == "List" or known is not None)
    if not kind.endswith("List") or (header.items is None and not is_empty):
        _add_item(decoded, document.text, kind_version=(header.kind, header.api_version), source=source)
        return
    if known is not None and not header.items:
        decoded.present_kinds.add(known)
    for item in header.items or ():
        if item_kind:
            _add_item(decoded, item, kind_version=(item_kind, header.api_version), source=source)
            continue
        try:
            kind_version = kind_and_version(item)
            nested = json_document(item) if (kind_version[0] or "").endswith("List") else None
        except msgspec.ValidationError as error:
            raise decode_error(error, source) from None
        if nested is not None:
            _add_json(decoded, nested, source=source)
        else:
            _add_item(decoded, item, kind_version=kind_version, source=source)


def _add_item(
    decoded: DecodedFile, item: msgspec.Raw | memoryview, *, kind_version: tuple[str | None, str | None], source: Source
) -> None:
    kind = decoded.record_kind(*kind_version)
    if kind is not None:
        decoded.objects.append(decode_object(item, kind, source=source))


def decode_object(item: msgspec.Raw | memoryview | bytes, kind: str, *, source: Source) -> Object:
    """Decode one object of a kind from JSON."""
    try:
        obj: Object = _DECODERS[kind].decode(item)
    except msgspec.ValidationError:
        # The item has nulls, which `convert` drops, or is invalid; then `convert` raises an error with the field.
        return convert(msgspec.json.decode(item), kind, source=source)
    return obj


# Trees ----------------------------------------------------------------------------------------------------------------


def _add_tree(decoded: DecodedFile, tree: Any, *, source: Source) -> None:
    if isinstance(tree, list):
        tree = {"kind": "List", "items": tree}
    if not isinstance(tree, dict):
        raise InputError(f"expected Kubernetes objects, got {type(tree).__name__}", file=source.name)
    kind, api_version, items = tree.get("kind"), tree.get("apiVersion"), tree.get("items")
    if "items" in tree and (not kind or str(kind).endswith("List")):
        if isinstance(items, int | float) and items:
            raise InputError("expected a list", file=source.name, field="items")
        item_kind = str(kind or "List").removesuffix("List")
        known = _known_kind(item_kind, api_version)
        if known is not None and not items:
            decoded.present_kinds.add(known)
        for item in items or ():
            list_header = {"kind": item_kind, "apiVersion": api_version} if item_kind else {}
            _add_tree(decoded, list_header | item if isinstance(item, dict) else item, source=source)
        return
    if kind and isinstance(kind, dict | list):
        raise InputError("expected str", file=source.name, field="kind")
    if kind and api_version and not isinstance(api_version, str):
        raise InputError("expected str", file=source.name, field="apiVersion")
    known_kind = decoded.record_kind(kind, api_version)
    if known_kind is not None:
        decoded.objects.append(convert(tree, known_kind, source=source))
