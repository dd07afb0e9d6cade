"""How a run of the command line inside a test ended."""

from __future__ import annotations

import json
from typing import Any, NamedTuple


class Run(NamedTuple):
    """Exit code and output of a run."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)
