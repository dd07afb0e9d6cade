"""From paths to a cluster that can be asked: load, prepare, build; with a spinner on a terminal.

Contract: `load_cluster` reads everything or raises a `TuttiError`; remarks about what was ambiguous go to standard
error, each once. CronJobs of manifests start one run, those of a dump have started theirs. After it has returned, the
garbage collector leaves the cluster alone: it is looked through no more, for it stays until the end.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from tutti.exceptions import InputError

if TYPE_CHECKING:
    from tutti.app.loaded_cluster import LoadedCluster
    from tutti.engine.placement.profile import Profile
    from tutti.kube.reading.snapshot import Snapshot
    from tutti.kube.reading.sources import Source


def load_cluster(paths: Sequence[str], *, sources: Iterable[Source] | None = None) -> LoadedCluster:
    """Read files into a cluster; `sources` are their contents, where they were read already."""
    with busy("reading"):
        from tutti.app.loaded_cluster import LoadedCluster
        from tutti.cluster.cluster import Cluster
        from tutti.kube.admission.unknown_volumes import KnownVolumes
        from tutti.kube.objects import KINDS, Pod

        snapshot = _prepared(paths, sources)
        known = KnownVolumes(snapshot)
        objects = snapshot.objects | {Pod.KIND: [known.within(pod) for pod in snapshot.pods]}
        cluster = Cluster(obj for kind in KINDS for obj in objects.get(kind, ()))
        gc.collect()
        gc.freeze()
    for note in snapshot.notes:
        remark(note)
    if snapshot.skipped:
        others = ", ".join(f"{number} {kind}" for kind, number in snapshot.skipped.items())
        remark(f"objects of kinds that do not matter here were left out: {others}")
    if homeless := sum(map(len, cluster.absent.values())):
        from tutti.present.tables import counted

        are = "is on a node that is" if homeless == 1 else "are on nodes that are"
        remark(
            f"{counted(homeless, 'pod')} {are} not in the input, and {'counts' if homeless == 1 else 'count'} nowhere"
        )
    return LoadedCluster(snapshot, cluster, snapshot)


def _prepared(paths: Sequence[str], sources: Iterable[Source] | None) -> Snapshot:
    from msgspec.structs import replace

    from tutti.kube.admission.pod_admission import is_stored
    from tutti.kube.admission.prepare import prepare
    from tutti.kube.objects import CronJob
    from tutti.kube.reading.loader import load, load_sources

    snapshot = load(paths) if sources is None else load_sources(sources)
    new = [each for each in snapshot.of(CronJob) if not is_stored(each)]
    try:
        return prepare(replace(snapshot, objects={**snapshot.objects, CronJob.KIND: new}), cron_jobs=True)
    except InputError as error:  # after loading, objects do not know their file any more
        raise InputError(error.problem, file=", ".join(paths), obj=error.obj, field=error.field) from None


def load_profile(path: str | None, scheduler_name: str | None) -> Profile:
    """The profile of a configuration file, or the default one."""
    from tutti.engine.placement.profile import Profile

    if path is not None:
        from tutti.engine.config import profile_loader as config
        from tutti.kube.reading.sources import read_sources

        source, *more = read_sources([path])
        if more:
            raise InputError("want one file, not a directory of them", file=path)
        return config.load_profile(source.data, file=source.name, scheduler_name=scheduler_name)
    default = Profile.default()
    return default._replace(scheduler_name=scheduler_name) if scheduler_name else default


def remark(text: str) -> None:
    """Tell the user something beside the answer."""
    click.echo(f"note: {text}", err=True)


@contextmanager
def busy(what: str) -> Iterator[Callable[[str], None]]:
    """Show on a terminal that something is under way; what is given tells how far it is."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} ...") as status:
        yield lambda text: status.update(f"{what} ... {text}")
