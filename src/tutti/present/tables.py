"""Answers as text: tables without borders as kubectl prints them, JSON and YAML.

Contract: pure, plain text. A table has upper-case headers and columns three spaces apart; nothing is cut off, and a
character that cannot be printed is a question mark. Colours for a terminal are added by `cli.printing`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

NONE = "<none>"
_GAP = 3


def table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Lines of aligned columns; numbers are set like text, as kubectl does."""
    lines = [[_printable(str(cell)) for cell in row] for row in (headers, *rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(_line(cells, widths) for cells in lines)


def _printable(text: str) -> str:
    """A text on one line, and without a say in how a terminal looks: annotations may hold anything."""
    return text if text.isprintable() else "".join(char if char.isprintable() else "?" for char in text)


def without_columns(headers: Sequence[str], rows: Iterable[Sequence[object]], drop: Iterable[str]) -> str:
    """A table without some of its columns."""
    dropped = set(drop)
    kept = [place for place, header in enumerate(headers) if header not in dropped]
    return table([headers[place] for place in kept], ([row[place] for place in kept] for row in rows))


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = [cell.ljust(width + _GAP) for cell, width in zip(cells, widths, strict=True)]
    padded[-1] = cells[-1]
    return "".join(padded).rstrip()


def structured(value: Any, form: str) -> str:
    """A record as JSON or YAML, without a newline at its end."""
    import msgspec

    if form == "json":
        return msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    import yaml

    dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
    text: str = yaml.dump(msgspec.to_builtins(value), Dumper=dumper, sort_keys=False, allow_unicode=True, width=2**20)
    return text.rstrip("\n")


def counted(number: int, noun: str) -> str:
    """A number and its noun: "1 pod", "1,200 pods"."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
