"""All cases of a file with recorded answers of kube-scheduler."""

from __future__ import annotations

from collections.abc import Iterator

from tutti.conformance.case_files import Case, read_case, read_lines


def read_cases(path: str) -> Iterator[Case]:
    """Yield the cases of a file."""
    for number, line in read_lines(path):
        yield read_case(path, number, line)
