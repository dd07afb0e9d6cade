"""Reach: how many pods of a class the rules between pods let onto a new node, for all offerings at once.

Contract: the same answers as the engine's filters PodTopologySpread and InterPodAffinity would give, pod by pod, if one
node of an offering joined the picture now and took the pods. Counts per domain are those of the picture, read when
`read` is called; what the node would have taken before is handed in. Room, taints, selectors and ports are not looked
at here.
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
from tutti.recommend.search.greedy.rule_domains import LACKS, RuleDomains, at


def reaches_of(ground: RuleDomains) -> dict[int, PodRuleLimits]:
    """The rules of every class that has any; those of others against it count."""
    reaches = {number: PodRuleLimits(ground, number) for number in range(len(ground.incoming))}
    return {number: reach for number, reach in reaches.items() if reach.has_rules}


class PodRuleLimits:
    """The rules of one class: see the module's contract."""

    def __init__(self, ground: RuleDomains, number: int) -> None:
        self._ground, self._number = ground, number
        incoming = ground.incoming[number]
        self.watches: Bools = np.zeros(len(ground.incoming), dtype=bool)
        """The classes whose pods change what `most` says."""
        self._spreads: list[_Spread] = []
        plugin = ground.filters.get("PodTopologySpread")
        if isinstance(plugin, PodTopologySpread):
            hard = plugin.constraints(incoming, hard=True)
            keys = tuple(sorted({each.topology_key for each in hard}))
            self._spreads = [_Spread(ground, number, each, keys) for each in hard]
        near = "InterPodAffinity" in ground.filters
        self._sought: tuple[PodTerm, ...] = incoming.spec.affinity if near else ()
        self._avoided: tuple[PodTerm, ...] = incoming.spec.anti_affinity if near else ()
        self._repellers = self._repelling() if near else {}
        self._read_terms()
        for spread in self._spreads:
            self.watches |= spread.matched
        for mask in (self._followed, *self._shunned.values()):
            self.watches |= mask
        self.opens = bool(self._spreads or self._sought)
        """Whether a pod that is placed elsewhere can let pods of this class onto a node that refused them."""
        self._open: Bools = np.zeros(len(ground.daemons), dtype=bool)
        self._lead: Bools = self._open
        self.has_rules = self.opens or bool(self._shunned) or (near and bool(self._blocked().any()))
        self.read()

    def _repelling(self) -> dict[str, Bools]:
        """The classes that have a term against this one, by the term's label."""
        found: dict[str, Bools] = {}
        for other, term in self._ground.against:
            if self._ground.matched(term.scope, term.selector)[self._number]:
                mask = found.setdefault(term.topology_key, np.zeros(len(self._ground.incoming), dtype=bool))
                mask[other] = True
        return found

    def _read_terms(self) -> None:
        ground = self._ground
        self._followed: Bools = np.zeros(len(ground.incoming), dtype=bool)
        self._led: Ints = np.zeros(len(ground.daemons), dtype=np.int64)
        if self._sought:
            pairs = [(term.scope, term.selector) for term in self._sought]
            self._followed = np.logical_and.reduce([ground.matched(*pair) for pair in pairs])
            self._led = ground.on_arrival(ground.matching(*pairs))
        self._shunned: dict[str, Bools] = {key: mask.copy() for key, mask in self._repellers.items()}
        self._once: list[str] = []
        for term in self._avoided:
            matched = ground.matched(term.scope, term.selector)
            mask = self._shunned.setdefault(term.topology_key, np.zeros(len(ground.incoming), dtype=bool))
            mask |= matched
            if matched[self._number]:
                self._once.append(term.topology_key)
        self._disliked = self._daemons_in_the_way()

    def _daemons_in_the_way(self) -> Bools:
        """Which offerings have daemons that this class avoids, or that avoid it."""
        ground, blocked = self._ground, np.zeros(len(self._ground.daemons), dtype=bool)
        incoming = ground.incoming[self._number]
        for term in self._avoided:
            there = ground.on_arrival(ground.matching((term.scope, term.selector))) > 0
            blocked |= there & (ground.domains(term.topology_key) != LACKS)
        for place, pods in enumerate(ground.daemons):
            for pod in pods:
                for term in _terms_against(pod):
                    if ground.matching((term.scope, term.selector))(incoming.pod):
                        blocked[place] |= ground.domains(term.topology_key)[place] != LACKS
        return blocked

    # What the picture says --------------------------------------------------------------------------------------------

    def read(self) -> Bools:
        """Read the counts of the picture; give the offerings for which that changed anything."""
        changed = np.zeros(len(self._open), dtype=bool)
        for spread in self._spreads:
            changed |= spread.read()
        opened = ~self._blocked()
        if self._sought:
            leads = self._leads()
            changed |= leads != self._lead
            self._lead = leads
            for term in self._sought:
                opened &= self._ground.domains(term.topology_key) != LACKS
        changed |= opened != self._open
        self._open = opened
        return changed

    def _leads(self) -> Bools:
        """Where pods that the class follows are, or may be its own first ones."""
        ground = self._ground
        pairs = tuple((term.scope, term.selector) for term in self._sought)
        tally = ground.cluster.pod_counters.counter(CounterKey(pairs, live=False))
        everywhere, anybody = np.ones(len(self._open), dtype=bool), False
        for key in dict.fromkeys(term.topology_key for term in self._sought):
            counts = tally.view(key, ground.cluster.nodes).counts
            anybody |= bool(counts.any())
            everywhere &= at(counts, ground.domains(key)) > 0
        if not anybody and self._followed[self._number]:
            return np.ones(len(self._open), dtype=bool)
        return everywhere

    def _blocked(self) -> Bools:
        """Where pods are that the class avoids, or that avoid it."""
        ground, blocked = self._ground, self._disliked.copy()
        nodes = ground.cluster.nodes
        for term in self._avoided:
            tally = ground.cluster.pod_counters.counter(CounterKey(((term.scope, term.selector),), live=False))
            if tally.total:
                key = term.topology_key
                blocked |= at(tally.view(key, nodes).counts, ground.domains(key)) > 0
        labels = ground.planning.engine.evaluator.incoming_pod(ground.rows[self._number]).labels
        for held in ground.cluster.labels.carried_terms_matching(labels):
            if held.key.role == Role.REPELS and held.total:
                key = held.key.term.topology_key
                blocked |= at(held.view(key, nodes).counts, ground.domains(key)) > 0
        return blocked

    def is_touched_by(self, offering: int) -> bool:
        """Say whether it matters that a node of an offering joined, whatever it took."""
        if self._led[offering] or self._disliked[offering]:
            return True
        return any(not spread.present[offering] or spread.arriving[offering] for spread in self._spreads)

    # How many ---------------------------------------------------------------------------------------------------------

    def most(self, taken: Ints, rows: Rows) -> Ints:
        """How many pods of the class go on a new node of some offerings that has taken so many of each class."""
        most = np.where(self._open[rows], UNLIMITED, 0)
        for spread in self._spreads:
            np.minimum(most, spread.most(taken, rows), out=most)
        if self._sought:
            led = (self._led[rows] > 0) | (taken[:, self._followed].sum(axis=1) > 0)
            most[~(self._lead[rows] | led)] = 0
        for key, mask in self._shunned.items():
            most[taken[:, mask].any(axis=1) & (self._ground.domains(key)[rows] != LACKS)] = 0
        for key in self._once:
            np.minimum(most, np.where(self._ground.domains(key)[rows] != LACKS, 1, UNLIMITED), out=most)
        return most


class _Spread:
    """One hard spread constraint of a class."""

    def __init__(self, ground: RuleDomains, number: int, constraint: SpreadConstraint, keys: tuple[str, ...]) -> None:
        incoming: IncomingPod = ground.incoming[number]
        self._ground, self._incoming, self._constraint, self._keys = ground, incoming, constraint, keys
        scope = Scope(frozenset((incoming.spec.namespace,)))
        counts_nobody = constraint.selector == EVERYTHING
        self.matched: Bools = np.zeros(len(ground.incoming), dtype=bool)
        self.arriving: Ints = np.zeros(len(ground.daemons), dtype=np.int64)
        """How many daemons of each offering are counted."""
        if not counts_nobody:
            self.matched = ground.matched(scope, constraint.selector)
            self.arriving = ground.on_arrival(ground.matching((scope, constraint.selector)))
        self._own = int(constraint.selector.matches(incoming.own_labels))
        self._rises = bool(self.matched[number])
        self._most: Ints = np.zeros(len(ground.daemons), dtype=np.int64)
        self.present: Bools = np.zeros(len(ground.daemons), dtype=bool)
        """Whether a node of the offering's domain counts already."""

    def read(self) -> Bools:
        """Read the counts; give the offerings for which that changed anything."""
        constraint = self._constraint
        view = counted_view(self._incoming, constraint, self._keys)
        counts, there = view.counts, view.nodes_in > 0
        domains = self._ground.domains(constraint.topology_key)
        self.present = at(there, domains) > 0
        number = int(there.sum())
        least, next_least, which = UNLIMITED, UNLIMITED, LACKS
        if number:
            order = np.flatnonzero(there)
            order = order[np.argsort(counts[order], kind="stable")[:2]]
            which, least = int(order[0]), int(counts[order[0]])
            next_least = int(counts[order[1]]) if len(order) > 1 else UNLIMITED
        others = np.where(domains == which, next_least, least)
        others[number + ~self.present < constraint.min_domains] = 0
        most = others + constraint.max_skew - at(counts, domains) - self.arriving
        most[domains == LACKS] = -1
        changed: Bools = most != self._most
        self._most = most
        return changed

    def most(self, taken: Ints, rows: Rows) -> Ints:
        """How many more pods of the class go on a new node."""
        left = self._most[rows] - taken[:, self.matched].sum(axis=1)
        most: Ints = np.maximum(left, 0) if self._rises else np.where(left >= self._own, UNLIMITED, 0)
        return most


def _terms_against(pod: Pod) -> Sequence[PodTerm]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    namespace = pod.metadata.namespace or "default"
    return [parse_term(term, namespace) for term in affinity.pod_anti_affinity.required or ()]
