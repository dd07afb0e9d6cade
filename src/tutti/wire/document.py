"""The first look at a document: its bytes without a byte order mark, and what it has on its first level.

Contract: pure. What is inside the first level is not decoded.
"""

from __future__ import annotations

import re

import msgspec

from tutti.kube.reading.sources import Source

_BOM = b"\xef\xbb\xbf"
_OBJECT = re.compile(rb"\s*\{")
_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_OF_OBJECTS = {"kind", "items"}
_OF_PLANNERS = {"constraint", "snapshot"}


def plain(source: Source) -> Source:
    """A document without the mark that Windows' editors put at its beginning, which decoders do not take."""
    return Source(source.name, source.data.removeprefix(_BOM)) if source.data.startswith(_BOM) else source


def first_level(source: Source) -> dict[str, msgspec.Raw] | None:
    """What one JSON object has on its first level; None for several documents, YAML, and what is malformed."""
    if _OBJECT.match(source.data) is None:
        return None
    try:
        return _DECODER.decode(source.data)
    except (msgspec.DecodeError, RecursionError):
        return None


def are_objects(names: dict[str, msgspec.Raw]) -> bool:
    """Whether a document with this first level is a Kubernetes object, or a list of them."""
    return not _OF_OBJECTS.isdisjoint(names)


def is_planner(names: dict[str, msgspec.Raw]) -> bool:
    """Whether a document with this first level is a planner request of gardener/scaling-advisor, in any case."""
    return not are_objects(names) and not _OF_PLANNERS.isdisjoint(name.lower() for name in names)
