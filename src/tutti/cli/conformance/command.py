"""`tutti conformance`: compares Tutti with recorded decisions of real programs.

Contract: prints one table with a line for each family of cases, over all files (`decision_table`). Recorded purchases
and arrivals of gangs have their own tables (`purchase_table`, `native_gang_table`). Recorded scale-downs are compared
with the model of Cluster Autoscaler: each part is a decision, and exact if some recorded run has it. Unsupported
families are listed and not counted. The exit code is 1 on any difference and on any purchase or arrival that is worse
than the recorded one, 2 for a file that cannot be read. `--model` measures the models of Karpenter and Cluster
Autoscaler instead of Tutti (`model_agreement`); then the exit code is 1 only below `--at-least`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import click

from tutti.cli.conformance.case_lines import Line, map_lines
from tutti.cli.conformance.model_agreement import measure_models
from tutti.cli.printing import print_text
from tutti.exceptions import InputError

if TYPE_CHECKING:
    from tutti.cli.conformance.decision_table import FamilyCounts
    from tutti.conformance.case_formats import AnyOutcome, Difference
    from tutti.conformance.native_gang_cases import NativeGangOutcome
    from tutti.conformance.purchase_run import PurchaseOutcome, PurchaseSettings


class ConformanceResults(NamedTuple):
    """The results over all files."""

    families: dict[str, FamilyCounts]
    shown: list[Difference]
    """The first differences, as many as --show allows."""
    purchases: list[PurchaseOutcome]
    arrivals: list[NativeGangOutcome]


@click.command("conformance")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(allow_dash=True))
@click.option("--show", default=5, show_default=True, metavar="N", help="How many differences to print in full.")
@click.option(
    "--binder",
    type=click.Choice(["kube-scheduler", "tutti"]),
    default="tutti",
    show_default=True,
    help="Which scheduler binds pods to bought nodes. With kube-scheduler both purchases are replayed with it.",
)
@click.option(
    "--time-limit",
    type=click.FloatRange(0, min_open=True),
    default=5.0,
    show_default=True,
    metavar="SECONDS",
    help="Time limit of the search for one purchase.",
)
@click.option("--model", is_flag=True, help="Measure the models of Karpenter and Cluster Autoscaler instead of Tutti.")
@click.option(
    "--at-least",
    type=click.FloatRange(0, 100),
    metavar="PERCENT",
    help="With --model: exit with 1 if anything agrees less often than that.",
)
@click.option("-j", "--jobs", type=click.IntRange(1), metavar="N", help="Processes to use; without it one per core.")
def command(
    paths: tuple[str, ...],
    *,
    show: int,
    binder: str,
    time_limit: float,
    model: bool,
    at_least: float | None,
    jobs: int | None,
) -> None:
    """Compare with recorded answers of kube-scheduler, Karpenter and Cluster Autoscaler.

    Each line of a FILE is one case as JSON (gzipped files are unpacked, - is standard input). For kube-scheduler: a
    cluster, pods to place, and its answer: feasible nodes, reasons, scores, best nodes, preemption. For the
    autoscalers: waiting pods, node pools, and the nodes bought; Tutti recommends for the same input, and placed pods
    and costs are compared. For kube-scheduler's own gang scheduling: a cluster, an arriving gang, the pods bound and
    evicted; their numbers are compared. Exits with 1 if any answer differs, or any purchase or arrival is worse. With
    --model the models of the autoscalers, with which tutti recommend compares itself, answer instead.
    """
    from tutti.conformance.purchase_run import PurchaseSettings
    from tutti.recommend.records.request import Binder

    processes = jobs or os.cpu_count() or 1
    if at_least is not None and not model:
        raise click.UsageError("--at-least needs --model")
    if model:
        measure_models(paths, show=show, jobs=processes, at_least=at_least)
        return
    settings = PurchaseSettings(Binder(binder), time_limit)
    results = _run(paths, show, jobs=processes, settings=settings)
    if not any((results.families, results.purchases, results.arrivals)):
        raise InputError("no recorded case found", file=", ".join(paths))
    wrong = _print_decisions(results) + _print_purchases(results.purchases, apart=bool(results.families))
    wrong += _print_arrivals(results.arrivals, show, apart=bool(results.families or results.purchases))
    if wrong:
        raise click.exceptions.Exit(1)


def _print_decisions(results: ConformanceResults) -> int:
    """Print the table of decisions and the first differences; return the number of differences."""
    from tutti.cli.conformance.decision_table import decision_table, difference_text

    if not results.families:
        return 0
    print_text(decision_table(results.families))
    for difference in results.shown:
        click.echo(f"\n{difference_text(difference)}")
    wrong = sum(family.decisions - family.exact for family in results.families.values() if family.supported)
    if wrong > len(results.shown):
        click.echo(f"\n{wrong - len(results.shown):,} more differences are not shown (--show {wrong} shows them)")
    return wrong


def _print_purchases(outcomes: Sequence[PurchaseOutcome], *, apart: bool) -> int:
    """Print the table of purchases and the failures; return the number of failures."""
    from tutti.cli.conformance.purchase_table import failure_line, is_failure, purchase_table

    if not outcomes:
        return 0
    print_text(("\n" if apart else "") + purchase_table(outcomes))
    failures = [each for each in outcomes if is_failure(each)]
    if failures:
        click.echo()
    for each in failures:
        click.echo(failure_line(each))
    return len(failures)


def _print_arrivals(outcomes: Sequence[NativeGangOutcome], show: int, *, apart: bool) -> int:
    """Print the table of arrivals, all that are worse, and the first that are better; return the number of worse."""
    from tutti.cli.conformance.native_gang_table import arrival_line, native_gang_table

    if not outcomes:
        return 0
    print_text(("\n" if apart else "") + native_gang_table(outcomes))
    worse, better = [each for each in outcomes if each.worse], [each for each in outcomes if each.better]
    if worse or better[:show]:
        click.echo()
    for each in (*worse, *better[:show]):
        click.echo(arrival_line(each))
    if len(better) > show:
        click.echo(f"\nnot shown: {len(better) - show:,} more arrivals that are better (--show {len(better)})")
    return len(worse)


def _run(paths: Sequence[str], show: int, *, jobs: int, settings: PurchaseSettings) -> ConformanceResults:
    """Run all files; return the counts, the first differences, the purchases and the arrivals."""
    from tutti.cli.conformance.decision_table import FamilyCounts
    from tutti.cli.loading import spinner
    from tutti.conformance.native_gang_cases import NativeGangOutcome
    from tutti.conformance.purchase_run import PurchaseOutcome

    results = ConformanceResults({}, [], [], [])
    with spinner("running cases") as tell:
        for cases, outcome in enumerate(_outcomes(paths, jobs, settings), start=1):
            if isinstance(outcome, PurchaseOutcome):
                results.purchases.append(outcome)
            elif isinstance(outcome, NativeGangOutcome):
                results.arrivals.append(outcome)
            else:
                family = results.families.setdefault(outcome.family, FamilyCounts())
                family.cases += 1
                family.decisions += outcome.decisions
                family.supported = outcome.supported
                family.exact += outcome.decisions - len(outcome.different)
                results.shown.extend(outcome.different[: max(show - len(results.shown), 0)])
            tell(f"{cases:,} done, {outcome.family}")
    return results


def _outcomes(paths: Sequence[str], jobs: int, settings: PurchaseSettings) -> Iterator[AnyOutcome]:
    """Run every line of every file, in order."""
    yield from map_lines(partial(_run_line, settings), paths, jobs, is_slow=_is_purchase)


def _is_purchase(line: Line) -> bool:
    from tutti.conformance.case_formats import format_of

    return format_of(*line).purchase


def _run_line(settings: PurchaseSettings, line: Line) -> AnyOutcome:
    """Run one case; scale-downs run with the model, because Tutti's own scale-down is meant to differ."""
    from tutti.conformance.case_formats import CaseOutcome, Difference, run_line
    from tutti.conformance.models import check_line
    from tutti.conformance.scale_down_cases import has_scale_down_answer

    if not has_scale_down_answer(line[2]):
        return run_line(*line, settings)
    checks = check_line(*line)
    wrong = tuple(
        Difference(each.case, place, "", {each.part: (each.recorded, each.ours)})
        for place, each in enumerate(checks)
        if not each.agrees
    )
    return CaseOutcome(checks[0].family, len(checks), different=wrong)
