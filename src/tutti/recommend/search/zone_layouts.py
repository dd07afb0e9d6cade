"""Layouts: which pods go to which zone, so that packing nodes is all that is left to do.

Rules over zones (or any other node label) are settled before nodes are packed: a spread becomes so many pods in each
zone, pods that must be together get one zone, pods that must be apart one each. A *share* is the part of a class that
has the same place. Which zones are used at all is a choice: every layout makes it differently.

Contract: pure. `layouts` gives the ways to try, the most promising first; `flatten` makes packing problems of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Ints
from tutti.recommend.problem.pod_rules import DomainRule, RuleKind
from tutti.recommend.problem.problem import Problem
from tutti.recommend.records.draft import Draft


class PodShare(NamedTuple):
    """Some pods of a class, and where they go."""

    number: int
    """The class."""
    pods: int
    places: tuple[tuple[str, str], ...] = ()
    """Node labels that the place must have."""
    bundle: tuple[tuple[int, int], ...] = ()
    """Classes and counts that must all be on one node: then the share is one item, not `pods` of them."""

    @property
    def items(self) -> int:
        """How many things there are to pack."""
        return 1 if self.bundle else self.pods

    @property
    def each(self) -> tuple[tuple[int, int], ...]:
        """What one item is: classes and counts."""
        return self.bundle or ((self.number, 1),)


class ZoneLayout(NamedTuple):
    """A way to settle the rules over zones."""

    name: str
    shares: tuple[PodShare, ...]
    zones: frozenset[str] | None = None
    """The only zones to buy in; None stands for all."""
    key: str = ""


def layouts(problem: Problem, demand: Ints, *, hint: Draft | None = None) -> list[ZoneLayout]:
    """The layouts to try for a demand; a draft may hint at where gangs can start."""
    places = gang_places(problem, hint) if hint is not None else {}
    spreads = [rule for rule in problem.rules.domains if rule.kind is RuleKind.SPREAD and demand[rule.holder]]
    found = [ZoneLayout("all", _Planner(problem, demand, None, "", places).shares())]
    if not spreads:
        return found
    key = spreads[0].key
    values = sorted({value for value in problem.domain(key) if value is not None})
    forced = {value for rule in spreads if rule.key == key for value in rule.counts}
    for value in values:
        zones = frozenset((*forced, value))
        if zones != frozenset(values) and all(rule.min_domains <= max(len(zones), 1) for rule in spreads):
            layout = ZoneLayout(f"in {value}", _Planner(problem, demand, zones, key, places).shares(), zones, key)
            if not any(layout.zones == other.zones for other in found):
                found.append(layout)
    return found


class _Planner:
    """Settles the rules one by one."""

    def __init__(
        self,
        problem: Problem,
        demand: Ints,
        zones: frozenset[str] | None,
        key: str,
        places: Mapping[tuple[int, str], str],
    ) -> None:
        self.problem, self.demand, self.zones, self.key = problem, demand, zones, key
        self._hinted = places
        self._domains = {rule.key: problem.domain(rule.key) for rule in problem.rules.domains}
        self._chosen: dict[tuple[int, str], str] = {}
        self._counts: dict[tuple[str, bytes], dict[str, int]] = {}

    def shares(self) -> tuple[PodShare, ...]:
        self._gather()
        shares: list[PodShare] = []
        for number, count in enumerate(self.demand.tolist()):
            if count:
                shares += self._of_class(number, count)
        return tuple(self._bundled(shares))

    def _bundled(self, shares: list[PodShare]) -> Iterable[PodShare]:
        """Pods that must be on one node with their like become one item, if a node can take them all."""
        together = [(n, matched) for n, matched in self.problem.rules.host.together if matched[n]]
        parent = list(range(len(self.demand)))
        for number, matched in together:
            for other in np.flatnonzero(matched & (self.demand > 0)).tolist():
                parent[_root(parent, number)] = _root(parent, other)
        sets: dict[int, list[PodShare]] = {}
        tied = {_root(parent, number) for number, _ in together}
        for share in shares:
            root = _root(parent, share.number)
            if root in tied:
                sets.setdefault(root, []).append(share)
            else:
                yield share
        for members in sets.values():
            bundle = tuple((share.number, share.pods) for share in members)
            if len(members) == len({n for n, _ in bundle}) and self._fits_one(bundle):
                places = tuple(dict.fromkeys(place for share in members for place in share.places))
                yield PodShare(members[0].number, sum(count for _, count in bundle), places, bundle)
            else:
                yield from members

    def _fits_one(self, bundle: tuple[tuple[int, int], ...]) -> bool:
        """Whether some new node takes a whole bundle."""
        numbers = [number for number, _ in bundle]
        need = sum(count * self.problem.requests[number] for number, count in bundle)
        fits = (self.problem.free >= need).all(axis=1) & self.problem.allowed[:, numbers].all(axis=1)
        return bool(fits.any())

    def _of_class(self, number: int, count: int) -> list[PodShare]:
        fixed = tuple((key, value) for (holder, key), value in sorted(self._chosen.items()) if holder == number)
        shares = [PodShare(number, count, fixed)]
        for rule in self.problem.rules.domains:
            if rule.holder != number or any(rule.key == key for key, _ in fixed):
                continue
            if rule.kind is RuleKind.SPREAD:
                shares = [part for share in shares for part in self._spread(rule, share)]
            elif rule.kind is RuleKind.APART and rule.matched[number]:
                shares = [part for share in shares for part in self._apart(rule, share)]
        return shares

    # Together ---------------------------------------------------------------------------------------------------------

    def _gather(self) -> None:
        """Choose a domain for every set of classes that must share one."""
        rules = [
            rule for rule in self.problem.rules.domains if rule.kind is RuleKind.TOGETHER and self.demand[rule.holder]
        ]
        for key in dict.fromkeys(rule.key for rule in rules):
            parent = list(range(len(self.demand)))
            for rule in (rule for rule in rules if rule.key == key):
                for other in np.flatnonzero(rule.matched & (self.demand > 0)).tolist():
                    parent[_root(parent, rule.holder)] = _root(parent, other)
            sets: dict[int, list[int]] = {}
            for number in {rule.holder for rule in rules if rule.key == key}:
                sets.setdefault(_root(parent, number), []).append(number)
            for members in sets.values():
                everybody = sorted(
                    {*members, *(n for n in range(len(parent)) if _root(parent, n) == _root(parent, members[0]))}
                )
                value = self._domain_for(key, everybody, [r for r in rules if r.key == key and r.holder in members])
                if value is not None:
                    self._chosen |= {(number, key): value for number in everybody if self.demand[number]}

    def _domain_for(self, key: str, members: Sequence[int], rules: Sequence[DomainRule]) -> str | None:
        """The domain in which some classes cost least, where those that run already are if there are any."""
        for number in members:
            if (number, key) in self._hinted:
                return self._hinted[number, key]
        drawn = [set(rule.counts) for rule in rules if rule.counts]
        values = set.intersection(*drawn) if drawn else {value for value in self._domains[key] if value is not None}
        if self.zones is not None and key == self.key and values & self.zones:
            values &= self.zones
        best: tuple[float, str] | None = None
        for value in sorted(values):
            cost = sum(self._estimate(key, value, number) for number in members)
            if best is None or cost < best[0]:
                best = (cost, value)
        return best[1] if best else None

    def _estimate(self, key: str, value: str, number: int) -> float:
        """What the pods of a class would cost in a domain, by the share of a node that each takes."""
        problem = self.problem
        inside = np.array([each == value for each in self._domains[key]], dtype=bool) & problem.allowed[:, number]
        if not inside.any():
            welcome = any(
                problem.welcome[node, number] and labels.get(key) == value
                for node, labels in enumerate(problem.node_labels)
            )
            return 1e12 if welcome else 1e15
        prices = np.array(
            [10**9 if offering.price is None else offering.price for offering in problem.offerings], dtype=np.float64
        )
        share = (problem.requests[number] / np.maximum(problem.free, 1)).max(axis=1)
        return float((prices * share)[inside].min() * self.demand[number])

    # Spread and apart -------------------------------------------------------------------------------------------------

    def _places_for(self, rule: DomainRule, share: PodShare) -> list[str]:
        """The domains in which pods of a share can have a node."""
        problem, number = self.problem, share.number
        domain = self._domains[rule.key]
        open_to = {
            domain[o]
            for o in np.flatnonzero(problem.allowed[:, number]).tolist()
            if has(problem.offerings[o].node.metadata.labels or {}, share.places)
        }
        if self.zones is not None and rule.key == self.key:
            open_to &= self.zones
        for node in np.flatnonzero(problem.welcome[:, number]).tolist():
            if has(problem.node_labels[node], share.places):
                open_to.add(problem.node_labels[node].get(rule.key))
        return sorted(value for value in open_to if value is not None)

    def _spread(self, rule: DomainRule, share: PodShare) -> Iterable[PodShare]:
        counts = self._counts.setdefault((rule.key, rule.matched.tobytes()), dict(rule.counts))
        values = self._places_for(rule, share)
        for value in values:
            counts.setdefault(value, 0)
        given = dict.fromkeys(values, 0)
        matters = bool(rule.matched[share.number])
        left = share.pods
        while left and values:
            least = min(counts.values()) if len(counts) >= rule.min_domains else 0
            value = min(values, key=lambda each: (counts[each], each))
            if counts[value] + 1 - least > rule.skew:
                break
            given[value] += 1
            counts[value] += matters
            left -= 1
            if not matters:
                given[value] += left
                left = 0
        yield from (share._replace(pods=n, places=(*share.places, (rule.key, v))) for v, n in given.items() if n)
        if left:  # more than the rule allows: the engine will say so
            yield share._replace(pods=left)

    def _apart(self, rule: DomainRule, share: PodShare) -> Iterable[PodShare]:
        taken = self._counts.setdefault((rule.key, rule.matched.tobytes() + b"apart"), dict(rule.counts))
        left = share.pods
        for value in self._places_for(rule, share):
            if left and not taken.get(value):
                taken[value] = 1
                left -= 1
                yield share._replace(pods=1, places=(*share.places, (rule.key, value)))
        if left:
            yield share._replace(pods=left)


def gang_places(problem: Problem, draft: Draft) -> dict[tuple[int, str], str]:
    """Where a draft has put gangs whose pods must share a label: by class and label."""
    keys = {
        rule.holder: rule.key
        for rule in problem.rules.domains
        if rule.kind is RuleKind.TOGETHER and problem.classes[rule.holder].gang is not None
    }
    found: dict[tuple[int, str], str] = {}
    if not keys:
        return found
    number_of = problem.of_pod
    for bought in draft.bought:
        labels = problem.offerings[bought.offering].node.metadata.labels or {}
        for number in {number_of[pod] for pod in bought.pods if pod in number_of}:
            if number in keys and keys[number] in labels:
                found[number, keys[number]] = labels[keys[number]]
    return found


def _root(parent: list[int], number: int) -> int:
    while parent[number] != number:
        number = parent[number]
    return number


def has(labels: Mapping[str, str], places: Iterable[tuple[str, str]]) -> bool:
    """Whether labels say that a node is in some places."""
    return all(labels.get(key) == value for key, value in places)


def sure_shares(problem: Problem, demand: Ints) -> Iterable[PodShare]:
    """Shares that every plan has: how many pods of a spread are in each zone at least, and the rest anywhere.

    That is known only where every zone counts: it has a node already, or the spread wants as many zones as there are.
    """
    rules: dict[int, list[DomainRule]] = {}
    for rule in problem.rules.domains:
        rules.setdefault(rule.holder, []).append(rule)
    for number in np.flatnonzero(demand).tolist():
        left = int(demand[number])
        mine = rules.get(number, [])
        if len(mine) == 1 and mine[0].kind is RuleKind.SPREAD and np.flatnonzero(mine[0].matched).tolist() == [number]:
            for value, least in _least(problem, mine[0], left).items():
                yield PodShare(number, least, ((mine[0].key, value),))
                left -= least
        if left:
            yield PodShare(number, left)


def _least(problem: Problem, rule: DomainRule, pods: int) -> dict[str, int]:
    """How many of the pods of a spread go to each domain at least; empty when that is not known."""
    domain = problem.domain(rule.key)
    open_to = {domain[o] for o in np.flatnonzero(problem.allowed[:, rule.holder]).tolist()} - {None}
    open_to |= {
        problem.node_labels[node].get(rule.key) for node in np.flatnonzero(problem.welcome[:, rule.holder]).tolist()
    } - {None}
    values = {value for value in open_to if value is not None} | set(rule.counts)
    if not values or not (values <= set(rule.counts) or rule.min_domains >= len(values)):
        return {}
    counts = {value: rule.counts.get(value, 0) for value in sorted(values)}
    shares = {value: _at_least(value, counts, rule.skew, pods) for value in counts}
    return {value: count for value, count in shares.items() if count}


def _at_least(value: str, counts: Mapping[str, int], skew: int, pods: int) -> int:
    """The fewest pods that a domain must get so that the others can take the rest, none more than `skew` above it."""
    mine, others = counts[value], [count for other, count in counts.items() if other != value]
    number = 0
    while number + sum(max(0, mine + number + skew - count) for count in others) < pods:
        number += 1
    return number
