"""`tutti conformance`: the table, differences in full, and exit codes."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tutti.cli
from tests.support.command_line import Run
from tests.support.paths import VECTORS

Tutti = Callable[..., Run]
SAMPLE = Path(tutti.cli.__file__).parent / "demo" / "conformance-sample.jsonl.gz"
RECORDED = VECTORS


@pytest.fixture(scope="module")
def lines() -> list[bytes]:
    return gzip.decompress(SAMPLE.read_bytes()).splitlines()


def spoilt(line: bytes) -> bytes:
    """A case whose first answer says otherwise."""
    case: dict[str, Any] = json.loads(line)
    case["expect"][0]["feasible"] = ["nowhere"]
    return json.dumps(case).encode()


def test_the_packaged_sample_is_part_of_what_was_recorded(lines: list[bytes]) -> None:
    recorded = {
        line
        for name in ("kube-scheduler", "kube-scheduler-more")
        for line in gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()).splitlines()
    }
    assert set(lines) <= recorded
    assert len({json.loads(line)["family"] for line in lines}) == 22


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_table_per_family(tutti: Tutti, jobs: str) -> None:
    run = tutti("conformance", str(SAMPLE), "--jobs", jobs)
    assert (run.code, run.err) == (0, "")
    assert run.lines[0].split() == ["FAMILY", "CASES", "DECISIONS", "EXACT", "RESULT"]
    rows = {line.split()[0]: line.split()[1:] for line in run.lines[1:]}
    assert rows["dra"][2:] == ["-", "unsupported"]
    assert rows["total"] == ["81", "843", "843", "ok"]
    assert len(rows) == 23


def test_differences_are_shown_in_full(tutti: Tutti, tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\n".join((spoilt(lines[0]), b"", lines[1], spoilt(lines[4]))))
    run = tutti("conformance", str(path), "--show", "1")
    assert run.code == 1
    rows = {line.split()[0]: line.split()[1:] for line in run.lines[1:4]}
    assert [rows[name][-1] for name in ("resources", "taints", "total")] == ["differs"] * 3
    assert int(rows["total"][1]) - int(rows["total"][2]) == 2
    case = json.loads(lines[0])
    assert f"case {case['name']}, decision 1, pod {case['expect'][0]['pod']}" in run.lines
    assert '    recorded  ["nowhere"]' in run.lines
    feasible = json.dumps(case["expect"][0]["feasible"], separators=(",", ":"))
    assert f"    tutti     {feasible}" in run.lines
    assert run.lines[-1] == "1 more differences are not shown (--show 2 shows them)"


def test_a_case_that_cannot_be_carried_out_is_a_difference(tutti: Tutti, tmp_path: Path, lines: list[bytes]) -> None:
    sequence = next(case for case in map(json.loads, lines) if case["family"] == "sequence")
    sequence["steps"].insert(0, {"apply": {"kind": "Unknown", "metadata": {"name": "x"}}})
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps(sequence), "utf-8")
    run = tutti("conformance", str(path))
    assert run.code == 1
    assert "kind 'Unknown' is not one that Tutti reads" in run.out


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"not json", "line 1: not a JSON object"),
        (
            b'{"nodes": [], "pending": []}',
            "line 1: not a recorded case of a form known here (karpenter, cluster-autoscaler, gangs, native-gangs, "
            "kube-scheduler)",
        ),
        (b'{"nodes": [], "expect": []}', "line 1: not a case: it needs nodes, and pending pods or steps"),
        (b'{"nodes": 7, "pending": [], "expect": []}', "line 1: "),
        (b"\x1f\x8b\x08", "compressed file ended"),
    ],
)
def test_bad_files(tutti: Tutti, tmp_path: Path, text: bytes, line: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(text)
    run = tutti("conformance", str(path))
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith(f"error: {path}: {line}")
    assert len(run.err.splitlines()) == 1


def test_a_bad_line_among_many(tutti: Tutti, tmp_path: Path, lines: list[bytes]) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"\n".join((*lines[:44], b"?")))
    run = tutti("conformance", str(path), "--jobs", "2")
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith(f"error: {path}: line 45: not a JSON object")


def test_files_that_are_not_there_and_standard_input(tutti: Tutti, lines: list[bytes]) -> None:
    assert tutti("conformance", "/nowhere").err == "error: /nowhere: no such file or directory\n"
    assert tutti("conformance", "-", stdin=lines[0].decode()).code == 0
    assert tutti("conformance").code == 2


def test_a_file_without_cases_is_no_success(tutti: Tutti, tmp_path: Path) -> None:
    path = tmp_path / "cases.jsonl"
    path.write_bytes(b"\n")
    run = tutti("conformance", str(path))
    assert (run.code, run.out, run.err) == (2, "", f"error: {path}: no recorded case found\n")
