"""Parsed files as typed Kubernetes objects.

Contract: `decode_objects` takes one parsed file with any number of documents, each an object, a list of objects
(``List``, ``PodList``, items with or without their own kind) or a JSON array of them, and gives the objects of the
kinds that Tutti knows in their order; objects of other kinds or API groups are counted. Every object is decoded once:
JSON straight from the file's bytes into its record. A null means an absent field. Faults raise `InputError` with file,
object and field.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from tutti.exceptions import InputError
from tutti.kube.objects import KINDS, Object
from tutti.kube.reading.convert import convert, fault
from tutti.kube.reading.parsed_file import TOO_DEEP, JsonDocument, ParsedFile, kind_and_version
from tutti.kube.reading.sources import Source

_TYPED: dict[str, msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(cls) for kind, cls in KINDS.items()}
_BY_GROUP: dict[str, dict[str, str]] = {}
"""Kinds by what objects call them, then by API group."""
for _cls in KINDS.values():
    _BY_GROUP.setdefault(_cls.WIRE_KIND, {})[_cls.API_VERSION.rpartition("/")[0]] = _cls.KIND


class DecodedFile:
    """The objects of one file, with the kinds that it has and counts of what was left out."""

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
    return groups.get(str(api_version).rpartition("/")[0])


def decode_objects(parsed: ParsedFile) -> DecodedFile:
    """All objects of a parsed file."""
    decoded = DecodedFile(parsed.source.name)
    try:
        for document in parsed.json:
            _add_json(decoded, document, source=parsed.source)
        for tree in parsed.trees:
            _add_tree(decoded, tree, source=parsed.source)
    except RecursionError:
        raise InputError(TOO_DEEP, file=parsed.source.name) from None
    if not parsed.json and not parsed.trees:
        raise InputError("there is no object in it", file=parsed.source.name)
    return decoded


def _add_json(decoded: DecodedFile, document: JsonDocument, *, source: Source) -> None:
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
    try:
        return kind_and_version(item)
    except msgspec.ValidationError as error:
        raise fault(error, source) from None


def _add_item(
    decoded: DecodedFile, item: msgspec.Raw | memoryview, *, what: tuple[str | None, str | None], source: Source
) -> None:
    kind = decoded.claim(*what)
    if kind is None:
        return
    try:
        decoded.objects.append(_TYPED[kind].decode(item))
    except msgspec.ValidationError:
        # Either a null stands for an absent part, which a tree can do without, or the tree tells what is wrong.
        decoded.objects.append(convert(msgspec.json.decode(item), kind, source=source))


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
        listed = str(kind or "List").removesuffix("List")
        known = _known(listed, api_version)
        if known is not None and not items:
            decoded.present.add(known)
        for item in items or ():
            shared = {"kind": listed, "apiVersion": api_version} if listed else {}
            _add_tree(decoded, shared | item if isinstance(item, dict) else item, source=source)
        return
    if kind and isinstance(kind, dict | list):
        raise InputError("expected str", file=source.name, field="kind")
    if kind and api_version and not isinstance(api_version, str):
        raise InputError("expected str", file=source.name, field="apiVersion")
    claimed = decoded.claim(kind, api_version)
    if claimed is not None:
        decoded.objects.append(convert(tree, claimed, source=source))
