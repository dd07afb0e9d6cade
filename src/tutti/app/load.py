"""From files, parsed documents or dicts to prepared objects and a cluster; commands and the Python API load with this.

Contract: pure: no file is opened, nothing is printed. Every function reads all of its input or raises `InputError`.
CronJobs of manifests start one run, CronJobs of a dump have started theirs. Bytes are decoded once. A cluster is built
only when `build_cluster` is called.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.kube.admission.prepare import prepare_files
from tutti.kube.admission.unknown_volumes import drop_unknown_volumes
from tutti.kube.objects import KINDS
from tutti.kube.reading.loader import load_files
from tutti.kube.reading.parsed_file import ParsedFile, parse_file, parsed_trees
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.sources import Source

_FINISHED = ("Succeeded", "Failed")


class LoadedObjects(msgspec.Struct, frozen=True, kw_only=True):
    """The objects of a cluster as the scheduler would see them."""

    snapshot: Snapshot
    """All objects with their volumes as given; ``skipped`` counts objects of kinds that were left out."""
    schedulable: Snapshot
    """The same, but pods are without the volumes about which the input has nothing."""
    notes: tuple[str, ...] = ()
    """Lines for the user: what was ambiguous, what was left out, which pods are on unknown nodes."""

    def build_cluster(self) -> Cluster:
        """A new cluster of the schedulable objects."""
        objects = self.schedulable.objects
        return Cluster(obj for kind in KINDS for obj in objects.get(kind, ()))


def load_sources(sources: Iterable[Source], *, name: str) -> LoadedObjects:
    """The objects of files that were read; `name` is what faults call all of them together."""
    return load_parsed(map(parse_file, sources), name=name)


def load_objects(trees: Iterable[Any], *, name: str = "objects") -> LoadedObjects:
    """Objects that are dicts already, with the names that Kubernetes' JSON has.

    Each is an object, a list of objects as the API gives it (``PodList``), or a Python list. Times may be datetimes.
    """
    return load_parsed([parsed_trees(trees, name)], name=name)


def load_parsed(files: Iterable[ParsedFile], *, name: str) -> LoadedObjects:
    """The objects of files that were parsed; `name` is what faults call all of them together."""
    snapshot = prepare_files(load_files(files), file=name)
    notes = (*snapshot.notes, *_left_out(snapshot), *_on_unknown_nodes(snapshot))
    return LoadedObjects(snapshot=snapshot, schedulable=drop_unknown_volumes(snapshot), notes=notes)


def _left_out(snapshot: Snapshot) -> Iterator[str]:
    if snapshot.skipped:
        others = ", ".join(f"{number} {kind}" for kind, number in snapshot.skipped.items())
        yield f"objects of kinds that do not matter here were left out: {others}"


def _on_unknown_nodes(snapshot: Snapshot) -> Iterator[str]:
    nodes = {node.metadata.name for node in snapshot.nodes}
    names = (pod.spec.node_name for pod in snapshot.pods if pod.status.phase not in _FINISHED)
    number = sum(bool(name) and name not in nodes for name in names)
    if number == 1:
        yield "1 pod is on a node that is not in the input, and counts nowhere"
    elif number:
        yield f"{number:,} pods are on nodes that are not in the input, and count nowhere"
