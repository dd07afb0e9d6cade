"""From the files of `tutti recommend` to a request.

Contract: `-f` is a cluster, as for every command, or one scenario file of the recommender that came before, which says
itself what can be bought. Whatever cannot be read raises `InputError`; remarks about the input go to standard error.
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
from tutti.recommend.parse import build_request, is_pending, price_book
from tutti.recommend.wire.scenario import is_scenario, read_scenario

if TYPE_CHECKING:
    from tutti.recommend.request import Options, Request

_MARKS = (b'"nodePools"', b'"Scenarios"')
"""What a scenario file has in it: dumps of many megabytes need not be decoded to see that they are none."""


def read_request(
    paths: Sequence[str], *, pools: str | None, prices: str | None, region: str, options: Options
) -> Request:
    """Read everything that a recommendation is made from."""
    table = _one(prices)
    scenario = _scenario(paths)
    if scenario is not None:
        for option, given in (("--pools", pools), ("--region", region)):
            if given:
                raise click.UsageError(f"{option} cannot be given with a scenario file, which has pools of its own.")
        return read_scenario(scenario, price_book(table), options=options)
    from msgspec.structs import replace

    snapshot = load_cluster(paths).snapshot
    with busy("reading pools and prices"):
        known = KnownVolumes(snapshot)
        objects = snapshot.objects | {Pod.KIND: [known.within(pod) for pod in snapshot.pods]}
        request = build_request(
            replace(snapshot, objects=objects), pools=_one(pools), prices=table, region=region, options=options
        )
    profile = Profile.default()
    asked = [pod for pod in snapshot.pods if is_pending(pod) and left_out(pod, profile) is None]
    for line in missing_kinds(snapshot, asked):
        remark(line)
    return request


def _one(path: str | None) -> Source | None:
    """The one file that a path names."""
    if path is None:
        return None
    if path != "-" and Path(path).is_dir():
        raise InputError("want one file, not a directory", file=path)
    (source,) = read_sources([path])
    return source


def _scenario(paths: Sequence[str]) -> Source | None:
    """The scenario file, if that is what was given."""
    for path in paths:
        if path == "-" or not Path(path).is_file():
            continue
        source = _one(path)
        if source is not None and any(mark in source.data for mark in _MARKS) and is_scenario(source):
            if len(paths) > 1:
                raise InputError("a scenario file stands alone: give one -f", file=path)
            return source
    return None
