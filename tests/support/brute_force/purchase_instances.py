"""Small questions of what to buy, drawn from a seed, and the same as requests to the recommender."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator

from tests.support import builders
from tests.support.brute_force.purchase_search import Amounts, Instance, Kind, Machine, Purchase, Vector
from tests.support.builders import ZONE, amounts, apart, spread
from tutti.kube import objects as k
from tutti.market.offerings import Catalogue, NodePool, Offering, PoolLimit
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, RecommendOptions, Request

TYPE = "node.kubernetes.io/instance-type"
FAMILY = "family"
TAINT = "dedicated"

SIZES: dict[str, tuple[str, Amounts, int]] = {
    "c.s": ("c", (1930, 3300, 29), 85_000_000),
    "c.m": ("c", (3920, 6600, 58), 170_000_000),
    "m.s": ("m", (1930, 6900, 29), 96_000_000),
    "m.m": ("m", (3920, 14200, 58), 192_000_000),
    "m.l": ("m", (7910, 28900, 58), 384_000_000),
    "r.s": ("r", (1930, 14200, 5), 126_000_000),
    "r.m": ("r", (3920, 29000, 58), 252_000_000),
}
"""Family, room and price of instance types, about as in a cloud."""


# Drawing --------------------------------------------------------------------------------------------------------------


def instances(seeds: range) -> Iterator[Instance]:
    """An instance for each seed."""
    return (instance(seed) for seed in seeds)


def instance(seed: int) -> Instance:
    """The same seed gives the same instance: up to 4 kinds, 8 pods, 4 offers, 2 zones, perhaps nodes."""
    draw = random.Random(f"purchases/{seed}")
    zones = ("a", "b")[: draw.choice((1, 2, 2))]
    offers = _offers(draw, zones)
    kinds = _kinds(draw, zones, sorted({offer.family for offer in offers}))
    standing = _standing(draw, zones, kinds)
    maxima = {
        pool: draw.choice((0, 1, 2, 2, 3, 4))
        for pool in sorted({offer.pool for offer in offers})
        if draw.random() < 0.3
    }
    return Instance(kinds, offers, standing, maxima, name=f"seed {seed}")


def _offers(draw: random.Random, zones: tuple[str, ...]) -> tuple[Machine, ...]:
    found: list[Machine] = []
    for number, size in enumerate(draw.sample(sorted(SIZES), draw.randint(1, 3))):
        family, room, price = SIZES[size]
        tainted = draw.random() < 0.1
        for zone in zones if draw.random() < 0.7 else zones[:1]:
            dearer = draw.choice((0, 0, 0, price // 20))
            pool = f"p{number}"
            found.append(Machine(f"{size}-{zone}-{pool}", zone, room, family, tainted, price + dearer, pool))
    return tuple(found[:4])


def _kinds(draw: random.Random, zones: tuple[str, ...], families: list[str]) -> tuple[Kind, ...]:
    left, found = 8, []
    for number in range(draw.randint(1, 4)):
        count = draw.randint(1, max(1, min(left, 5)))
        cpu = 250 * draw.randint(1, 9)
        memory = 256 * max(1, round(cpu / 250 * draw.choice((0.5, 1, 1, 2, 4, 7))))
        kind = Kind(
            f"k{number}", cpu, memory, count,
            apart=draw.random() < 0.2,
            skew=draw.choice((1, 1, 2)) if draw.random() < 0.3 else None,
            family=draw.choice(families) if draw.random() < 0.12 else None,
            zone=draw.choice(zones) if draw.random() < 0.12 else None,
            tolerates=draw.random() < 0.4,
        )  # fmt: skip
        found.append(kind)
        left -= count
        if left <= 0:
            break
    return tuple(found)


def _standing(draw: random.Random, zones: tuple[str, ...], kinds: tuple[Kind, ...]) -> tuple[Machine, ...]:
    found = []
    for number in range(draw.choice((0, 0, 1, 2))):
        family, room, _ = SIZES[draw.choice(sorted(SIZES))]
        zone, tainted = draw.choice(zones), draw.random() < 0.15
        running = tuple(draw.choice((0, 0, 0, 1)) for _ in kinds)
        loads = [kind.ask for kind, n in zip(kinds, running, strict=True) for _ in range(n)]
        other = (50 * draw.randint(0, room[0] // 50), 128 * draw.randint(0, room[1] // 128), 1)
        used = tuple(map(sum, zip(other, *loads, strict=True)))
        if any(u > r for u, r in zip(used, room, strict=True)):
            running, used = tuple(0 for _ in kinds), other
        found.append(Machine(f"n{number}", zone, room, family, tainted, running=running, used=used))  # type: ignore[arg-type]
    return tuple(found)


# As a request ---------------------------------------------------------------------------------------------------------


def request(made: Instance) -> Request:
    """The question as the recommender is asked it."""
    objects: list[k.Object] = []
    for machine in made.standing:
        objects.append(_node_of(machine, machine.name))
        other = list(machine.used)
        for kind, number in zip(made.kinds, machine.running or (0,) * len(made.kinds), strict=True):
            for i in range(number):
                objects.append(_pod_of(kind, f"{kind.name}-on-{machine.name}-{i}", node=machine.name))
                other = [a - b for a, b in zip(other, kind.ask, strict=True)]
        if other[2]:
            objects.append(
                _pod_of(Kind("other", other[0], other[1], tolerates=True), f"other-{machine.name}", machine.name)
            )
    objects += [_pod_of(kind, f"{kind.name}-{i}") for kind in made.kinds for i in range(kind.count)]
    return Request(
        objects=tuple(objects),
        catalogue=Catalogue(pools=tuple(_pools(made))),
        options=RecommendOptions(binder=Binder.TUTTI),
    )


def _pools(made: Instance) -> Iterator[NodePool]:
    for pool in dict.fromkeys(offer.pool for offer in made.offers):
        offerings = tuple(
            Offering(
                pool=pool, instance_type=_type(offer.name), zone=offer.zone, price=offer.price,
                node=_node_of(offer, offer.name),
            )
            for offer in made.offers
            if offer.pool == pool
        )  # fmt: skip
        most = made.maxima.get(pool)
        limits = () if most is None else (PoolLimit(left=most, reason=f"pool {pool} has 0 of at most {most} nodes"),)
        yield NodePool(name=pool, offerings=offerings, limits=limits, maximum=most)


def _node_of(machine: Machine, name: str) -> k.Node:
    cpu, memory, pods = machine.room
    labels = {FAMILY: machine.family, TYPE: _type(name)}
    room = amounts(f"{cpu}m", f"{memory}Mi", pods=str(pods))
    taint = TAINT if machine.tainted else None
    return builders.node(name, **room, zone=machine.zone, labels=labels, taint=taint, capacity=room)


def _pod_of(kind: Kind, name: str, node: str | None = None) -> k.Pod:
    selector = {FAMILY: kind.family, ZONE: kind.zone}
    return builders.pod(
        name, f"{kind.cpu}m", memory=f"{kind.memory}Mi", on=node, app=kind.name,
        node_selector={key: value for key, value in selector.items() if value is not None} or None,
        affinity=apart(kind.name) if kind.apart else None,
        tolerates=TAINT if kind.tolerates else None,
        topology_spread_constraints=[spread(kind.name, skew=kind.skew)] if kind.skew else None,
        scheduler_name="default-scheduler",
    )  # fmt: skip


# And back -------------------------------------------------------------------------------------------------------------


def bought(made: Instance, recommendation: Recommendation) -> Purchase:
    """How many nodes of each offer a recommendation buys."""
    found = Counter((node.pool, node.instance_type, node.zone) for node in recommendation.nodes)
    return tuple(found[offer.pool, _type(offer.name), offer.zone] for offer in made.offers)


def placed(made: Instance, recommendation: Recommendation) -> list[tuple[Machine, Vector]]:
    """Which pods a recommendation puts on each node, bought or there."""
    offers = {(offer.pool, _type(offer.name), offer.zone): offer for offer in made.offers}
    there = {machine.name: machine for machine in made.standing}
    found = [(offers[node.pool, node.instance_type, node.zone], node.pods) for node in recommendation.nodes]
    for name in dict.fromkeys(each.node for each in recommendation.on_existing):
        found += [(there[name], tuple(each.pod for each in recommendation.on_existing if each.node == name))]
    return [(machine, _vector(made, pods)) for machine, pods in found]


def _vector(made: Instance, pods: tuple[str, ...]) -> Vector:
    of = Counter(pod.removeprefix("default/").rsplit("-", 1)[0] for pod in pods)
    return tuple(of[kind.name] for kind in made.kinds)


def _type(name: str) -> str:
    """The instance type that a name begins with."""
    return name.partition("-")[0]
