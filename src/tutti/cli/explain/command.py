"""`tutti explain`: the verdict of every node on one pod, or what becomes of a gang and what would cure it.

Contract: for a pending pod why it goes where it goes, or nowhere; for a pod that has a node why there, judged as if it
were pending again today; for a gang what would happen if its turn were now. Nothing is scheduled: other pending pods
are where they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from tutti.cli import options

if TYPE_CHECKING:
    from tutti.cli.loading import LoadedCluster
    from tutti.engine.placement.engine import Engine


@click.command("explain")
@click.argument("what", metavar="pod/NAME|gang/NAME")
@options.files
@options.namespace("The namespace of the pod or the gang; only needed if several have one of this name.")
@options.output("table", "wide", "json", "yaml")
@options.profile
def command(
    what: str,
    paths: tuple[str, ...],
    namespace: str | None,
    form: str,
    profile_path: str | None,
    scheduler_name: str | None,
) -> None:
    """Give the verdict of every node on one pod, or say why a gang waits and what would cure it.

    For each node that can take the pod its score, plugin by plugin; for each that cannot the plugin that refused it,
    the reason, and whether evicting pods could help. Nodes that say the same share a line in large clusters; -o wide
    lists them all. A pod that runs already is judged as if it were pending again.

    For a gang where it would start at its turn, or how much of it fits where, what stops the rest, and what would make
    it start; every cure has been tried. "gang" alone lists all gangs. In JSON and YAML cures come with the
    objects that they change.

    \b
    tutti explain pod/etl-nightly -n batch -f cluster.json
    tutti explain pod/db-0 -f cluster.json -o wide
    tutti explain gang/train -f cluster.json
    """
    from tutti.cli.loading import load_cluster, load_profile
    from tutti.engine.placement.engine import Engine
    from tutti.present.gang_explanation_text import KINDS

    profile = load_profile(profile_path, scheduler_name)
    loaded = load_cluster(paths)
    engine = Engine(loaded.cluster, profile)
    resource, slash, name = what.rpartition("/")
    if slash and resource.lower() in KINDS:
        _explain_gang(engine, loaded, name, namespace=namespace, form=form)
    elif what.lower() in KINDS and not any(pod.metadata.name == what for pod in loaded.snapshot.pods):
        from tutti.present.gang_explanation_text import gang_list

        click.echo(gang_list(engine, namespace, form))
    else:
        _explain_pod(engine, loaded, what, namespace=namespace, form=form)


def _explain_pod(engine: Engine, loaded: LoadedCluster, what: str, *, namespace: str | None, form: str) -> None:
    from tutti.app.explain_pod import account_of, find_pod
    from tutti.app.missing_kinds import missing_kinds
    from tutti.cli.loading import remark
    from tutti.present.pod_explanation_text import account_text
    from tutti.present.tables import structured

    snapshot, cluster = loaded
    key = find_pod(snapshot, cluster, what, namespace)
    account = account_of(engine, key)
    asked = [each for each in snapshot.pods if each.key == key]
    for line in missing_kinds(snapshot, asked, evictions=len(account.evicts)):
        remark(line)
    if form in ("json", "yaml"):
        click.echo(structured(account, form))
    else:
        click.echo(account_text(account, cluster, wide=form == "wide"))


def _explain_gang(engine: Engine, loaded: LoadedCluster, name: str, *, namespace: str | None, form: str) -> None:
    from tutti.app.missing_kinds import missing_kinds
    from tutti.cli.loading import busy, remark
    from tutti.engine.explain.gang_explanation import explain_gang
    from tutti.engine.gangs.gang_state import Gangs
    from tutti.present.gang_explanation_text import find_gang, gang_data, gang_text

    snapshot, cluster = loaded
    key = find_gang(cluster, name, namespace)
    members = {cluster.pods.keys[row] for row in Gangs(cluster).rows(key)}
    with busy(f"explaining gang {name}") as tell:
        told = explain_gang(engine, key, tell)
    asked = [pod for pod in snapshot.pods if pod.key in members]
    for line in missing_kinds(snapshot, asked, evictions=len(told.outcome.evicts)):
        remark(line)
    click.echo(gang_data(told, form) if form in ("json", "yaml") else gang_text(told, wide=form == "wide"))
