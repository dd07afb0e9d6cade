"""Record what tutti prints for many commands, and compare two such records byte for byte.

    python tools/golden.py record --tutti .venv/bin/tutti --root . OUT_DIR [--only SUBSTRING] [--jobs N]
    python tools/golden.py compare OLD_DIR NEW_DIR [--messages TABLE.tsv] [--show N]

The commands are those of `golden_list`. A record has one file for each: the command line, the exit code, standard
output, standard error, and the files that the command wrote.

Contract: only the executable is used; tutti is never imported. Commands run in scratch directories of symbolic links to
the root's inputs, so no path is absolute, and nothing below the root is written. The environment is fixed, and there is
no terminal. Two clocks are frozen by a sitecustomize module: the wall clock, to which `--down` counts ages, and the CPU
clock, which would end searches on a slow machine before their counted work does. What else differs from run to run is
masked (`MASKS`).

`compare` replaces the old messages of the table by the new ones in the old record, in the order of the table, and exits
with 1 on any difference. Each line of the table is an old message, a tab and the new message; \\n stands for a newline.
Messages are also found as JSON and HTML write them.
"""

from __future__ import annotations

import argparse
import difflib
import html
import itertools
import json
import os
import re
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from golden_list import Command, Job, all_jobs

Record = tuple[Command, str]
"""A command and the content of its file."""

CLOCKS = """
import time
time.time, time.time_ns = (lambda: 1794830400.0), (lambda: 1794830400 * 10**9)  # 2026-11-16T12:00:00Z
time.process_time = lambda: 0.0
"""
CURL = "curl --silent --show-error --include --max-time 300 -H 'X-Request-Id: golden' -H 'Expect:' "
ENVIRONMENT = {"COLUMNS": "120", "LANG": "C.UTF-8", "NO_COLOR": "1", "TERM": "dumb", "TZ": "UTC"}
EXAMPLE = re.compile(r"\{example:([^}]*)\}")
MASKS = (
    (r"127\.0\.0\.1:(?!8080)\d{4,5}\b", "127.0.0.1:PORT"),  # 8080 is the default
    (r"(x-request-id: |\"requestId\":\"|, id )[0-9a-f]{12}\b", r"\1ID"),
    (r"^content-length: \d+", "content-length: N"),  # the body is there, and its messages may change
    (r"^allow: [A-Z, ]+$", "allow: METHODS"),  # Litestar keeps them in a set
    (r"\b\d+ millis\b", "N millis"),  # runTime of the service and of scalesim
    (r"(plan-generate-duration\W+)\d+ms", r"\1Nms"),
    (r"\b\d+ ms, pods ", "N ms, pods "),  # the server's log
    (r"^(\w+_(?:memory_bytes|seconds_bucket|seconds_sum)(?:\{.*\})?) [\d.e+-]+$", r"\1 N"),  # /metrics
    (r"^\(\d+\.\d s\)$", "(N s)"),  # this and the next two: tutti demo
    (r"\d+\.\d s,\n[\d,]+ a second", "N s,\nN a second"),
    (r"That was all, in \d+ s\.", "That was all, in N s."),
)
"""Patterns of what differs from run to run, and what stands there instead."""
TIMEOUT = 300.0
"""Seconds after which a command is taken to hang."""
DIFF_LINES, LONG_LINE = 24, 160
"""How many lines of a difference are printed, and from how many characters on a line is broken up for that."""


def record(tutti: Path, root: Path, out: Path, *, only: str, jobs: int) -> None:
    """Write the records of all commands with `only` in their lines; without it, those of earlier runs are removed."""
    out.mkdir(parents=True, exist_ok=True)
    for path in () if only else out.glob("*.txt"):
        path.unlink()
    started = time.monotonic()
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory() as programs, ThreadPoolExecutor(jobs) as pool:
        Path(programs, "tutti").symlink_to(tutti)
        Path(programs, "sitecustomize.py").write_text(CLOCKS, "utf-8")
        env = {**ENVIRONMENT, "PATH": f"{programs}{os.pathsep}{os.defpath}", "PYTHONPATH": programs}
        for records, took in pool.map(partial(run_job, root=root, env=env), all_jobs(root, only=only)):
            for command, text in records:
                (out / command.file_name).write_text(text, "utf-8")
                seconds[command.file_name] = took / len(records)
    for name in sorted(seconds, key=lambda name: -seconds[name])[:5]:
        print(f"{seconds[name]:6.1f} s  {name}")
    print(f"{len(seconds)} commands in {time.monotonic() - started:.0f} s: {out}")


def run_job(job: Job, root: Path, env: dict[str, str]) -> tuple[list[Record], float]:
    """Run the commands of a job; return their records, and the seconds for the job."""
    started = time.monotonic()
    with scratch_directory(root, job[0].folder) as here:
        env = {**env, "HOME": str(here)}
        records = run_server(job, here, env) if job[0].server else (run(each, here, env) for each in job)
        return list(records), time.monotonic() - started


@contextmanager
def scratch_directory(root: Path, folder: str) -> Iterator[Path]:
    """A directory with links to what is in a folder of the root, or to the inputs of the root itself."""
    with tempfile.TemporaryDirectory(prefix="golden-") as temporary:
        here = Path(temporary, "here")
        here.mkdir()
        inputs = [root / "examples", root / "tests", root.parent / "shared"]
        for path in inputs if folder == "." else (root / folder).iterdir():
            (here / path.name).symlink_to(path)
        yield here


def run(command: Command, here: Path, env: dict[str, str], *, line: str | None = None) -> Record:
    """Run a command, or a line in which its placeholders are filled in."""
    before = set(here.rglob("*"))
    try:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", (line or command.line).replace("{shared}", "shared")],
            cwd=here,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return record_of(command, "none, it hangs", {}, here)
    parts = {"stdout": done.stdout, "stderr": done.stderr}
    written = sorted(path for path in set(here.rglob("*")) - before if path.is_file())
    parts |= {str(path.relative_to(here)): path.read_bytes() for path in written}
    return record_of(command, str(done.returncode), parts, here)


def record_of(command: Command, code: str, parts: dict[str, bytes], here: Path) -> Record:
    """The record of a command that has ended."""
    texts = {name: content.decode(errors="backslashreplace") for name, content in parts.items() if content}
    told = "".join(f"--- {name}\n{text}" + "\n" * (not text.endswith("\n")) for name, text in texts.items())
    told = told.replace(str(here), "{here}").replace("\r\n", "\n")
    for pattern, instead in MASKS:
        told = re.sub(pattern, instead, told, flags=re.MULTILINE)
    place = f"asking {command.server}" if command.server else f"in {command.folder}"
    return command, f"$ {command.line}\n{place}\nexit code {code}\n{told}"


def run_server(job: Job, here: Path, env: dict[str, str]) -> Iterator[Record]:
    """Start a server, send it the requests one by one, and stop it; the last record has its log."""
    server, log = Command(job[0].server), here.parent / "log"
    with log.open("wb") as file:
        command = ["bash", "-c", server.line]
        process = subprocess.Popen(command, cwd=here, env=env, stdin=subprocess.DEVNULL, stdout=file, stderr=file)
    try:
        while not (found := re.search(r"listening on (\S+)\n", log.read_text("utf-8"))):
            if process.poll() is not None:
                raise RuntimeError(f"{server.line} has ended: {log.read_text('utf-8')}")
            time.sleep(0.02)
        for request in job:
            for shown, line in with_example_bodies(request, here, found[1]):
                yield run(shown, here, env, line=line.replace("curl ", CURL).replace("{url}", found[1]))
    finally:
        process.send_signal(signal.SIGTERM)
        code = process.wait(TIMEOUT)
    yield record_of(server, str(code), {"log": log.read_bytes()}, here)


def with_example_bodies(request: Command, here: Path, url: str) -> Iterator[tuple[Command, str]]:
    """The request and its line; if it asks for examples, one for each body that the OpenAPI document has."""
    found = EXAMPLE.search(request.line)
    if not found:
        yield request, request.line
        return
    with urllib.request.urlopen(f"{url}/openapi.json", timeout=TIMEOUT) as answer:
        (content,) = json.load(answer)["paths"][found[1]]["post"]["requestBody"]["content"].values()
    for name, example in content["examples"].items():
        body = here.parent / "body.json"
        body.write_text(json.dumps(example["value"]), "utf-8")
        shown = request.line.replace(found[0], f"{{example:{found[1]}:{name}}}")
        yield request._replace(line=shown), request.line.replace(found[0], str(body))


def compare(old: Path, new: Path, *, messages: Path | None, show: int) -> bool:
    """Print how two records differ; return whether they are the same."""
    before, after = ({path.name: path.read_text("utf-8") for path in each.glob("*.txt")} for each in (old, new))
    table = read_table(messages) if messages else []
    for old_message, _ in table:
        if not any(old_message in text for text in before.values()):
            print(f"no old output has the message {old_message!r}")
    expected = {name: replaced(text, table) for name, text in before.items()}
    differ = sorted(name for name in expected.keys() & after.keys() if expected[name] != after[name])
    for name in differ[:show]:
        old_lines, new_lines = broken_up(expected[name]), broken_up(after[name])
        diff = list(difflib.unified_diff(old_lines, new_lines, "old", "new", n=1, lineterm=""))
        print(name, old_lines[0], *diff[:DIFF_LINES], sep="\n")
        print(f"... {len(diff) - DIFF_LINES} more lines\n" if len(diff) > DIFF_LINES else "")
    for where, names in (("old", before.keys() - after.keys()), ("new", after.keys() - before.keys())):
        for name in sorted(names)[:show]:
            print(f"only in the {where} record: {name}")
    alone = len(before.keys() ^ after.keys())
    same = len(before.keys() & after.keys()) - len(differ)
    print(f"{same} commands are the same, {len(differ)} differ, {alone} are in one record only")
    return bool(same) and not differ and not alone


def read_table(path: Path) -> list[tuple[str, str]]:
    """The old and new messages of a table."""
    rows = [line.split("\t") for line in path.read_text("utf-8").splitlines() if line]
    return [(old.replace("\\n", "\n"), new.replace("\\n", "\n")) for old, new in rows]


def replaced(text: str, table: list[tuple[str, str]]) -> str:
    """A record with new messages; the command line stays."""
    command, _, told = text.partition("\n")
    for old, new in table:
        forms = ((old, new), (json.dumps(old)[1:-1], json.dumps(new)[1:-1]), (html.escape(old), html.escape(new)))
        for old_form, new_form in dict.fromkeys(forms):
            told = told.replace(old_form, new_form)
    return f"{command}\n{told}"


def broken_up(text: str) -> list[str]:
    """The lines of a text for a diff; long lines of JSON and HTML are in pieces."""
    lines = ([line] if len(line) < LONG_LINE else re.split(r"(?<=[,>;{}]) ?", line) for line in text.splitlines())
    return list(itertools.chain.from_iterable(lines))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    recording = verbs.add_parser("record", help="run all commands and write what they print")
    recording.add_argument("--tutti", type=Path, required=True, help="the executable")
    recording.add_argument("--root", type=Path, required=True, help="whose documents and inputs are used")
    recording.add_argument("--only", default="", metavar="SUBSTRING", help="only command lines that contain this text")
    recording.add_argument("--jobs", type=int, default=1, metavar="N", help="how many commands to run at once")
    recording.add_argument("out", type=Path, metavar="OUT_DIR")
    comparing = verbs.add_parser("compare", help="print how two records differ")
    comparing.add_argument("old", type=Path, metavar="OLD_DIR")
    comparing.add_argument("new", type=Path, metavar="NEW_DIR")
    comparing.add_argument("--messages", type=Path, metavar="TABLE", help="old message, tab, new message on each line")
    comparing.add_argument("--show", type=int, default=10, metavar="N", help="how many differences to print")
    given = parser.parse_args()
    if given.verb == "record":
        record(given.tutti.absolute(), given.root.resolve(), given.out, only=given.only, jobs=given.jobs)
    elif not compare(given.old, given.new, messages=given.messages, show=given.show):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
