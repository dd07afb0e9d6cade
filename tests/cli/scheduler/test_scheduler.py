"""`tutti scheduler`: what is refused before it starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Run

Tutti = Callable[..., Run]


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """Write the kubeconfig of a server that is never asked."""
    path = tmp_path / "kubeconfig"
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    path.write_text(json.dumps(config))
    return str(path)


def test_a_folder_for_recordings_that_cannot_be_used(tutti: Tutti, kubeconfig: str) -> None:
    run = tutti("scheduler", "--kubeconfig", kubeconfig, "--port", "0", "--record", kubeconfig)
    assert (run.code, run.out) == (2, "")
    assert run.err == f"error: --record {kubeconfig}: no files can be written there: file exists\n"
