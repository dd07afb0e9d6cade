"""Files that `tutti conformance` cannot take for recorded cases."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Run


@pytest.mark.parametrize("options", [(), ("--model",)])
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ('{\n  "kind": "List"\n}\n', "not a JSON object: Input data was truncated"),
        ("kind: List\n", "not a JSON object: "),
        ('{"kind": "List", "items": []}\n', "not a recorded case of a form known here "),
    ],
)
def test_a_cluster_is_not_a_file_of_cases(
    tutti: Callable[..., Run], tmp_path: Path, options: tuple[str, ...], text: str, fault: str
) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(text, "utf-8")
    run = tutti("conformance", *options, str(path))
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith(f"error: {path}: not a file of recorded cases: line 1: {fault}")
