"""Scenario files of the scaling recommender that came before: a whole case in one file.

Contract: pure. `read_scenario` takes either form: a case by hand, with ``nodePools`` (`wire.scenario_case`), or the
recording of a real cluster, with ``Scenarios`` (`wire.scenario_recorded`).
"""

from __future__ import annotations

import msgspec

from tutti.exceptions import InputError
from tutti.kube.reading.sources import Source
from tutti.market.node_daemons import daemon_sets_of
from tutti.market.price_book import PriceBook
from tutti.recommend.build_request import parse_snapshot
from tutti.recommend.records.request import Options, Request
from tutti.wire.scenarios.recorded_cluster import read_recording
from tutti.wire.scenarios.small_case import read_case

_DEFAULT = Options()


def is_scenario(source: Source) -> bool:
    """Whether a file is a scenario, and not Kubernetes objects."""
    if source.data.lstrip()[:1] != b"{":
        return False
    try:
        tree = msgspec.json.decode(source.data)
    except msgspec.DecodeError:
        return False
    return "kind" not in tree and ("nodePools" in tree or "Scenarios" in tree)


def read_scenario(source: Source, book: PriceBook, *, options: Options = _DEFAULT) -> Request:
    """The request that a scenario file stands for."""
    try:
        tree = msgspec.json.decode(source.data)
    except msgspec.DecodeError as error:
        raise InputError(str(error), file=source.name) from None
    read = read_recording if isinstance(tree, dict) and "Scenarios" in tree else read_case
    snapshot, catalogue = read(tree, source, book=book)
    return Request(
        objects=parse_snapshot(snapshot),
        daemon_sets=daemon_sets_of(snapshot),
        catalogue=catalogue,
        options=options,
    )
