"""Runs a function on every line of files with recorded cases, in one process or in several.

Contract: `map_lines` yields the result of the function for every line of every file, in order, and raises the errors of
the function. It starts processes only for enough work. A file whose name does not end in .jsonl is refused if its first
line is not a case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import TypeVar

from tutti.exceptions import InputError

Line = tuple[str, int, bytes]
"""A file, a line number, and the line."""
Result = TypeVar("Result")
_MANY_CASES, _MANY_SLOW_CASES = 40, 2
"""From this number of cases on, starting processes is worth its cost; less for slow cases."""


def map_lines(
    work: Callable[[Line], Result], paths: Sequence[str], jobs: int, *, is_slow: Callable[[Line], bool] | None = None
) -> Iterator[Result]:
    """Yield the result of `work` for every line; `is_slow` tells whether the work for a line takes seconds."""
    lines = chain.from_iterable(map(_lines, paths))
    first = list(islice(lines, _MANY_CASES))
    enough = _MANY_SLOW_CASES if is_slow is not None and any(map(is_slow, first)) else _MANY_CASES
    if jobs == 1 or len(first) < enough:
        yield from map(work, chain(first, lines))
        return
    from tutti.cli.conformance.worker_processes import results_in_order

    yield from results_in_order(work, chain(first, lines), jobs)


def _lines(path: str) -> Iterator[Line]:
    from tutti.conformance.case_files import read_lines
    from tutti.conformance.case_formats import format_of

    is_unchecked = not path.removesuffix(".gz").endswith(".jsonl")
    for number, line in read_lines(path):
        if is_unchecked:
            is_unchecked = False
            try:
                format_of(path, number, line)
            except InputError as error:
                problem = f"not a file of recorded cases: {error.obj}: {error.problem}"
                raise InputError(problem, file=path) from None
        yield path, number, line
