"""Reads files or a cluster for a command, with a spinner on a terminal and notes on standard error.

Contract: `load_cluster` reads all files, or the kinds that the command needs from the cluster of a kubeconfig context,
or raises a `TuttiError`. Notes about ambiguous input go to standard error,
each once. The garbage collector skips all loaded objects afterwards, because they live until the process ends.
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
    from tutti.cli.options import ClusterInput
    from tutti.engine.placement.profile import Profile
    from tutti.kube.reading.parsed_file import ParsedFile
    from tutti.kube.reading.sources import Source


def load_cluster(given: ClusterInput, kinds: Sequence[str]) -> LoadedCluster:
    """Read all files, or else these kinds of a cluster, and build the cluster in memory."""
    with spinner("reading") as tell:
        from tutti.app.loaded_cluster import LoadedCluster

        loaded = _load_context(given, kinds, tell) if given.is_live else _load_files(given.paths)
        cluster = LoadedCluster.of(loaded)
        _exempt_from_collection()
    _print_notes(loaded)
    return cluster


def load_context(given: ClusterInput, kinds: Sequence[str]) -> LoadedObjects:
    """Read these kinds of the cluster of a context."""
    with spinner("reading") as tell:
        loaded = _load_context(given, kinds, tell)
        _exempt_from_collection()
    _print_notes(loaded)
    return loaded


def load_parsed_files(paths: Sequence[str], files: Iterable[ParsedFile]) -> LoadedObjects:
    """Read the objects of files that are already parsed."""
    with spinner("reading"):
        from tutti.app.load import load_parsed

        loaded = load_parsed(files, name=", ".join(paths))
        _exempt_from_collection()
    _print_notes(loaded)
    return loaded


def _load_files(paths: Sequence[str]) -> LoadedObjects:
    from tutti.app.load import load_sources
    from tutti.kube.reading.sources import read_sources

    return load_sources(read_sources(paths), name=", ".join(paths))


def _load_context(given: ClusterInput, kinds: Sequence[str], tell: Callable[[str], None]) -> LoadedObjects:
    from msgspec.structs import replace

    from tutti.app.load import load_lists
    from tutti.cli.cluster_reading import read_context

    read = read_context(given, kinds, tell)
    loaded = load_lists(read.decoded(), name=read.name)
    return replace(loaded, notes=(*read.notes, *loaded.notes))


def _exempt_from_collection() -> None:
    """Exempt the loaded objects from garbage collection: they live until the process ends."""
    gc.collect()
    gc.freeze()


def _print_notes(loaded: LoadedObjects) -> None:
    for note in loaded.notes:
        print_note(note)


def load_profile(path: str | None, scheduler_name: str | None) -> Profile:
    """Return the profile of a configuration file, or the default profile."""
    from tutti.app.scheduler_profile import scheduler_profile

    return scheduler_profile(read_configuration(path), scheduler_name)


def read_configuration(path: str | None) -> Source | None:
    """Read the file of `--profile`, if given."""
    from tutti.kube.reading.sources import read_sources

    if path is None:
        return None
    source, *more = read_sources([path])
    if more:
        raise InputError("want one file, not a directory", file=path)
    return source


def print_note(text: str) -> None:
    """Print a note to standard error."""
    click.echo(f"note: {text}", err=True)


@contextmanager
def spinner(activity: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner on a terminal; yield a function that shows the progress as text."""
    if sys.stderr is None or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{activity} ...") as status:
        yield lambda text: status.update(f"{activity} ... {text}")
