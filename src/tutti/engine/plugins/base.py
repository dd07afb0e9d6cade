"""What a plugin is: one rule of kube-scheduler, its filter, its score and its reasons side by side.

Row plugins judge a node by the node itself (node plugins) and by the pods on it (pod plugins): their answers can be
kept per spec class and renewed for the rows that changed. Cluster plugins also look at other nodes: they are prepared
for every pod. All answer for any array of rows, one row included, at that cost.
"""

from __future__ import annotations

from collections.abc import Hashable
from copy import copy
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import MEMORY, STORAGE, Bools, Floats, Ints, Rows
from tutti.cluster.counters.label_classes import LabelClass
from tutti.cluster.events import EVERY, Event
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.verdict import Reason, Refusal, Variants
from tutti.kube.objects import Pod

Selection = Rows | slice
MAX_SCORE = 100


class Area:
    """Some of the nodes: those that a question is narrowed to."""

    __slots__ = ("mask", "rows")

    def __init__(self, mask: Bools) -> None:
        self.mask = mask
        """For each row of the node table, whether it is inside."""
        self.rows: Rows = np.flatnonzero(mask)

    @staticmethod
    def of_row(row: int, size: int) -> Area:
        """Give the area of one row, of so many."""
        mask = np.zeros(size, dtype=bool)
        mask[row] = True
        return Area(mask)

    def __and__(self, mask: Bools) -> Area:
        return Area(self.mask & mask)


class IncomingPod:
    """The pod that is asked about."""

    __slots__ = ("cluster", "concerned", "labels", "pod", "row", "spec", "within")

    def __init__(self, cluster: Cluster, row: int, pod: Pod) -> None:
        self.cluster, self.row, self.pod = cluster, row, pod
        self.spec: SpecClass = cluster.spec_of(row)
        self.labels: LabelClass = cluster.pod_counters.label_class_of(row)
        self.concerned: list[bool] = []
        """Which of the profile's cluster plugins can have anything to say about the pod."""
        self.within: Area | None = None
        """The only nodes that are asked about; None stands for all."""

    @property
    def own_labels(self) -> dict[str, str]:
        """The pod's labels, all of them."""
        return self.pod.metadata.labels or {}


def controller(pod: Pod) -> tuple[str, str, str] | None:
    """Give the kind and name of the object that owns the pod, if one does."""
    for owner in pod.metadata.owner_references or ():
        if owner.controller:
            return owner.api_version, owner.kind, owner.name
    return None


@lru_cache(maxsize=256)
def _reason(plugin: str, refusal: Refusal) -> Reason:
    return Reason(plugin, (refusal.message,), refusal.resolvable)


class Plugin:
    """A rule; `refusals[i - 1]` is what its answer i means."""

    name: ClassVar[str]
    refusals: ClassVar[tuple[Refusal, ...]] = ()
    cures: ClassVar[frozenset[Event]] = EVERY
    """What may let a pod in that was refused, as kube-scheduler's queueing hints say it."""

    def reason(self, incoming: IncomingPod, row: int, variant: int) -> Reason:
        """Say why a row was refused with an answer."""
        return _reason(self.name, self.refusals[variant - 1])

    def tally(self, incoming: IncomingPod, rows: Rows, variant: int) -> dict[str, int]:
        """Count the messages for the rows that were refused with an answer."""
        return {self.refusals[variant - 1].message: len(rows)}

    def resolvable(self, incoming: IncomingPod, rows: Rows, variant: int) -> Bools:
        """Say for rows that were refused with an answer whether evicting pods could help there."""
        return np.full(len(rows), self.refusals[variant - 1].resolvable)


class NodeRows:
    """Some rows of the node columns, gathered once for all plugins that look at them."""

    __slots__ = ("_alloc", "_floats", "_used", "cluster", "nodes", "rows")

    def __init__(self, cluster: Cluster, rows: Selection) -> None:
        self.cluster, self.nodes, self.rows = cluster, cluster.nodes, rows
        self._alloc: Ints | None = None
        self._used: Ints | None = None
        self._floats: tuple[Floats, Floats] | bool | None = False

    def __len__(self) -> int:
        return len(range(*self.rows.indices(self.nodes.size))) if isinstance(self.rows, slice) else len(self.rows)

    @property
    def alloc(self) -> Ints:
        """What the nodes offer: a stack of columns, one per resource."""
        if self._alloc is None:
            alloc, rows = self.nodes.alloc, self.rows
            self._alloc = alloc[:, rows] if isinstance(rows, slice) else alloc.take(rows, axis=1)
        return self._alloc

    @property
    def used(self) -> Ints:
        """What the pods on the nodes take: a stack of columns, one per resource."""
        if self._used is None:
            used, rows = self.nodes.used, self.rows
            self._used = used[:, rows] if isinstance(rows, slice) else used.take(rows, axis=1)
        return self._used

    @property
    def floats(self) -> tuple[Floats, Floats] | None:
        """Cpu and memory offered, and the first five sums used, as floats: much faster to divide than integers.

        None where that would not be exact: a node lacks one of the two, or has more of it than floats count exactly.
        """
        if self._floats is False:
            if self.nodes.exact_in_floats:
                self._floats = self.alloc[: MEMORY + 1].astype(np.float64), self.used[:STORAGE].astype(np.float64)
            else:
                self._floats = None
        assert not isinstance(self._floats, bool)
        return self._floats

    def take_floats(self, floats: tuple[Floats, Floats] | None) -> None:
        """Be given the floats by somebody who has them already; nobody may write into them."""
        self._floats = floats


class NodeRow:
    """One row of the node columns, as plain numbers."""

    __slots__ = ("alloc", "balance", "cluster", "row", "used")

    def __init__(self, cluster: Cluster, row: int) -> None:
        self.cluster, self.row = cluster, row
        self.alloc: list[int] = cluster.nodes.alloc[:, row].tolist()
        self.used: list[int] = cluster.nodes.used[:, row].tolist()
        self.balance: int | None = None
        """How evenly the resources are used; NodeResourcesBalancedAllocation fills it when it first scores the node."""


class SpecColumns:
    """Spec classes that are judged together, a column each."""

    __slots__ = ("caches", "chosen", "members")

    def __init__(self, *members: SpecClass) -> None:
        self.members = list(members)
        self.caches: dict[Any, Any] = {}
        """The values of attached caches (`attached_cache`)."""
        self.chosen = slice(None)
        """Which of the members are asked about."""

    def __len__(self) -> int:
        return len(self.members[self.chosen])

    def only(self, place: int) -> SpecColumns:
        """Give one of the members alone, with what is known of all."""
        alone = copy(self)
        alone.chosen = slice(place, place + 1)
        return alone


class RowPlugin(Plugin):
    """A rule that looks at one node at a time; None stands for "nothing to say" (the plugin is skipped)."""


class NodePlugin(RowPlugin):
    """A rule that looks at the node itself and not at the pods on it."""

    scaled: ClassVar[str] = ""
    """How raw scores become 0..100 over the feasible nodes: "up" more is better, "down" less is better, "" they are."""

    def filter(self, window: NodeRows, spec: SpecClass) -> Variants | None:
        """Answer for each row, or None when every node passes."""
        return None

    def score(self, window: NodeRows, spec: SpecClass) -> Ints | None:
        """Score each row, or None when the plugin does not score this pod."""
        return None

    def version(self, cluster: Cluster, spec: SpecClass) -> int:
        """Change when the scores of nodes that nobody touched have changed."""
        return 0


class PodPlugin(RowPlugin):
    """A rule that looks at the pods on the node too; it answers for several specs of one shape at once."""

    def shape(self, spec: SpecClass) -> Hashable:
        """Give what specs must share to be judged together."""
        return None

    def idle(self, spec: SpecClass) -> bool:
        """Say whether the filter passes every node for specs of this shape."""
        return False

    def filter(self, window: NodeRows, specs: SpecColumns) -> Variants | None:
        """Answer for each row and spec, or None when every node passes."""
        return None

    def score(self, window: NodeRows, specs: SpecColumns) -> Ints | None:
        """Score each row and spec, or None when the plugin does not score such pods."""
        return None

    def room(self, cluster: Cluster, spec: SpecClass) -> list[tuple[int, int]]:
        """Give what the filter wants left on a node: places of resources and amounts, if that is what it looks at."""
        return []

    def fits(self, node: NodeRow, spec: SpecClass) -> bool:
        """Say of one node what `filter` says of many: for a single row plain numbers beat columns by far."""
        answers = self.filter(NodeRows(node.cluster, np.array([node.row])), SpecColumns(spec))
        return answers is None or not answers[0, 0]

    def points(self, node: NodeRow, spec: SpecClass) -> int:
        """Give for one node what `score` gives for many; 0 when the plugin does not score such pods."""
        scored = self.score(NodeRows(node.cluster, np.array([node.row])), SpecColumns(spec))
        return 0 if scored is None else int(scored[0, 0])


class PreparedPlugin:
    """A cluster plugin's knowledge for one pod, as of the moment it was prepared."""

    def filter(self, rows: Selection) -> Variants:
        """Answer for each row."""
        raise NotImplementedError

    def fork(self) -> PreparedPlugin:
        """Give a copy that `moved` may change."""
        return self

    def moved(self, pod: Pod, spec: SpecClass, row: int, number: int) -> None:
        """Pretend that a pod came to a row (1) or left it (-1)."""


class ClusterPlugin(Plugin):
    """A rule that looks at the whole cluster."""

    def concerns(self, incoming: IncomingPod) -> bool:
        """Say whether the rule can have anything to say about the pod.

        The answer may change only with services, controllers and the terms that placed pods carry.
        """
        return True

    def prepare(self, incoming: IncomingPod) -> PreparedPlugin | Reason | None:
        """Look at the cluster for a pod: None when every node passes, a reason when none can."""
        return None

    def score(self, incoming: IncomingPod, prepared: PreparedPlugin | None, rows: Selection) -> Ints | None:
        """Score the feasible rows from 0 to 100, or None when the plugin does not score this pod."""
        return None


def normalise(raw: Ints, direction: str) -> Ints:
    """Scale raw scores of the feasible nodes to 0..100 as kube-scheduler's default normalisation does."""
    top = int(raw.max()) if len(raw) else 0
    if top == 0:
        return np.full(len(raw), MAX_SCORE if direction == "down" else 0, dtype=np.int64)
    scaled = MAX_SCORE * raw // top
    return MAX_SCORE - scaled if direction == "down" else scaled
