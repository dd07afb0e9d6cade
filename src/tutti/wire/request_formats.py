"""The format of a document, and the `Request` that a document of any format describes.

Contract: pure, in three steps. `identify` parses the top level of a document once; a document of no known format counts
as Kubernetes objects, whose reader reports the error. `parse_request` decodes the document once into the records of its
format. `ParsedRequest.read` builds the request, and `ParsedRequest.seconds` returns the time limit of the search.
`read_request` does all steps. `pools` and `region` are for Kubernetes objects, which do not say what can be bought;
other formats reject them. A document is decoded again only to find the place of an error, or if it is a Gardener
snapshot with names in an unusual case.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from tutti.exceptions import InputError
from tutti.kube.reading.sources import Source
from tutti.market.price_book import PriceBook
from tutti.recommend.build_request import assemble
from tutti.recommend.records.request import RecommendOptions, Request
from tutti.wire.catalogue import read_pools_for
from tutti.wire.gardener.request import parse_gardener, read_gardener
from tutti.wire.gardener.schema import GardenerSnapshotText
from tutti.wire.kubernetes_objects import read_snapshot
from tutti.wire.scaling_advisor.planner_options import most_seconds
from tutti.wire.scaling_advisor.request import parse_advisor, read_advisor
from tutti.wire.scaling_advisor.schema import ConstraintSearch, PlannerText, find_constraint
from tutti.wire.scenarios.reader import parse_scenario, read_scenario
from tutti.wire.tutti_api.request import UndecodedBody, parse_body, read_body
from tutti.wire.wire_document import (
    WireDocument,
    WireFormat,
    has_kubernetes_fields,
    has_planner_fields,
    top_level_fields,
    without_byte_order_mark,
)

_DEFAULT = RecommendOptions()
_GARDENER_FIELDS = {"autoscalerconfig", "workerpools", "pods", "nodes", "snapshottime"}


def identify(source: Source, expected: WireFormat | None = None) -> WireDocument:
    """Return a document with its format and its top-level fields; `expected` is the format if the sender named it."""
    source = without_byte_order_mark(source)
    fields = top_level_fields(source)
    may_have_constraint = expected is not WireFormat.GARDENER and (fields is None or has_kubernetes_fields(fields))
    found = find_constraint(source, fields) if may_have_constraint else ConstraintSearch()
    return WireDocument(
        source=source,
        format=expected if expected is not None else _format_of(fields, found),
        fields=fields,
        objects=found.objects,
        constraint=found.constraint,
    )


def _format_of(fields: dict[str, Any] | None, found: ConstraintSearch) -> WireFormat:
    if fields is None or has_kubernetes_fields(fields):
        return WireFormat.KUBERNETES if found.constraint is None else WireFormat.ADVISOR
    if "cluster" in fields:
        return WireFormat.TUTTI
    if has_planner_fields(fields):
        return WireFormat.ADVISOR
    if "nodePools" in fields or "Scenarios" in fields:
        return WireFormat.SCENARIO
    is_gardener = not _GARDENER_FIELDS.isdisjoint(name.lower() for name in fields)
    return WireFormat.GARDENER if is_gardener else WireFormat.KUBERNETES


class ParsedRequest(NamedTuple):
    """A document, decoded into the records of its format."""

    document: WireDocument
    content: GardenerSnapshotText | PlannerText | UndecodedBody | dict[str, Any] | None
    """The records of Gardener, scaling-advisor or Tutti, or the tree of a scenario; None for Kubernetes objects."""

    def seconds(self, requested: float) -> float:
        """Return the time limit of the search in seconds, given the `requested` limit.

        The limit in a body of Tutti's API takes precedence; the timeout of a planner request is a maximum.
        """
        if isinstance(self.content, UndecodedBody):
            return self.content.time_limit or requested
        most = most_seconds(self.content) if isinstance(self.content, PlannerText) else None
        return requested if most is None else min(requested, most)

    def read(
        self, book: PriceBook, *, options: RecommendOptions = _DEFAULT, pools: Source | None = None, region: str = ""
    ) -> Request:
        """Return the request that the document describes."""
        document, content = self
        if content is None:
            snapshot = read_snapshot(document.kubernetes_objects())
            read = read_pools_for(snapshot, book, pools=pools, region=region)
            return assemble(snapshot, read.catalogue, options=options, notes=snapshot.notes)
        if isinstance(content, GardenerSnapshotText):
            return read_gardener(content, book, file=document.source.name, options=options)
        if isinstance(content, PlannerText):
            return read_advisor(content, document, book, options=options)
        if isinstance(content, UndecodedBody):
            return read_body(content, book, options=options)
        return read_scenario(content, document.source, book, options=options)


def parse_request(document: WireDocument) -> ParsedRequest:
    """Decode a document; Kubernetes objects are decoded later, by `ParsedRequest.read`."""
    match document.format:
        case WireFormat.GARDENER:
            return ParsedRequest(document, parse_gardener(document))
        case WireFormat.ADVISOR:
            return ParsedRequest(document, parse_advisor(document))
        case WireFormat.TUTTI:
            return ParsedRequest(document, parse_body(document))
        case WireFormat.SCENARIO:
            return ParsedRequest(document, parse_scenario(document))
    return ParsedRequest(document, None)


def read_request(
    source: Source,
    book: PriceBook,
    *,
    options: RecommendOptions = _DEFAULT,
    pools: Source | None = None,
    region: str = "",
) -> Request:
    """Return the request that a document of any format describes."""
    document = identify(source)
    if document.format is not WireFormat.KUBERNETES and (pools or region):
        what = "pools" if pools else "a region"
        problem = f"it says itself what can be bought ({document.format} format): {what} cannot be given with it"
        raise InputError(problem, file=document.source.name)
    return parse_request(document).read(book, options=options, pools=pools, region=region)
