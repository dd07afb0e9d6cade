"""Prints an answer to standard output, with colours on a terminal.

Contract: `print_text` colours the status cells of tables; click removes the colours if the output is not a terminal.
NO_COLOR and TERM=dumb switch colours off. Imports only click.
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
    "Partial": "red", "Backoff": "yellow", "Running": "green", "Due": "green",
}  # fmt: skip
_CELL = re.compile(rf"(?:^|(?<=   ))({'|'.join(_COLOURS)})(?=   |$)")
"""A table cell that is one of these words; cells are at least three spaces apart."""
_LABEL = re.compile(r"[A-Z]\w*: ")
"""The start of a line outside tables: ``Name:        web-0``."""


def print_text(text: str) -> None:
    """Print tables, summaries and remarks."""
    click.echo(coloured(text) if colours_wanted() else text)


def print_data(value: Any, form: str) -> None:
    """Print a record as JSON or YAML."""
    from tutti.present.tables import structured

    click.echo(structured(value, form))


def coloured(text: str) -> str:
    """Return the text with its status cells in colour."""
    return "\n".join(line if _LABEL.match(line) else _CELL.sub(_styled, line) for line in text.split("\n"))


def _styled(cell: re.Match[str]) -> str:
    return click.style(cell[1], fg=_COLOURS[cell[1]])


def colours_wanted() -> bool:
    """Return whether the environment allows colours; click checks whether the output is a terminal."""
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
