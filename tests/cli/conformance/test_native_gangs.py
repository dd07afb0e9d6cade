"""`tutti conformance` on recorded arrivals of gangs: the table, the lines below it, and exit codes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import Run
from tests.support.paths import VECTORS
from tutti.cli.conformance.native_gang_table import arrival_line
from tutti.conformance.native_gang_cases import GangAnswer, NativeGangOutcome

Tutti = Callable[..., Run]
RECORDED = VECTORS / "native-gang.jsonl.gz"
LINES = {json.loads(line)["name"]: line for line in gzip.decompress(RECORDED.read_bytes()).splitlines()}
HEADERS = [
    "FAMILY", "ARRIVALS", "PODS", "BOUND", "NATIVE-BOUND", "VICTIMS", "NATIVE-VICTIMS", "SAME", "EQUAL", "MORE-PODS",
    "FEWER-VICTIMS", "WORSE",
]  # fmt: skip


def rows(run: Run) -> dict[str, dict[str, int]]:
    """The table's numbers by family and column."""
    headers, *lines = (line.split() for line in run.out.split("\n\n")[0].splitlines())
    assert headers == HEADERS
    return {line[0]: dict(zip(headers[1:], map(int, line[1:]), strict=True)) for line in lines}


def write(path: Path, *lines: bytes) -> str:
    path.write_bytes(b"\n".join(lines))
    return str(path)


def changed(name: str, **expect: Any) -> bytes:
    """A recorded line with other answers of kube-scheduler."""
    line = json.loads(LINES[name])
    line["expect"] |= expect
    return json.dumps(line).encode()


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_no_recorded_arrival_is_worse(tutti: Tutti, jobs: str) -> None:
    run = tutti("conformance", str(RECORDED), "--jobs", jobs)
    assert (run.code, run.err) == (0, "")
    found = rows(run)
    total = found.pop("total")
    assert len(found) == 10
    assert {name: sum(family[name] for family in found.values()) for name in total} == total
    assert (total["ARRIVALS"], total["PODS"], total["NATIVE-BOUND"], total["NATIVE-VICTIMS"]) == (337, 1456, 798, 43)
    assert total["WORSE"] == 0
    assert total["BOUND"] > total["NATIVE-BOUND"]
    assert total["VICTIMS"] < total["NATIVE-VICTIMS"]
    assert total["SAME"] + total["EQUAL"] + total["MORE-PODS"] + total["FEWER-VICTIMS"] == 337


def test_better_arrivals_are_listed(tutti: Tutti, tmp_path: Path) -> None:
    path = write(tmp_path / "gangs.jsonl", LINES["preempt-solo-11-57-high"], LINES["spread-11-66-g1"])
    run = tutti("conformance", path)
    assert run.code == 0
    assert run.lines[-2:] == [
        "preempt-solo-11-57-high: better: binds 4 of 4 pods with 1 victim; kube-scheduler binds 4 of 4 pods with 3 "
        "victims",
        "spread-11-66-g1: better: binds 6 of 6 pods with 0 victims; kube-scheduler binds 0 of 6 pods with 0 victims",
    ]
    assert (rows(run)["total"]["MORE-PODS"], rows(run)["total"]["FEWER-VICTIMS"]) == (1, 1)
    run = tutti("conformance", path, "--show", "1")
    assert run.lines[-1] == "not shown: 1 more arrivals that are better (--show 2)"
    assert "spread-11-66-g1:" not in run.out
    assert (
        tutti("conformance", path, "--show", "0").lines[-1] == "not shown: 2 more arrivals that are better (--show 2)"
    )


def test_worse_arrivals_are_listed_and_fail(tutti: Tutti, tmp_path: Path) -> None:
    fewer_victims = changed("preempt-rack-11-79-high", evicted=["low0-2"])
    more_pods = changed("plain-11-0-g0", bound=dict.fromkeys(("g0-0", "g0-1"), "n0"))
    run = tutti("conformance", write(tmp_path / "gangs.jsonl", fewer_victims, more_pods), "--show", "0")
    assert run.code == 1
    assert {family: row["WORSE"] for family, row in rows(run).items()} == {"preempt-rack": 1, "plain": 1, "total": 2}
    assert run.lines[-2:] == [
        "preempt-rack-11-79-high: worse: binds 4 of 4 pods with 2 victims; kube-scheduler binds 4 of 4 pods with 1 "
        "victim",
        "plain-11-0-g0: worse: binds 0 of 5 pods with 0 victims; kube-scheduler binds 2 of 5 pods with 0 victims",
    ]


def test_other_files_keep_their_tables(tutti: Tutti, tmp_path: Path) -> None:
    path = write(tmp_path / "gangs.jsonl", LINES["plain-11-0-g0"])
    run = tutti("conformance", str(VECTORS / "gang.jsonl.gz"), path, "--jobs", "1")
    assert run.code == 0
    first, second = run.out.split("\n\n")
    assert first.splitlines()[0].split() == ["FAMILY", "CASES", "DECISIONS", "EXACT", "RESULT"]
    assert second.splitlines()[0].split() == HEADERS


def test_a_line_that_cannot_be_read(tutti: Tutti, tmp_path: Path) -> None:
    path = write(tmp_path / "gangs.jsonl", LINES["plain-11-0-g0"], changed("plain-11-0-g0", evicted=["nobody"]))
    run = tutti("conformance", path)
    assert (run.code, run.out) == (2, "")
    assert run.err == f"error: {path}: line 2: expect: evicted: pod default/nobody is not in the cluster\n"


def test_a_partial_gang_and_a_failure_are_named() -> None:
    outcome = NativeGangOutcome("plain", "case", 3, GangAnswer(), GangAnswer({"default/a": "n0"}), ("default/g",))
    assert arrival_line(outcome) == (
        "case: worse: binds 1 of 3 pods with 0 victims, fewer than the minimum of gang default/g; "
        "kube-scheduler binds 0 of 3 pods with 0 victims"
    )
    failed = outcome._replace(failed="RuntimeError: broken", partial=(), tutti=GangAnswer())
    assert arrival_line(failed) == "case: worse: failed: RuntimeError: broken"
