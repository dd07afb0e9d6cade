"""Settings and fixtures that every test shares: how hard hypothesis looks for counterexamples, runs of `tutti`.

HYPOTHESIS_PROFILE=deep looks longer. In CI (CI=true) the same examples are drawn every time.
"""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.command_line import Run
from tests.support.documents import Document
from tests.support.paths import EXAMPLES
from tutti.cli.main import main
from tutti.cluster.cluster import Cluster

# No test reads the cluster of the developer who runs it.
os.environ["KUBECONFIG"] = os.devnull
os.environ.pop("KUBERNETES_SERVICE_HOST", None)

SLOW_IS_FINE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}

settings.register_profile("dev", max_examples=50, **SLOW_IS_FINE)
settings.register_profile("ci", max_examples=50, derandomize=True, database=None, **SLOW_IS_FINE)
settings.register_profile("deep", max_examples=1000, **SLOW_IS_FINE)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_report_header() -> str | None:
    """Say that tests on a real control plane are left out."""
    if os.environ.get("TUTTI_LIVE_TESTS") == "1":
        return None
    return "tests/controlplane: not run here; make test-live runs them on a real control plane"


@pytest.fixture
def tutti(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Run]:
    """Run `tutti` with arguments, in this process."""

    def run(*arguments: str, stdin: str = "") -> Run:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as left:
            main(arguments)
        printed = capsys.readouterr()
        return Run(int(left.value.code or 0), printed.out, printed.err)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., str]:
    """Write objects as a list into a file, and give its path."""

    def written(*objects: Document, name: str = "cluster.json") -> str:
        path = tmp_path / name
        path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": objects}), "utf-8")
        return str(path)

    return written


@pytest.fixture
def example() -> str:
    return str(EXAMPLES / "getting-started" / "cluster.json")


@pytest.fixture
def built(monkeypatch: pytest.MonkeyPatch) -> list[Cluster]:
    """The clusters that were built from objects."""
    found: list[Cluster] = []
    build = Cluster.__init__

    def counted(self: Cluster, *objects: Any, **more: Any) -> None:
        found.append(self)
        build(self, *objects, **more)

    monkeypatch.setattr(Cluster, "__init__", counted)
    return found
