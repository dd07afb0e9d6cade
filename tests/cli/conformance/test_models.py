"""`tutti conformance --model`: the table, disagreements, the share that is asked for; and scale-downs without it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Run
from tests.support.paths import VECTORS
from tutti.conformance import models
from tutti.conformance import scale_down_cases as removals

Tutti = Callable[..., Run]
PURCHASES = VECTORS / "purchases"


def lines(name: str, *cases: str) -> list[dict[str, Any]]:
    text = gzip.decompress((PURCHASES / f"{name}.jsonl.gz").read_bytes()).splitlines()
    return [line for line in map(json.loads, text) if line["name"] in cases]


def written(path: Path, *some: dict[str, Any]) -> str:
    path.write_text("\n".join(map(json.dumps, some)), "utf-8")
    return str(path)


def rows(run: Run) -> dict[tuple[str, ...], list[str]]:
    table = [line.split() for line in run.out.split("\n\n")[0].splitlines()]
    return {tuple(row[:3]): row[3:] for row in table}


def dearer(name: str) -> dict[str, Any]:
    """A case with an answer that no model gives."""
    (line,) = lines("karpenter", name)
    expect = line["expect"]
    prices = {key: 99.0 for key in expect if key.startswith("costPerHour")}
    return line | {"expect": expect | prices}


@pytest.fixture
def down() -> dict[str, Any]:
    (line,) = lines("cluster-autoscaler", "drain-rules-01")
    return line


def test_a_line_for_every_thing_that_is_compared(tutti: Tutti, tmp_path: Path, down: dict[str, Any]) -> None:
    up = lines("cluster-autoscaler", "zones-00", "estimator-00")
    path = written(tmp_path / "some.jsonl", *up, down, *lines("karpenter", "limits-s04"), dearer("host-ports-s03"))
    run = tutti("conformance", "--model", path, "-j", "1")
    found = rows(run)
    assert run.code == 0
    assert found["MODEL", "WHAT", "FAMILY"] == ["CASES", "EXACT", "AGREE", "%"]
    whats = ("options", "choice", "purchase", "removable", "reasons", "utilization", "deleted")
    for what in whats:
        assert found["cluster-autoscaler", what, "all"][-1] == "100.0%"
    assert found["cluster-autoscaler", "removable", "drain-rules"] == ["1", "1", "1", "100.0%"]
    assert found["karpenter", "purchase", "host-ports"] == ["1", "0", "0", "0.0%"]
    assert found["karpenter", "purchase", "all"] == ["2", "1", "1", "50.0%"]
    assert found["karpenter", "settled", "all"] == ["1", "1", "1", "100.0%"]
    difference = run.out.split("\n\n")[1].splitlines()
    assert difference[0] == "karpenter, purchase, case host-ports-s03"
    assert difference[1].startswith("  recorded  [25,99000000000,0]")
    assert difference[2].startswith("  model     [25,")


def test_the_share_that_is_asked_for(tutti: Tutti, tmp_path: Path) -> None:
    path = written(tmp_path / "some.jsonl", *lines("karpenter", "limits-s04"), dearer("host-ports-s03"))
    run = tutti("conformance", "--model", path, "--at-least", "51", "--show", "0")
    assert run.code == 1
    assert run.lines[-1] == "karpenter, purchase: 1 of 2 agree, less than 51%"
    assert "not shown: 1 more (--show 1)" in run.out
    assert tutti("conformance", "--model", path, "--at-least", "50").code == 0


def test_many_lines_in_several_processes(tutti: Tutti, tmp_path: Path, down: dict[str, Any]) -> None:
    path = written(tmp_path / "some.jsonl", *[down | {"name": f"n{number}"} for number in range(45)])
    run = tutti("conformance", "--model", path, "-j", "2", "--at-least", "100")
    assert run.code == 0
    assert rows(run)["cluster-autoscaler", "reasons", "all"] == ["45", "45", "45", "100.0%"]


def test_a_model_that_fails_is_seen_beside_the_others(
    tutti: Tutti, tmp_path: Path, down: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(self: removals.ScaleDownCase) -> None:
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(removals.ScaleDownCase, "run", fails)
    run = tutti("conformance", "--model", written(tmp_path / "some.jsonl", down))
    assert run.code == 0
    assert rows(run)["cluster-autoscaler", models.FAILED, "all"] == ["1", "0", "0", "0.0%"]
    assert 'model     "ZeroDivisionError: of all things"' in run.out
    assert tutti("conformance", written(tmp_path / "some.jsonl", down)).code == 1


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ({"nodes": [], "expect": []}, "there is no model of the program that this line is of"),
        ({"nodeGroups": [], "kind": "scale-down"}, "line 1"),
        ({"nodeGroups": [], "kind": "scale-up"}, "line 1"),
        ({"nodePools": [], "instanceTypes": [], "pods": []}, "line 1"),
    ],
)
def test_lines_that_cannot_be_read(tutti: Tutti, tmp_path: Path, line: dict[str, Any], problem: str) -> None:
    run = tutti("conformance", "--model", written(tmp_path / "some.jsonl", line))
    assert run.code == 2
    assert problem in run.err


def test_files_without_a_case_and_shares_without_models(tutti: Tutti, tmp_path: Path) -> None:
    (tmp_path / "bad.jsonl").write_text("[", "utf-8")
    assert "not a JSON object" in tutti("conformance", "--model", str(tmp_path / "bad.jsonl")).err
    (tmp_path / "none.jsonl").write_text("", "utf-8")
    run = tutti("conformance", "--model", str(tmp_path / "none.jsonl"))
    assert (run.code, "no recorded case found" in run.err) == (2, True)
    run = tutti("conformance", "--at-least", "5", str(tmp_path / "none.jsonl"))
    assert (run.code, "--at-least needs --model" in run.err) == (2, True)


# Without --model ------------------------------------------------------------------------------------------------------


def test_scale_downs_are_decisions_of_the_model(tutti: Tutti, tmp_path: Path, down: dict[str, Any]) -> None:
    some = lines("cluster-autoscaler", "pdb-min-size-00", "pdb-min-size-05")
    run = tutti("conformance", written(tmp_path / "some.jsonl", down, *some))
    assert run.code == 0
    assert run.lines[1].split() == ["drain-rules", "1", "4", "4", "ok"]
    assert run.lines[2].split() == ["pdb-min-size", "2", "8", "8", "ok"]


def test_a_scale_down_that_differs(tutti: Tutti, tmp_path: Path, down: dict[str, Any]) -> None:
    down["expect"]["removable"].pop()
    down["expect"]["utilization"] = {}
    run = tutti("conformance", written(tmp_path / "some.jsonl", down))
    assert run.code == 1
    assert run.lines[1].split() == ["drain-rules", "1", "4", "2", "differs"]
    assert "\ncase drain-rules-01\n  removable\n    recorded  [" in run.out
