"""The ground on which rules between pods are read: who matches what, and in which domain a new node would be.

Contract: pure; columns over the classes and offerings of one problem, for `reach.py`. Numbers of domains are those of
the cluster's label columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.counters.pod_terms import Scope
from tutti.kube.objects import Pod
from tutti.kube.selectors import Selector
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.pod_rules import HOSTNAME
from tutti.recommend.problem.problem import Problem

LACKS, NEW = -2, -1
"""Instead of a domain: the node lacks the label; no node has this value yet."""


class RuleDomains:
    """What the rules of all classes are read from: labels of offerings, pods of daemons, who matches what."""

    def __init__(self, planning: PlanningCluster, problem: Problem) -> None:
        self.planning, self.cluster, self.problem = planning, planning.cluster, problem
        evaluator = planning.engine.evaluator
        self.rows = [self.cluster.pod_row(each.pods[0]) for each in problem.classes]
        self.incoming = [evaluator.incoming_pod(row) for row in self.rows]
        self.daemons = [planning.daemons(offering) for offering in problem.offerings]
        self.filters = {each.plugin.name: each.plugin for each in planning.profile.plugins if each.filters}
        self.against = [(n, term) for n, incoming in enumerate(self.incoming) for term in incoming.spec.anti_affinity]
        """The classes that avoid others, with their terms."""
        self._matched: dict[tuple[Scope, Selector], Bools] = {}
        self._domains: dict[str, tuple[int, Rows]] = {}

    def domains(self, key: str) -> Rows:
        """The number of the domain in which a node of each offering would be."""
        values = self.cluster.nodes.column(key).values
        known = self._domains.get(key)
        if known is None or known[0] != len(values):
            labels = self.problem.domain(key)
            if key == HOSTNAME:
                numbers = [LACKS if label is None else NEW for label in labels]
            else:
                numbers = [LACKS if label is None else values.get(label, NEW) for label in labels]
            known = self._domains[key] = (len(values), np.array(numbers, dtype=np.intp))
        return known[1]

    def matched(self, scope: Scope, selector: Selector) -> Bools:
        """Which classes a term looks for."""
        known = self._matched.get((scope, selector))
        if known is None:
            known = np.array([self._matches(scope, selector, incoming.pod) for incoming in self.incoming], dtype=bool)
            self._matched[scope, selector] = known
        return known

    def on_arrival(self, matches: Callable[[Pod], bool]) -> Ints:
        """How many of the daemons of each offering match."""
        return np.array([sum(map(matches, pods)) for pods in self.daemons], dtype=np.int64)

    def _matches(self, scope: Scope, selector: Selector, pod: Pod) -> bool:
        namespace = pod.metadata.namespace or "default"
        in_scope = scope.contains_existing(namespace, self.cluster.namespace_labels(namespace))
        return in_scope and selector.matches(pod.metadata.labels or {})

    def matching(self, *terms: tuple[Scope, Selector]) -> Callable[[Pod], bool]:
        """A test whether a pod matches all terms."""
        return lambda pod: all(self._matches(scope, selector, pod) for scope, selector in terms)


def at(values: Ints | Bools, domains: Rows) -> Ints:
    """The values of domains; 0 where there is none."""
    known = (domains >= 0) & (domains < len(values))
    found = np.zeros(len(domains), dtype=np.int64)
    found[known] = values[domains[known]]
    return found
