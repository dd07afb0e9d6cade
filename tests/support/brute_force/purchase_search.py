"""What a small cluster should buy, by trying everything: plain data, plain code, nothing of the recommender or engine.

Contract: `solve` gives the largest number of pods that can be placed and the least that has to be paid for that,
`cheapest` the least for just these pods, `faults` what is wrong with a plan. All bought nodes are there before the
first pod is placed, and a pod may be put wherever kube-scheduler's filters allow it at its turn. Complete, therefore
only for some kinds of pods, some pods and some offers.

How: a zone's nodes take a set of vectors (pods of each kind); kinds meet each other only on a node, and zones meet only
in the spread of one kind. So the sets of zones are put together, one vector of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import product

Amounts = tuple[int, int, int]
"""Millicores, MiB, pods."""
Vector = tuple[int, ...]
"""How many pods of each kind."""
Purchase = tuple[int, ...]
"""How many nodes of each offer."""


@dataclass(frozen=True)
class Kind:
    """Equal pods that wait."""

    name: str
    cpu: int
    memory: int
    count: int = 1
    apart: bool = False
    """No two of the kind on a node."""
    skew: int | None = None
    """The largest difference between zones in the number of its pods."""
    family: str | None = None
    """The only family of nodes that its selector admits."""
    zone: str | None = None
    """The only zone that its selector admits."""
    tolerates: bool = False

    @property
    def ask(self) -> Amounts:
        """What one of the pods takes."""
        return self.cpu, self.memory, 1


@dataclass(frozen=True)
class Machine:
    """A node: one that can be bought, or one that stands there."""

    name: str
    zone: str
    room: Amounts
    family: str = "m"
    tainted: bool = False
    price: int = 0
    pool: str = ""
    running: Vector = ()
    """Pods of each kind that run on it, besides those that wait; their load is part of `used`."""
    used: Amounts = (0, 0, 0)

    @property
    def free(self) -> Amounts:
        """What is left of it."""
        return tuple(has - used for has, used in zip(self.room, self.used, strict=True))  # type: ignore[return-value]

    def runs(self, kind: int) -> int:
        """How many pods of a kind run on it."""
        return self.running[kind] if self.running else 0

    def admits(self, kind: Kind) -> bool:
        """Whether it is one that the pod's selector names: only such a node makes its zone count for the spread."""
        return kind.family in (None, self.family) and kind.zone in (None, self.zone)

    def takes(self, kind: Kind) -> bool:
        """Whether a pod may be here at all, were there room."""
        return self.admits(kind) and (kind.tolerates or not self.tainted)


@dataclass(frozen=True)
class Instance:
    """Pods that wait, what can be bought, and what is there."""

    kinds: tuple[Kind, ...]
    offers: tuple[Machine, ...]
    standing: tuple[Machine, ...] = ()
    maxima: Mapping[str, int] = field(default_factory=dict)
    """How many nodes of a pool may be bought; as many as one likes of others."""
    name: str = field(default="", compare=False)

    @property
    def counts(self) -> Vector:
        """How many pods of each kind wait."""
        return tuple(kind.count for kind in self.kinds)

    @cached_property
    def zones(self) -> list[str]:
        """The zones of all nodes, there or not."""
        return sorted({machine.zone for machine in (*self.offers, *self.standing)})


# Answers --------------------------------------------------------------------------------------------------------------


def solve(instance: Instance) -> tuple[int, int]:
    """The largest number of pods that can be placed, and the least cost of doing so."""
    search = _Search(instance)
    best = (-1, 0)
    for cost, purchase in purchases(instance):
        placed = search.most(purchase, better_than=best[0])
        if placed > best[0]:
            best = placed, cost
        if best[0] == sum(instance.counts):
            break
    return best


def cheapest(instance: Instance, counts: Vector) -> int | None:
    """The least cost of placing just so many pods of each kind; None when that cannot be done."""
    search = _Search(instance)
    return next((cost for cost, purchase in purchases(instance) if search.holds(purchase, counts)), None)


def purchases(instance: Instance) -> list[tuple[int, Purchase]]:
    """All that could be bought, cheapest first: one node for each pod at most, since an empty node has no use.

    An empty node can only hurt: its zone may then count for the spread, with no pod in it.
    """
    pods = sum(instance.counts)
    found = []
    for purchase in product(range(pods + 1), repeat=len(instance.offers)):
        if sum(purchase) > pods:
            continue
        bought = Counter[str]()
        for number, offer in zip(purchase, instance.offers, strict=True):
            bought[offer.pool] += number
        if all(bought[pool] <= most for pool, most in instance.maxima.items()):
            found.append((sum(n * offer.price for n, offer in zip(purchase, instance.offers, strict=True)), purchase))
    return sorted(found)


class _Search:
    """Which pods a purchase can hold."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._zones: dict[tuple[str, Purchase], list[Vector]] = {}
        self._machines: dict[Machine, list[Vector]] = {}

    def most(self, purchase: Purchase, *, better_than: int) -> int:
        """The largest number of pods that can be placed, or `better_than` if that is not less."""
        best = better_than
        if sum(map(min, self._at_most(purchase), self._instance.counts)) <= best:
            return best
        for vectors in self._combinations(purchase):
            placed = sum(map(sum, vectors))
            if placed > best and self._even(purchase, vectors):
                best = placed
        return best

    def holds(self, purchase: Purchase, counts: Vector) -> bool:
        """Whether just so many pods of each kind can be placed."""
        return _within(counts, self._at_most(purchase)) and any(
            tuple(map(sum, zip(*vectors, strict=True))) == counts and self._even(purchase, vectors)
            for vectors in self._combinations(purchase)
        )

    def _at_most(self, purchase: Purchase) -> Vector:
        """How many pods of each kind have room if there are no others."""
        tops = [map(max, zip(*self._zone(zone, purchase), strict=True)) for zone in self._instance.zones]
        return tuple(map(sum, zip(*tops, strict=True)))

    def _combinations(self, purchase: Purchase) -> Iterator[tuple[Vector, ...]]:
        """A vector for each zone, in every way that places no more pods than wait."""
        counts = self._instance.counts
        for vectors in product(*(self._zone(zone, purchase) for zone in self._instance.zones)):
            if all(sum(each) <= n for each, n in zip(zip(*vectors, strict=True), counts, strict=True)):
                yield vectors

    def _zone(self, zone: str, purchase: Purchase) -> list[Vector]:
        """The vectors that the nodes of a zone can take."""
        offers = self._instance.offers
        here = tuple(n if offer.zone == zone else 0 for n, offer in zip(purchase, offers, strict=True))
        if (zone, here) not in self._zones:
            empty = tuple(0 for _ in self._instance.kinds)
            found = {empty}
            for machine in present(self._instance, here):
                if machine.zone == zone:
                    found = {
                        both
                        for a, b in product(found, self._machine(machine))
                        if _within(both := tuple(map(sum, zip(a, b, strict=True))), self._instance.counts)
                    }
            self._zones[zone, here] = sorted(found)
        return self._zones[zone, here]

    def _machine(self, machine: Machine) -> list[Vector]:
        """The vectors that one node can take."""
        if machine not in self._machines:
            kinds = self._instance.kinds
            limits = [_most_alone(machine, place, kind) for place, kind in enumerate(kinds)]
            self._machines[machine] = [
                vector
                for vector in product(*(range(limit + 1) for limit in limits))
                if _within(_load(kinds, vector), machine.free)
            ]
        return self._machines[machine]

    def _even(self, purchase: Purchase, vectors: Sequence[Vector]) -> bool:
        machines, zones = present(self._instance, purchase), self._instance.zones
        return all(
            is_even(kind, place, machines, {zone: v[place] for zone, v in zip(zones, vectors, strict=True)})
            for place, kind in enumerate(self._instance.kinds)
        )


def present(instance: Instance, purchase: Purchase) -> list[Machine]:
    """The nodes that are there once a purchase is made."""
    bought = [offer for n, offer in zip(purchase, instance.offers, strict=True) for _ in range(n)]
    return [*instance.standing, *bought]


def _most_alone(machine: Machine, place: int, kind: Kind) -> int:
    """How many pods of a kind a node takes if there are no others."""
    if not machine.takes(kind):
        return 0
    if kind.apart:
        return min(kind.count, 1 - min(machine.runs(place), 1))
    return kind.count


def _load(kinds: Sequence[Kind], vector: Vector) -> Amounts:
    asks = [kind.ask for kind in kinds]
    return tuple(sum(n * ask[d] for n, ask in zip(vector, asks, strict=True)) for d in range(3))  # type: ignore[return-value]


def _within(less: Sequence[int], more: Sequence[int]) -> bool:
    return all(a <= b for a, b in zip(less, more, strict=True))


def is_even(kind: Kind, place: int, machines: Sequence[Machine], placed: Mapping[str, int]) -> bool:
    """Whether pods of a kind can come to be in zones in these numbers, one after the other, within the skew.

    At each step the pod's zone may have at most `skew` pods more than the zone with the fewest, among the zones with a
    node that the selector admits; only pods on such nodes count, and taints do not matter to that. Filling the
    emptiest zone first is the best order, and with it the last pod of each zone decides: the zones that get pods are
    within the skew of the fewest at the end.
    """
    if kind.skew is None:
        return True
    before = Counter[str]()
    for machine in machines:
        if machine.admits(kind):
            before[machine.zone] += machine.runs(place)
    after = {zone: running + placed.get(zone, 0) for zone, running in before.items()}
    return all(zone in after and after[zone] - min(after.values()) <= kind.skew for zone, n in placed.items() if n)


# A plan ---------------------------------------------------------------------------------------------------------------


def faults(instance: Instance, purchase: Purchase, placed: Sequence[tuple[Machine, Vector]]) -> list[str]:
    """What is wrong with a plan: nodes bought of each offer, and the pods on each node that is bought or stands."""
    kinds, found = instance.kinds, []
    bought, used = Counter[str](), Counter(machine for machine, _ in placed)
    for number, offer in zip(purchase, instance.offers, strict=True):
        bought[offer.pool] += number
    found += [f"pool {pool}: {bought[pool]} of {most}" for pool, most in instance.maxima.items() if bought[pool] > most]
    found += [
        f"{m.name}: used more often than there" for m, n in (used - Counter(present(instance, purchase))).items() if n
    ]
    for machine, vector in placed:
        if not _within(_load(kinds, vector), machine.free):
            found.append(f"{machine.name}: no room for {vector}")
        for place, kind in enumerate(kinds):
            if vector[place] > _most_alone(machine, place, kind):
                found.append(f"{machine.name}: {vector[place]} pods {kind.name}")
    for place, kind in enumerate(kinds):
        zones = Counter[str]()
        for machine, vector in placed:
            zones[machine.zone] += vector[place]
        if sum(zones.values()) > kind.count:
            found.append(f"more pods {kind.name} than wait")
        if not is_even(kind, place, present(instance, purchase), zones):
            found.append(f"pods {kind.name} are spread {dict(zones)}")
    return found
