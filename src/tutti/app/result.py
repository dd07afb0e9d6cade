"""What every use case returns: frozen records with remarks, which print as the command's table does."""

from __future__ import annotations

from typing import Any

import msgspec


class Result(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """An answer. `str()` gives the table that the command prints, `data()` what it prints as JSON."""

    notes: tuple[str, ...] = ()
    """Remarks beside the answer, a line each; the command prints them to standard error."""

    def text(self, *, wide: bool = False) -> str:
        """The answer as people read it; `wide` is `-o wide`."""
        raise NotImplementedError

    def data(self) -> Any:
        """The answer as plain data for `json.dumps`, as `-o json` has it."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text()
