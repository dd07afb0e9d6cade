"""`tutti recommend`: which nodes to buy for pending pods, what they cost, and a lower bound of the cost.

Contract: buys nothing and changes nothing. The answer goes to standard output, notes to standard error. Pods that stay
pending are not an error: the exit code is 0 unless --fail-unschedulable is given. Only this module reads the clock; the
layers below get a work budget made from --time-limit.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tutti.cli import options
from tutti.cli.printing import print_data, print_text
from tutti.cli.recommend import down_options

if TYPE_CHECKING:
    from tutti.app.recommend.compare_with_peers import ComparisonResult
    from tutti.app.recommend.recommendation_result import RecommendationResult
    from tutti.recommend.records.recommendation import Recommendation
    from tutti.recommend.records.request import RecommendOptions, Request, ResourceWeights

_FILE = click.Path(allow_dash=True)
_MAX_WEIGHT = 1000


def _time_limit(context: click.Context, option: click.Parameter, text: str) -> float:
    """Return the seconds of a duration: 5, 0.5, 2s, 1m30s."""
    from tutti.exceptions import InputError
    from tutti.kube.durations import parse_duration

    try:
        seconds = parse_duration(text) / 1_000_000
    except InputError as error:
        raise click.BadParameter(f"{error.problem}.", context, option) from None
    if not seconds:
        raise click.BadParameter(f"{text} is not a duration above 0.", context, option)
    return seconds


def _weights(context: click.Context, option: click.Parameter, text: str) -> dict[str, int]:
    """Return ``cpu=6,gpu=20`` as numbers by name; a weight that is not named keeps its default."""
    given: dict[str, int] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, number = part.partition("=")
        if name not in ("cpu", "memory", "gpu"):
            raise click.BadParameter(f'there is no weight "{name}" (want cpu, memory or gpu).', context, option)
        if not (number.isascii() and number.isdigit()) or int(number) > _MAX_WEIGHT:
            problem = f'"{number}" is not a whole number from 0 to {_MAX_WEIGHT:,}.'
            raise click.BadParameter(f"{name}: {problem}", context, option)
        if name in given:
            raise click.BadParameter(f"{name} is there twice.", context, option)
        given[name] = int(number)
    if len(given) == 3 and not any(given.values()):
        raise click.BadParameter("one of them must be above 0.", context, option)
    return given


@click.command("recommend")
@options.files_or_context
@click.option(
    "--pools",
    type=_FILE,
    metavar="FILE",
    help="What can be bought: node pools, Karpenter NodePools, or what describe-auto-scaling-groups prints. Without it "
    "the NodePools of the input, else pools inferred from its nodes.",
)
@click.option("--prices", type=_FILE, metavar="FILE", help="Prices as CSV; they come before the packaged ones of EC2.")
@click.option("--region", metavar="REGION", help="The cloud's region, if zones and nodes do not have it.")
@click.option(
    "--objective",
    type=click.Choice(("cost", "pods", "nodes")),
    default="cost",
    show_default=True,
    help="What the plan minimises, after it has placed as many pods as possible.",
)
@click.option(
    "--strategy",
    type=click.Choice(("optimal", "least-cost", "least-waste", "most-pods")),
    default="optimal",
    show_default=True,
    help="How nodes are chosen: by optimisation with a proven bound, or one by one by a score.",
)
@click.option(
    "--binder",
    type=click.Choice(("kube-scheduler", "tutti")),
    default="kube-scheduler",
    show_default=True,
    help="Which scheduler binds pods to the new nodes; Tutti binds them as the plan says.",
)
@click.option(
    "--weights",
    default="cpu=6,memory=1,gpu=20",
    show_default=True,
    metavar="NAME=N,...",
    callback=_weights,
    help="Weights of a core, a GiB and a GPU in the scores.",
)
@click.option(
    "--time-limit",
    default="5s",
    show_default=True,
    metavar="TIME",
    callback=_time_limit,
    help="How long to search for a better plan, measured by counted work, so that every run gives the same plan.",
)
@options.output("table", "wide", "json", "yaml", "name", "advice")
@options.namespace("Of the pods that stay pending, show those of this namespace; the nodes are for the pods of all.")
@click.option("--apply", "applied", is_flag=True, help="Also show which pod is on which node after the purchase.")
@down_options.down
@click.option(
    "--compare", "compare", is_flag=True, help="Also show which nodes other autoscalers would buy and remove."
)
@click.option("--report", metavar="FILE", help="Write an HTML page with a drawing of the plan, and the comparison.")
@click.option("--fail-unschedulable", is_flag=True, help="Exit with 1 if a pod that is shown stays pending.")
def command(
    pools: str | None,
    prices: str | None,
    region: str | None,
    objective: str,
    strategy: str,
    binder: str,
    weights: dict[str, int],
    time_limit: float,
    form: str,
    namespace: str | None,
    applied: bool,
    down: bool,
    down_settings: dict[str, Any],
    compare: bool,
    report: str | None,
    fail_unschedulable: bool,
    given: options.ClusterInput,
) -> None:
    """Say which nodes to buy for pending pods, which nodes to remove, and what that costs.

    Reads the cluster of the current kubeconfig context, or a dump of a cluster (-f), tries the nodes that each pool
    could add in each zone, and prints how many nodes to add where, so that as many pending pods as possible get a node
    at the least cost. The answer has a lower bound of the cost, and the reason for every pod that stays pending. Buys
    nothing and does not change the cluster.

    \b
    tutti recommend
    tutti recommend --context staging --pools pools.yaml --down
    tutti recommend -f cluster.json
    tutti recommend -f cluster.json --pools pools.yaml --prices prices.csv
    tutti dump | tutti recommend -f - -o wide
    tutti recommend -f cluster.json -f new-job.yaml --pools pools.yaml --apply
    tutti recommend -f cluster.json --pools pools.yaml --compare --report plan.html
    tutti recommend -f cluster.json --pools pools.yaml --down
    """
    from tutti.app.recommend.recommendation_request import with_snapshot_time
    from tutti.app.recommend.recommendation_result import RecommendationResult
    from tutti.cli.recommend.advice import advice_text, check_constraint
    from tutti.cli.recommend.inputs import read_inputs

    _check(
        [*given.paths, pools, prices], form=form, namespace=namespace, applied=applied, compare=compare, report=report
    )
    chosen = _options(objective, strategy, binder=binder, weights=weights)
    if down:
        from msgspec.structs import replace

        chosen = replace(chosen, down=down_options.down_of(down_settings))
    inputs = read_inputs(
        given, pools=pools, prices=prices, region=region or "", options=chosen, seconds=time_limit
    )  # fmt: skip
    request = with_snapshot_time(inputs.request, down_options=chosen.down)
    if form == "advice":
        check_constraint(inputs.constraint)
    answer = _recommend(request, inputs.seconds)
    comparison = _compare(answer, request, time_limit) if compare or report is not None else None
    result = RecommendationResult(
        recommendation=answer, request=request, comparison=comparison if compare else None, namespace=namespace
    )
    if form == "advice":
        click.echo(advice_text(answer, request, constraint=inputs.constraint))
    else:
        _print(result, form=form, applied=applied)
    if report is not None:
        _write(report, result, comparison=comparison, paths=[*_names(given), pools, prices])
    if fail_unschedulable and result.pending:
        raise click.exceptions.Exit(1)


def _check(
    paths: Sequence[str | None], *, form: str, namespace: str | None, applied: bool, compare: bool, report: str | None
) -> None:
    """Refuse options that exclude each other, before any file is read."""
    if paths.count("-") > 1:
        raise click.UsageError("only one of -f, --pools and --prices can be - (standard input).")
    if compare and form == "name":
        raise click.UsageError("--compare has no names to print: it does not go with -o name.")
    if (compare or applied or namespace) and form == "advice":
        raise click.UsageError("a ScalingAdvice has no place for --compare, --apply and -n.")
    if report is not None:
        from tutti.cli.recommend.write_report import check_report_path

        check_report_path(report)


def _print(result: RecommendationResult, *, form: str, applied: bool) -> None:
    """Print the answer in one of its formats; parts that were not requested are left out."""
    if form in ("json", "yaml"):
        print_data(result.data(applied=applied), form)
        return
    if result.is_empty:
        click.echo("No pending pods found.", err=True)
    if form == "name":
        if lines := result.names():
            click.echo(lines)
        return
    parts = list(result.tables(wide=form == "wide", applied=applied))
    if parts:
        print_text("\n\n".join(parts))


def _write(
    report: str, result: RecommendationResult, *, comparison: ComparisonResult | None, paths: Sequence[str | None]
) -> None:
    from tutti.cli.recommend.write_report import write_report
    from tutti.present.report.page import Report
    from tutti.recommend.pending_pods import not_considered

    sources = ["standard input" if path == "-" else path for path in paths if path]
    compared, removals = ((), None) if comparison is None else (comparison.purchases, comparison.removals)
    request = result.request
    write_report(report, Report(request, result.recommendation, compared, not_considered(request), sources, removals))


def _names(given: options.ClusterInput) -> tuple[str, ...]:
    """Return the names of the input on the report: its files, or the context."""
    return given.paths or (f"context {given.context}" if given.context else "the current context",)


def _options(objective: str, strategy: str, *, binder: str, weights: dict[str, int]) -> RecommendOptions:
    from tutti.recommend.records.request import Binder, Objective, RecommendOptions, ResourceWeights, Strategy

    chosen: ResourceWeights = ResourceWeights(**weights)
    return RecommendOptions(
        objective=Objective(objective), strategy=Strategy(strategy), binder=Binder(binder), weights=chosen
    )  # fmt: skip


def _recommend(request: Request, seconds: float) -> Recommendation:
    """Return the recommendation, and print its notes."""
    from tutti.app.recommend.make_recommendation import make_recommendation
    from tutti.cli.loading import print_note, spinner
    from tutti.cluster.work.work_budget import WorkBudget
    from tutti.recommend.pending_pods import pending_pods

    with spinner(f"looking for nodes for {len(pending_pods(request)):,} pods") as tell:
        answer = make_recommendation(request, WorkBudget.of_seconds(seconds, time.process_time), tell=tell)
    for note in (*answer.notes, *(answer.down.notes if answer.down is not None else ())):
        print_note(note)
    return answer


def _compare(answer: Recommendation, request: Request, seconds: float) -> ComparisonResult:
    from tutti.app.recommend.compare_with_peers import compare_with_peers
    from tutti.cli.loading import spinner
    from tutti.cluster.work.work_budget import WorkBudget

    def budget(limit: float) -> WorkBudget:
        return WorkBudget.of_seconds(limit, time.process_time)

    with spinner("comparing") as tell:
        return compare_with_peers(answer, request, seconds, budget=budget, tell=tell)
