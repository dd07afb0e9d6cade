"""A loaded cluster: its objects as data, and the `Cluster` that use cases query.

Contract: use cases do not change a `LoadedCluster`. `what_if` gives a changed copy for the length of a ``with`` block.
`copy` is for use cases that leave the cluster changed.
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
    """See the module's docstring."""

    snapshot: Snapshot
    """The objects, prepared as an API server and its controllers would: defaults, and the pods of workloads."""
    cluster: Cluster
    """The same objects as a cluster, without volumes about which the input says nothing."""
    input: Snapshot
    """The objects before any what-if; notes about missing kinds refer to these."""
    notes: tuple[str, ...] = ()
    """Lines for the user about loading, or about the what-if."""

    @staticmethod
    def of(loaded: LoadedObjects) -> LoadedCluster:
        """Build the cluster of loaded objects."""
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
        """Give the cluster with nodes added, workloads scaled, and nodes cordoned and drained.

        `add` maps a node's name to the number of nodes like it to add. `scale` maps ``KIND/NAME`` to a number of pods;
        `namespace` chooses the workload if several namespaces have one of that name. This cluster stays unchanged.
        """
        changes = WhatIf(tuple((add or {}).items()), tuple((scale or {}).items()), tuple(cordon), tuple(drain))
        yield self.with_what_if(changes, namespace=namespace)

    def with_what_if(self, what_if: WhatIf, *, namespace: str | None = None) -> LoadedCluster:
        """Return a copy of the cluster with the edits of a what-if; its notes describe the edits."""
        cluster = self.cluster.copy()
        edits, notes = apply_what_if(self.snapshot, cluster, what_if, namespace=namespace)
        return LoadedCluster(_with_edits(self.snapshot, edits), cluster, self.input, tuple(notes))

    def copy(self) -> LoadedCluster:
        """Return a copy whose `Cluster` can change independently."""
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
