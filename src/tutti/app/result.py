"""The base class of all results: frozen records with notes, whose text is the command's table."""

from __future__ import annotations

from typing import Any

import msgspec


class Result(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The result of a use case. ``str()`` is the table that the command prints, `data` what it prints as JSON."""

    notes: tuple[str, ...] = ()
    """Lines for the user beside the answer; the command prints them to standard error."""

    def text(self, *, wide: bool = False) -> str:
        """Return the tables that the command prints; `wide` is `-o wide`."""
        raise NotImplementedError

    def data(self) -> Any:
        """Return the plain data that the command prints with `-o json`, for `json.dumps`."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()
