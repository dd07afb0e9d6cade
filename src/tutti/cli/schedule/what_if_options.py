"""Turns the options `--add`, `--scale`, `--cordon` and `--drain` into a `WhatIf`; `app.what_if` turns it into edits.

Contract: an invalid value raises an `InputError` with the name of its option.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.app.what_if import WhatIf, check_count
from tutti.exceptions import InputError


def what_if_of(*, add: Sequence[str], scale: Sequence[str], cordon: Sequence[str], drain: Sequence[str]) -> WhatIf:
    """Return the what-if of the options."""
    return WhatIf(
        add=tuple(name_and_count(text, "--add") for text in add),
        scale=tuple(name_and_count(text, "--scale") for text in scale),
        cordon=tuple(cordon),
        drain=tuple(drain),
    )


def name_and_count(text: str, option: str) -> tuple[str, int]:
    """Return the two sides of ``NAME=COUNT``."""
    shape = "KIND/NAME" if option == "--scale" else "NODE"
    name, _, count = text.rpartition("=")
    if not name or not count.isascii() or not count.isdigit():
        raise InputError(f'want {shape}=COUNT, got "{text}"', obj=option)
    count = count.lstrip("0") or "0"
    check_count(name, count, option)
    return name, int(count)
