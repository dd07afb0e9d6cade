"""The plugin interface: PreFilter, Filter, Score and reasons of kube-scheduler's plugins.

A row plugin evaluates each node by itself: a `NodePlugin` reads only the node, a `PodPlugin` also reads the pods on the
node. The results of row plugins are cached per spec class and recomputed for changed rows. A `ClusterPlugin` also reads
other nodes; its PreFilter runs for every pod. All plugins evaluate any array of rows, at a cost that depends on the
number of rows; one row is cheap.
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
from tutti.cluster.events import ALL_EVENTS, Event
from tutti.cluster.indexes.holds import HeldRoom
from tutti.cluster.spec_classes import SpecClass
from tutti.engine.plugins.verdict import Reason, Refusal, StatusCodes
from tutti.kube.objects import Pod

Selection = Rows | slice
MAX_SCORE = 100


class Area:
    """A subset of the nodes, to which a search is limited."""

    __slots__ = ("mask", "rows")

    def __init__(self, mask: Bools) -> None:
        self.mask = mask
        """For each row of the node table, whether the node is in the area."""
        self.rows: Rows = np.flatnonzero(mask)

    @staticmethod
    def of_row(row: int, size: int) -> Area:
        """Return the area of a single row in a table of the given size."""
        mask = np.zeros(size, dtype=bool)
        mask[row] = True
        return Area(mask)

    def __and__(self, mask: Bools) -> Area:
        return Area(self.mask & mask)


class IncomingPod:
    """The pod to schedule, with its classes."""

    __slots__ = ("_columns", "applicable_plugins", "area", "cluster", "held", "labels", "pod", "row", "spec")

    def __init__(self, cluster: Cluster, row: int, pod: Pod) -> None:
        self.cluster, self.row, self.pod = cluster, row, pod
        self.spec: SpecClass = cluster.spec_of(row)
        self.labels: LabelClass = cluster.pod_counters.label_class_of(row)
        self.applicable_plugins: list[bool] = []
        """For each cluster plugin of the profile, whether the plugin applies to the pod."""
        self.area: Area | None = None
        """The nodes to which the search is limited; None stands for all nodes."""
        self.held: HeldRoom | None = None
        """The room that is held for others, once the evaluator has looked; reasons count it as in use."""
        self._columns: SpecColumns | None = None

    @property
    def columns(self) -> SpecColumns:
        """The pod's spec class as one column; plugins keep there what they have prepared for it."""
        if self._columns is None:
            self._columns = SpecColumns(self.spec)
        return self._columns

    def node_rows(self, rows: Selection) -> NodeRows:
        """Return some rows, with the room that is held for others counted as in use."""
        return NodeRows(self.cluster, rows, self.held)

    @property
    def own_labels(self) -> dict[str, str]:
        """All labels of the pod."""
        return self.pod.metadata.labels or {}


def controller(pod: Pod) -> tuple[str, str, str] | None:
    """Return (apiVersion, kind, name) of the pod's controller; None if it has none."""
    for owner in pod.metadata.owner_references or ():
        if owner.controller:
            return owner.api_version, owner.kind, owner.name
    return None


@lru_cache(maxsize=256)
def _reason(plugin: str, refusal: Refusal) -> Reason:
    return Reason(plugin, (refusal.message,), refusal.resolvable)


class Plugin:
    """One kube-scheduler plugin; `refusals[code - 1]` explains the status code of a refused node."""

    name: ClassVar[str]
    refusals: ClassVar[tuple[Refusal, ...]] = ()
    events_to_register: ClassVar[frozenset[Event]] = ALL_EVENTS
    """The events that may make a refused pod schedulable, as in kube-scheduler's EventsToRegister."""

    def reason(self, incoming: IncomingPod, row: int, code: int) -> Reason:
        """Return the reason why a row was refused with a status code."""
        return _reason(self.name, self.refusals[code - 1])

    def count_messages(self, incoming: IncomingPod, rows: Rows, code: int) -> dict[str, int]:
        """Return how many of the rows refused with a status code have each message."""
        return {self.refusals[code - 1].message: len(rows)}

    def resolvable(self, incoming: IncomingPod, rows: Rows, code: int) -> Bools:
        """Return for each row refused with a status code whether preemption could help (Unschedulable) or not."""
        return np.full(len(rows), self.refusals[code - 1].resolvable)


class NodeRows:
    """Some rows of the node columns, gathered once for all plugins that read them; held room counts as in use."""

    __slots__ = ("_alloc", "_floats", "_held", "_used", "cluster", "nodes", "rows")

    def __init__(self, cluster: Cluster, rows: Selection, held: HeldRoom | None = None) -> None:
        self.cluster, self.nodes, self.rows, self._held = cluster, cluster.nodes, rows, held
        self._alloc: Ints | None = None
        self._used: Ints | None = None
        self._floats: tuple[Floats, Floats] | bool | None = False

    def __len__(self) -> int:
        return len(range(*self.rows.indices(self.nodes.size))) if isinstance(self.rows, slice) else len(self.rows)

    @property
    def alloc(self) -> Ints:
        """Allocatable amounts: one column per resource."""
        if self._alloc is None:
            alloc, rows = self.nodes.alloc, self.rows
            self._alloc = alloc[:, rows] if isinstance(rows, slice) else alloc.take(rows, axis=1)
        return self._alloc

    @property
    def used(self) -> Ints:
        """Amounts that the pods on the nodes request: one column per resource."""
        if self._used is None:
            used, rows = self.nodes.used, self.rows
            self._used = used[:, rows] if isinstance(rows, slice) else used.take(rows, axis=1)
            if self._held is not None:
                held = self._held.amounts
                self._used = self._used + (held[:, rows] if isinstance(rows, slice) else held.take(rows, axis=1))
        return self._used

    @property
    def floats(self) -> tuple[Floats, Floats] | None:
        """Allocatable cpu and memory, and the first five sums in use, as floats, which divide much faster than
        integers.

        None if floats would not be exact: a node lacks cpu or memory, or has more than floats represent exactly.
        """
        if self._floats is False:
            if self.nodes.exact_in_floats:
                self._floats = self.alloc[: MEMORY + 1].astype(np.float64), self.used[:STORAGE].astype(np.float64)
            else:
                self._floats = None
        assert not isinstance(self._floats, bool)
        return self._floats

    def set_floats(self, floats: tuple[Floats, Floats] | None) -> None:
        """Use precomputed read-only floats."""
        self._floats = floats


class NodeRow:
    """One row of the node columns, as plain integers."""

    __slots__ = ("alloc", "balance", "cluster", "row", "used")

    def __init__(self, cluster: Cluster, row: int) -> None:
        self.cluster, self.row = cluster, row
        self.alloc: list[int] = cluster.nodes.alloc[:, row].tolist()
        self.used: list[int] = cluster.nodes.used[:, row].tolist()
        self.balance: int | None = None
        """The balance of the used resources; NodeResourcesBalancedAllocation sets it when it first scores the node."""


class SpecColumns:
    """Spec classes that are evaluated together, one column each."""

    __slots__ = ("caches", "members", "selected")

    def __init__(self, *members: SpecClass) -> None:
        self.members = list(members)
        self.caches: dict[Any, Any] = {}
        """Values of attached caches (`attached_cache`)."""
        self.selected = slice(None)
        """The members to evaluate."""

    def __len__(self) -> int:
        return len(self.members[self.selected])

    def only(self, index: int) -> SpecColumns:
        """Return the columns limited to one member; the caches are shared."""
        single = copy(self)
        single.selected = slice(index, index + 1)
        return single


class RowPlugin(Plugin):
    """A plugin that evaluates each node by itself; a result of None means that the plugin is skipped."""


class NodePlugin(RowPlugin):
    """A plugin that reads the node, but not the pods on it."""

    normalization: ClassVar[str] = ""
    """How NormalizeScore scales raw scores to 0..100 over the feasible nodes: "up" (more is better), "down" (less is
    better), or "" (not scaled)."""

    def filter(self, node_rows: NodeRows, spec: SpecClass) -> StatusCodes | None:
        """Filter: return a status code per row; None if every node passes."""
        return None

    def score(self, node_rows: NodeRows, spec: SpecClass) -> Ints | None:
        """Score: return a raw score per row; None if the plugin does not score this pod."""
        return None

    def score_version(self, cluster: Cluster, spec: SpecClass) -> int:
        """Return a number that changes when the scores of unchanged nodes change."""
        return 0


class PodPlugin(RowPlugin):
    """A plugin that also reads the pods on the node; it evaluates several specs with equal `columns_key` at once."""

    def columns_key(self, spec: SpecClass) -> Hashable:
        """Return the key that all specs of one `SpecColumns` share."""
        return None

    def skips_filter(self, spec: SpecClass) -> bool:
        """Return whether the filter passes every node for specs with this key."""
        return False

    def filter(self, node_rows: NodeRows, specs: SpecColumns) -> StatusCodes | None:
        """Filter: return a status code per row and spec; None if every node passes."""
        return None

    def score(self, node_rows: NodeRows, specs: SpecColumns) -> Ints | None:
        """Score: return a score per row and spec; None if the plugin does not score such pods."""
        return None

    def required_resources(self, cluster: Cluster, spec: SpecClass) -> list[tuple[int, int]]:
        """Return the (resource index, amount) pairs that the filter requires to be free; empty if it checks no
        resources.
        """
        return []

    def fits(self, node: NodeRow, spec: SpecClass) -> bool:
        """Return `filter` for one node; for a single row, plain integers are much faster than columns."""
        codes = self.filter(NodeRows(node.cluster, np.array([node.row])), SpecColumns(spec))
        return codes is None or not codes[0, 0]

    def score_row(self, node: NodeRow, spec: SpecClass) -> int:
        """Return `score` for one node; 0 if the plugin does not score such pods."""
        scores = self.score(NodeRows(node.cluster, np.array([node.row])), SpecColumns(spec))
        return 0 if scores is None else int(scores[0, 0])


class PreFilterState:
    """The state that a cluster plugin's PreFilter computes for one pod."""

    def filter(self, rows: Selection) -> StatusCodes:
        """Filter: return a status code per row."""
        raise NotImplementedError

    def clone(self) -> PreFilterState:
        """Return a copy that `update_with_pod` may change."""
        return self

    def update_with_pod(self, pod: Pod, spec: SpecClass, row: int, number: int) -> None:
        """Add a pod to (1) or remove it from (-1) a row of the state: PreFilter's AddPod and RemovePod."""

    def is_affected_by(self, pod: Pod, spec: SpecClass) -> bool:
        """Return whether `update_with_pod` would change the state for this pod."""
        return False


class ClusterPlugin(Plugin):
    """A plugin that reads the whole cluster."""

    def applies_to(self, incoming: IncomingPod) -> bool:
        """Return whether the plugin can affect the pod; if not, PreFilter and Score are skipped.

        The result may change only when Services, controllers or the terms that bound pods carry change.
        """
        return True

    def pre_filter(self, incoming: IncomingPod) -> PreFilterState | Reason | None:
        """PreFilter: return the state for `filter`, None if every node passes, or a reason if no node can pass."""
        return None

    def score(self, incoming: IncomingPod, state: PreFilterState | None, rows: Selection) -> Ints | None:
        """Score: return scores from 0 to 100 for the feasible rows; None if the plugin does not score this pod."""
        return None


def default_normalize_score(raw: Ints, direction: str) -> Ints:
    """NormalizeScore: scale raw scores of the feasible nodes to 0..100, like kube-scheduler's DefaultNormalizeScore."""
    max_score = int(raw.max()) if len(raw) else 0
    if max_score == 0:
        return np.full(len(raw), MAX_SCORE if direction == "down" else 0, dtype=np.int64)
    scaled = MAX_SCORE * raw // max_score
    return MAX_SCORE - scaled if direction == "down" else scaled
