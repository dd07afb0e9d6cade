"""The body of ``POST /v1/recommendations``: a cluster, and optionally pools, prices, region and options.

Contract: pure. `parse_body` decodes a document except for its cluster and pools; `read_body` builds the request, and
decodes cluster and pools once, directly from their bytes. Options and prices of the body take precedence over those of
the caller and of the price book. An `InputError` begins with the part of the body:
``cluster: pod shop/web: spec.priority: ...``. An unknown field is an error. `Body` describes the format.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.reading.parsed_file import parse_file
from tutti.kube.reading.sources import Source
from tutti.kube.times import micros
from tutti.market.money import NANO
from tutti.market.price_book import PriceBook
from tutti.market.price_csv import read_price_table
from tutti.recommend.build_request import assemble
from tutti.recommend.records.request import Binder, DownOptions, Objective, RecommendOptions, Request, Strategy
from tutti.wire.case_folding import fault_at, malformed
from tutti.wire.catalogue import read_pools_for
from tutti.wire.kubernetes_objects import read_snapshot
from tutti.wire.wire_document import WireDocument

_DEFAULT = RecommendOptions()
_LINE = re.compile(r"line (\d+)")
_Weight = Annotated[int, msgspec.Meta(ge=0, le=1000)]
_Seconds = Annotated[int, msgspec.Meta(ge=0, le=10**9)]
_Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
_Amount = Annotated[float, msgspec.Meta(ge=0, le=10**6)]
_Cell = str | int | float | None
_NULL = msgspec.Raw(b"null")
_OBJECTS = ("cluster", "pools")
"""Parts that stay undecoded bytes."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, omit_defaults=True):
    """A part of a body."""


class WeightsBody(_Part, frozen=True):
    """What a core, a GiB and a GPU are worth to the scores."""

    cpu: _Weight | None = None
    memory: _Weight | None = None
    gpu: _Weight | None = None


class DownBody(_Part, frozen=True):
    """How to look for nodes that can go."""

    threshold: _Share | None = None
    """A node may go for being underused at this utilisation or below."""
    unneeded: _Seconds | None = None
    """For how many seconds a node must have been unneeded."""
    unneeded_gpu: _Seconds | None = None
    consolidate: bool | None = None
    """Whether dearer nodes may be replaced by cheaper ones."""
    payback: Annotated[float, msgspec.Meta(gt=0, le=10**6)] | None = None
    """Within how many hours a consolidation must have paid for its churn."""
    least: _Share | None = None
    """What share of the price of the nodes that it replaces a consolidation must save at least."""
    move_cost: _Amount | None = None
    """What it costs that a pod moves, in dollars."""
    now: str | None = None
    """The time of the cluster, as RFC 3339 writes it."""


class OptionsBody(_Part, frozen=True):
    """How to choose."""

    objective: Objective | None = None
    strategy: Strategy | None = None
    binder: Binder | None = None
    weights: WeightsBody | None = None
    time_limit: Annotated[float, msgspec.Meta(gt=0, le=3600)] | None = None
    """For how many seconds to look for a better plan."""
    down: bool | DownBody | None = None
    """Whether, and how, to say which nodes can go."""


class Body(_Part, frozen=True):
    """What is asked."""

    cluster: dict[str, Any] | list[dict[str, Any]]
    """Kubernetes objects: a List as kubectl prints it, or a list of objects."""
    pools: dict[str, Any] | list[dict[str, Any]] | None = None
    """What can be bought: Tutti's pools, Karpenter NodePools, Auto Scaling groups or a ScalingConstraint."""
    prices: list[dict[str, _Cell]] | str | None = None
    """Rows of a price table, or the table as CSV text."""
    region: str | None = None
    options: OptionsBody | None = None


class _OptionsAlone(_Part, frozen=True):
    """A body of which only the options are read."""

    options: OptionsBody


class UndecodedBody(_Part, frozen=True):
    """A body whose objects are undecoded bytes."""

    cluster: msgspec.Raw
    pools: msgspec.Raw = _NULL
    prices: list[dict[str, _Cell]] | str | None = None
    region: str | None = None
    options: OptionsBody | None = None

    @property
    def time_limit(self) -> float | None:
        """The body's time limit of the search in seconds; None if it has none."""
        return self.options.time_limit if self.options is not None else None

    def with_defaults(self, *, pools: msgspec.Raw | None, region: str) -> UndecodedBody:
        """Return the body with these pools and this region as defaults."""
        body = self
        if pools is not None and body.pools == _NULL:
            body = replace(body, pools=pools)
        return replace(body, region=region) if region and body.region is None else body


_DECODER = msgspec.json.Decoder(UndecodedBody)


def parse_body(document: WireDocument) -> UndecodedBody:
    """Return the parts of a body; its objects stay undecoded."""
    if document.fields is not None:
        try:
            parts = {
                name: field if name in _OBJECTS else msgspec.json.decode(field)
                for name, field in document.fields.items()
            }
            return msgspec.convert(parts, UndecodedBody)
        except (msgspec.DecodeError, RecursionError):
            pass  # decoding the whole text gives the place of the error
    return _decode_whole(document.source)


def _decode_whole(source: Source) -> UndecodedBody:
    try:
        return _DECODER.decode(source.data)
    except msgspec.ValidationError as error:
        raise _field_fault(error, source) from None
    except msgspec.DecodeError as error:
        raise malformed(error, Source("", source.data)) from None
    except RecursionError:
        raise InputError("it is nested too deeply") from None


def _field_fault(error: msgspec.ValidationError, source: Source) -> InputError:
    found = fault_at(error, source)
    if "unknown field" in found.problem:
        name = found.problem.rpartition(" ")[2]
        return InputError("no such field", field=".".join(filter(None, (found.field, name))))
    return InputError(found.problem, field=found.field)


def read_options(tree: Mapping[str, Any], options: RecommendOptions = _DEFAULT) -> RecommendOptions:
    """Return the options of a dict with the field names of a body's options."""
    try:
        body = msgspec.convert({"options": tree}, _OptionsAlone).options
    except msgspec.ValidationError as error:
        raise _field_fault(error, Source("", b"")) from None
    return _options(body, options)


def read_body(body: UndecodedBody, book: PriceBook, *, options: RecommendOptions = _DEFAULT) -> Request:
    """Return the request that a body describes."""
    chosen = _options(body.options or OptionsBody(), options)
    if body.prices is not None:
        book = PriceBook([*book.rows, *read_prices(body.prices)])
    cluster = bytes(body.cluster)
    if cluster.lstrip()[:1] not in (b"{", b"["):
        raise InputError("want an object or a list of objects", field="cluster")
    snapshot = read_snapshot(parse_file(Source("cluster", cluster)))
    pools = Source("pools", bytes(body.pools).strip()) if body.pools != _NULL else None
    read = read_pools_for(snapshot, book, pools=pools, region=body.region or "")
    return assemble(snapshot, read.catalogue, options=chosen, notes=snapshot.notes)


def read_prices(prices: list[dict[str, _Cell]] | str) -> Any:
    """Return the rows of a price table that is given as text or as rows."""
    if isinstance(prices, str):
        return read_price_table(Source("prices", prices.encode()))
    columns = list(dict.fromkeys(key for row in prices for key in row))
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for row in prices:
        writer.writerow(["" if row.get(key) is None else row[key] for key in columns])
    try:
        return read_price_table(Source("prices", text.getvalue().encode()))
    except InputError as error:
        place = _LINE.fullmatch(error.obj)
        where = f"prices[{int(place[1]) - 2}]" if place is not None else "prices"
        field = f"{where}.{error.field}" if error.field else where
        raise InputError(_LINE.sub("another row", error.problem), field=field) from None


def _options(body: OptionsBody, options: RecommendOptions) -> RecommendOptions:
    changes: dict[str, Any] = {
        field: value for field in ("objective", "strategy", "binder") if (value := getattr(body, field)) is not None
    }
    if body.weights is not None:
        weights = replace(options.weights, **_set_fields(body.weights))
        if not (weights.cpu or weights.memory or weights.gpu):
            raise InputError("one of them must be above 0", field="options.weights")
        changes["weights"] = weights
    if body.down is not None:
        changes["down"] = _down(body.down, options.down or DownOptions())
    return replace(options, **changes)


def _down(body: bool | DownBody, default: DownOptions) -> DownOptions | None:
    if isinstance(body, bool):
        return default if body else None
    changes = _set_fields(body)
    if "move_cost" in changes:
        changes["move_cost"] = round(changes["move_cost"] * NANO)
    if "now" in changes:
        try:
            changes["now"] = micros(changes["now"])
        except InputError as error:
            raise InputError(error.problem, field="options.down.now") from None
    return replace(default, **changes)


def _set_fields(part: msgspec.Struct) -> dict[str, Any]:
    """Return the fields that are not None."""
    return {field: value for field in part.__struct_fields__ if (value := getattr(part, field)) is not None}
