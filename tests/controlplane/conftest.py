"""Fixtures of tests on a real control plane; without TUTTI_LIVE_TESTS=1 nothing here is collected.

`make test-live` sets the variable. Then a missing binary is an error, a skipped test fails the run, and so does a run
without a passed test. Tests may be coroutines: they run in the event loop of their `client`, for at most `_PATIENCE`
seconds. All tests share one API server; each has a namespace of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.controlplane.cluster_setup import make_namespace, open_client
from tests.controlplane.component_flags import ControlPlaneOptions
from tests.controlplane.control_plane import ControlPlane
from tutti.client.api_client import ApiClient

_IS_LIVE = os.environ.get("TUTTI_LIVE_TESTS") == "1"
_PATIENCE = 300
"""Seconds; only something that hangs takes so long."""

collect_ignore_glob = [] if _IS_LIVE else ["*"]
_outcomes = {"passed": 0, "skipped": 0}
_numbers = count(1)


@pytest.fixture(scope="session")
def control_plane() -> Iterator[ControlPlane]:
    """Give etcd and kube-apiserver with an audit log; a test that restarts the API server leaves it ready."""
    with ControlPlane(ControlPlaneOptions(audit=True)) as plane:
        yield plane


@pytest.fixture(scope="session")
def control_plane_with_kubelets() -> Iterator[ControlPlane]:
    """Give the same with the controller manager and kwok, for tests that need Jobs, budgets or running pods."""
    with ControlPlane(ControlPlaneOptions(audit=True, controller_manager=True, kwok=True)) as plane:
        yield plane


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    """The event loop of one test."""
    with asyncio.Runner() as runner:
        yield runner
        runner.run(_wait_for_transports())


async def _wait_for_transports() -> None:
    """Wait until abandoned streams have said goodbye: an unclosed transport is a warning, and that an error."""
    transports = getattr(asyncio.get_running_loop(), "_transports", {})
    end = time.monotonic() + 30
    while any(each._sock is not None for each in transports.values()) and time.monotonic() < end:
        await asyncio.sleep(0.01)


@pytest.fixture
def client(control_plane: ControlPlane, runner: asyncio.Runner) -> Iterator[ApiClient]:
    """An administrator's client of `control_plane`."""
    control_plane.check()
    yield from _opened(control_plane.kubeconfig, runner)


@pytest.fixture
def client_with_kubelets(control_plane_with_kubelets: ControlPlane, runner: asyncio.Runner) -> Iterator[ApiClient]:
    """An administrator's client of `control_plane_with_kubelets`."""
    control_plane_with_kubelets.check()
    yield from _opened(control_plane_with_kubelets.kubeconfig, runner)


def _opened(kubeconfig: Path, runner: asyncio.Runner) -> Iterator[ApiClient]:
    opened = open_client(kubeconfig)
    client = runner.run(opened.__aenter__())
    yield client
    runner.run(opened.__aexit__(None, None, None))


@pytest.fixture
def namespace(client: ApiClient, runner: asyncio.Runner) -> str:
    """A namespace in `control_plane` that no other test uses."""
    return runner.run(make_namespace(client, f"test-{next(_numbers)}"))


@pytest.fixture
def namespace_with_kubelets(client_with_kubelets: ApiClient, runner: asyncio.Runner) -> str:
    """A namespace in `control_plane_with_kubelets` that no other test uses."""
    return runner.run(make_namespace(client_with_kubelets, f"test-{next(_numbers)}"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    runner = pyfuncitem.funcargs["runner"]
    assert isinstance(runner, asyncio.Runner), "a coroutine needs the fixture `client` or `runner`"
    runner.run(asyncio.wait_for(pyfuncitem.obj(**arguments), _PATIENCE))
    return True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count tests that passed or were skipped."""
    if report.skipped or (report.passed and report.when == "call"):
        _outcomes[report.outcome] += 1


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Fail a live run in which a test was skipped, or none passed."""
    if _IS_LIVE and exitstatus == pytest.ExitCode.OK and (_outcomes["skipped"] or not _outcomes["passed"]):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why a live run fails although no test did."""
    if _IS_LIVE and (_outcomes["skipped"] or not _outcomes["passed"]):
        terminalreporter.write_line("tests/controlplane: a skipped test, or none that passed, fails this run", red=True)
