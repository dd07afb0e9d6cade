"""Scenario files of the scaling recommender that Tutti replaces: a whole case in one file.

Contract: pure. `parse_scenario` decodes a document once. `read_scenario` reads both forms: a handwritten case with
``nodePools`` (`small_case`), or the recording of a real cluster with ``Scenarios`` (`recorded_cluster`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from tutti.exceptions import InputError
from tutti.kube.reading.sources import Source
from tutti.market.node_daemons import daemon_sets_of
from tutti.market.price_book import PriceBook
from tutti.recommend.build_request import scheduler_objects
from tutti.recommend.records.request import RecommendOptions, Request
from tutti.wire.scenarios.recorded_cluster import read_recording
from tutti.wire.scenarios.small_case import read_case
from tutti.wire.wire_document import WireDocument

_DEFAULT = RecommendOptions()


def parse_scenario(document: WireDocument) -> dict[str, Any]:
    """Return the tree of a scenario file."""
    source = document.source
    try:
        return {name: msgspec.json.decode(field) for name, field in (document.fields or {}).items()}
    except msgspec.DecodeError:
        pass  # decoding the whole text gives the place of the error
    try:
        return msgspec.json.decode(source.data, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise InputError(str(error), file=source.name) from None


def read_scenario(
    tree: dict[str, Any], source: Source, book: PriceBook, *, options: RecommendOptions = _DEFAULT
) -> Request:
    """Return the request that a scenario file describes."""
    read = read_recording if "Scenarios" in tree else read_case
    snapshot, catalogue = read(tree, source, book=book)
    return Request(
        objects=scheduler_objects(snapshot),
        daemon_sets=daemon_sets_of(snapshot),
        catalogue=catalogue,
        options=options,
    )
