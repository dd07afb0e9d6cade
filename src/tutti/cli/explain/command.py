"""`tutti explain`: the verdict of every node on one pod, or the outcome of a gang and its cures.

Contract: explains a pending pod in the current cluster, a pod that has a node as if it were pending again, and a gang
as if its turn were now. Other pending pods stay pending: this command schedules nothing.
"""

from __future__ import annotations

import click

from tutti.cli import options
from tutti.cli.printing import print_data, print_text


@click.command("explain")
@click.argument("what", metavar="pod/NAME|gang/NAME")
@options.files
@options.namespace("The namespace of the pod or the gang; only needed if the name is not unique.")
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

    Prints for each node that can take the pod its score, plugin by plugin; for each other node the plugin that refused
    the pod, the reason, and whether evicting pods could help. Nodes with the same answer share a line in large
    clusters; -o wide lists them all. A pod that runs already is explained as if it were pending again.

    Prints for a gang where it would start at its turn, or how many of its pods fit where, what stops the rest, and
    which changes would let it start; Tutti has tried every cure. "gang" alone lists all gangs. In JSON and YAML cures
    have the objects that they change.

    \b
    tutti explain pod/etl-nightly -n batch -f cluster.json
    tutti explain pod/db-0 -f cluster.json -o wide
    tutti explain gang/train -f cluster.json
    """
    from tutti.app.explain import explain_target
    from tutti.app.explain_target import find_target
    from tutti.cli.loading import load_cluster, load_profile, print_note, spinner

    profile = load_profile(profile_path, scheduler_name)
    loaded = load_cluster(paths)
    target = find_target(loaded.snapshot, loaded.cluster, what, namespace=namespace)
    with spinner(f"explaining {target}") as tell:
        result = explain_target(loaded, target, profile=profile, namespace=namespace, tell=tell)
    for note in result.notes:
        print_note(note)
    if form in ("json", "yaml"):
        print_data(result.data(), form)
    else:
        print_text(result.text(wide=form == "wide"))
