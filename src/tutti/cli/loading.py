"""Reading files for a command: a spinner on a terminal, notes on standard error.

Contract: `load_cluster` reads everything or raises a `TuttiError`; notes about what was ambiguous go to standard error,
each once. After it has returned, the garbage collector leaves the objects alone: they stay until the end.
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
    from tutti.app.load import LoadedObjects
    from tutti.app.loaded_cluster import LoadedCluster
    from tutti.engine.placement.profile import Profile
    from tutti.kube.reading.parsed_file import ParsedFile


def load_cluster(paths: Sequence[str]) -> LoadedCluster:
    """Read files into a cluster."""
    with busy("reading"):
        from tutti.app.load import load_sources
        from tutti.app.loaded_cluster import LoadedCluster
        from tutti.kube.reading.sources import read_sources

        loaded = load_sources(read_sources(paths), name=", ".join(paths))
        cluster = LoadedCluster.of(loaded)
        _exempt_from_collection()
    _print_notes(loaded)
    return cluster


def load_parsed_files(paths: Sequence[str], files: Iterable[ParsedFile]) -> LoadedObjects:
    """Read the objects of files that were parsed already."""
    with busy("reading"):
        from tutti.app.load import load_parsed

        loaded = load_parsed(files, name=", ".join(paths))
        _exempt_from_collection()
    _print_notes(loaded)
    return loaded


def _exempt_from_collection() -> None:
    """Keep the garbage collector from walking through what was loaded, which stays until the end."""
    gc.collect()
    gc.freeze()


def _print_notes(loaded: LoadedObjects) -> None:
    for note in loaded.notes:
        remark(note)


def load_profile(path: str | None, scheduler_name: str | None) -> Profile:
    """The profile of a configuration file, or the default one."""
    from tutti.app.scheduler_profile import scheduler_profile
    from tutti.kube.reading.sources import read_sources

    if path is None:
        return scheduler_profile(None, scheduler_name)
    source, *more = read_sources([path])
    if more:
        raise InputError("want one file, not a directory of them", file=path)
    return scheduler_profile(source, scheduler_name)


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
