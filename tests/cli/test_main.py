"""The entry point: help, completion, errors and exit codes, closed pipes and interrupts."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import INPUT, Run, interrupted
from tests.support.documents import node, pod
from tutti import __version__
from tutti.cli.main import COMMANDS, cli

Tutti = Callable[..., Run]
Write = Callable[..., str]
PROGRAM = str(Path(sys.executable).with_name("tutti"))


def test_help_lists_every_command_without_importing_any(tutti: Tutti) -> None:
    done = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True, check=True)
    assert all(name in done.stdout for name in COMMANDS)
    code = "import sys, tutti.cli.main; print(*sorted({'numpy', 'msgspec', 'rich', 'yaml'} & set(sys.modules)))"
    heavy = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert heavy.stdout.split() == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help_that_starts_as_the_list_says(tutti: Tutti, name: str) -> None:
    run = tutti(name, "--help")
    assert run.code == 0
    assert run.err == ""
    command = cli.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert command.name == name


def test_version(tutti: Tutti) -> None:
    assert __version__ in tutti("version").out
    assert tutti("--version").out.strip() == __version__


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_ask_tutti(tutti: Tutti, shell: str) -> None:
    run = tutti("completion", shell)
    assert run.code == 0
    assert f"_TUTTI_COMPLETE={shell}_complete" in run.out


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("tutti sch", "schedule"),
        ("tutti schedule --dr", "--drain"),
        ("tutti schedule -o w", "wide"),
        ("tutti completion f", "fish"),
    ],
)
def test_completion_offers_commands_options_and_values(words: str, offered: str) -> None:
    env = {**os.environ, "_TUTTI_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    done = subprocess.run([PROGRAM], env=env, capture_output=True, text=True, check=True)
    assert f"plain,{offered}" in done.stdout.splitlines()


def test_bash_accepts_the_completion_script(tutti: Tutti) -> None:
    script = tutti("completion", "bash").out
    assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_wrong_usage_is_two(tutti: Tutti) -> None:
    assert tutti("nonsense").code == 2
    assert tutti("schedule").code == 2
    run = tutti("schedule", "-f", "x", "-o", "prose")
    assert run.code == 2
    assert "'prose' is not one of" in run.err


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("broken.json", '{"kind": "List", "items": [', "JSON is malformed: it ends too early"),
        ("empty.yaml", "", "there is no object in it"),
        ("words.yaml", "just words", "expected Kubernetes objects, got str"),
        ("kindless.json", '{"metadata": {}}', "object 1: it has no kind"),
    ],
)
def test_a_bad_file_is_one_line_that_names_it(tutti: Tutti, tmp_path: Path, name: str, text: str, line: str) -> None:
    path = tmp_path / name
    path.write_text(text, "utf-8")
    run = tutti("schedule", "-f", str(path))
    assert (run.code, run.out) == (2, "")
    assert run.err == f"error: {path}: {line}\n"


def test_a_bad_field_is_named_with_its_object(tutti: Tutti, write: Write) -> None:
    path = write(node("a"), pod("p", cpu="one"))
    for command in (("schedule",), ("explain", "pod/p")):
        run = tutti(*command, "-f", path)
        field = "spec.containers[0].resources.requests.cpu"
        assert (run.code, run.out) == (2, "")
        assert (
            run.err
            == f'error: {path}: pod default/p: {field}: "one" is not a quantity (want for example 500m or 2Gi)\n'
        )


def test_an_object_that_an_api_server_would_refuse_is_named_with_its_file(tutti: Tutti, write: Write) -> None:
    new = pod("p", priorityClassName="urgent")
    del new["metadata"]["uid"], new["status"]
    path = write(
        node("a"), {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "x"}}, new
    )
    run = tutti("schedule", "-f", path)
    assert run.code == 2
    assert run.err == f'error: {path}: pod default/p: spec.priorityClassName: there is no PriorityClass "urgent"\n'


def test_missing_files_and_empty_directories(tutti: Tutti, tmp_path: Path) -> None:
    run = tutti("schedule", "-f", str(tmp_path / "nowhere.json"))
    assert run.err == f"error: {tmp_path}/nowhere.json: no such file or directory\n"
    run = tutti("schedule", "-f", str(tmp_path))
    assert (run.code, run.err) == (2, f"error: {tmp_path}: no .json, .yaml or .yml file in this directory\n")


def test_a_reader_that_goes_away_is_no_fault(write: Write) -> None:
    path = write(node("a", cpu="1000"), *(pod(f"p-{number:04}", cpu="1m") for number in range(2000)))
    line = f"{PROGRAM} schedule -f {path} | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["NAME", "STATUS", "NODE", "MESSAGE"]
    assert done.returncode in (0, 141)
    assert "Traceback" not in done.stderr
    assert "Error" not in done.stderr


@pytest.mark.parametrize(("where", "code"), [(">&-", 0), ("2>&-", 0), (">/dev/full", 2)])
def test_output_that_cannot_be_written_leaves_no_traceback(write: Write, where: str, code: int) -> None:
    line = f"{PROGRAM} schedule -f {write(node('a'), pod('p'))} {where}"
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
    full = "error: cannot write the answer: no space left on device\n"
    assert (done.returncode, done.stderr) == (code, full if code else "")


@pytest.mark.parametrize(
    ("command", "at"),
    [
        ("schedule -f -", INPUT),
        ("explain p -f -", INPUT),
        ("conformance -", INPUT),
        ("demo", "tutti.cli.demo.cluster:build_cluster"),
    ],
)
def test_ctrl_c_is_130_without_a_word(command: str, at: str) -> None:
    run = interrupted(*command.split(), at=at)
    assert (run.code, run.err.strip()) == (130, b"")
