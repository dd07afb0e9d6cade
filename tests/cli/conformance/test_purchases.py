"""`tutti conformance` on recorded purchases: the table, what is worse, the replay, and the end of a run."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.command_line import Run
from tests.support.paths import VECTORS
from tutti.autoscalers.karpenter.provisioner import karpenter
from tutti.cli.conformance.purchase_table import failure_line, is_failure, purchase_table
from tutti.cluster.work.work_budget import WorkBudget
from tutti.conformance import purchase_run
from tutti.conformance.karpenter_cases import read_karpenter
from tutti.conformance.purchase_run import PurchaseOutcome, PurchaseSettings, run_purchase
from tutti.market.offerings import Offering
from tutti.recommend.records.new_nodes import NewNode, ScaleUp
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, Request

Tutti = Callable[..., Run]
PURCHASES = VECTORS / "purchases"
LINES = gzip.decompress((PURCHASES / "karpenter.jsonl.gz").read_bytes()).splitlines()
SMALL = [line for line in LINES if json.loads(line)["name"].endswith(("-s00", "-s01"))]
DOLLAR = 10**9


def as_karpenter(request: Request, budget: WorkBudget) -> Recommendation:
    """A recommender that knows nothing better than Karpenter's way."""
    bought = karpenter(request.cluster, request.catalogue, request.daemon_sets, budget=budget)
    nodes = tuple(
        NewNode(name=f"new-{place}", pods=pods, **described(offering))
        for place, (offering, pods) in enumerate(bought.nodes)
    )
    numbers = Counter(tuple(described(offering).items()) for offering, _ in bought.nodes)
    scale_up = tuple(ScaleUp(increment=number, node_names=(), **dict(each)) for each, number in numbers.items())
    return Recommendation(
        strategy="karpenter", objective="cost", binder=str(request.options.binder), nodes=nodes, scale_up=scale_up,
        pods=bought.placed + len(bought.left), placed=bought.placed, cost=bought.cost,
    )  # fmt: skip


def described(offering: Offering) -> dict[str, object]:
    return {name: getattr(offering, name) for name in ("pool", "zone", "instance_type", "capacity_type", "price")}


def all_placed(request: Request, bought: Sequence[tuple[Offering, int]]) -> int:
    """A replay in which every node takes one pod."""
    return sum(number for _, number in bought)


def rows(run: Run) -> dict[str, list[str]]:
    table = run.out.split("\n\n")[0].splitlines()[1:]
    return {line.split()[1]: line.split()[2:] for line in table}


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purchase_run, "_recommend", as_karpenter)
    monkeypatch.setattr(purchase_run, "_replay", all_placed)


@pytest.mark.usefixtures("stand_in")
def test_a_line_per_family(tutti: Tutti, tmp_path: Path) -> None:
    path = tmp_path / "karpenter.jsonl"
    path.write_bytes(b"\n".join(SMALL))
    run = tutti("conformance", str(path), "-j", "1")
    assert run.lines[0].split() == [
        "PEER", "FAMILY", "INSTANCES", "PODS", "PLACED", "PEER-PLACED", "COST/H", "PEER-COST/H", "SAVING", "MORE-PODS",
        "WORSE",
    ]  # fmt: skip
    found = rows(run)
    assert found["resources-10"] == ["2", "34", "34", "34", "$1.7280", "$1.7280", "0.00%", "0", "0"]
    assert found["total"][:4] == ["26", "449", "446", "446"]
    assert len(found) == 14
    worse = int(found["total"][-1])  # where Karpenter has runs of several costs, one of them is dearer than the best
    assert run.code == (1 if worse else 0)
    assert len(run.out.partition("\n\n")[2].splitlines()) == worse


@pytest.mark.usefixtures("stand_in")
def test_what_is_worse_is_told_with_numbers(tutti: Tutti, tmp_path: Path) -> None:
    line = json.loads(SMALL[0])
    line["expect"] |= {"costPerHourMin": 0.5, "costPerHour": 0.5}
    path = tmp_path / "karpenter.jsonl"
    path.write_text(json.dumps(line), "utf-8")
    run = tutti("conformance", str(path))
    assert (run.code, rows(run)["total"][-1]) == (1, "1")
    assert run.lines[-1] == (
        "resources-10-s00: places 10 of 10 pods on 1 new node for $0.7680/h, karpenter 10 on 1 new node for $0.5000/h "
        "(+53.60%)"
    )


@pytest.mark.usefixtures("stand_in")
def test_a_replay_tells_which_purchases_hold(tutti: Tutti, tmp_path: Path) -> None:
    path = tmp_path / "karpenter.jsonl"
    path.write_bytes(SMALL[0])
    run = tutti("conformance", str(path), "--binder", "kube-scheduler", "--time-limit", "1")
    assert run.code == 1
    assert run.lines[0].split()[-2:] == ["HOLDS", "PEER-HOLDS"]
    assert rows(run)["total"][-2:] == ["0/1", "0/1"]
    assert run.lines[-1] == "resources-10-s00: kube-scheduler gives a node to 1 of the 10 pods that the plan places"


@pytest.mark.usefixtures("stand_in")
def test_scale_down_is_not_supported_yet(tutti: Tutti, tmp_path: Path) -> None:
    path = tmp_path / "autoscaler.jsonl"
    line = {"name": "s", "family": "scale-down", "kind": "scale-down", "nodeGroups": [], "nodes": [], "expect": {}}
    path.write_text(f"{json.dumps(line)}\n", "utf-8")
    run = tutti("conformance", str(path))
    assert run.code == 0
    assert run.lines[1].split() == ["cluster-autoscaler", "scale-down", "1", *"-" * 7, "unsupported"]


@pytest.mark.usefixtures("stand_in")
def test_decisions_and_purchases_in_one_run(tutti: Tutti, tmp_path: Path) -> None:
    path = tmp_path / "mixed.jsonl"
    decisions = gzip.decompress((PURCHASES.parent / "kube-scheduler.jsonl.gz").read_bytes()).splitlines()
    path.write_bytes(b"\n".join((decisions[0], SMALL[0])))
    run = tutti("conformance", str(path), "-j", "1")
    assert run.code == 0
    first, second = run.out.split("\n\n")
    assert first.startswith("FAMILY")
    assert second.startswith("PEER")


def test_a_fault_is_seen_beside_the_others(tutti: Tutti, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(request: Request, budget: WorkBudget) -> Recommendation:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(purchase_run, "_recommend", fails)
    path = tmp_path / "karpenter.jsonl"
    path.write_bytes(SMALL[0])
    run = tutti("conformance", str(path))
    assert run.code == 1
    assert run.lines[-1] == "resources-10-s00: failed: ZeroDivisionError: of all things"


def outcome(placed: int, cost: int | None, *, peer_placed: int = 10, peer_cost: int = DOLLAR) -> PurchaseOutcome:
    return PurchaseOutcome(
        "karpenter", "f", "c", pods=12, placed=placed, peer_placed=peer_placed, cost=cost, peer_cost=peer_cost
    )


def test_what_counts_as_worse() -> None:
    assert not outcome(10, DOLLAR).worse
    assert not outcome(10, DOLLAR + 500).worse  # recorded costs are rounded
    assert outcome(10, DOLLAR + 2_000).worse
    assert outcome(9, 0).worse
    assert outcome(10, None).worse
    more = outcome(11, 2 * DOLLAR)
    assert (more.worse, more.more, is_failure(more)) == (False, True, False)
    assert "12 pods on 0 new nodes for unknown/h" in failure_line(outcome(10, None))
    assert purchase_table([more]).splitlines()[-1].split()[-3:] == ["-", "1", "0"]


def test_the_binder_and_the_limit_reach_the_recommender() -> None:
    seen = []

    def looks(request: Request, budget: WorkBudget) -> Recommendation:
        seen.append((request.options.binder, budget.seconds))
        return as_karpenter(request, budget)

    case = read_karpenter("f", 1, SMALL[0]).case
    found = run_purchase(case, PurchaseSettings(Binder.KUBE_SCHEDULER, 3.0), recommender=looks, replayer=all_placed)
    assert seen == [(Binder.KUBE_SCHEDULER, 3.0)]
    assert (found.bound, found.peer_bound, found.holds, found.peer_holds) == (1, 1, False, False)


SLOW = """
import multiprocessing, os, signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run in the background, it is ignored
multiprocessing.set_start_method("fork")  # the workers are to have the stand-in as well
from tutti.conformance import purchase_run
def slow(request, budget):
    os.write(1, b"started\\n")  # in one piece: two processes write at the same time
    time.sleep(60)
purchase_run._recommend = slow
from tutti.cli.main import main
raise SystemExit(main(["conformance", {path!r}, "-j", "2"]))
"""


def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    program = SLOW.format(path=str(PURCHASES / "karpenter.jsonl.gz"))
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          start_new_session=True) as run:  # fmt: skip
        assert run.stdout is not None
        assert run.stderr is not None
        # Both of them: one that is still being started may have a word to say about the signal.
        assert [run.stdout.readline() for _ in range(2)] == [b"started\n"] * 2
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(timeout=60) == 130
        assert run.stderr.read() == b""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(run.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    pytest.fail("a process is left")
