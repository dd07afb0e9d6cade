"""Reads files for a command, with a spinner on a terminal and notes on standard error.

Contract: `load_cluster` reads all files or raises a `TuttiError`. Notes about ambiguous input go to standard error,
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
    from tutti.engine.placement.profile import Profile
    from tutti.kube.reading.parsed_file import ParsedFile


def load_cluster(paths: Sequence[str]) -> LoadedCluster:
    """Read files into a cluster."""
    with spinner("reading"):
        from tutti.app.load import load_sources
        from tutti.app.loaded_cluster import LoadedCluster
        from tutti.kube.reading.sources import read_sources

        loaded = load_sources(read_sources(paths), name=", ".join(paths))
        cluster = LoadedCluster.of(loaded)
        _exempt_from_collection()
    _print_notes(loaded)
    return cluster


def load_parsed_files(paths: Sequence[str], files: Iterable[ParsedFile]) -> LoadedObjects:
    """Read the objects of files that are already parsed."""
    with spinner("reading"):
        from tutti.app.load import load_parsed

        loaded = load_parsed(files, name=", ".join(paths))
        _exempt_from_collection()
    _print_notes(loaded)
    return loaded


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
    from tutti.kube.reading.sources import read_sources

    if path is None:
        return scheduler_profile(None, scheduler_name)
    source, *more = read_sources([path])
    if more:
        raise InputError("want one file, not a directory", file=path)
    return scheduler_profile(source, scheduler_name)


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
