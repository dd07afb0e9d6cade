"""`tutti dump`: writes the objects that other commands read from a cluster, as a file for their `-f`.

Contract: reads all kinds of `client.needed_kinds` before it writes the first byte to standard output, so that an error
leaves no part of a dump. Notes about kinds that cannot be read go to standard error.
"""

from __future__ import annotations

import sys

import click

from tutti.cli import options


@click.command("dump")
@options.context
def command(given: options.ClusterInput) -> None:
    """Write what tutti reads from a cluster, as a file for -f.

    Reads the cluster of the current kubeconfig context and prints a List of its objects as JSON, an object in each
    line. The dump has the fields that tutti schedule, explain and recommend read, and gives the same answers as the
    cluster. It has no environment variables, commands, arguments, probes, managedFields, and none of the annotations
    in which kubectl, Rancher, kapp and operators keep a copy of the manifest. Secrets and ConfigMaps are never read.
    Names, labels, other annotations and images stay.

    \b
    tutti dump > cluster.json
    tutti dump --context staging | gzip > staging.json.gz
    tutti dump | tutti schedule -f - -f new-job.yaml
    """
    from tutti.cli.cluster_reading import read_context
    from tutti.cli.loading import print_note, spinner
    from tutti.client.needed_kinds import kinds_to_dump
    from tutti.kube.objects import KINDS
    from tutti.wire.cluster_dump import DumpedKind, dump_chunks

    with spinner("reading") as tell:
        read = read_context(given, kinds_to_dump(), tell)
    for note in read.notes:
        print_note(note)
    kinds = (DumpedKind(each.resource.api_version, KINDS[each.resource.kind], each.objects) for each in read.kinds)
    if sys.stdout is not None:  # it is None after >&-
        sys.stdout.buffer.writelines(dump_chunks(kinds))
