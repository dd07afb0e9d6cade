"""Purchases: the gap to the optimum after some seconds, the time for large instances, and the purchases of peers.

Requests are made outside the time that is taken, from fixed seeds (instances.py, bar_instances.py). Every plan is
audited (plan_audit.py): each pod placed once or left, no gang in part, no node over its room, no limit exceeded, the
money adds up, and the engine allows every pod its node, in some order. With --check-minimal nodes are taken away in
turn, and some pod must then wait, unless the plan says that it is not minimal.
Prints what was measured beside the bar; exits with 1 if a plan does not stand the audit.

usage: purchases.py [--only NAME ...] [--instances 6] [--seconds 5 30] [--extras NAME ...] [--binder tutti] [--jobs 1]
                    [--check-minimal K] [--oracle PATH]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bar_instances import diverse, diverse_line, mixed, two_shapes
from instances import EXTRAS, draw
from msgspec.structs import replace
from plan_audit import needless, problems, unreachable
from scenario_instances import BEST, scenarios

from tutti.cluster.work.work_budget import WorkBudget
from tutti.market.money import a_month, dollars
from tutti.recommend.pipeline import recommend
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, Request, Strategy

LONG = 60.0
"""Seconds for the large instances."""
REPLAYED = 1500
"""Plans with more nodes than that are not replayed: it takes the engine long, and Karpenter's pods, which count others
in their spreads, may need an order that the audit does not find."""


class Line(NamedTuple):
    """One line of the table; `met` is None where there is no bar."""

    what: str
    bar: str = ""
    measured: str = ""
    met: bool | None = None
    outcome: str = ""


class Result(NamedTuple):
    """One plan, with how long it took and what is wrong with it."""

    answer: Recommendation
    seconds: float
    wrong: tuple[str, ...]


class Bench:
    """Makes plans, and keeps in mind whether all of them were right."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.wrong: list[str] = []

    def plan(self, name: str, request: Request, seconds: float, strategy: Strategy | None = None) -> Result:
        """Make and audit one plan."""
        options = replace(request.options, binder=Binder(self.options.binder), strategy=strategy)
        result = planned(replace(request, options=options), seconds, self.options.check_minimal)
        self.note(name, result)
        return result

    def drawn(self, family: str, extras: tuple[str, ...], seconds: float, number: int) -> list[Result]:
        """Make and audit the plans of drawn instances, in several processes if that is asked for."""
        work = [(family, seed, extras, seconds, self.options) for seed in range(number)]
        if self.options.jobs == 1:
            results = [drawn_plan(each) for each in work]
        else:
            with ProcessPoolExecutor(self.options.jobs) as pool:
                results = list(pool.map(drawn_plan, work))
        for (_, seed, *_), result in zip(work, results, strict=True):
            self.note(f"{family} {' '.join(extras)} seed {seed}, {seconds:g} s", result)
        return results

    def note(self, name: str, result: Result) -> None:
        """Remember what is wrong with a plan."""
        self.wrong += [f"{name}: {each}" for each in result.wrong]


def planned(request: Request, seconds: float, check_minimal: int) -> Result:
    """Make and audit one plan; the audit is not timed."""
    begin = time.perf_counter()
    answer = recommend(request, WorkBudget.of_seconds(seconds, time.process_time))
    took = time.perf_counter() - begin
    wrong = problems(request, answer)
    if not wrong and len(answer.nodes) <= REPLAYED:
        stuck = unreachable(request, answer)
        wrong += [f"{len(stuck)} pods cannot come to their nodes: {', '.join(stuck[:3])} ..."] if stuck else []
    if check_minimal and not wrong and answer.minimal is not False:
        wrong += [f"node {name} is not needed" for name in needless(request, answer, check_minimal)]
    return Result(answer, took, tuple(wrong))


def drawn_plan(work: tuple[str, int, tuple[str, ...], float, argparse.Namespace]) -> Result:
    """Make and audit the plan of one drawn instance."""
    family, seed, extras, seconds, options = work
    request = draw(family, seed, extras)
    request = replace(request, options=replace(request.options, binder=Binder(options.binder)))
    return planned(request, seconds, options.check_minimal)


# Gaps -----------------------------------------------------------------------------------------------------------------


def gaps(bench: Bench, family: str, extras: tuple[str, ...], number: int) -> Iterator[Line]:
    """Measure the gaps of drawn instances after some seconds."""
    with_ = f" with {', '.join(extras)}" if extras else ""
    for seconds in bench.options.seconds:
        results = bench.drawn(family, extras, seconds, number)
        known = [100 * result.answer.gap for result in results if result.answer.gap is not None]
        left = sum(len(result.answer.left) for result in results)
        outcome = f"slowest {max(result.seconds for result in results):.1f} s, {left} pods left"
        if len(known) < len(results):
            outcome += f", {len(results) - len(known)} without a gap"
        measured = "no gap"
        if known:
            measured = (
                f"mean {statistics.mean(known):.2f}, median {statistics.median(known):.2f}, max {max(known):.2f} %"
            )
        yield Line(f"{number} x {family}{with_}, {seconds:g} s: gap", "", measured, None, outcome)


def ten_pools(bench: Bench) -> Iterator[Line]:
    """Measure the gaps with ten pools."""
    yield from gaps(bench, "ten-pools", tuple(bench.options.extras), bench.options.instances)


def all_types(bench: Bench) -> Iterator[Line]:
    """Measure the gaps with all types of three families."""
    yield from gaps(bench, "all-types", tuple(bench.options.extras), bench.options.instances)


def extras(bench: Bench) -> Iterator[Line]:
    """Measure the gaps with each of the additions, on a third of the instances."""
    for extra in EXTRAS:
        yield from gaps(bench, "ten-pools", (extra,), max(1, bench.options.instances // 3))


# Bars -----------------------------------------------------------------------------------------------------------------


def large(bench: Bench) -> Iterator[Line]:
    """Plan for 4,500 pods, greedily and as well as can be."""
    request = mixed()
    for strategy in (Strategy.LEAST_COST, Strategy.OPTIMAL):
        answer, took, _ = bench.plan(f"mixed, {strategy}", request, LONG, strategy)
        what = f"4,500 pods of 100 shapes, 400 nodes, 30 pools x 3 zones: {strategy}"
        yield Line(what, "", f"{took:.2f} s", None, summary(answer))
    yield Line("  Cluster Autoscaler (2026-08) needs 40-47 CPU s for one like it: another machine, so no ratio")


def estimate(bench: Bench) -> Iterator[Line]:
    """Plan for 51,000 pods of two shapes on one pool."""
    answer, took, _ = bench.plan("two shapes", two_shapes(), LONG)
    met = len(answer.nodes) <= 2595 and not answer.left and took < 5
    measured = f"{len(answer.nodes):,} nodes, {took:.2f} s"
    yield Line("51,000 pods of two shapes, one pool", "2,595 nodes, < 5 s", measured, met, summary(answer))


def beside_karpenter(bench: Bench) -> Iterator[Line]:
    """Plan for the pods of Karpenter's own benchmark, and ask Karpenter in the same run."""
    line = diverse_line()
    request = diverse(line)
    pods = sum(group["count"] for group in json.loads(line)["pods"])
    best = None
    if bench.options.oracle:
        command = [str(bench.options.oracle.resolve()), "-bench", "-workers", "1", "-runs", "1"]
        output = subprocess.run(command, input=line, check=True, capture_output=True, text=True).stdout
        best = json.loads(output.splitlines()[-1])
        outcome = f"{best['nodes']:,} nodes, ${best['costPerHour']:,.2f} an hour, {best['unscheduled']} pods left"
        measured = f"{best['podsPerSecondWithSetup']:,.0f} pods/s"
        yield Line(f"{pods:,} diverse pods, 400 types: Karpenter", "", measured, None, outcome)
    for strategy in (Strategy.LEAST_COST, Strategy.OPTIMAL):
        answer, took, _ = bench.plan(f"diverse, {strategy}", request, LONG, strategy)
        rate = answer.placed / took
        ratio = f", {rate / best['podsPerSecondWithSetup']:.1f} x" if best else ""
        met = None
        if best and answer.cost is not None:
            met = dollars(answer.cost) <= best["costPerHour"] and len(answer.left) <= best["unscheduled"]
        what = f"{pods:,} diverse pods, 400 types: {strategy}"
        yield Line(what, "<= Karpenter's cost", f"{rate:,.0f} pods/s{ratio}", met, summary(answer))


def known(bench: Bench) -> Iterator[Line]:
    """Plan for the scenarios whose least cost is known."""
    for name, request in scenarios():
        answer, took, _ = bench.plan(name, request, min(bench.options.seconds))
        assert answer.cost is not None
        month, best = a_month(answer.cost), BEST.get(name)
        met = None if best is None else month <= best + 0.01 and not answer.left
        bar = "" if best is None else f"<= ${best:.2f} a month"
        yield Line(f"scenario {name}", bar, f"${month:.2f}, {took:.2f} s", met, summary(answer))


def summary(answer: Recommendation) -> str:
    """What a plan comes to."""
    cost = f"${dollars(answer.cost):,.4f} an hour" if answer.cost is not None else "unknown cost"
    gap = f", gap {100 * answer.gap:.2f} %" if answer.gap is not None else ""
    minimal = {True: "", False: ", not minimal", None: ", not checked to be minimal"}[answer.minimal]
    return f"{len(answer.nodes):,} nodes, {cost}{gap}, {len(answer.left)} of {answer.pods:,} pods left{minimal}"


ROWS: dict[str, Callable[[Bench], Iterator[Line]]] = {
    "ten-pools": ten_pools, "all-types": all_types, "extras": extras, "mixed": large, "two-shapes": estimate,
    "diverse": beside_karpenter, "scenarios": known,
}  # fmt: skip


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--only", nargs="+", choices=ROWS, default=list(ROWS), metavar="NAME", help=", ".join(ROWS))
    parser.add_argument("--instances", type=int, default=6, help="drawn instances of a family")
    parser.add_argument("--seconds", type=float, nargs="+", default=[5.0, 30.0], help="to think about each of them")
    parser.add_argument("--extras", nargs="+", choices=EXTRAS, default=[], metavar="NAME", help=", ".join(EXTRAS))
    parser.add_argument("--binder", choices=[each.value for each in Binder], default=Binder.TUTTI.value)
    parser.add_argument("--jobs", type=int, default=1, help="processes for drawn instances")
    parser.add_argument(
        "--check-minimal", type=int, default=0, metavar="K", help="take so many nodes of each plan away"
    )
    parser.add_argument("--oracle", type=Path, help="the program built from oracle/karpenter")
    return parser.parse_args()


def main() -> int:
    """Print the table, and what is wrong with plans."""
    options = parse_arguments()
    bench = Bench(options)
    print(f"Pods are put where {'the plan says' if options.binder == Binder.TUTTI else 'kube-scheduler puts them'}.")
    print(f"{'WHAT':66} {'BAR':>20}  {'MEASURED':>40}  {'VERDICT':7}  CAME OUT")
    for name in options.only:
        for line in ROWS[name](bench):
            verdict = "" if line.met is None else "met" if line.met else "MISSED"
            text = f"{line.what:66} {line.bar:>20}  {line.measured:>40}  {verdict:7}  {line.outcome}"
            print(text.rstrip(), flush=True)
    for each in bench.wrong:
        print(f"WRONG {each}")
    return 1 if bench.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
