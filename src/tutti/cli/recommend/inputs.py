"""From the files of `tutti recommend` to a request.

Contract: `-f` is a cluster, as for every command, or one document of another format that says itself what can be bought
(`recommend.wire.reader` knows them): a Gardener snapshot, a planner request, a scenario file, the body of a request to
the server; from a file or from standard input alike. Whatever cannot be read raises `InputError`; remarks about the
input go to standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from tutti.app.missing_kinds import missing_kinds
from tutti.cli.loading import busy, load_cluster, remark
from tutti.engine.placement.profile import Profile
from tutti.engine.session.queue_order import not_considered as left_out
from tutti.exceptions import InputError
from tutti.kube.admission.unknown_volumes import KnownVolumes
from tutti.kube.objects import Pod
from tutti.kube.reading.sources import Source, read_sources
from tutti.recommend.build_request import assemble, is_pending, price_book
from tutti.wire import formats as reader
from tutti.wire.catalogue import catalogue_for
from tutti.wire.document import plain
from tutti.wire.scaling_advisor.request import has_constraint

if TYPE_CHECKING:
    from tutti.kube.reading.snapshot import Snapshot
    from tutti.recommend.records.request import Options, Request

_CALLED = {
    reader.Format.GARDENER: "a Gardener snapshot",
    reader.Format.SCENARIO: "a scenario file",
    reader.Format.ADVISOR: "a ScalingConstraint",
    reader.Format.TUTTI: "the body of a request",
}


class Given(NamedTuple):
    """What a recommendation is made from, and the document that says how."""

    request: Request
    source: Source | None = None
    """The document that says everything itself, or the one with a ScalingConstraint for the cluster."""
    form: reader.Format = reader.Format.KUBERNETES
    """What the source is."""

    @property
    def constraint(self) -> Source | None:
        """The document with the ScalingConstraint that is asked about, if one is."""
        return self.source if self.form is reader.Format.ADVISOR else None

    def seconds(self, asked: float) -> float:
        """For how many seconds to search if so many are asked for: the document has its own say."""
        return asked if self.source is None else reader.seconds_for(self.source, self.form, asked=asked)


def read_given(paths: Sequence[str], *, pools: str | None, prices: str | None, region: str, options: Options) -> Given:
    """Read everything that a recommendation is made from."""
    table = one_source(prices) if prices is not None else None
    with busy("reading"):
        sources = [plain(source) for source in read_sources(paths)]
    whole = _whole(sources)
    if whole is not None:
        source, form = whole
        for option, given in (("--pools", pools), ("--region", region)):
            if given:
                raise click.UsageError(f"{option} cannot be given with {_CALLED[form]}, which has pools of its own.")
        with busy("reading"):
            return Given(reader.read_request(source, price_book(table), options=options), source, form)
    snapshot = load_cluster(paths, sources=sources).snapshot
    with busy("reading pools and prices"):
        bought_from = one_source(pools) if pools is not None else None
        within = _within(snapshot)
        catalogue = catalogue_for(within, price_book(table), pools=bought_from, region=region, called="--region")
        request = assemble(within, catalogue, options=options)
    profile = Profile.default()
    asked = [pod for pod in snapshot.pods if is_pending(pod) and left_out(pod, profile) is None]
    for line in missing_kinds(snapshot, asked):
        remark(line)
    if bought_from is not None and has_constraint(bought_from):
        return Given(request, bought_from, reader.Format.ADVISOR)
    return Given(request)


def one_source(path: str) -> Source:
    """The one file that a path names."""
    if path != "-" and Path(path).is_dir():
        raise InputError("want one file, not a directory", file=path)
    (source,) = read_sources([path])
    return plain(source)


def _within(snapshot: Snapshot) -> Snapshot:
    """The cluster without volumes that nothing is known about."""
    from msgspec.structs import replace

    known = KnownVolumes(snapshot)
    return replace(snapshot, objects=snapshot.objects | {Pod.KIND: [known.within(pod) for pod in snapshot.pods]})


def _whole(sources: Sequence[Source]) -> tuple[Source, reader.Format] | None:
    """The document that says everything itself, if that is what was given."""
    for source in sources:
        form = reader.format_of(source)
        if form is not reader.Format.KUBERNETES:
            if len(sources) > 1:
                raise InputError(f"{_CALLED[form]} stands alone: give one -f", file=source.name)
            return source, form
    return None
