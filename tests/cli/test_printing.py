"""Colours: status words of tables, on a terminal that wants them."""

from __future__ import annotations

import pytest

from tutti.cli.printing import coloured, colours_wanted
from tutti.present.tables import table

GREEN, RED, END = "\x1b[32m", "\x1b[31m", "\x1b[0m"


def test_cells_that_are_status_words_have_colours() -> None:
    text = table(("NAME", "STATUS", "MESSAGE"), [("a", "Placed", "Pending once"), ("b-long", "Pending", "")])
    assert coloured(text).splitlines() == [
        "NAME     STATUS    MESSAGE",
        f"a        {GREEN}Placed{END}    Pending once",
        f"b-long   {RED}Pending{END}",
    ]


def test_the_first_and_the_last_cell_count() -> None:
    assert coloured("ok   x   differs") == f"{GREEN}ok{END}   x   {RED}differs{END}"


def test_labels_and_sentences_stay_plain() -> None:
    text = "Name:        ok\nPods:        1 Pending\n1 Placed"
    assert coloured(text) == text


@pytest.mark.parametrize(
    ("name", "value", "wanted"), [("TERM", "xterm", True), ("TERM", "dumb", False), ("NO_COLOR", "1", False)]
)
def test_environment(name: str, value: str, wanted: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv(name, value)
    assert colours_wanted() is wanted
