"""Reach: how many pods of a class the rules between pods let onto a new node, for all offerings at once.

Contract: the same answers as the engine's filters PodTopologySpread and InterPodAffinity would give, pod by pod, if one
node of an offering joined the picture now and took the pods. Counts per domain are those of the picture, read when
`read` is called; what the node would have taken before is handed in. Room, taints, selectors and ports are not looked
at here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tutti.cluster.classes import SpreadConstraint
from tutti.cluster.columns import Bools, Ints, Rows
from tutti.cluster.labels import CounterKey, Role
from tutti.cluster.terms import PodTerm, Scope, parse_term
from tutti.engine.plugins.base import Asked
from tutti.engine.plugins.pod_topology_spread import PodTopologySpread
from tutti.engine.plugins.spread_counts import counted_view
from tutti.kube.objects import Pod
from tutti.kube.selectors import EVERYTHING, Selector
from tutti.recommend.picture import Picture
from tutti.recommend.problem import Problem
from tutti.recommend.rules import HOSTNAME, UNLIMITED

_LACKS, _NEW = -2, -1
"""Instead of a domain: the node lacks the label; no node has this value yet."""


class Ground:
    """What the rules of all classes are read from: labels of offerings, pods of daemons, who matches what."""

    def __init__(self, picture: Picture, problem: Problem) -> None:
        self.picture, self.cluster, self.problem = picture, picture.cluster, problem
        judge = picture.engine.judge
        self.rows = [self.cluster.pod_row(each.pods[0]) for each in problem.classes]
        self.asked = [judge.ask(row) for row in self.rows]
        self.daemons = [picture.daemons(offering) for offering in problem.offerings]
        self.filters = {each.plugin.name: each.plugin for each in picture.profile.plugins if each.filters}
        self.against = [(n, term) for n, asked in enumerate(self.asked) for term in asked.spec.anti_affinity]
        """The classes that avoid others, with their terms."""
        self._matched: dict[tuple[Scope, Selector], Bools] = {}
        self._domains: dict[str, tuple[int, Rows]] = {}

    def reaches(self) -> dict[int, Reach]:
        """The rules of every class that has any; those of others against it count."""
        found = {}
        for number in range(len(self.asked)):
            reach = Reach(self, number)
            if reach.has_rules:
                found[number] = reach
        return found

    def domains(self, key: str) -> Rows:
        """The number of the domain in which a node of each offering would be."""
        values = self.cluster.nodes.column(key).values
        known = self._domains.get(key)
        if known is None or known[0] != len(values):
            labels = self.problem.domain(key)
            if key == HOSTNAME:
                numbers = [_LACKS if label is None else _NEW for label in labels]
            else:
                numbers = [_LACKS if label is None else values.get(label, _NEW) for label in labels]
            known = self._domains[key] = (len(values), np.array(numbers, dtype=np.intp))
        return known[1]

    def matched(self, scope: Scope, selector: Selector) -> Bools:
        """Which classes a term looks for."""
        known = self._matched.get((scope, selector))
        if known is None:
            known = np.array([self._matches(scope, selector, asked.pod) for asked in self.asked], dtype=bool)
            self._matched[scope, selector] = known
        return known

    def on_arrival(self, matches: Callable[[Pod], bool]) -> Ints:
        """How many of the daemons of each offering match."""
        return np.array([sum(map(matches, pods)) for pods in self.daemons], dtype=np.int64)

    def _matches(self, scope: Scope, selector: Selector, pod: Pod) -> bool:
        namespace = pod.metadata.namespace or "default"
        in_scope = scope.holds_known(namespace, self.cluster.namespace_labels(namespace))
        return in_scope and selector.matches(pod.metadata.labels or {})

    def matching(self, *terms: tuple[Scope, Selector]) -> Callable[[Pod], bool]:
        """A test whether a pod matches all terms."""
        return lambda pod: all(self._matches(scope, selector, pod) for scope, selector in terms)


class Reach:
    """The rules of one class: see the module's contract."""

    def __init__(self, ground: Ground, number: int) -> None:
        self._ground, self._number = ground, number
        asked = ground.asked[number]
        self.watches: Bools = np.zeros(len(ground.asked), dtype=bool)
        """The classes whose pods change what `most` says."""
        self._spreads: list[_Spread] = []
        plugin = ground.filters.get("PodTopologySpread")
        if isinstance(plugin, PodTopologySpread):
            hard = plugin.constraints(asked, hard=True)
            keys = tuple(sorted({each.topology_key for each in hard}))
            self._spreads = [_Spread(ground, number, each, keys) for each in hard]
        near = "InterPodAffinity" in ground.filters
        self._sought: tuple[PodTerm, ...] = asked.spec.affinity if near else ()
        self._avoided: tuple[PodTerm, ...] = asked.spec.anti_affinity if near else ()
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
                mask = found.setdefault(term.topology_key, np.zeros(len(self._ground.asked), dtype=bool))
                mask[other] = True
        return found

    def _read_terms(self) -> None:
        ground = self._ground
        self._followed: Bools = np.zeros(len(ground.asked), dtype=bool)
        self._led: Ints = np.zeros(len(ground.daemons), dtype=np.int64)
        if self._sought:
            pairs = [(term.scope, term.selector) for term in self._sought]
            self._followed = np.logical_and.reduce([ground.matched(*pair) for pair in pairs])
            self._led = ground.on_arrival(ground.matching(*pairs))
        self._shunned: dict[str, Bools] = {key: mask.copy() for key, mask in self._repellers.items()}
        self._once: list[str] = []
        for term in self._avoided:
            matched = ground.matched(term.scope, term.selector)
            mask = self._shunned.setdefault(term.topology_key, np.zeros(len(ground.asked), dtype=bool))
            mask |= matched
            if matched[self._number]:
                self._once.append(term.topology_key)
        self._disliked = self._daemons_in_the_way()

    def _daemons_in_the_way(self) -> Bools:
        """Which offerings have daemons that this class avoids, or that avoid it."""
        ground, blocked = self._ground, np.zeros(len(self._ground.daemons), dtype=bool)
        asked = ground.asked[self._number]
        for term in self._avoided:
            there = ground.on_arrival(ground.matching((term.scope, term.selector))) > 0
            blocked |= there & (ground.domains(term.topology_key) != _LACKS)
        for place, pods in enumerate(ground.daemons):
            for pod in pods:
                for term in _terms_against(pod):
                    if ground.matching((term.scope, term.selector))(asked.pod):
                        blocked[place] |= ground.domains(term.topology_key)[place] != _LACKS
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
                opened &= self._ground.domains(term.topology_key) != _LACKS
        changed |= opened != self._open
        self._open = opened
        return changed

    def _leads(self) -> Bools:
        """Where pods that the class follows are, or may be its own first ones."""
        ground = self._ground
        pairs = tuple((term.scope, term.selector) for term in self._sought)
        tally = ground.cluster.census.counter(CounterKey(pairs, live=False))
        everywhere, anybody = np.ones(len(self._open), dtype=bool), False
        for key in dict.fromkeys(term.topology_key for term in self._sought):
            counts = tally.view(key, ground.cluster.nodes).counts
            anybody |= bool(counts.any())
            everywhere &= _at(counts, ground.domains(key)) > 0
        if not anybody and self._followed[self._number]:
            return np.ones(len(self._open), dtype=bool)
        return everywhere

    def _blocked(self) -> Bools:
        """Where pods are that the class avoids, or that avoid it."""
        ground, blocked = self._ground, self._disliked.copy()
        nodes = ground.cluster.nodes
        for term in self._avoided:
            tally = ground.cluster.census.counter(CounterKey(((term.scope, term.selector),), live=False))
            if tally.total:
                key = term.topology_key
                blocked |= _at(tally.view(key, nodes).counts, ground.domains(key)) > 0
        labels = ground.picture.engine.judge.ask(ground.rows[self._number]).labels
        for held in ground.cluster.labels.held_against(labels):
            if held.key.role == Role.REPELS and held.total:
                key = held.key.term.topology_key
                blocked |= _at(held.view(key, nodes).counts, ground.domains(key)) > 0
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
            most[taken[:, mask].any(axis=1) & (self._ground.domains(key)[rows] != _LACKS)] = 0
        for key in self._once:
            np.minimum(most, np.where(self._ground.domains(key)[rows] != _LACKS, 1, UNLIMITED), out=most)
        return most


class _Spread:
    """One hard spread constraint of a class."""

    def __init__(self, ground: Ground, number: int, constraint: SpreadConstraint, keys: tuple[str, ...]) -> None:
        asked: Asked = ground.asked[number]
        self._ground, self._asked, self._constraint, self._keys = ground, asked, constraint, keys
        scope = Scope(frozenset((asked.spec.namespace,)))
        counts_nobody = constraint.selector == EVERYTHING
        self.matched: Bools = np.zeros(len(ground.asked), dtype=bool)
        self.arriving: Ints = np.zeros(len(ground.daemons), dtype=np.int64)
        """How many daemons of each offering are counted."""
        if not counts_nobody:
            self.matched = ground.matched(scope, constraint.selector)
            self.arriving = ground.on_arrival(ground.matching((scope, constraint.selector)))
        self._own = int(constraint.selector.matches(asked.own_labels))
        self._rises = bool(self.matched[number])
        self._most: Ints = np.zeros(len(ground.daemons), dtype=np.int64)
        self.present: Bools = np.zeros(len(ground.daemons), dtype=bool)
        """Whether a node of the offering's domain counts already."""

    def read(self) -> Bools:
        """Read the counts; give the offerings for which that changed anything."""
        constraint = self._constraint
        view = counted_view(self._asked, constraint, self._keys)
        counts, there = view.counts, view.nodes_in > 0
        domains = self._ground.domains(constraint.topology_key)
        self.present = _at(there, domains) > 0
        number = int(there.sum())
        least, next_least, which = UNLIMITED, UNLIMITED, _LACKS
        if number:
            order = np.flatnonzero(there)
            order = order[np.argsort(counts[order], kind="stable")[:2]]
            which, least = int(order[0]), int(counts[order[0]])
            next_least = int(counts[order[1]]) if len(order) > 1 else UNLIMITED
        others = np.where(domains == which, next_least, least)
        others[number + ~self.present < constraint.min_domains] = 0
        most = others + constraint.max_skew - _at(counts, domains) - self.arriving
        most[domains == _LACKS] = -1
        changed: Bools = most != self._most
        self._most = most
        return changed

    def most(self, taken: Ints, rows: Rows) -> Ints:
        """How many more pods of the class go on a new node."""
        left = self._most[rows] - taken[:, self.matched].sum(axis=1)
        most: Ints = np.maximum(left, 0) if self._rises else np.where(left >= self._own, UNLIMITED, 0)
        return most


def _at(values: Ints | Bools, domains: Rows) -> Ints:
    """The values of domains; 0 where there is none."""
    known = (domains >= 0) & (domains < len(values))
    found = np.zeros(len(domains), dtype=np.int64)
    found[known] = values[domains[known]]
    return found


def _terms_against(pod: Pod) -> Sequence[PodTerm]:
    affinity = pod.spec.affinity
    if affinity is None or affinity.pod_anti_affinity is None:
        return ()
    namespace = pod.metadata.namespace or "default"
    return [parse_term(term, namespace) for term in affinity.pod_anti_affinity.required or ()]
