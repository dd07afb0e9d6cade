"""The examples of docs/python.md and docs/engine.md: they run, and print what the document shows.

All ```python blocks run one after the other in the examples' directory. A ```text block right after one is what it
prints.
"""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.support.paths import EXAMPLES, ROOT

BLOCK = re.compile(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize(("document", "fewest"), [("python.md", 6), ("engine.md", 1)])
def test_examples_print_what_the_document_shows(document: str, fewest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    names: dict[str, object] = {}
    text = (ROOT / "docs" / document).read_text("utf-8")
    blocks = list(BLOCK.finditer(text))
    assert len(blocks) >= fewest
    for block in blocks:
        line = text.count("\n", 0, block.start(1))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + block[1], str(Path("docs", document)), "exec"), names)
        if block[2] is not None:
            assert printed.getvalue() == block[2], f"docs/{document}, line {line + 1}"
        else:
            assert printed.getvalue().strip()
