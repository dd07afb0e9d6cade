"""Telling the wire formats apart: whatever a user or a client sends becomes the one `Request`.

Contract: pure. `format_of` looks at the first level of a document only, and takes what it does not know for Kubernetes
objects, whose reader says what is wrong with it. `read_request` reads any of them. `pools` and `region` are for
Kubernetes objects, which do not say what can be bought: with the others they are refused.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from tutti.exceptions import InputError
from tutti.kube.sources import Source
from tutti.recommend.parse import assemble
from tutti.recommend.pools.market import Market
from tutti.recommend.pools.reader import catalogue_of
from tutti.recommend.prices import PriceBook
from tutti.recommend.request import Options, Request
from tutti.recommend.wire.advisor import has_constraint, read_advisor, read_constraint
from tutti.recommend.wire.cluster import snapshot_of
from tutti.recommend.wire.gardener import read_gardener
from tutti.recommend.wire.ours import read_ours
from tutti.recommend.wire.scenario import read_scenario

_DEFAULT = Options()
_BOM = b"\xef\xbb\xbf"
_FIRST_LEVEL = msgspec.json.Decoder(dict[str, msgspec.Raw])


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
    if source.data[:64].lstrip(_BOM + b" \t\r\n")[:1] != b"{":
        return Format.ADVISOR if has_constraint(source) else Format.KUBERNETES
    try:
        names = set(_FIRST_LEVEL.decode(source.data.removeprefix(_BOM)))
    except (msgspec.DecodeError, RecursionError):
        names = {"kind"}  # several documents, YAML, or malformed
    lower = {name.lower() for name in names}
    if names & {"kind", "items"}:
        return Format.ADVISOR if has_constraint(source) else Format.KUBERNETES
    if "cluster" in names:
        return Format.TUTTI
    if "constraint" in lower or "snapshot" in lower:
        return Format.ADVISOR
    if names & {"nodePools", "Scenarios"}:
        return Format.SCENARIO
    if lower & {"autoscalerconfig", "workerpools", "pods", "nodes", "snapshottime"}:
        return Format.GARDENER
    return Format.KUBERNETES


def read_request(
    source: Source,
    book: PriceBook,
    *,
    options: Options = _DEFAULT,
    pools: Source | None = None,
    region: str = "",
) -> Request:
    """The request that a document stands for, whatever its format."""
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
    if pools is not None and has_constraint(pools):
        catalogue = read_constraint(pools, snapshot.nodes, book)
    else:
        catalogue = catalogue_of(snapshot, Market(book, region=region, nodes=snapshot.nodes), source=pools)
    return assemble(snapshot, catalogue, options=options, notes=snapshot.notes)
