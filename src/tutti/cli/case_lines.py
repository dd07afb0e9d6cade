"""Recorded cases, line by line, in one process or in several.

Contract: `of_lines` gives what work makes of every line of every file, in order. More processes are started only where
that pays. What work raises is raised here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

Line = tuple[str, int, bytes]
"""A file, the number of a line in it, and the line."""
Made = TypeVar("Made")
_ENOUGH, _ENOUGH_SLOW = 40, 2
"""From so many cases on it pays to start more processes."""


def of_lines(
    work: Callable[[Line], Made], paths: Sequence[str], jobs: int, *, is_slow: Callable[[Line], bool] | None = None
) -> Iterator[Made]:
    """Do the work for every line; a line is slow if its work takes seconds."""
    from tutti.conformance.cases import read_lines

    lines = ((path, number, line) for path in paths for number, line in read_lines(path))
    first = list(islice(lines, _ENOUGH))
    enough = _ENOUGH_SLOW if is_slow is not None and any(map(is_slow, first)) else _ENOUGH
    if jobs == 1 or len(first) < enough:
        yield from map(work, chain(first, lines))
        return
    from tutti.cli.processes import in_order

    yield from in_order(work, chain(first, lines), jobs)
