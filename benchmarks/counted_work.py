"""Compares counted work with CPU time, and checks that plans are the same every time.

The recommender's budget is work, counted at rough rates (`cluster.work.meter`). For drawn instances, one for each line,
this prints the seconds that were counted, the CPU seconds that passed, and their ratio; then the plan is asked for once
more, with a busy process beside it for each core, and must be the same to the byte. Exits with 1 if one is not.

usage: counted_work.py [--seconds 5] [--instances 3] [--binder kube-scheduler tutti]
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator

import msgspec
from bar_instances import mixed
from instances import draw
from msgspec.structs import replace

from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.records.request import Binder, DownOptions, Request

EXTRAS: tuple[tuple[str, ...], ...] = ((), ("spread", "gangs", "existing"), ("limits", "anti-affinity", "daemons"))


def instances(number: int) -> Iterator[tuple[str, Request]]:
    """Instances of all kinds, the large one last."""
    for family in ("ten-pools", "all-types"):
        for extras in EXTRAS:
            for seed in range(number):
                yield f"{family} {seed} {', '.join(extras)}", draw(family, seed, extras)
    yield "4,500 pods, 100 shapes, 400 nodes", mixed()


def planned(request: Request, seconds: float) -> tuple[bytes, float, float]:
    """The plan, the seconds counted and the CPU seconds that passed."""
    budget, began = WorkBudget.of_seconds(seconds, time.process_time), time.process_time()
    plan = msgspec.json.encode(make_recommendation(request, budget))
    return plan, budget.meter.seconds, time.process_time() - began


@contextlib.contextmanager
def busy() -> Iterator[None]:
    """A machine that has something else to do, too."""
    others = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(os.cpu_count() or 1)]
    for other in others:
        other.start()
    try:
        yield
    finally:
        for other in others:
            other.kill()


def _spin() -> None:
    while True:
        pass


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--instances", type=int, default=3, metavar="N")
    parser.add_argument("--binder", nargs="+", default=[each.value for each in Binder])
    options = parser.parse_args()
    ratios, differing = [], 0
    print(f"{'BINDER':15} {'INSTANCE':45} {'COUNTED':>8} {'CPU':>8} {'RATIO':>6}  AGAIN, BESIDE OTHERS")
    for binder in options.binder:
        for name, request in instances(options.instances):
            down_request = replace(request, options=replace(request.options, binder=Binder(binder), down=DownOptions()))
            plan, counted, took = planned(down_request, options.seconds)
            with busy():
                again, *_ = planned(down_request, options.seconds)
            ratios.append(counted / took)
            differing += plan != again
            same = "the same" if plan == again else "DIFFERENT"
            print(f"{binder:15} {name:45} {counted:8.2f} {took:8.2f} {counted / took:6.2f}  {same}", flush=True)
    print(f"\nratios {min(ratios):.2f} to {max(ratios):.2f}, {differing} of {len(ratios)} plans differed")
    return int(differing > 0)


if __name__ == "__main__":
    sys.exit(main())
