"""Recorded cases, line by line, in one process or in several.

Contract: `of_lines` gives what work makes of every line of every file, in order. More processes are started only where
that pays. What work raises is raised here. A file whose name does not promise lines of JSON is refused as a whole if
its first line is no case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

from tutti.exceptions import InputError

Line = tuple[str, int, bytes]
"""A file, the number of a line in it, and the line."""
Made = TypeVar("Made")
_ENOUGH, _ENOUGH_SLOW = 40, 2
"""From so many cases on it pays to start more processes."""


def of_lines(
    work: Callable[[Line], Made], paths: Sequence[str], jobs: int, *, is_slow: Callable[[Line], bool] | None = None
) -> Iterator[Made]:
    """Do the work for every line; a line is slow if its work takes seconds."""
    lines = chain.from_iterable(map(_lines, paths))
    first = list(islice(lines, _ENOUGH))
    enough = _ENOUGH_SLOW if is_slow is not None and any(map(is_slow, first)) else _ENOUGH
    if jobs == 1 or len(first) < enough:
        yield from map(work, chain(first, lines))
        return
    from tutti.cli.conformance.worker_processes import results_in_order

    yield from results_in_order(work, chain(first, lines), jobs)


def _lines(path: str) -> Iterator[Line]:
    from tutti.conformance.case_files import read_lines
    from tutti.conformance.formats import format_of

    is_in_doubt = not path.removesuffix(".gz").endswith(".jsonl")
    for number, line in read_lines(path):
        if is_in_doubt:
            is_in_doubt = False
            try:
                format_of(path, number, line)
            except InputError as error:
                problem = f"not a file of recorded cases: {error.obj}: {error.problem}"
                raise InputError(problem, file=path) from None
        yield path, number, line
