"""Draw seeded mutants of the engine, the recommender and the readers, and run them against the tests of their package.

    python tools/mutants.py draw --root REPO --seed 12 --count 60 LIST.json
    python tools/mutants.py run LIST.json --root REPO --out RESULTS.json [--ids 3,4] [--timeout 900]
    python tools/mutants.py relocate LIST.json --root REPO NEW_LIST.json
    python tools/mutants.py compare BEFORE.json AFTER.json

`run` tests one mutant at a time in a scratch copy of the repository, saves after each mutant, and skips mutants that
RESULTS.json has already. `relocate` serves after files, functions or variables got new names: for each mutant that no
longer applies, it proposes the most similar statement that allows the same change. A person must review each proposal.
"""

from __future__ import annotations

import argparse
import difflib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from mutation_sites import Module, Mutant, all_mutants, draw

IMPORT_CHECK = """
import subprocess, sys, tutti
print(tutti.__file__, flush=True)
subprocess.run([sys.executable, "-c", "import tutti; print(tutti.__file__)"], check=True)
"""
SURVIVED, KILLED, TIMEOUT, ERROR, MISSING = "survived", "killed", "timeout", "error", "missing"
FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+\.py\b.*?)(?: - .*)?$", re.MULTILINE)
WALL_FACTOR = 20
"""Wall-clock limit of a test run, in CPU limits: other work on the machine must not kill a mutant."""
MIN_SCORE = 1.6
"""Similarity (0 to 2.5) below which `relocate` proposes nothing."""


def read_list(path: Path) -> list[Mutant]:
    """Read a list of mutants."""
    return [Mutant(**entry) for entry in json.loads(path.read_bytes())]


def write(path: Path, value: Any) -> None:
    """Replace a JSON file in one step."""
    partial = path.with_name(path.name + ".part")
    partial.write_text(json.dumps(value, indent=1) + "\n")
    partial.replace(path)


class Scratch:
    """A copy of the repository in which tests run with the copy's source instead of the installed one."""

    def __init__(self, root: Path, folder: Path, python: Path, timeout: int) -> None:
        self.root, self.repo, self.python, self.timeout = root, folder / "repo", str(python), timeout
        self.log, self.report = folder / "output.txt", folder / "report.xml"
        listed = self.git("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        for name in filter(None, listed.split("\0")):
            if (root / name).is_file():
                (self.repo / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(root / name, self.repo / name)
        source = str(self.repo / "src")
        # Same examples each time: fixed seeds and no example database. CI=true selects the derandomized profile.
        fixed = {"CI": "true", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
        self.env = {**os.environ, **fixed, "PYTHONPATH": source}
        # Bytecode is checked by the source's hash: a mutant of the same size and time is still noticed.
        self.output("-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src")
        imported = self.output("-c", IMPORT_CHECK).split()
        if len(imported) != 2 or not all(name.startswith(source) for name in imported):
            sys.exit(f"the tests would import {imported}, not {source}")

    def git(self, *arguments: str) -> str:
        """Return what git says about the repository."""
        return subprocess.check_output(["git", *arguments], cwd=self.root, text=True)

    def output(self, *arguments: str) -> str:
        """Return the output of a Python command in the copy."""
        return subprocess.check_output([self.python, *arguments], cwd=self.repo, env=self.env, text=True)

    def pytest(self, *arguments: str, timeout: int) -> tuple[int | None, str]:
        """Run pytest and return its exit code, or None after the time limit, and its output."""
        # `python -m` puts the copy's root on sys.path for `from tests...`.
        options = ["-q", "-p", "no:cacheprovider", "-n0", "--hypothesis-seed=0"]
        command = [self.python, "-m", "pytest", *options, *arguments]
        with self.log.open("wb") as log:
            process = subprocess.Popen(
                command, cwd=self.repo, env=self.env, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (timeout, timeout + 10))
                code: int | None = process.wait(timeout * WALL_FACTOR)
            except subprocess.TimeoutExpired:
                code = None
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
        return None if code == -signal.SIGXCPU else code, self.log.read_text(errors="replace")

    def baseline(self, suite: str) -> dict[str, Any]:
        """Run tests without a mutant: return the failing ones and the seconds for each test file."""
        options = (f"--junitxml={self.report}", "-o", "junit_family=xunit1")
        code, text = self.pytest(*options, suite, timeout=10 * self.timeout)
        if code not in {0, 1}:
            sys.exit(f"{suite} does not run without a mutant: {text[-2000:]}")
        seconds: dict[str, float] = {}
        for case in ElementTree.parse(self.report).iter("testcase"):
            file = case.get("file", suite)
            seconds[file] = round(seconds.get(file, 0) + float(case.get("time", 0)), 2)
        return {"failing": FAILED.findall(text), "seconds": seconds}

    def test(self, mutant: Mutant, baselines: list[dict[str, Any]]) -> dict[str, Any]:
        """Run the tests of one mutant, the quickest files first, until the first failure."""
        changed = Module(self.repo, mutant.path).apply(mutant) if (self.repo / mutant.path).is_file() else None
        if changed is None:
            return {"status": MISSING}
        seconds = {file: value for baseline in baselines for file, value in baseline["seconds"].items()}
        skipped = [f"--deselect={test}" for baseline in baselines for test in baseline["failing"]]
        file, start = self.repo / mutant.path, time.monotonic()
        original = file.read_bytes()
        try:
            file.write_text(changed)
            code, text = self.pytest("-x", *skipped, *sorted(seconds, key=seconds.__getitem__), timeout=self.timeout)
        finally:
            file.write_bytes(original)
        # Pytest's codes: 0 passed, 4 usage error, 5 no tests; everything else is a failure or a crash.
        status = {None: TIMEOUT, 0: SURVIVED, 4: ERROR, 5: ERROR}.get(code, KILLED)
        failed = FAILED.findall(text)
        first = failed[0] if failed else text[-500:] if status in {KILLED, ERROR} else ""
        return {"status": status, "test": first, "seconds": round(time.monotonic() - start, 1)}


def run(arguments: argparse.Namespace) -> None:
    """Test the mutants that have no result yet; `--ids` tests the given ones again."""
    os.nice(19)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    ids = {int(number) for number in arguments.ids.split(",")} if arguments.ids else set()
    results = json.loads(arguments.out.read_bytes()) if arguments.out.exists() else {"baselines": {}, "mutants": {}}
    root = arguments.root.resolve()
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        python = (arguments.python or root / ".venv/bin/python").absolute()
        scratch = Scratch(root, Path(folder), python, arguments.timeout)
        results["commit"] = scratch.git("rev-parse", "HEAD").strip()
        for mutant in read_list(arguments.list):
            if mutant.id not in ids if ids else str(mutant.id) in results["mutants"]:
                continue
            for suite in mutant.suites():
                if suite not in results["baselines"]:
                    results["baselines"][suite] = scratch.baseline(suite)
                    write(arguments.out, results)
            result = scratch.test(mutant, [results["baselines"][suite] for suite in mutant.suites()])
            results["mutants"][str(mutant.id)] = result
            write(arguments.out, results)
            print(mutant.id, mutant.path, mutant.function, mutant.change, json.dumps(result), flush=True)


def relocate(mutants: list[Mutant], root: Path) -> list[Mutant]:
    """Return the mutants with a new place for those that no longer apply; print every proposal."""
    pool = all_mutants(root, ["."])
    moved: list[Mutant] = []
    for old in mutants:
        if (root / old.path).is_file() and Module(root, old.path).apply(old) is not None:
            moved.append(old)
            continue

        def score(new: Mutant, old: Mutant = old) -> float:
            texts = ((old.before, new.before), (old.after, new.after))
            ratio = sum(difflib.SequenceMatcher(None, *pair, autojunk=False).ratio() for pair in texts)
            same_name = old.function.split(".")[-1] == new.function.split(".")[-1]
            return ratio + 0.3 * same_name + 0.2 * (Path(old.path).name == Path(new.path).name)

        scores = [(score(new), new) for new in pool if (new.kind, new.change) == (old.kind, old.change)]
        value, best = max(scores, key=lambda pair: pair[0], default=(0.0, old))
        print(f"\n{old.id}: {old.path} {old.function}\n{old.before}")
        if value < MIN_SCORE:
            print("-> nothing similar: edit the entry by hand")
            moved.append(old)
            continue
        print(f"-> {best.path} {best.function} (similarity {value:.2f} of 2.5)\n{best.before}\n=>\n{best.after}")
        moved.append(replace(best, id=old.id, tests=old.tests, note=f"from {old.path} {old.function}, {value:.2f}"))
    return moved


def compare(before: Path, after: Path) -> int:
    """Print the mutants killed before and not after; return the number."""
    old, new = (json.loads(path.read_bytes())["mutants"] for path in (before, after))
    lost = [i for i in old if old[i]["status"] in {KILLED, TIMEOUT}]
    print(f"{len(lost)} of {len(old)} killed before")
    lost = [i for i in lost if new.get(i, {"status": MISSING})["status"] not in {KILLED, TIMEOUT}]
    for i in lost:
        print(f"{i}: {new.get(i, {}).get('status', MISSING)} after; killed before by {old[i]['test']}")
    return len(lost)


def main() -> None:
    """Read the command line; see the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, files in {"draw": ["out"], "run": ["list"], "relocate": ["list", "out"], "compare": ["a", "b"]}.items():
        command = commands.add_parser(name)
        for file in files:
            command.add_argument(file, type=Path)
        if name != "compare":
            command.add_argument("--root", type=Path, required=True)
        if name == "draw":
            command.add_argument("--seed", type=int, default=12)
            command.add_argument("--count", type=int, default=60)
        if name == "run":
            command.add_argument("--out", type=Path, required=True)
            command.add_argument("--ids", default="")
            command.add_argument("--timeout", type=int, default=900, help="CPU seconds for each mutant")
            command.add_argument("--python", type=Path, help="interpreter instead of ROOT/.venv/bin/python")
    arguments = parser.parse_args()
    if arguments.command == "draw":
        write(arguments.out, [asdict(m) for m in draw(arguments.root, arguments.seed, arguments.count)])
    elif arguments.command == "run":
        run(arguments)
    elif arguments.command == "relocate":
        write(arguments.out, [asdict(m) for m in relocate(read_list(arguments.list), arguments.root)])
    else:
        sys.exit(1 if compare(arguments.a, arguments.b) else 0)


if __name__ == "__main__":
    main()
