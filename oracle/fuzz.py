"""Differential test: does Tutti answer fresh random cases as kube-scheduler's own plugins do?

For every seed and family the generator draws cases, the oracle (Go, kube-scheduler/) answers them, and
`tutti conformance` compares all of them; its exit code is this program's. `make fuzz-oracle` builds the oracle first.
The answered cases are kept when there is a difference, so that it can be looked into.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

HERE = Path(__file__).resolve().parent / "kube-scheduler"
GENERATOR = HERE / "gen_cases.py"
sys.path.insert(0, str(HERE))
from gen_cases import CROSSED, FAMILIES, MORE, PROFILES  # noqa: E402

UNSUPPORTED = {"dra"}
ALL_FAMILIES = [family for family in [*FAMILIES, *MORE, *PROFILES, *CROSSED] if family not in UNSUPPORTED]
LARGE_DIVISOR = 10  # a case of `large` asks as much as dozens of others


def main() -> int:
    """Answer the cases, compare, say where they are."""
    options = parse_arguments()
    folder = Path(tempfile.mkdtemp(prefix="tutti-fuzz-"))
    files = answer_all(options, folder)
    code = subprocess.run([Path(sys.executable).with_name("tutti"), "conformance", *files], check=False).returncode
    if code == 0 and not options.keep:
        shutil.rmtree(folder)
    else:
        print(f"The answered cases are in {folder}", file=sys.stderr)
    return code


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Compare Tutti with kube-scheduler on fresh random cases.")
    parser.add_argument("seeds", metavar="SEED", type=int, nargs="+", help="where the generator starts from")
    parser.add_argument("--oracle", type=Path, required=True, help="the program built from oracle/kube-scheduler")
    parser.add_argument("--cases", type=int, default=20, help="cases of each family for each seed")
    parser.add_argument("--family", action="append", choices=ALL_FAMILIES, help="only this family (may be repeated)")
    parser.add_argument("--keep", action="store_true", help="keep the answered cases also when all agree")
    return parser.parse_args()


def answer_all(options: argparse.Namespace, folder: Path) -> list[Path]:
    """Answer every family of every seed, as many at a time as there are cores."""
    work = [(seed, family) for seed in options.seeds for family in options.family or ALL_FAMILIES]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = {pool.submit(answer, options.oracle, folder, options.cases, *item): item for item in work}
        try:
            for done, task in enumerate(as_completed(tasks), 1):
                seed, family = tasks[task]
                print(f"[{done}/{len(work)}] seed {seed} {family}: {task.result()} cases answered", file=sys.stderr)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [case_file(folder, *item) for item in work]


def answer(oracle: Path, folder: Path, cases: int, seed: int, family: str) -> int:
    """Write one family's answered cases of one seed; how many they are."""
    count = max(1, cases // LARGE_DIVISOR) if family == "large" else cases
    generate = [sys.executable, str(GENERATOR), str(seed), str(count), family]
    # Some pods of the first families would not pass validation, so those are asked as they are.
    ask = [str(oracle.resolve()), *([] if family in FAMILIES else ["-admit"])]
    drawn = subprocess.run(generate, stdout=subprocess.PIPE, check=True).stdout
    done = subprocess.run(ask, input=drawn, capture_output=True, check=False)
    answered = done.stdout
    if done.returncode:
        # A rare case has no answer (kube-scheduler's own victims are not enough): the others are asked singly.
        each = (subprocess.run(ask, input=line, capture_output=True, check=False) for line in drawn.splitlines())
        answered = b"".join(one.stdout for one in each if not one.returncode)
    case_file(folder, seed, family).write_bytes(answered)
    return answered.count(b"\n")


def case_file(folder: Path, seed: int, family: str) -> Path:
    """Where one family's answered cases of one seed are."""
    return folder / f"{seed}-{family}.jsonl"


if __name__ == "__main__":
    sys.exit(main())
