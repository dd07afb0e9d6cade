"""`tutti replay`: same plans, differences, notes, exit codes, and the examples of docs/replay.md."""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import INPUT, Run, interrupted
from tests.support.paths import EXAMPLES, ROOT
from tests.support.recorded_days import make_morning
from tutti.engine.session.policy import Policy
from tutti.kube.reading.sources import Source
from tutti.wire.session_policy import policy_of

Tutti = Callable[..., Run]
MORNING = EXAMPLES / "replay" / "morning.jsonl.gz"
NO_PREEMPTION = str(EXAMPLES / "replay" / "no-preemption.yaml")
DOCUMENT = (ROOT / "docs" / "replay.md").read_text("utf-8")


@pytest.fixture
def recording(tmp_path: Path) -> Callable[[bytes], str]:
    """Write lines into a file, and give its path."""

    def written(text: bytes) -> str:
        path = tmp_path / "recording.jsonl"
        path.write_bytes(text)
        return str(path)

    return written


def morning() -> bytes:
    return gzip.decompress(MORNING.read_bytes())


def test_the_example_is_what_this_version_records() -> None:
    command = "python -m tests.support.recorded_days examples/replay/morning.jsonl.gz"
    assert gzip.decompress(make_morning()) == morning(), f"run `{command}`, and put its outputs into docs/replay.md"


def test_the_same_plans_are_exit_code_0(tutti: Tutti, recording: Callable[[bytes], str]) -> None:
    run = tutti("replay", str(MORNING))
    assert (run.code, run.err) == (0, "")
    assert "all plans are the same" in run.out
    assert tutti("replay", recording(morning())) == run, "with gzip or without"
    assert tutti("replay", "-", stdin=morning().decode()) == run
    assert tutti("replay", str(MORNING), "--policy", "live") == run


def test_another_policy_differs(tutti: Tutti) -> None:
    run = tutti("replay", str(MORNING), "--policy", NO_PREEMPTION, "-o", "json")
    assert run.code == 1
    answer = run.json
    assert answer["same"] + answer["different"] == answer["sessions"]
    assert (answer["recorded"]["evictions"], answer["replayed"]["evictions"]) == (9, 0)
    first = answer["differences"][0]
    evicted = next(each for each in first["pods"] if each["pod"] == "default/train-0-0")
    assert evicted["recorded"] == {"status": "Evicted", "node": "node-0004", "message": "default/train-12"}
    assert evicted["replayed"] is None
    waiting = first["pods"][0]["replayed"]
    assert waiting["status"] == "Pending"
    assert "Insufficient cpu" in waiting["message"]


def test_another_profile_differs(tutti: Tutti) -> None:
    profile = str(EXAMPLES / "getting-started" / "profile.yaml")
    run = tutti("replay", str(MORNING), "--profile", profile, "--show", "2")
    assert run.code == 1
    assert run.lines[0].split() == ["SESSION", "TIME", "POD", "RECORDED", "REPLAYED"]
    cells = ["1", "2026-03-02T08:00:30Z", "default/train-2-1", "Placed on node-0001", "Placed on node-0000"]
    assert re.split(r" {3,}", run.lines[1]) == cells
    assert run.lines[4].endswith("more lines (--show 35 shows all)")


# Notes ----------------------------------------------------------------------------------------------------------------


def test_a_truncated_recording_is_replayed_with_a_note(tutti: Tutti, recording: Callable[[bytes], str]) -> None:
    note = "note: the last line is not complete and was left out; the recorder may have crashed\n"
    for data in (morning()[:-5], MORNING.read_bytes()[:3_000]):
        run = tutti("replay", recording(data))
        assert (run.code, run.err) == (0, note)
        assert "all plans are the same" in run.out


def test_what_has_no_effect_is_a_note(tutti: Tutti, recording: Callable[[bytes], str]) -> None:
    header, *others = morning().splitlines()
    broken = [
        b'{"type":"Put","kind":"Pod","object":{"metadata":{"name":"p"},"spec":{"priority":1,"containers":'
        b'[{"name":"main","resources":{"requests":{"cpu":"much"}}}]}}}',
        b'{"type":"Unbind","pod":"default/nobody"}',
        b'{"type":"Unbind","pod":"default/nobody"}',
    ]
    run = tutti("replay", recording(b"\n".join((header, *broken, *others)) + b"\n"))
    assert run.code == 0
    contradicting, aside = run.err.splitlines()
    assert contradicting == (
        "note: 2 edits contradict the cluster and had no effect; "
        "the first: line 3: pod 'default/nobody' is not in the cluster"
    )
    assert aside.startswith('note: Pod default/p was set aside: "much" is not a quantity')


def test_a_recorded_profile_is_a_note(tutti: Tutti, recording: Callable[[bytes], str]) -> None:
    data = morning().replace(b'{"session":{', b'{"session":{"profile":"packing.yaml",')
    run = tutti("replay", recording(data))
    assert (run.code, run.err) == (0, "note: recorded with profile packing.yaml; pass it with --profile\n")
    assert tutti("replay", recording(data), "--scheduler-name", "default-scheduler").err == ""


def test_a_recording_without_sessions_says_so(tutti: Tutti, recording: Callable[[bytes], str]) -> None:
    run = tutti("replay", recording(b'{"recording":"tutti","version":1}\n'))
    assert (run.code, run.out) == (0, "0 sessions, 0 edits: there is no plan to compare\n")


# Bad input ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "not a recording: there is no complete line in it"),
        ('{"kind": "List"}\n', "line 1: not a recording: the header is missing"),
        ('{"recording":"tutti","version":1}\n{"type":"Bind"}\n', "line 2: pod: the field is missing"),
        (
            '{"recording":"tutti","version":1}\n{"session":{"policy":{},"plan":{}}}\n',
            "line 2: the session has no time, and its policy needs one",
        ),
        (
            '{"recording":"tutti","version":1}\n{"session":{"now":1,"policy":{},"plan":{"colour":1}}}\n',
            "line 2: session.plan.counts: the field is missing",
        ),
    ],
)
def test_a_bad_recording_is_one_line(tutti: Tutti, recording: Callable[[bytes], str], text: str, line: str) -> None:
    path = recording(text.encode())
    run = tutti("replay", path)
    assert (run.code, run.out, run.err) == (2, "", f"error: {path}: {line}\n")


def test_files_that_are_not_there(tutti: Tutti) -> None:
    run = tutti("replay", "nowhere.jsonl")
    assert (run.code, run.err) == (2, "error: nowhere.jsonl: no such file or directory\n")
    run = tutti("replay", str(MORNING), "--policy", "lifo")
    names = "live, fifo, backfill, reservation, offline"
    assert (run.code, run.err) == (2, f"error: --policy lifo: neither a policy ({names}) nor a file\n")


def test_ctrl_c_is_quiet() -> None:
    ended = interrupted("replay", "-", at=INPUT)
    assert (ended.code, ended.err) == (130, b"")


# The document ---------------------------------------------------------------------------------------------------------


def test_the_format_of_the_document_can_be_replayed(tutti: Tutti, recording: Callable[[bytes], str]) -> None:
    (block,) = re.findall(r"^```json\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    run = tutti("replay", recording(block.encode()))
    assert (run.code, run.err) == (1, ""), "the plan of the document has no counts"
    assert run.out.startswith("SESSION")


def test_the_policy_of_the_document_is_the_default() -> None:
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    assert policy_of(Source("policy.yaml", block.encode())) == Policy()


def test_the_program_of_the_document_runs() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    names: dict[str, object] = {}
    exec(block, names)
    assert names["lines"] == [b'{"recording":"tutti","version":1}\n']
