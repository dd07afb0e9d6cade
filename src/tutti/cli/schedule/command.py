"""`tutti schedule`: where every pending pod goes, and why the rest cannot.

Contract: all pending pods of the input are scheduled together, in the order of kube-scheduler's queue; `-n` and `-l`
only choose which of them are shown, a gang with all of its pods if one of them is chosen. The answer goes to standard
output, remarks (what-ifs, missing kinds) to standard error. Pods that stay pending are an answer, not a fault: the exit
code is 0 unless --fail-unschedulable is given.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from tutti.cli import options

if TYPE_CHECKING:
    from tutti.cluster.cluster import Cluster
    from tutti.engine.placement.profile import Profile
    from tutti.engine.session.plan import Plan, Turn
    from tutti.kube.objects import Pod


@click.command("schedule")
@options.files
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
@click.option("--no-preemption", is_flag=True, help="Evict nobody: what does not fit stays pending.")
@click.option("--consolidation", is_flag=True, help="Move running pods to make room before evicting any.")
@click.option("--fail-unschedulable", is_flag=True, help="Exit with 1 if a pod or gang that is shown is not placed.")
def command(
    paths: tuple[str, ...],
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
) -> None:
    """Say where pending pods go, and why the rest cannot.

    Reads a cluster as kubectl prints it, places its pending pods exactly as kube-scheduler would, and prints one line
    for each: its node, or why there is none. A pod that can push others away does so, and the evictions are shown.
    Gangs, pods that name a common group, are placed whole or not at all and have a line each; -o wide lists their
    members. Nothing is ever changed in the cluster.

    \b
    tutti schedule -f cluster.json
    kubectl get nodes,pods -A -o json | tutti schedule -f -
    tutti schedule -f cluster.json -f new-job.yaml -o wide
    tutti schedule -f cluster.json --drain node-7 --add node-1=2 --scale deployment/web=20
    """
    if consolidation and no_preemption:
        raise click.UsageError("--consolidation and --no-preemption exclude each other.")
    from tutti.app.missing_kinds import missing_kinds
    from tutti.app.what_if import apply_what_ifs
    from tutti.cli.loading import busy, load_cluster, load_profile, remark
    from tutti.engine.session.passes import pending
    from tutti.engine.session.queue_order import not_considered
    from tutti.engine.session.schedule import schedule

    profile = load_profile(profile_path, scheduler_name)
    chosen = _chooser(None if all_namespaces else namespace, selector)
    snapshot, cluster = load_cluster(paths)
    notes = apply_what_ifs(
        snapshot, cluster, add=add, scale=scale, cordon=cordon, drain=drain, namespace=namespace
    )  # fmt: skip
    for note in notes:
        remark(note)
    waiting = [cluster.pod(key) for key in pending(cluster)]
    queue = _queue(cluster, waiting, profile)
    shown = {pod.key for pod in waiting if chosen(pod.key, pod.metadata.labels or {})}
    queue = [turn for turn in queue if not shown.isdisjoint(turn.pods)]
    with busy(f"placing {len(waiting):,} pods"):
        plan = schedule(cluster, profile=profile, preemption=not no_preemption, consolidation=consolidation)
    as_given = {pod.key: pod for pod in snapshot.pods}
    considered = [as_given.get(pod.key, pod) for pod in waiting if not_considered(pod, profile) is None]
    for line in missing_kinds(snapshot, considered, evictions=len(plan.evictions)):
        remark(line)
    plan = _shown(plan, shown, queue)
    _print(plan, cluster, queue, form=form, namespaced=True if all_namespaces else False if namespace else None)
    if fail_unschedulable and (plan.unschedulable or plan.nominated):
        raise click.exceptions.Exit(1)


def _chooser(namespace: str | None, selector: str | None) -> Callable[[str, dict[str, str]], bool]:
    """Say which pods the user wants to see."""
    from tutti.cli.schedule.label_query import parse_query

    query = parse_query(selector) if selector is not None else None

    def chosen(key: str, labels: dict[str, str]) -> bool:
        inside = not namespace or key.partition("/")[0] == namespace
        return inside and (query is None or query.matches(labels))

    return chosen


def _queue(cluster: Cluster, waiting: list[Pod], profile: Profile) -> list[Turn]:
    """The turns of gangs and of pods on their own, in order; none where there are no gangs to put between the pods."""
    from tutti.engine.gangs.gang_state import Gangs
    from tutti.engine.session.queue_order import turns

    if not cluster.groups.keys:
        return []
    found, _ = turns(cluster, Gangs(cluster), [pod.key for pod in waiting], profile=profile)
    return [turn for turn in found if not turn.surplus]


def _shown(plan: Plan, pods: set[str], queue: list[Turn]) -> Plan:
    """The part of a plan that is about these pods and the gangs of these turns, with the evictions they cause."""
    from tutti.engine.session.plan import Plan

    gangs = {turn.gang for turn in queue if turn.gang is not None}
    pods = pods.union(*(turn.pods for turn in queue))
    return Plan.of(
        (each for each in plan.binds if each.pod in pods),
        (each for each in plan.evictions if each.by in pods or each.by in gangs),
        (each for each in plan.unschedulable if each.pod in pods),
        (each for each in plan.not_considered if each.pod in pods),
        (each for each in plan.nominated if each.pod in pods),
        (each for each in plan.gangs if each.gang in gangs),
    )


def _print(plan: Plan, cluster: Cluster, queue: list[Turn], *, form: str, namespaced: bool | None) -> None:
    from tutti.present.gang_plan_table import GangTable, has_gangs
    from tutti.present.plan_table import names, plan_data, plan_table, summary
    from tutti.present.tables import structured

    if form in ("json", "yaml"):
        click.echo(structured(plan_data(plan), form))
    elif not plan.counts["pending"]:
        click.echo("No pending pods found.", err=True)
    elif form == "name":
        click.echo(names(plan))
    else:
        wide = form == "wide"
        if has_gangs(plan):
            table = GangTable(plan, cluster)
            lines, total = table.text(queue, wide=wide, namespaced=namespaced), table.summary()
        else:
            lines, total = plan_table(plan, cluster, wide=wide, namespaced=namespaced), summary(plan)
        if lines:
            click.echo(f"{lines}\n")
        click.echo(total)
