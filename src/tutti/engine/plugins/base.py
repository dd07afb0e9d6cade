"""What a plugin is: one rule of kube-scheduler, its filter, its score and its reasons side by side.

Row plugins judge a node by the node itself and the pods on it: their answers can be kept per spec class and renewed for
the rows that changed. Cluster plugins also look at other nodes: they are prepared for every pod. Both answer for any
array of rows, one row included, at that cost.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tutti.cluster.classes import SpecClass
from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints, Rows
from tutti.cluster.labels import LabelClass
from tutti.engine.verdict import Reason, Refusal, Variants
from tutti.kube.objects import Pod

Selection = Rows | NDArray[np.intp] | slice
MAX_SCORE = 100


class Asked:
    """The pod that is asked about."""

    __slots__ = ("cluster", "labels", "pod", "row", "spec")

    def __init__(self, cluster: Cluster, row: int) -> None:
        pod = cluster.pods.objects[row]
        assert pod is not None
        self.cluster, self.row, self.pod = cluster, row, pod
        self.spec: SpecClass = cluster.spec_of(row)
        self.labels: LabelClass = cluster.label_class_of(row)

    @property
    def own_labels(self) -> dict[str, str]:
        """The pod's labels, all of them."""
        return self.pod.metadata.labels or {}


class Plugin:
    """A rule; `refusals[i - 1]` is what its answer i means."""

    name: ClassVar[str]
    refusals: ClassVar[tuple[Refusal, ...]] = ()

    def reason(self, asked: Asked, row: int, variant: int) -> Reason:
        """Say why a row was refused with an answer."""
        refusal = self.refusals[variant - 1]
        return Reason(self.name, (refusal.message,), refusal.resolvable)

    def tally(self, asked: Asked, rows: Rows, variant: int) -> dict[str, int]:
        """Count the messages for the rows that were refused with an answer."""
        return {self.refusals[variant - 1].message: len(rows)}

    def resolvable(self, variant: int) -> bool:
        """Say whether evicting pods could help where this was answered."""
        return self.refusals[variant - 1].resolvable


class Window:
    """Some rows of the node columns, gathered once for all plugins that look at them."""

    __slots__ = ("_alloc", "_used", "cluster", "nodes", "rows")

    def __init__(self, cluster: Cluster, rows: Selection) -> None:
        self.cluster, self.nodes, self.rows = cluster, cluster.nodes, rows
        self._alloc: Ints | None = None
        self._used: Ints | None = None

    def __len__(self) -> int:
        return self.nodes.size if isinstance(self.rows, slice) else len(self.rows)

    @property
    def alloc(self) -> Ints:
        """What the nodes offer, a column per resource."""
        if self._alloc is None:
            alloc, rows = self.nodes.alloc, self.rows
            self._alloc = alloc if isinstance(rows, slice) else alloc.take(rows, axis=1)
        return self._alloc

    @property
    def used(self) -> Ints:
        """What the pods on the nodes take, a column per resource."""
        if self._used is None:
            used, rows = self.nodes.used, self.rows
            self._used = used if isinstance(rows, slice) else used.take(rows, axis=1)
        return self._used


class RowPlugin(Plugin):
    """A rule that looks at one node at a time; None stands for "nothing to say" (the plugin is skipped)."""

    sees_pods: ClassVar[bool] = False
    """Whether the answer depends on the pods on the node, and not only on the node."""
    normalised: ClassVar[str] = ""
    """How raw scores become 0..100: "" they are already, "up" more is better, "down" less is better."""

    def filter(self, window: Window, spec: SpecClass) -> Variants | None:
        """Answer for each row, or None when every node passes."""
        return None

    def score(self, window: Window, spec: SpecClass) -> Ints | None:
        """Score each row, or None when the plugin does not score this pod."""
        return None

    def version(self, cluster: Cluster, spec: SpecClass) -> int:
        """Change when the scores of rows that nobody touched have changed."""
        return 0


class Prepared:
    """A cluster plugin's knowledge for one pod, as of the moment it was prepared."""

    def filter(self, rows: Selection) -> Variants:
        """Answer for each row."""
        raise NotImplementedError

    def fork(self) -> Prepared:
        """Give a copy that `moved` may change."""
        return self

    def moved(self, pod: Pod, spec: SpecClass, row: int, number: int) -> None:
        """Pretend that a pod came to a row (1) or left it (-1)."""


class ClusterPlugin(Plugin):
    """A rule that looks at the whole cluster."""

    def prepare(self, asked: Asked) -> Prepared | Reason | None:
        """Look at the cluster for a pod: None when every node passes, a reason when none can."""
        return None

    def score(self, asked: Asked, prepared: Prepared | None, rows: Rows) -> Ints | None:
        """Score the feasible rows from 0 to 100, or None when the plugin does not score this pod."""
        return None


def normalise(raw: Ints, direction: str) -> Ints:
    """Scale raw scores of the feasible nodes to 0..100 as kube-scheduler's default normalisation does."""
    top = int(raw.max()) if len(raw) else 0
    if top == 0:
        return np.full(len(raw), MAX_SCORE if direction == "down" else 0, dtype=np.int64)
    scaled = MAX_SCORE * raw // top
    return MAX_SCORE - scaled if direction == "down" else scaled
