"""Domains of new nodes and matches of selectors: what the rules between pods are evaluated on.

Contract: pure; arrays over the classes and offerings of one problem, for `pod_rule_limits`. Domain ids are those of the
cluster's label columns.
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

NO_LABEL, NEW_VALUE = -2, -1
"""Instead of a domain id: the node does not have the label; no node has this label value yet."""


class RuleDomains:
    """Labels of offerings, daemon pods of offerings, and classes that selectors match."""

    def __init__(self, planning: PlanningCluster, problem: Problem) -> None:
        self.planning, self.cluster, self.problem = planning, planning.cluster, problem
        evaluator = planning.engine.evaluator
        self.rows = [self.cluster.pod_row(each.pods[0]) for each in problem.classes]
        self.incoming = [evaluator.incoming_pod(row) for row in self.rows]
        self.daemons = [planning.daemons(offering) for offering in problem.offerings]
        self.filters = {each.plugin.name: each.plugin for each in planning.profile.plugins if each.filters}
        self.anti_affinity_terms = [
            (n, term) for n, incoming in enumerate(self.incoming) for term in incoming.spec.anti_affinity
        ]
        """The classes with required anti-affinity, each with a term."""
        self._matched_cache: dict[tuple[Scope, Selector], Bools] = {}
        self._domain_cache: dict[str, tuple[int, Rows]] = {}

    def domain_ids(self, key: str) -> Rows:
        """Return the id of the domain in which a new node of each offering would be."""
        values = self.cluster.nodes.column(key).values
        cached = self._domain_cache.get(key)
        if cached is None or cached[0] != len(values):
            labels = self.problem.domain(key)
            if key == HOSTNAME:
                ids = [NO_LABEL if label is None else NEW_VALUE for label in labels]
            else:
                ids = [NO_LABEL if label is None else values.get(label, NEW_VALUE) for label in labels]
            cached = self._domain_cache[key] = (len(values), np.array(ids, dtype=np.intp))
        return cached[1]

    def matched_classes(self, scope: Scope, selector: Selector) -> Bools:
        """Return which classes a term matches."""
        cached = self._matched_cache.get((scope, selector))
        if cached is None:
            cached = np.array([self._matches(scope, selector, incoming.pod) for incoming in self.incoming], dtype=bool)
            self._matched_cache[scope, selector] = cached
        return cached

    def daemon_counts(self, matches: Callable[[Pod], bool]) -> Ints:
        """Return how many daemon pods of each offering match."""
        return np.array([sum(map(matches, pods)) for pods in self.daemons], dtype=np.int64)

    def _matches(self, scope: Scope, selector: Selector, pod: Pod) -> bool:
        """Return whether a pod is in the scope of a term and matches its selector."""
        namespace = pod.metadata.namespace or "default"
        in_scope = scope.contains_existing(namespace, self.cluster.namespace_labels(namespace))
        return in_scope and selector.matches(pod.metadata.labels or {})

    def pod_matcher(self, *terms: tuple[Scope, Selector]) -> Callable[[Pod], bool]:
        """Return a function that says whether a pod matches all terms."""
        return lambda pod: all(self._matches(scope, selector, pod) for scope, selector in terms)


def counts_at(values: Ints | Bools, domain_ids: Rows) -> Ints:
    """Return the values of domains; 0 where there is no such domain."""
    is_known = (domain_ids >= 0) & (domain_ids < len(values))
    found = np.zeros(len(domain_ids), dtype=np.int64)
    found[is_known] = values[domain_ids[is_known]]
    return found
