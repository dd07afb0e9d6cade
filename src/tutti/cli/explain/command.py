"""`tutti explain`: the verdict of every node on one pod, or what becomes of a gang and what would cure it.

Contract: for a pending pod why it goes where it goes, or nowhere; for a pod that has a node why there, judged as if it
were pending again today; for a gang what would happen if its turn were now. Nothing is scheduled: other pending pods
are where they are.
"""

from __future__ import annotations

import click

from tutti.cli import options
from tutti.cli.printing import print_data, print_text


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
    from tutti.app.explain import explain_target
    from tutti.app.explain_target import find_target
    from tutti.cli.loading import busy, load_cluster, load_profile, remark

    profile = load_profile(profile_path, scheduler_name)
    loaded = load_cluster(paths)
    target = find_target(loaded.snapshot, loaded.cluster, what, namespace=namespace)
    with busy(f"explaining {target}") as tell:
        result = explain_target(loaded, target, profile=profile, namespace=namespace, tell=tell)
    for note in result.notes:
        remark(note)
    if form in ("json", "yaml"):
        print_data(result.data(), form)
    else:
        print_text(result.text(wide=form == "wide"))
