"""Differential test: does Tutti ever buy dearer than Karpenter, or leave pods behind that Karpenter finds room for?

For every seed and family the generator draws instances, the oracle (Go, karpenter/) says what Karpenter buys for them,
and `tutti conformance` compares all of them, with pods put where the plan says; its exit code is this program's.
`make fuzz-karpenter` builds the oracle first. The answered instances are kept when something is worse, so that it can
be looked into.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

HERE = Path(__file__).resolve().parent / "karpenter"
GENERATOR = HERE / "gen.py"
sys.path.insert(0, str(HERE))
from gen import FAMILIES  # noqa: E402

ALL_FAMILIES = [family for family, _ in FAMILIES]


def main() -> int:
    """Ask Karpenter, compare, say where the instances are."""
    options = parse_arguments()
    folder = Path(tempfile.mkdtemp(prefix="tutti-fuzz-karpenter-"))
    files = answer_all(options, folder)
    compare = [Path(sys.executable).with_name("tutti"), "conformance", "--binder", "tutti", *options.pass_on, *files]
    code = subprocess.run(compare, check=False).returncode
    if code == 0 and not options.keep:
        shutil.rmtree(folder)
    else:
        print(f"The answered instances are in {folder}", file=sys.stderr)
    return code


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Compare Tutti's purchases with Karpenter's on fresh instances.")
    parser.add_argument("seeds", metavar="SEED", type=int, nargs="+", help="where the generator starts from")
    parser.add_argument("--oracle", type=Path, required=True, help="the program built from oracle/karpenter")
    parser.add_argument("--family", action="append", choices=ALL_FAMILIES, help="only this family (may be repeated)")
    parser.add_argument("--pods", type=int, default=1500, help="leave out instances with more pods than that")
    parser.add_argument("--runs", type=int, default=5, help="times that Karpenter is asked; its cheapest run counts")
    parser.add_argument("--keep", action="store_true", help="keep the answered instances also when nothing is worse")
    parser.add_argument(
        "--pass-on", action="append", default=[], metavar="WORD", help="one more word for tutti conformance: --jobs=1"
    )
    return parser.parse_args()


def answer_all(options: argparse.Namespace, folder: Path) -> list[Path]:
    """Ask for every family of every seed, as many at a time as there are cores."""
    work = [(seed, family) for seed in options.seeds for family in options.family or ALL_FAMILIES]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tasks = {pool.submit(answer, options, folder, *item): item for item in work}
        try:
            for done, task in enumerate(as_completed(tasks), 1):
                seed, family = tasks[task]
                print(f"[{done}/{len(work)}] seed {seed} {family}: {task.result()} instances answered", file=sys.stderr)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [instance_file(folder, *item) for item in work]


def answer(options: argparse.Namespace, folder: Path, seed: int, family: str) -> int:
    """Write one family's answered instances of one seed; how many they are."""
    generate = [sys.executable, str(GENERATOR), "instances", "--seed", str(seed), "--family", family]
    instances = []
    for line in subprocess.run(generate, stdout=subprocess.PIPE, check=True).stdout.splitlines():
        instance = json.loads(line)
        instance["name"] += f"-seed-{seed}"  # the generator gives the same names for every seed
        if sum(group["count"] for group in instance["pods"]) <= options.pods:
            instances.append(instance)
    ask = [str(options.oracle.resolve()), "-runs", str(min(options.runs, 3)), "-domain-runs", str(options.runs)]
    asked = "".join(json.dumps(instance) + "\n" for instance in instances)
    told = subprocess.run(ask, input=asked, stdout=subprocess.PIPE, check=True, text=True).stdout
    answers = {each["name"]: each["expect"] for each in map(json.loads, told.splitlines())}
    with instance_file(folder, seed, family).open("w") as file:
        for instance in instances:
            file.write(json.dumps(instance | {"expect": answers[instance["name"]]}) + "\n")
    return len(instances)


def instance_file(folder: Path, seed: int, family: str) -> Path:
    """Where one family's answered instances of one seed are."""
    return folder / f"{seed}-{family}.jsonl"


if __name__ == "__main__":
    sys.exit(main())
