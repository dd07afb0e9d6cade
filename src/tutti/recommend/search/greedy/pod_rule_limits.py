"""Limits by rules between pods: how many pods of a class a new node may take, for all offerings at once.

Contract: the same answers as the engine's filters PodTopologySpread and InterPodAffinity, pod by pod, if one node of an
offering joined the planning cluster now and took the pods. Counts per domain are those of the planning cluster at the
last `refresh`; the pods that the new node has already taken are passed in. Free amounts, taints, selectors and ports
are not checked here.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.counters.label_classes import CounterKey, Role
from tutti.cluster.counters.pod_terms import PodTerm, Scope, parse_term
from tutti.cluster.spec_classes import SpreadConstraint
from tutti.engine.plugins.base import IncomingPod
from tutti.engine.plugins.pod_topology_spread import PodTopologySpread
from tutti.engine.plugins.spread_counts import counted_view
from tutti.kube.objects import Pod
from tutti.kube.selectors import EVERYTHING
from tutti.recommend.problem.pod_rules import UNLIMITED
from tutti.recommend.search.greedy.rule_domains import NO_LABEL, RuleDomains, counts_at


def read_rule_limits(domains: RuleDomains) -> dict[int, PodRuleLimits]:
    """Return the limits of every class that has rules, or that rules of other classes concern."""
    rule_limits = {number: PodRuleLimits(domains, number) for number in range(len(domains.incoming))}
    return {number: limits for number, limits in rule_limits.items() if limits.has_rules}


class PodRuleLimits:
    """The rules of one class: see the module's contract."""

    def __init__(self, domains: RuleDomains, number: int) -> None:
        self._domains, self._number = domains, number
        incoming = domains.incoming[number]
        self.depends_on: Bools = np.zeros(len(domains.incoming), dtype=bool)
        """The classes whose pods change the result of `max_pods`."""
        self._spreads: list[_Spread] = []
        plugin = domains.filters.get("PodTopologySpread")
        if isinstance(plugin, PodTopologySpread):
            hard = plugin.constraints(incoming, hard=True)
            keys = tuple(sorted({each.topology_key for each in hard}))
            self._spreads = [_Spread(domains, number, each, keys) for each in hard]
        has_pod_affinity = "InterPodAffinity" in domains.filters
        self._affinity: tuple[PodTerm, ...] = incoming.spec.affinity if has_pod_affinity else ()
        self._anti_affinity: tuple[PodTerm, ...] = incoming.spec.anti_affinity if has_pod_affinity else ()
        self._avoided_by = self._avoiding_classes() if has_pod_affinity else {}
        self._match_terms()
        for spread in self._spreads:
            self.depends_on |= spread.matched_classes
        for mask in (self._affinity_classes, *self._conflicts.values()):
            self.depends_on |= mask
        self.can_open = bool(self._spreads or self._affinity)
        """Whether a pod that is placed elsewhere can make a refused node feasible for this class."""
        self._is_open: Bools = np.zeros(len(domains.daemons), dtype=bool)
        self._has_affinity_pods: Bools = self._is_open
        self.has_rules = (
            self.can_open or bool(self._conflicts) or (has_pod_affinity and bool(self._blocked_offerings().any()))
        )
        self.refresh()

    def _avoiding_classes(self) -> dict[str, Bools]:
        """Return the classes with an anti-affinity term against this class, by the term's label."""
        classes_by_key: dict[str, Bools] = {}
        for other, term in self._domains.anti_affinity_terms:
            if self._domains.matched_classes(term.scope, term.selector)[self._number]:
                mask = classes_by_key.setdefault(term.topology_key, np.zeros(len(self._domains.incoming), dtype=bool))
                mask[other] = True
        return classes_by_key

    def _match_terms(self) -> None:
        """Find the classes and daemon pods that the affinity and anti-affinity terms match."""
        domains = self._domains
        self._affinity_classes: Bools = np.zeros(len(domains.incoming), dtype=bool)
        self._affinity_daemons: Ints = np.zeros(len(domains.daemons), dtype=np.int64)
        if self._affinity:
            pairs = [(term.scope, term.selector) for term in self._affinity]
            self._affinity_classes = np.logical_and.reduce([domains.matched_classes(*pair) for pair in pairs])
            self._affinity_daemons = domains.daemon_counts(domains.pod_matcher(*pairs))
        self._conflicts: dict[str, Bools] = {key: mask.copy() for key, mask in self._avoided_by.items()}
        self._self_conflicts: list[str] = []
        for term in self._anti_affinity:
            matched = domains.matched_classes(term.scope, term.selector)
            mask = self._conflicts.setdefault(term.topology_key, np.zeros(len(domains.incoming), dtype=bool))
            mask |= matched
            if matched[self._number]:
                self._self_conflicts.append(term.topology_key)
        self._daemon_conflicts = self._offerings_with_daemon_conflicts()

    def _offerings_with_daemon_conflicts(self) -> Bools:
        """Return which offerings have daemon pods that this class avoids, or that avoid this class."""
        domains, blocked = self._domains, np.zeros(len(self._domains.daemons), dtype=bool)
        incoming = domains.incoming[self._number]
        for term in self._anti_affinity:
            has_match = domains.daemon_counts(domains.pod_matcher((term.scope, term.selector))) > 0
            blocked |= has_match & (domains.domain_ids(term.topology_key) != NO_LABEL)
        for place, pods in enumerate(domains.daemons):
            for pod in pods:
                for term in _anti_affinity_terms(pod):
                    if domains.pod_matcher((term.scope, term.selector))(incoming.pod):
                        blocked[place] |= domains.domain_ids(term.topology_key)[place] != NO_LABEL
        return blocked

    # Counts of the planning cluster -----------------------------------------------------------------------------------

    def refresh(self) -> Bools:
        """Read the counts of the planning cluster; return the offerings for which a limit changed."""
        changed = np.zeros(len(self._is_open), dtype=bool)
        for spread in self._spreads:
            changed |= spread.refresh()
        is_open = ~self._blocked_offerings()
        if self._affinity:
            has_affinity_pods = self._offerings_with_affinity_pods()
            changed |= has_affinity_pods != self._has_affinity_pods
            self._has_affinity_pods = has_affinity_pods
            for term in self._affinity:
                is_open &= self._domains.domain_ids(term.topology_key) != NO_LABEL
        changed |= is_open != self._is_open
        self._is_open = is_open
        return changed

    def _offerings_with_affinity_pods(self) -> Bools:
        """Return the offerings whose domains have pods of the affinity terms; all, if the class may be first."""
        domains = self._domains
        pairs = tuple((term.scope, term.selector) for term in self._affinity)
        counter = domains.cluster.pod_counters.counter(CounterKey(pairs, live=False))
        in_all_domains, any_pod = np.ones(len(self._is_open), dtype=bool), False
        for key in dict.fromkeys(term.topology_key for term in self._affinity):
            counts = counter.view(key, domains.cluster.nodes).counts
            any_pod |= bool(counts.any())
            in_all_domains &= counts_at(counts, domains.domain_ids(key)) > 0
        if not any_pod and self._affinity_classes[self._number]:
            return np.ones(len(self._is_open), dtype=bool)
        return in_all_domains

    def _blocked_offerings(self) -> Bools:
        """Return the offerings whose domains have pods that the class avoids, or that avoid the class."""
        domains, blocked = self._domains, self._daemon_conflicts.copy()
        nodes = domains.cluster.nodes
        for term in self._anti_affinity:
            counter = domains.cluster.pod_counters.counter(CounterKey(((term.scope, term.selector),), live=False))
            if counter.total:
                key = term.topology_key
                blocked |= counts_at(counter.view(key, nodes).counts, domains.domain_ids(key)) > 0
        labels = domains.planning.engine.evaluator.incoming_pod(domains.rows[self._number]).labels
        for term_counter in domains.cluster.labels.carried_terms_matching(labels):
            if term_counter.key.role == Role.REPELS and term_counter.total:
                key = term_counter.key.term.topology_key
                blocked |= counts_at(term_counter.view(key, nodes).counts, domains.domain_ids(key)) > 0
        return blocked

    def is_affected_by_node(self, offering: int) -> bool:
        """Return whether a joined node of an offering changes the limits, whatever pods it took."""
        if self._affinity_daemons[offering] or self._daemon_conflicts[offering]:
            return True
        return any(not spread.has_nodes[offering] or spread.daemon_counts[offering] for spread in self._spreads)

    # Limits -----------------------------------------------------------------------------------------------------------

    def max_pods(self, pods: Ints, rows: Rows) -> Ints:
        """Return how many pods of the class a new node of each row takes, after it took `pods` of each class."""
        max_pods = np.where(self._is_open[rows], UNLIMITED, 0)
        for spread in self._spreads:
            np.minimum(max_pods, spread.max_pods(pods, rows), out=max_pods)
        if self._affinity:
            has_affinity = (self._affinity_daemons[rows] > 0) | (pods[:, self._affinity_classes].sum(axis=1) > 0)
            max_pods[~(self._has_affinity_pods[rows] | has_affinity)] = 0
        for key, mask in self._conflicts.items():
            max_pods[pods[:, mask].any(axis=1) & (self._domains.domain_ids(key)[rows] != NO_LABEL)] = 0
        for key in self._self_conflicts:
            np.minimum(max_pods, np.where(self._domains.domain_ids(key)[rows] != NO_LABEL, 1, UNLIMITED), out=max_pods)
        return max_pods


class _Spread:
    """One hard spread constraint of a class."""

    def __init__(self, domains: RuleDomains, number: int, constraint: SpreadConstraint, keys: tuple[str, ...]) -> None:
        incoming: IncomingPod = domains.incoming[number]
        self._domains, self._incoming, self._constraint, self._keys = domains, incoming, constraint, keys
        scope = Scope(frozenset((incoming.spec.namespace,)))
        counts_no_pods = constraint.selector == EVERYTHING
        self.matched_classes: Bools = np.zeros(len(domains.incoming), dtype=bool)
        self.daemon_counts: Ints = np.zeros(len(domains.daemons), dtype=np.int64)
        """How many daemon pods of each offering the constraint counts."""
        if not counts_no_pods:
            self.matched_classes = domains.matched_classes(scope, constraint.selector)
            self.daemon_counts = domains.daemon_counts(domains.pod_matcher((scope, constraint.selector)))
        self._matches_itself = int(constraint.selector.matches(incoming.own_labels))
        self._counts_itself = bool(self.matched_classes[number])
        self._max_matched: Ints = np.zeros(len(domains.daemons), dtype=np.int64)
        self.has_nodes: Bools = np.zeros(len(domains.daemons), dtype=bool)
        """Whether the domain of the offering has a node that counts."""

    def refresh(self) -> Bools:
        """Read the counts of the planning cluster; return the offerings for which the limit changed."""
        constraint = self._constraint
        view = counted_view(self._incoming, constraint, self._keys)
        counts, has_nodes = view.counts, view.nodes_in > 0
        domain_ids = self._domains.domain_ids(constraint.topology_key)
        self.has_nodes = counts_at(has_nodes, domain_ids) > 0
        domain_count = int(has_nodes.sum())
        least, next_least, least_domain = UNLIMITED, UNLIMITED, NO_LABEL
        if domain_count:
            order = np.flatnonzero(has_nodes)
            order = order[np.argsort(counts[order], kind="stable")[:2]]
            least_domain, least = int(order[0]), int(counts[order[0]])
            next_least = int(counts[order[1]]) if len(order) > 1 else UNLIMITED
        least_elsewhere = np.where(domain_ids == least_domain, next_least, least)
        least_elsewhere[domain_count + ~self.has_nodes < constraint.min_domains] = 0
        max_pods = least_elsewhere + constraint.max_skew - counts_at(counts, domain_ids) - self.daemon_counts
        max_pods[domain_ids == NO_LABEL] = -1
        changed: Bools = max_pods != self._max_matched
        self._max_matched = max_pods
        return changed

    def max_pods(self, pods: Ints, rows: Rows) -> Ints:
        """Return how many more pods of the class a new node takes."""
        left = self._max_matched[rows] - pods[:, self.matched_classes].sum(axis=1)
        max_pods: Ints = (
            np.maximum(left, 0) if self._counts_itself else np.where(left >= self._matches_itself, UNLIMITED, 0)
        )
        return max_pods


def _anti_affinity_terms(pod: Pod) -> Sequence[PodTerm]:
    """Return the required anti-affinity terms of a pod."""
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    namespace = pod.metadata.namespace or "default"
    return [parse_term(term, namespace) for term in affinity.pod_anti_affinity.required or ()]
