"""Outputs in the documents equal the outputs of the commands: ```text blocks that start with `$ tutti`.

Commands that name files under examples/ run in the root of the repository, all others in examples/getting-started.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

import pytest

from tests.support.command_line import Run
from tests.support.paths import ROOT

DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md")))
BLOCK = re.compile(r"^```text\n(\$ tutti.*?)^```$", re.MULTILINE | re.DOTALL)


def captures() -> list[tuple[str, str]]:
    """Return every command with an output in a document, and this output."""
    outputs = []
    for path in DOCUMENTS:
        for block in BLOCK.findall(path.read_text("utf-8")):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                outputs.append((command, output.strip("\n")))
    return outputs


def test_the_readme_and_the_first_steps_have_captures() -> None:
    assert len(captures()) >= 4


@pytest.mark.parametrize(("command", "output"), captures())
def test_captures_are_true(
    tutti: Callable[..., Run], monkeypatch: pytest.MonkeyPatch, command: str, output: str
) -> None:
    monkeypatch.chdir(ROOT if "examples/" in command else ROOT / "examples" / "getting-started")
    assert tutti(*shlex.split(command)[1:]).out.strip("\n") == output
