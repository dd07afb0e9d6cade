"""Tables without borders as kubectl prints them, and records as JSON or YAML.

Contract: pure, plain text. A table has upper-case headers and columns three spaces apart. Cells are never cut off; a
non-printable character becomes a question mark. `cli.printing` adds colours on a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

NONE = "<none>"
_GAP = 3


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return lines of left-aligned columns; numbers are left-aligned, too, as in kubectl."""
    lines = [[printable(str(cell)) for cell in row] for row in (headers, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_line(cells, widths) for cells in lines)


def printable(text: str) -> str:
    """Return a text on one line without control characters: annotations may hold terminal escape codes."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def without_columns(headers: Sequence[str], rows: Iterable[Sequence[object]], drop: Iterable[str]) -> str:
    """Return a table without the columns in `drop`."""
    dropped = set(drop)
    kept = [index for index, header in enumerate(headers) if header not in dropped]
    return table([headers[index] for index in kept], ([row[index] for index in kept] for row in rows))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width + _GAP) for cell, width in zip(cells, widths, strict=True)]
    padded[-1] = cells[-1]
    return "".join(padded).rstrip()


def structured(value: Any, form: str) -> str:
    """Return a record as JSON or YAML, without a newline at its end."""
    import msgspec

    if form == "json":
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(msgspec.to_builtins(value), Dumper=dumper, sort_keys=False, allow_unicode=True, width=2**20)
    return text.rstrip("\n")


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: "1 pod", "1,200 pods"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
