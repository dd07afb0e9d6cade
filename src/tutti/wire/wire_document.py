"""A document: its bytes, its format, and its top-level fields.

Contract: pure. Readers of all formats take a `WireDocument`, which `request_formats.identify` builds. Its fields are
undecoded bytes; a reader decodes each field once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum
from typing import Any

import msgspec

from tutti.kube.reading.parsed_file import ParsedFile, parse_file
from tutti.kube.reading.sources import Source

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_OBJECT_START = re.compile(rb"\s*\{")
_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_KUBERNETES_FIELDS = {"kind", "items"}
_PLANNER_FIELDS = {"constraint", "snapshot"}


class WireFormat(StrEnum):
    """The format of a document."""

    KUBERNETES = "kubernetes"
    """Objects as kubectl prints them, in JSON or YAML."""
    GARDENER = "gardener"
    """A ClusterSnapshot of Gardener's scaling recommender."""
    SCENARIO = "scenario"
    """A scenario file of the recommender that Tutti replaces."""
    ADVISOR = "scaling-advisor"
    """A planner request of gardener/scaling-advisor, or its ScalingConstraint with a cluster."""
    TUTTI = "tutti"
    """The body of POST /v1/recommendations."""


class WireDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One document with the parts that were parsed to find its format."""

    source: Source
    """The bytes, without a byte order mark."""
    format: WireFormat
    fields: dict[str, msgspec.Raw] | None = None
    """The top level of one JSON object; None for several documents, arrays, YAML and malformed text."""
    objects: ParsedFile | None = None
    """The Kubernetes objects, if the search for a ScalingConstraint parsed them."""
    constraint: Any | None = None
    """The tree of the ScalingConstraint among the Kubernetes objects."""

    def kubernetes_objects(self) -> ParsedFile:
        """Return the document's Kubernetes objects, not yet decoded."""
        return self.objects if self.objects is not None else parse_file(self.source, self.fields)


def without_byte_order_mark(source: Source) -> Source:
    """Return the source without a byte order mark, which Windows editors write and decoders reject."""
    if not source.data.startswith(_BYTE_ORDER_MARK):
        return source
    return Source(source.name, source.data.removeprefix(_BYTE_ORDER_MARK))


def top_level_fields(source: Source) -> dict[str, msgspec.Raw] | None:
    """Return the undecoded fields of one JSON object; None for several documents, arrays, YAML and malformed text."""
    if _OBJECT_START.match(source.data) is None:
        return None
    try:
        return _FIELDS.decode(source.data)
    except (msgspec.DecodeError, RecursionError):
        return None


def has_kubernetes_fields(names: Iterable[str]) -> bool:
    """Return whether a document with these top-level fields is a Kubernetes object, or a list of objects."""
    return not _KUBERNETES_FIELDS.isdisjoint(names)


def has_planner_fields(names: Iterable[str]) -> bool:
    """Return whether a document with these top-level fields, in any case, is a planner request of scaling-advisor."""
    listed = list(names)
    return not has_kubernetes_fields(listed) and not _PLANNER_FIELDS.isdisjoint(name.lower() for name in listed)
