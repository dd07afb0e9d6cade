"""Printing an answer to standard output, with colours on a terminal.

Contract: `print_text` colours the cells of a table that say how things stand; click takes the colours out again where
the output is not a terminal. NO_COLOR and TERM=dumb switch them off. Only click is imported here.
"""

from __future__ import annotations

import os
import re
from typing import Any

import click

_COLOURS = {
    "Placed": "green", "Feasible": "green", "Best": "green", "ok": "green",
    "Pending": "red", "Refused": "red", "Evicted": "yellow", "differs": "red",
    "Gated": "yellow", "Skipped": "yellow", "unsupported": "yellow", "Waiting": "yellow", "Moved": "yellow",
}  # fmt: skip
_CELL = re.compile(rf"(?:^|(?<=   ))({'|'.join(_COLOURS)})(?=   |$)")
"""A cell of a table that is one of these words; cells are three spaces apart or more."""
_LABEL = re.compile(r"[A-Z]\w*: ")
"""The start of a line that is not in a table: ``Name:        web-0``."""


def print_text(text: str) -> None:
    """Print tables, summaries and remarks."""
    click.echo(coloured(text) if colours_wanted() else text)


def print_data(value: Any, form: str) -> None:
    """Print a record as JSON or YAML."""
    from tutti.present.tables import structured

    click.echo(structured(value, form))


def coloured(text: str) -> str:
    """The text with its status words in colour."""
    return "\n".join(line if _LABEL.match(line) else _CELL.sub(_styled, line) for line in text.split("\n"))


def _styled(cell: re.Match[str]) -> str:
    return click.style(cell[1], fg=_COLOURS[cell[1]])


def colours_wanted() -> bool:
    """Whether the user's environment allows colours; click decides whether the output shows them."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
