"""`tutti schedule`: where every pending pod goes, and why the rest cannot.

Contract: schedules all pending pods of the input together (`app.schedule`); `-n` and `-l` only choose which pods are
shown. The answer goes to standard output, notes (what-ifs, missing kinds) to standard error. Pods that stay pending are
not an error: the exit code is 0 unless --fail-unschedulable is given.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tutti.cli import options
from tutti.cli.printing import print_data, print_text

if TYPE_CHECKING:
    from tutti.app.schedule import ScheduleResult


@click.command("schedule")
@options.files_or_context
@options.output("table", "wide", "json", "yaml", "name")
@options.namespace("Show the pods of this namespace only; without it those of all. Also where --scale looks.")
@click.option("-A", "--all-namespaces", is_flag=True, help="Show the pods of all namespaces, and a column for them.")
@click.option(
    "-l", "--selector", metavar="QUERY", help="Show only pods with these labels, for example app=web,tier!=db."
)
@click.option("--drain", multiple=True, metavar="NODE", help="What if this node were drained? May be repeated.")
@click.option("--cordon", multiple=True, metavar="NODE", help="What if this node were cordoned? May be repeated.")
@click.option("--add", multiple=True, metavar="NODE=COUNT", help="What if there were COUNT more nodes like this one?")
@click.option("--scale", multiple=True, metavar="KIND/NAME=COUNT", help="What if this workload had COUNT pods?")
@options.profile
@click.option("--no-preemption", is_flag=True, help="Evict no pods: pods that do not fit stay pending.")
@click.option("--consolidation", is_flag=True, help="Move running pods to make room before evicting any.")
@click.option("--fail-unschedulable", is_flag=True, help="Exit with 1 if a pod or gang that is shown is not placed.")
def command(
    form: str,
    namespace: str | None,
    all_namespaces: bool,
    selector: str | None,
    drain: tuple[str, ...],
    cordon: tuple[str, ...],
    add: tuple[str, ...],
    scale: tuple[str, ...],
    profile_path: str | None,
    scheduler_name: str | None,
    no_preemption: bool,
    consolidation: bool,
    fail_unschedulable: bool,
    given: options.ClusterInput,
) -> None:
    """Say where pending pods go, and why the rest cannot.

    Reads the cluster of the current kubeconfig context, or a dump of a cluster (-f), places its pending pods exactly as
    kube-scheduler would, and prints one line for each: its node, or why there is none. Pods may evict pods of lower
    priority; the evictions are shown. Gangs, pods that name a common group, are placed whole or not at all and have a
    line each; -o wide lists their members. Never changes the cluster.

    \b
    tutti schedule
    tutti schedule --context staging --drain node-7
    tutti dump | tutti schedule -f - -f new-job.yaml -o wide
    kubectl get nodes,pods -A -o json | tutti schedule -f -
    tutti schedule -f cluster.json --drain node-7 --add node-1=2 --scale deployment/web=20
    """
    if consolidation and no_preemption:
        raise click.UsageError("--consolidation and --no-preemption exclude each other.")
    from tutti.app.schedule import pending_count, schedule_pods, selector_of
    from tutti.cli.loading import load_cluster, load_profile, print_note, spinner
    from tutti.cli.schedule.what_if_options import what_if_of
    from tutti.client.needed_kinds import kinds_to_schedule

    profile = load_profile(profile_path, scheduler_name)
    query = selector_of(selector)
    what_if = what_if_of(add=add, scale=scale, cordon=cordon, drain=drain)
    loaded = load_cluster(given, kinds_to_schedule(scales=bool(scale)))
    if any(what_if):
        loaded = loaded.with_what_if(what_if, namespace=namespace)
        for note in loaded.notes:
            print_note(note)
    with spinner(f"placing {pending_count(loaded):,} pods"):
        result = schedule_pods(
            loaded,
            profile,
            preemption=not no_preemption,
            consolidation=consolidation,
            namespace=None if all_namespaces else namespace,
            selector=query,
        )
    for note in result.notes:
        print_note(note)
    _print(result, form=form, namespaced=True if all_namespaces else False if namespace else None)
    if fail_unschedulable and (result.unschedulable or result.nominated):
        raise click.exceptions.Exit(1)


def _print(result: ScheduleResult, *, form: str, namespaced: bool | None) -> None:
    if form in ("json", "yaml"):
        print_data(result.data(), form)
    elif result.is_empty:
        click.echo(result.text(), err=True)
    elif form == "name":
        click.echo(result.names())
    else:
        print_text(result.text(wide=form == "wide", namespaced=namespaced))
