"""The options of `tutti scheduler`, as the live scheduler gets them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster_api_server import kubeconfig
from tests.support.command_line import Run
from tutti.engine.preemption.victim_rules import VictimRules
from tutti.live.options import SchedulerOptions

Tutti = Callable[..., Run]
RULES = VictimRules(mirror_pods=False, daemons=False)


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[SchedulerOptions]:
    """The options with which schedulers were started."""
    found: list[SchedulerOptions] = []

    def run(_access: object, settings: SchedulerOptions, *_: Any) -> None:
        found.append(settings)

    monkeypatch.setattr(import_module("tutti.cli.scheduler.command"), "_run", run)
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig(tmp_path, "http://127.0.0.1:9")))
    return found


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), RULES),
        (("--preempt-daemons",), VictimRules(mirror_pods=False, daemons=True)),
        (("--preempt-own-only",), VictimRules(mirror_pods=False, daemons=False, other_schedulers=False)),
        (("--respect-budgets",), VictimRules(mirror_pods=False, daemons=False, hard_budgets=True)),
    ],
)
def test_which_pods_may_be_evicted(
    tutti: Tutti, started: list[SchedulerOptions], options: tuple[str, ...], expected: VictimRules
) -> None:
    """Mirror pods never are, whatever the options."""
    assert tutti("scheduler", *options).code == 0
    policy = started[0].policy
    assert policy.victims_allowed == expected
    assert policy.preemption
    assert policy.eviction_rounds == 2
    assert policy.own_nodes is None


def test_no_preemption(tutti: Tutti, started: list[SchedulerOptions]) -> None:
    assert tutti("scheduler", "--no-preemption").code == 0
    assert not started[0].policy.preemption


@pytest.mark.parametrize(("taint", "expected"), [("pool=tutti", ("pool", "tutti")), ("pool=", ("pool", ""))])
def test_own_nodes(tutti: Tutti, started: list[SchedulerOptions], taint: str, expected: tuple[str, str]) -> None:
    assert tutti("scheduler", "--own-nodes", taint).code == 0
    assert started[0].policy.own_nodes == expected


def test_own_nodes_want_a_key(tutti: Tutti, started: list[SchedulerOptions]) -> None:
    run = tutti("scheduler", "--own-nodes", "=tutti")
    assert run.code == 2
    assert "'=tutti' is not KEY=VALUE" in run.err
    assert not started
