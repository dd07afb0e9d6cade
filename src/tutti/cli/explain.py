"""`tutti explain`: the verdict of every node on one pod.

Contract: for a pending pod why it goes where it goes, or nowhere; for a pod that has a node why there, judged as if it
were pending again today. Nothing is scheduled: other pending pods are where they are.
"""

from __future__ import annotations

import click

from tutti.cli import options


@click.command("explain")
@click.argument("pod", metavar="pod/NAME")
@options.files
@options.namespace("The pod's namespace; only needed if pods of this name are in several.")
@options.output("table", "wide", "json", "yaml")
@options.profile
def command(
    pod: str,
    paths: tuple[str, ...],
    namespace: str | None,
    form: str,
    profile_path: str | None,
    scheduler_name: str | None,
) -> None:
    """Give the verdict of every node on one pod.

    For each node that can take the pod its score, plugin by plugin; for each that cannot the plugin that refused it,
    the reason, and whether evicting pods could help. Nodes that say the same share a line in large clusters; -o wide
    lists them all. A pod that runs already is judged as if it were pending again.

    \b
    tutti explain pod/etl-nightly -n batch -f cluster.json
    tutti explain pod/db-0 -f cluster.json -o wide
    """
    from tutti.cli.account import account_of, find_pod
    from tutti.cli.account_table import account_text
    from tutti.cli.loading import load_cluster, load_profile, remark
    from tutti.cli.missing import missing_kinds
    from tutti.cli.tables import structured
    from tutti.engine import Engine

    profile = load_profile(profile_path, scheduler_name)
    snapshot, cluster = load_cluster(paths)
    key = find_pod(snapshot, cluster, pod, namespace)
    account = account_of(Engine(cluster, profile), key)
    asked = [each for each in snapshot.pods if each.key == key]
    for line in missing_kinds(snapshot, asked, evictions=len(account.evicts)):
        remark(line)
    if form in ("json", "yaml"):
        click.echo(structured(account, form))
    else:
        click.echo(account_text(account, cluster, wide=form == "wide"))
