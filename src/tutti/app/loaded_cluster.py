"""A cluster that was loaded: its objects as data, and the columns that are asked.

Contract: whoever holds a `LoadedCluster` may ask it any number of questions; none changes it. `what_if` gives another
one, on a copy, for the length of a `with` block. `copy` is for use cases that leave the cluster changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec
from msgspec.structs import replace

from tutti.app.load import LoadedObjects
from tutti.app.what_if import WhatIf, apply_what_if
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Edit, Put, Remove
from tutti.kube.objects import Object
from tutti.kube.reading.snapshot import Snapshot, by_kind


class LoadedCluster(msgspec.Struct, frozen=True, eq=False):
    """See the module's contract."""

    snapshot: Snapshot
    """The objects, prepared as an API server and its controllers would: defaults, and the pods of workloads."""
    cluster: Cluster
    """The same as columns, without volumes about which the input says nothing."""
    input: Snapshot
    """The objects before any what-if; remarks about missing kinds are about these."""
    notes: tuple[str, ...] = ()
    """Remarks on loading, or on the what-if."""

    @staticmethod
    def of(loaded: LoadedObjects) -> LoadedCluster:
        """Build the cluster of objects that were loaded."""
        return LoadedCluster(loaded.snapshot, loaded.build_cluster(), loaded.snapshot, loaded.notes)

    @contextmanager
    def what_if(
        self,
        *,
        add: Mapping[str, int] | None = None,
        scale: Mapping[str, int] | None = None,
        cordon: Sequence[str] = (),
        drain: Sequence[str] = (),
        namespace: str | None = None,
    ) -> Iterator[LoadedCluster]:
        """The cluster with nodes added, workloads scaled, and nodes cordoned and drained.

        `add` has how many nodes like the named one to add, `scale` how many pods ``KIND/NAME`` is to have, in
        `namespace` if several have that workload. This cluster stays as it is.
        """
        asked = WhatIf(tuple((add or {}).items()), tuple((scale or {}).items()), tuple(cordon), tuple(drain))
        yield self.changed(asked, namespace=namespace)

    def changed(self, what_if: WhatIf, *, namespace: str | None = None) -> LoadedCluster:
        """A copy of the cluster with the edits of a what-if, and remarks on them as its notes."""
        cluster = self.cluster.copy()
        edits, notes = apply_what_if(self.snapshot, cluster, what_if, namespace=namespace)
        return LoadedCluster(_with_edits(self.snapshot, edits), cluster, self.input, tuple(notes))

    def copy(self) -> LoadedCluster:
        """The same, with columns of its own."""
        return replace(self, cluster=self.cluster.copy())

    def __repr__(self) -> str:
        return f"<cluster of {len(self.cluster.nodes.row_of):,} nodes and {len(self.cluster.pods.row_of):,} pods>"


def _with_edits(snapshot: Snapshot, edits: Sequence[Edit]) -> Snapshot:
    objects: dict[tuple[str, str], Object] = {(obj.KIND, obj.key): obj for obj in snapshot.all_objects()}
    for edit in edits:
        if isinstance(edit, Put):
            objects[edit.obj.KIND, edit.obj.key] = edit.obj
        elif isinstance(edit, Remove):
            objects.pop((edit.kind, edit.key), None)
    return replace(snapshot, objects=by_kind(objects.values()))
