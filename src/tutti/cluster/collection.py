"""Collection: give back what no pod, no node and no object refers to any more.

A cluster is followed for months, and most of what it knows is short-lived: Jobs with selectors of their own, nodes with
new names, taints with a time as value. Registries therefore keep what pods and nodes refer to, and what has come since
the last collection:

| registry | entry | kept while | number of a dropped entry |
|---|---|---|---|
| `SpecRegistry` | spec class | a pod has the class | never used again |
| `LabelRegistry` | label class | a pod has the class | never used again |
| `LabelRegistry` | pod counter | a pod has a spec class that asked for the counter | has none |
| `LabelRegistry` | carried term | a pod has a spec class with the term | has none |
| `LabelRegistry` | watched label key | a counter, a term, a spec class or a Service reads the key | has none |
| `UsageTable` | usage | a spec class has the usage | used again; nobody keeps it beyond a session |
| `GroupIndex` | group | the group has pods, or pods that succeeded | used again, with a higher version |
| `NodeTable` | taint set | a node has the taints | used again; nobody but the nodes keeps it |
| `NodeTable` | label value, label column | nodes have the value, somebody reads the column | the whole column is new |

Contract: nothing that a cluster answers changes. An entry that is needed again is made again, as in a new cluster.
Caches of the engine are never wrong, because their keys are numbers that are never used again; they drop what
`SpecRegistry.classes` no longer has when `SpecRegistry.generation` changes. Counters, label classes and domain numbers
must not be kept from one session to the next.

Cost: without enough new entries, a few comparisons. Otherwise a pass over the pod columns, plus the number of entries;
new entries are so many that each pays for a small constant part of that.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tutti.cluster.columns import Ints
from tutti.cluster.counters.pod_counters import PodCounters
from tutti.cluster.indexes.groups import GroupIndex
from tutti.cluster.node_table import NodeTable
from tutti.cluster.pod_table import PodTable
from tutti.cluster.pod_updates import PodUpdates
from tutti.cluster.spec_classes import SpecRegistry
from tutti.kube.objects import Object, Service

_MIN_NEW = 256
"""Classes, counters and terms that may be new before the pods are read."""
_NEW_PER_POD, _NEW_PER_ENTRY = 1 / 64, 1 / 8
"""The same, as a share of the pods, and of the entries that the last collection left."""
_SPARE_KEYS = 64
"""Watched label keys that may be new before the selectors are read."""


class Collection:
    """Gives back the unused entries of one cluster; see the module's docstring."""

    def __init__(
        self,
        nodes: NodeTable,
        pods: PodTable,
        *,
        specs: SpecRegistry,
        pod_counters: PodCounters,
        pod_updates: PodUpdates,
        groups: GroupIndex,
        services: Mapping[str, Object],
    ) -> None:
        self._nodes, self._pods, self._specs, self._groups = nodes, pods, specs, groups
        self._pod_counters, self._labels, self._pod_updates = pod_counters, pod_counters.labels, pod_updates
        self._services = services
        self._kept = self._kept_keys = 0
        """Entries and watched label keys that the last collection left."""

    def run(self) -> int:
        """Give back unused entries; return how many."""
        dropped = self._nodes.collect() + self._groups.collect()
        before = self._entries()
        new = before - self._kept
        if new >= max(_MIN_NEW, _NEW_PER_POD * len(self._pods.row_of), _NEW_PER_ENTRY * self._kept):
            self._collect_specs()
            self._collect_label_classes()
            self._kept = self._entries()
            dropped += before - self._kept
        return dropped

    def _entries(self) -> int:
        labels = self._labels
        return len(self._specs.classes) + len(labels.classes) + len(labels.counters) + len(labels.carried_terms)

    def _collect_specs(self) -> None:
        """Drop spec classes without pods, and the usages, counters and terms that only such classes need."""
        live = self._numbers_of_pods(self._pods.spec)
        unused = [number for number in self._specs.classes if number not in live]
        self._pod_counters.drop_specs(unused, live)
        self._pod_updates.drop_specs(unused)
        if unused:
            self._specs.drop(unused)

    def _collect_label_classes(self) -> None:
        """Drop label classes without pods, and stop watching label keys that no selector reads."""
        if len(self._labels.watched) > self._kept_keys + _SPARE_KEYS:
            selectors = (obj.spec.selector for obj in self._services.values() if isinstance(obj, Service))
            self._pod_counters.stop_watching(key for selector in selectors for key in selector or ())
            self._kept_keys = len(self._labels.watched)
        live = self._numbers_of_pods(self._pods.labels)
        self._labels.drop_classes([number for number in self._labels.classes if number not in live])

    def _numbers_of_pods(self, column: Ints) -> set[int]:
        """Return the numbers in a column of the pods."""
        return set(np.unique(column[: self._pods.length][self._pods.used_rows()]).tolist())
