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
@options.files_or_context
@options.namespace(
    "The namespace of the pod or the gang. Without it, with -f: only needed if the name is not unique; "
    "in a cluster: that of the context."
)
@options.output("table", "wide", "json", "yaml")
@options.profile
def command(
    what: str,
    given: options.ClusterInput,
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

    The scheduler is that of the pod's or the gang's schedulerName, unless --scheduler-name names another.

    \b
    tutti explain pod/etl-nightly -n batch
    tutti explain pod/etl-nightly -n batch -f cluster.json
    tutti explain pod/db-0 -f cluster.json -o wide
    tutti explain gang/train -f cluster.json
    """
    from tutti.app.explain import explain_target
    from tutti.app.explain_target import find_target, scheduler_of
    from tutti.app.scheduler_profile import scheduler_profile
    from tutti.cli.loading import load_cluster, print_note, read_configuration, spinner
    from tutti.client.needed_kinds import kinds_to_explain

    configuration = read_configuration(profile_path)
    profile = scheduler_profile(configuration, scheduler_name)  # an unusable profile fails before the cluster is read
    loaded = load_cluster(given, kinds_to_explain())
    target = find_target(loaded.snapshot, loaded.cluster, what, namespace=namespace or _context_namespace(given))
    if scheduler_name is None:
        profile = scheduler_profile(configuration, preferred=scheduler_of(loaded.cluster, target))
    with spinner(f"explaining {target}") as tell:
        result = explain_target(loaded, target, profile=profile, namespace=namespace, tell=tell)
    for note in result.notes:
        print_note(note)
    if form in ("json", "yaml"):
        print_data(result.data(), form)
    else:
        print_text(result.text(wide=form == "wide"))


def _context_namespace(given: options.ClusterInput) -> str | None:
    """Return the namespace of the context, as kubectl does; None for files, where a unique name needs no namespace."""
    if not given.is_live:
        return None
    from tutti.cli.cluster_reading import context_namespace

    return context_namespace(given)
