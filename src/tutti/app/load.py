"""Load objects from file contents, parsed documents, dicts or lists of an API server.

Contract: pure: no file is opened and nothing is printed. Every function reads all of its input or raises `InputError`.
A CronJob in a manifest starts one run; a CronJob in a dump starts none, because the dump has its Jobs. Bytes are
decoded once. Only `build_cluster` builds a cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.kube.admission.prepare import prepare_files
from tutti.kube.admission.unknown_volumes import drop_unknown_volumes
from tutti.kube.reading.decode import DecodedFile
from tutti.kube.reading.loader import load_decoded, load_files
from tutti.kube.reading.parsed_file import ParsedFile, parse_file
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.sources import Source
from tutti.market.planning_cluster import build_cluster

_FINISHED = ("Succeeded", "Failed")


class LoadedObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a cluster, with defaults and the pods of workloads, as the scheduler would see them."""

    snapshot: Snapshot
    """All objects; ``skipped`` counts objects of ignored kinds."""
    schedulable: Snapshot
    """The same objects, with pods that lack the volumes about which the input says nothing."""
    notes: tuple[str, ...] = ()
    """Lines for the user: ambiguous input, ignored kinds, pods on unknown nodes."""

    def build_cluster(self) -> Cluster:
        """Return a new cluster of the schedulable objects."""
        return build_cluster(self.schedulable.all_objects())


def load_sources(sources: Iterable[Source], *, name: str) -> LoadedObjects:
    """Load the objects of files that were read; `name` stands for all files together in errors."""
    return load_parsed(map(parse_file, sources), name=name)


def load_parsed(files: Iterable[ParsedFile], *, name: str) -> LoadedObjects:
    """Load the objects of files that were parsed; `name` stands for all files together in errors."""
    return _prepared(load_files(files), name)


def load_lists(lists: Iterable[DecodedFile], *, name: str) -> LoadedObjects:
    """Load the objects that an API server has listed; `name` stands for the server in errors."""
    return _prepared(load_decoded(lists), name)


def _prepared(objects: Snapshot, name: str) -> LoadedObjects:
    snapshot = prepare_files(objects, file=name)
    notes = (*snapshot.notes, *_skipped_note(snapshot), *_unknown_nodes_note(snapshot))
    return LoadedObjects(snapshot=snapshot, schedulable=drop_unknown_volumes(snapshot), notes=notes)


def _skipped_note(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.skipped:
        kinds = ", ".join(f"{count} {kind}" for kind, count in snapshot.skipped.items())
        yield f"ignored objects of kinds that do not affect scheduling: {kinds}"


def _unknown_nodes_note(snapshot: Snapshot) -> Iterator[str]:
    nodes = {node.metadata.name for node in snapshot.nodes}
    names = (pod.spec.node_name for pod in snapshot.pods if pod.status.phase not in _FINISHED)
    count = sum(bool(name) and name not in nodes for name in names)
    if count == 1:
        yield "1 pod is on a node that is not in the input, and counts nowhere"
    elif count:
        yield f"{count:,} pods are on nodes that are not in the input, and count nowhere"
