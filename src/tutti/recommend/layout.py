"""Layouts: which pods go to which zone, so that packing nodes is all that is left to do.

Rules over zones (or any other node label) are settled before nodes are packed: a spread becomes so many pods in each
zone, pods that must be together get one zone, pods that must be apart one each. A *share* is the part of a class that
has the same place. Which zones are used at all is a choice: every layout makes it differently.

Contract: pure. `layouts` gives the ways to try, the most promising first; `flat_of` makes a packing problem of one;
`bound_flat` is the problem without any of these choices: whatever holds for it holds for every layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Ints
from tutti.recommend.optimal.flat import Flat, Floats
from tutti.recommend.problem import Problem
from tutti.recommend.rules import HOSTNAME, UNLIMITED, DomainRule, Kind

ROOMS = 48
"""Up to so many nodes that are there are looked at one by one; more are pooled by who may go there."""


_CLASSES = 120
"""Above so many classes the bound puts similar ones together."""


class Share(NamedTuple):
    """Some pods of a class, and where they go."""

    number: int
    """The class."""
    count: int
    places: tuple[tuple[str, str], ...] = ()
    """Node labels that the place must have."""
    bundle: tuple[tuple[int, int], ...] = ()
    """Classes and counts that must all be on one node: then the share is one item, not `count` of them."""

    @property
    def items(self) -> int:
        """How many things there are to pack."""
        return 1 if self.bundle else self.count

    @property
    def each(self) -> tuple[tuple[int, int], ...]:
        """What one item is: classes and counts."""
        return self.bundle or ((self.number, 1),)


class Layout(NamedTuple):
    """A way to settle the rules over zones."""

    name: str
    shares: tuple[Share, ...]
    zones: frozenset[str] | None = None
    """The only zones to buy in; None stands for all."""
    key: str = ""


def layouts(problem: Problem, demand: Ints) -> list[Layout]:
    """The layouts to try for a demand."""
    spreads = [rule for rule in problem.rules.domains if rule.kind is Kind.SPREAD and demand[rule.holder]]
    found = [Layout("all", _Planner(problem, demand, None, "").shares())]
    if not spreads:
        return found
    key = spreads[0].key
    values = sorted({value for value in problem.domain(key) if value is not None})
    forced = {value for rule in spreads if rule.key == key for value in rule.counts}
    for value in values:
        zones = frozenset((*forced, value))
        if zones != frozenset(values) and all(rule.min_domains <= max(len(zones), 1) for rule in spreads):
            layout = Layout(f"in {value}", _Planner(problem, demand, zones, key).shares(), zones, key)
            if not any(layout.zones == other.zones for other in found):
                found.append(layout)
    return found


class _Planner:
    """Settles the rules one by one."""

    def __init__(self, problem: Problem, demand: Ints, zones: frozenset[str] | None, key: str) -> None:
        self.problem, self.demand, self.zones, self.key = problem, demand, zones, key
        self._domains = {rule.key: problem.domain(rule.key) for rule in problem.rules.domains}
        self._chosen: dict[tuple[int, str], str] = {}
        self._counts: dict[tuple[str, bytes], dict[str, int]] = {}

    def shares(self) -> tuple[Share, ...]:
        self._gather()
        shares: list[Share] = []
        for number, count in enumerate(self.demand.tolist()):
            if count:
                shares += self._of_class(number, count)
        return tuple(self._bundled(shares))

    def _bundled(self, shares: list[Share]) -> Iterable[Share]:
        """Pods that must be on one node with their like become one item, if a node can take them all."""
        together = [(n, matched) for n, matched in self.problem.rules.host.together if matched[n]]
        parent = list(range(len(self.demand)))
        for number, matched in together:
            for other in np.flatnonzero(matched & (self.demand > 0)).tolist():
                parent[_root(parent, number)] = _root(parent, other)
        sets: dict[int, list[Share]] = {}
        tied = {_root(parent, number) for number, _ in together}
        for share in shares:
            root = _root(parent, share.number)
            if root in tied:
                sets.setdefault(root, []).append(share)
            else:
                yield share
        for members in sets.values():
            bundle = tuple((share.number, share.count) for share in members)
            if len(members) == len({n for n, _ in bundle}) and self._fits_one(bundle):
                places = tuple(dict.fromkeys(place for share in members for place in share.places))
                yield Share(members[0].number, sum(count for _, count in bundle), places, bundle)
            else:
                yield from members

    def _fits_one(self, bundle: tuple[tuple[int, int], ...]) -> bool:
        """Whether some new node takes a whole bundle."""
        numbers = [number for number, _ in bundle]
        need = sum(count * self.problem.requests[number] for number, count in bundle)
        fits = (self.problem.free >= need).all(axis=1) & self.problem.allowed[:, numbers].all(axis=1)
        return bool(fits.any())

    def _of_class(self, number: int, count: int) -> list[Share]:
        fixed = tuple((key, value) for (holder, key), value in sorted(self._chosen.items()) if holder == number)
        shares = [Share(number, count, fixed)]
        for rule in self.problem.rules.domains:
            if rule.holder != number or any(rule.key == key for key, _ in fixed):
                continue
            if rule.kind is Kind.SPREAD:
                shares = [part for share in shares for part in self._spread(rule, share)]
            elif rule.kind is Kind.APART and rule.matched[number]:
                shares = [part for share in shares for part in self._apart(rule, share)]
        return shares

    # Together ---------------------------------------------------------------------------------------------------------

    def _gather(self) -> None:
        """Choose a domain for every set of classes that must share one."""
        rules = [rule for rule in self.problem.rules.domains if rule.kind is Kind.TOGETHER and self.demand[rule.holder]]
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
        inside = np.array([each == value for each in self._domains[key]]) & problem.allowed[:, number]
        if not inside.any():
            welcome = any(
                problem.welcome[node, number] and labels.get(key) == value
                for node, labels in enumerate(problem.node_labels)
            )
            return 1e12 if welcome else 1e15
        prices = np.array([offering.price or 10**9 for offering in problem.offerings], dtype=np.float64)
        share = (problem.requests[number] / np.maximum(problem.free, 1)).max(axis=1)
        return float((prices * share)[inside].min() * self.demand[number])

    # Spread and apart -------------------------------------------------------------------------------------------------

    def _places_for(self, rule: DomainRule, share: Share) -> list[str]:
        """The domains in which pods of a share can have a node."""
        problem, number = self.problem, share.number
        domain = self._domains[rule.key]
        open_to = {
            domain[o]
            for o in np.flatnonzero(problem.allowed[:, number]).tolist()
            if _has(problem.offerings[o].node.metadata.labels or {}, share.places)
        }
        if self.zones is not None and rule.key == self.key:
            open_to &= self.zones
        for node in np.flatnonzero(problem.welcome[:, number]).tolist():
            if _has(problem.node_labels[node], share.places):
                open_to.add(problem.node_labels[node].get(rule.key))
        return sorted(value for value in open_to if value is not None)

    def _spread(self, rule: DomainRule, share: Share) -> Iterable[Share]:
        counts = self._counts.setdefault((rule.key, rule.matched.tobytes()), dict(rule.counts))
        values = self._places_for(rule, share)
        for value in values:
            counts.setdefault(value, 0)
        given = dict.fromkeys(values, 0)
        matters = bool(rule.matched[share.number])
        left = share.count
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
        yield from (share._replace(count=n, places=(*share.places, (rule.key, v))) for v, n in given.items() if n)
        if left:  # more than the rule allows: the engine will say so
            yield share._replace(count=left)

    def _apart(self, rule: DomainRule, share: Share) -> Iterable[Share]:
        taken = self._counts.setdefault((rule.key, rule.matched.tobytes() + b"apart"), dict(rule.counts))
        left = share.count
        for value in self._places_for(rule, share):
            if left and not taken.get(value):
                taken[value] = 1
                left -= 1
                yield share._replace(count=1, places=(*share.places, (rule.key, value)))
        if left:
            yield share._replace(count=left)


def _root(parent: list[int], number: int) -> int:
    while parent[number] != number:
        number = parent[number]
    return number


def _has(labels: Mapping[str, str], places: Iterable[tuple[str, str]]) -> bool:
    return all(labels.get(key) == value for key, value in places)


def flat_of(problem: Problem, layout: Layout, prices: Floats) -> Flat:
    """The packing problem of a layout: one class of items per share."""
    shares = layout.shares
    flat = _flat(
        problem, [share.number for share in shares], np.array([s.items for s in shares], dtype=np.int64), prices
    )
    allowed, welcome, requests = flat.allowed.copy(), flat.welcome.copy(), flat.requests.copy()
    most, room_most = flat.most.copy(), flat.room_most.copy()
    for place, share in enumerate(shares):
        if share.bundle:
            numbers = [number for number, _ in share.bundle]
            requests[place] = sum(count * problem.requests[number] for number, count in share.bundle)
            allowed[:, place] = problem.allowed[:, numbers].all(axis=1) & (problem.free >= requests[place]).all(axis=1)
            fits = problem.welcome[:, numbers].all(axis=1) & (problem.room >= requests[place]).all(axis=1)
            welcome[:, place], room_most[:, place], most[place] = fits, fits, 1
        if share.places:
            inside = [_has(offering.node.metadata.labels or {}, share.places) for offering in problem.offerings]
            allowed[:, place] &= np.array(inside, dtype=bool)
            at = [_has(labels, share.places) for labels in problem.node_labels]
            welcome[:, place] &= np.array(at, dtype=bool)
    if layout.zones is not None:
        outside = np.array([value not in layout.zones for value in problem.domain(layout.key)], dtype=bool)
        narrow = allowed & ~outside[:, None]
        allowed = np.where(narrow.any(axis=0), narrow, allowed)
    return flat._replace(
        allowed=allowed, welcome=welcome, requests=requests, most=most, bound_most=most, room_most=room_most
    )


def bound_flat(problem: Problem, demand: Ints, prices: Floats) -> Flat:
    """The packing problem without rules over zones, with what is there pooled if it is much."""
    numbers = np.flatnonzero(demand).tolist()
    flat = _flat(problem, numbers, demand[numbers], prices)
    most = _bound_most(problem, numbers, demand)
    extra = np.where(flat.room_most > 0, most - flat.most, 0)
    flat = coarser(flat._replace(bound_most=most, room_most=flat.room_most + extra))
    return pooled(flat, problem.node_labels) if len(flat.room) > ROOMS else flat


def _flat(problem: Problem, numbers: Sequence[int], demand: Ints, prices: Floats) -> Flat:
    host = problem.rules.host
    shared = tuple((group[numbers], most) for group, most in host.shared)
    most = host.most[numbers]
    limits = problem.limits
    return Flat(
        requests=problem.requests[numbers].astype(np.float64),
        demand=demand,
        most=most,
        bound_most=most,
        apart=host.apart[np.ix_(numbers, numbers)],
        shared=tuple((group, cap) for group, cap in shared if group.any()),
        free=problem.free.astype(np.float64),
        allowed=problem.allowed[:, numbers],
        price=prices,
        takes=np.array([row.takes for row in limits], dtype=np.float64).reshape(len(limits), len(problem.offerings)),
        left=np.array([row.left for row in limits], dtype=np.float64),
        room=problem.room.astype(np.float64),
        welcome=problem.welcome[:, numbers],
        room_most=_room_most(problem, numbers),
    )


def _room_most(problem: Problem, numbers: Sequence[int]) -> Ints:
    """How many pods of each class fit a node that is there, with nobody else."""
    requests = problem.requests[numbers]
    safe = np.where(requests > 0, requests, 1)
    fits = np.where(requests > 0, problem.room[:, None, :] // safe, UNLIMITED).min(axis=2)
    most: Ints = np.where(problem.welcome[:, numbers], np.minimum(fits, problem.rules.host.most[numbers]), 0)
    return most


def _bound_most(problem: Problem, numbers: Sequence[int], demand: Ints) -> Ints:
    """How many pods of each class any node can hold in any plan: more than `most` where all nodes have some."""
    host = problem.rules.host
    most = host.most[numbers].copy()
    total = (problem.requests * demand[:, None]).sum(axis=0)
    largest = np.maximum(problem.free.max(axis=0, initial=1), 1)
    fewest = 1 if len(problem.room) else max(int(np.ceil((total / largest).max(initial=1))), 1)
    for place, number in enumerate(numbers):
        if host.skewed[number] and most[place] < UNLIMITED:
            like = int(demand[number] + host.running[number])
            most[place] += like // max(fewest, int(host.hosts[number]))
    return most


def coarser(flat: Flat) -> Flat:
    """Classes that may go to the same places as one, with the least that any of them asks for: never harder to pack.

    Many classes are put together by their rough size; few only if they ask for the same.
    """
    step = np.log(1.02 if len(flat.demand) <= _CLASSES else 1.25)
    sizes = np.round(np.log(np.maximum(flat.requests, 1)) / step).astype(np.int64)
    if len(flat.demand) <= _CLASSES // 2:
        sizes = flat.requests.astype(np.int64)
    groups: dict[tuple[bytes, ...], list[int]] = {}
    for number in range(len(flat.demand)):
        key = (flat.allowed[:, number].tobytes(), flat.welcome[:, number].tobytes(), sizes[number].tobytes())
        groups.setdefault((*key, bytes(str(flat.bound_most[number]), "ascii")), []).append(number)
    members = list(groups.values())
    if len(members) == len(flat.demand):
        return flat
    firsts = [group[0] for group in members]
    return flat._replace(
        requests=np.array([flat.requests[group].min(axis=0) for group in members]),
        demand=np.array([flat.demand[group].sum() for group in members], dtype=np.int64),
        most=np.array([flat.most[group].sum() for group in members], dtype=np.int64),
        bound_most=np.array([flat.bound_most[group].sum() for group in members], dtype=np.int64),
        apart=np.zeros((len(members), len(members)), dtype=bool),
        shared=(),
        allowed=flat.allowed[:, firsts],
        welcome=flat.welcome[:, firsts],
        room_most=np.stack([flat.room_most[:, group].sum(axis=1) for group in members], axis=1),
    )


def pooled(flat: Flat, labels: Sequence[Mapping[str, str]]) -> Flat:
    """The nodes that are there, added up where they have the same labels: never less room than there is."""
    keys: dict[frozenset[tuple[str, str]], list[int]] = {}
    for node, each in enumerate(labels):
        if flat.welcome[node].any():
            keys.setdefault(frozenset((k, v) for k, v in each.items() if k != HOSTNAME), []).append(node)
    groups = list(keys.values())
    if len(groups) > ROOMS:
        groups = [[node for group in groups for node in group]]

    def added(column: Ints | Floats) -> Ints | Floats:
        return np.array([column[group].sum(axis=0) for group in groups]).reshape(len(groups), column.shape[1])

    welcome = np.array([flat.welcome[group].any(axis=0) for group in groups], dtype=bool).reshape(len(groups), -1)
    return flat._replace(room=added(flat.room), welcome=welcome, room_most=added(flat.room_most))
