"""How often Tutti's decision on a gang equals brute force, in small random clusters.

usage: gang_brute_force.py [--instances 2000] [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests.support.brute_force.gang_instances import SORTS, instances
from tests.support.brute_force.gang_verdicts import verdict_of


def main() -> None:
    """Compare, print both percentages, and list the instances in which Tutti does otherwise."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--instances", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    begin, wrong, worse = time.perf_counter(), 0, 0
    for made in instances(options.seed, options.instances):
        verdict = verdict_of(made)
        wrong, worse = wrong + bool(verdict.wrong), worse + bool(verdict.worse)
        if verdict.wrong or verdict.worse:
            print(f"{made.name:12} {'WRONG' if verdict.wrong else 'WORSE'} {verdict.wrong or verdict.worse}")
    count = options.instances
    print(f"{count} instances, {time.perf_counter() - begin:.0f} s")
    print(f"feasible where trying everything says so: {100 * (count - wrong) / count:.2f} %")
    evicting = len(range(SORTS.index("evicting"), count, len(SORTS))) or 1
    print(f"victims of the least loss:                {100 * (evicting - worse) / evicting:.2f} % of {evicting}")


if __name__ == "__main__":
    main()
