"""Telling the wire formats apart: whatever a user or a client sends becomes the one `Request`.

Contract: pure. `format_of` looks at the first level of a document only, and takes what it does not know for Kubernetes
objects, whose reader says what is wrong with it. `read_request` reads any of them, and `seconds_for` tells how long to
search. `pools` and `region` are for Kubernetes objects, which do not say what can be bought: with the others they are
refused. A byte order mark is taken off here; no reader sees one.
"""

from __future__ import annotations

from enum import StrEnum

from tutti.exceptions import InputError
from tutti.kube.reading.sources import Source
from tutti.market.price_book import PriceBook
from tutti.recommend.build_request import assemble
from tutti.recommend.records.request import Options, Request
from tutti.wire.catalogue import catalogue_for
from tutti.wire.document import are_objects, first_level, is_planner, plain
from tutti.wire.gardener.request import read_gardener
from tutti.wire.kubernetes_objects import snapshot_of
from tutti.wire.scaling_advisor.planner_options import most_seconds
from tutti.wire.scaling_advisor.request import has_constraint, read_advisor
from tutti.wire.scenarios.reader import read_scenario
from tutti.wire.tutti_api.request import read_ours, time_limit_of

_DEFAULT = Options()


_OF_SNAPSHOTS = {"autoscalerconfig", "workerpools", "pods", "nodes", "snapshottime"}


class Format(StrEnum):
    """What a document is."""

    KUBERNETES = "kubernetes"
    """Objects as kubectl prints them, in JSON or YAML."""
    GARDENER = "gardener"
    """A ClusterSnapshot of Gardener's scaling recommender."""
    SCENARIO = "scenario"
    """A scenario file of the recommender that came before."""
    ADVISOR = "scaling-advisor"
    """A planner request of gardener/scaling-advisor, or its ScalingConstraint with a cluster."""
    TUTTI = "tutti"
    """The body of POST /v1/recommendations."""


def format_of(source: Source) -> Format:
    """What a document is, by its first level."""
    source = plain(source)
    names = first_level(source)
    if names is None or are_objects(names):
        return Format.ADVISOR if has_constraint(source) else Format.KUBERNETES
    if "cluster" in names:
        return Format.TUTTI
    if is_planner(names):
        return Format.ADVISOR
    if "nodePools" in names or "Scenarios" in names:
        return Format.SCENARIO
    return Format.KUBERNETES if _OF_SNAPSHOTS.isdisjoint(name.lower() for name in names) else Format.GARDENER


def read_request(
    source: Source,
    book: PriceBook,
    *,
    options: Options = _DEFAULT,
    pools: Source | None = None,
    region: str = "",
) -> Request:
    """The request that a document stands for, whatever its format."""
    source = plain(source)
    form = format_of(source)
    if form is not Format.KUBERNETES:
        for given, what in ((pools, "pools"), (region, "a region")):
            if given:
                problem = f"it says itself what can be bought ({form} format): {what} cannot be given with it"
                raise InputError(problem, file=source.name)
    if form is Format.GARDENER:
        return read_gardener(source, book, options=options)
    if form is Format.ADVISOR:
        return read_advisor(source, book, options=options)
    if form is Format.TUTTI:
        return read_ours(source, book, options=options)
    if form is Format.SCENARIO:
        return read_scenario(source, book, options=options)
    return read_objects(source, book, options=options, pools=pools, region=region)


def read_objects(
    source: Source, book: PriceBook, *, options: Options = _DEFAULT, pools: Source | None = None, region: str = ""
) -> Request:
    """The request that Kubernetes objects stand for."""
    snapshot = snapshot_of(source)
    catalogue = catalogue_for(snapshot, book, pools=pools, region=region)
    return assemble(snapshot, catalogue, options=options, notes=snapshot.notes)


def seconds_for(source: Source, form: Format, *, asked: float) -> float:
    """For how many seconds to search where `asked` are given with a document.

    What a body of ours says comes before; the timeout of a planner request is the most.
    """
    source = plain(source)
    if form is Format.TUTTI:
        return time_limit_of(source) or asked
    most = most_seconds(source) if form is Format.ADVISOR else None
    return asked if most is None else min(asked, most)
