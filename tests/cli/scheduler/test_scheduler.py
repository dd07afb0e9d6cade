"""`tutti scheduler`: what is refused before it starts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Run
from tutti.live.scheduler import LiveScheduler

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


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--lease", "foo/"), "'foo/' is not NAMESPACE/NAME."),
        (("--lease", "a/b/c"), "'a/b/c' is not NAMESPACE/NAME."),
        (("--max-qps", "nan"), "nan is not a number of bindings."),
        (("--max-qps", "inf"), "inf is not a number of bindings."),
        (("--scheduler-name", ""), "'' is not the name of a scheduler."),
        (("--own-nodes", "foo"), "'foo' is not KEY=VALUE."),
        (("--own-nodes", "=foo"), "'=foo' is not KEY=VALUE."),
        (("--tls-cert", "x"), "--tls-cert and --tls-key go together."),
    ],
)
def test_wrong_usage(tutti: Tutti, kubeconfig: str, arguments: tuple[str, ...], words: str) -> None:
    run = tutti("scheduler", "--kubeconfig", kubeconfig, *arguments)
    assert run.code == 2
    assert words in run.err


def test_a_lost_lease_has_an_exit_code_of_its_own(
    tutti: Tutti, kubeconfig: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(_scheduler: LiveScheduler) -> bool:
        return False

    monkeypatch.setattr(LiveScheduler, "run", lost)
    run = tutti("scheduler", "--kubeconfig", kubeconfig)
    assert run.code == 1
    assert run.err == "error: the lease was lost: another process leads, or the API server could not be reached\n"
