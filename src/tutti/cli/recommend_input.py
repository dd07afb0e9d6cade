"""From the files of `tutti recommend` to a request.

Contract: `-f` is a cluster, as for every command, or one document of another format that says itself what can be bought
(`recommend.wire.reader` knows them): a Gardener snapshot, a planner request, a scenario file, the body of a request to
the server. Whatever cannot be read raises `InputError`; remarks about the input go to standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tutti.cli.loading import busy, load_cluster, remark
from tutti.cli.missing import missing_kinds
from tutti.engine.profile import Profile
from tutti.engine.turns import not_considered as left_out
from tutti.exceptions import InputError
from tutti.kube.objects import Pod
from tutti.kube.sources import Source, read_sources
from tutti.kube.unknown_volumes import KnownVolumes
from tutti.recommend.parse import assemble, build_request, is_pending, price_book
from tutti.recommend.wire import reader
from tutti.recommend.wire.advisor import has_constraint, read_constraint

if TYPE_CHECKING:
    from tutti.recommend.request import Options, Request

_CALLED = {
    reader.Format.GARDENER: "a Gardener snapshot",
    reader.Format.SCENARIO: "a scenario file",
    reader.Format.ADVISOR: "a ScalingConstraint",
    reader.Format.TUTTI: "the body of a request",
}


def read_request(
    paths: Sequence[str], *, pools: str | None, prices: str | None, region: str, options: Options
) -> Request:
    """Read everything that a recommendation is made from."""
    table = one_source(prices) if prices is not None else None
    whole = _whole(paths)
    if whole is not None:
        source, form = whole
        for option, given in (("--pools", pools), ("--region", region)):
            if given:
                raise click.UsageError(f"{option} cannot be given with {_CALLED[form]}, which has pools of its own.")
        with busy("reading"):
            return reader.read_request(source, price_book(table), options=options)
    from msgspec.structs import replace

    snapshot = load_cluster(paths).snapshot
    with busy("reading pools and prices"):
        known = KnownVolumes(snapshot)
        objects = snapshot.objects | {Pod.KIND: [known.within(pod) for pod in snapshot.pods]}
        within = replace(snapshot, objects=objects)
        given_pools = one_source(pools) if pools is not None else None
        if given_pools is not None and has_constraint(given_pools):
            catalogue = read_constraint(given_pools, snapshot.nodes, price_book(table))
            request = assemble(within, catalogue, options=options)
        else:
            request = build_request(within, pools=given_pools, prices=table, region=region, options=options)
    profile = Profile.default()
    asked = [pod for pod in snapshot.pods if is_pending(pod) and left_out(pod, profile) is None]
    for line in missing_kinds(snapshot, asked):
        remark(line)
    return request


def one_source(path: str) -> Source:
    """The one file that a path names."""
    if path != "-" and Path(path).is_dir():
        raise InputError("want one file, not a directory", file=path)
    (source,) = read_sources([path])
    return source


def _whole(paths: Sequence[str]) -> tuple[Source, reader.Format] | None:
    """The document that says everything itself, if that is what was given."""
    for path in paths:
        if path == "-" or not Path(path).is_file():
            continue
        source = one_source(path)
        form = reader.format_of(source)
        if form is not reader.Format.KUBERNETES:
            if len(paths) > 1:
                raise InputError(f"{_CALLED[form]} stands alone: give one -f", file=path)
            return source, form
    return None
