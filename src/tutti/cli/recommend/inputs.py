"""Reads the files of `tutti recommend`, or the cluster of a kubeconfig context, into a request.

Contract: without `-f` the cluster of the context is read. `-f` is a cluster, as for every command, or one document of a
format with its own node pools (`wire.request_formats`): a Gardener snapshot, a planner request, a scenario file, or the
body of a request to the server. Each comes from a file or from standard input. Every file is decoded once. A file that
cannot be read raises `InputError`; notes about the input go to standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from tutti.app.load import LoadedObjects
from tutti.app.missing_kinds import missing_kinds_of_pending
from tutti.cli.loading import load_context, load_parsed_files, print_note, spinner
from tutti.cli.options import ClusterInput
from tutti.client.needed_kinds import kinds_to_recommend
from tutti.exceptions import InputError
from tutti.kube.reading.sources import Source, read_sources
from tutti.recommend.build_request import assemble, price_book
from tutti.wire.catalogue import read_pools_for
from tutti.wire.request_formats import identify, parse_request
from tutti.wire.scaling_advisor.request import constraint_of_request
from tutti.wire.wire_document import WireDocument, WireFormat, without_byte_order_mark

if TYPE_CHECKING:
    from tutti.recommend.records.request import RecommendOptions, Request
    from tutti.wire.scaling_advisor.schema import ConstraintText

_FORMAT_NAMES = {
    WireFormat.GARDENER: "a Gardener snapshot",
    WireFormat.SCENARIO: "a scenario file",
    WireFormat.ADVISOR: "a ScalingConstraint",
    WireFormat.TUTTI: "the body of a request",
}


class RecommendInputs(NamedTuple):
    """The inputs of a recommendation."""

    request: Request
    seconds: float
    """Time limit of the search."""
    constraint: ConstraintText | None = None
    """The ScalingConstraint with the node pools, if the input has one."""


def read_inputs(
    given: ClusterInput,
    *,
    pools: str | None,
    prices: str | None,
    region: str,
    options: RecommendOptions,
    seconds: float,
) -> RecommendInputs:
    """Read all inputs of a recommendation; a document may have its own time limit instead of `seconds`."""
    table = one_source(prices) if prices is not None else None
    if given.is_live:
        loaded = load_context(given, kinds_to_recommend(has_pools=pools is not None, down=options.down is not None))
        return _assembled(loaded, table, pools=pools, region=region, options=options, seconds=seconds)
    with spinner("reading"):
        sources = list(read_sources(given.paths))
    documents, complete = _identify(sources)
    if complete is not None:
        for option, value in (("--pools", pools), ("--region", region)):
            if value:
                name = _FORMAT_NAMES[complete.format]
                raise click.UsageError(f"{option} cannot be given with {name}, which has pools of its own.")
        with spinner("reading"):
            parsed = parse_request(complete)
            request = parsed.read(price_book(table), options=options)
            return RecommendInputs(request, parsed.seconds(seconds), constraint_of_request(parsed.content, complete))
    loaded = load_parsed_files(given.paths, (document.kubernetes_objects() for document in documents))
    return _assembled(loaded, table, pools=pools, region=region, options=options, seconds=seconds)


def _assembled(
    loaded: LoadedObjects,
    prices: Source | None,
    *,
    pools: str | None,
    region: str,
    options: RecommendOptions,
    seconds: float,
) -> RecommendInputs:
    """Return the request for a cluster, with the pools of a file or of the cluster."""
    with spinner("reading pools and prices"):
        pools_file = one_source(pools) if pools is not None else None
        snapshot = loaded.schedulable
        read = read_pools_for(snapshot, price_book(prices), pools=pools_file, region=region, option="--region")
        request = assemble(snapshot, read.catalogue, options=options)
    for line in missing_kinds_of_pending(loaded.snapshot):
        print_note(line)
    return RecommendInputs(request, seconds, read.constraint)


def one_source(path: str) -> Source:
    """Return the one file at a path."""
    if path != "-" and Path(path).is_dir():
        raise InputError("want one file, not a directory", file=path)
    (source,) = read_sources([path])
    return without_byte_order_mark(source)


def _identify(sources: Sequence[Source]) -> tuple[list[WireDocument], WireDocument | None]:
    """Return the Kubernetes documents of the sources, or the single document with its own node pools."""
    documents: list[WireDocument] = []
    for source in sources:
        document = identify(source)
        if document.format is not WireFormat.KUBERNETES:
            if len(sources) > 1:
                raise InputError(
                    f"{_FORMAT_NAMES[document.format]} cannot be combined with other files: give one -f",
                    file=source.name,
                )
            return [], document
        documents.append(document)
    return documents, None
