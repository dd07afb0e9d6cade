"""The examples of docs/python.md: they run, and print what the document shows.

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
TEXT = (ROOT / "docs" / "python.md").read_text("utf-8")


def test_examples_print_what_the_document_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(EXAMPLES)
    names: dict[str, object] = {}
    blocks = list(BLOCK.finditer(TEXT))
    assert len(blocks) > 5
    for block in blocks:
        line = TEXT.count("\n", 0, block.start(1))
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile("\n" * line + block[1], str(Path("docs/python.md")), "exec"), names)
        if block[2] is not None:
            assert printed.getvalue() == block[2], f"docs/python.md, line {line + 1}"
        else:
            assert printed.getvalue().strip()
