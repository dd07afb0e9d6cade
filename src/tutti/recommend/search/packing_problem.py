"""From the problem and a layout to a packing problem in plain numbers.

Contract: pure. `flat_of` is the packing problem of a layout. `bound_flat` is the problem without any choice of zones:
whatever holds for it holds for every layout, so bounds are proved there. It never asks for more than the real problem.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tutti.cluster.columns import Floats, Ints
from tutti.recommend.problem.pod_rules import HOSTNAME, UNLIMITED
from tutti.recommend.problem.problem import Problem
from tutti.recommend.search.column_generation.packing_input import PackingInput
from tutti.recommend.search.zone_layouts import ZoneLayout, has, sure_shares

ROOMS = 48
"""Up to so many nodes that are there are looked at one by one; more are pooled by their labels."""
_CLASSES = 120
"""Above so many classes the bound puts similar ones together."""


def flat_of(problem: Problem, layout: ZoneLayout, prices: Floats) -> PackingInput:
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
            inside = [has(offering.node.metadata.labels or {}, share.places) for offering in problem.offerings]
            allowed[:, place] &= np.array(inside, dtype=bool)
            at = [has(labels, share.places) for labels in problem.node_labels]
            welcome[:, place] &= np.array(at, dtype=bool)
    if layout.zones is not None:
        outside = np.array([value not in layout.zones for value in problem.domain(layout.key)], dtype=bool)
        narrow = allowed & ~outside[:, None]
        allowed = np.where(narrow.any(axis=0), narrow, allowed)
    return flat._replace(
        allowed=allowed, welcome=welcome, requests=requests, most=most, bound_most=most, room_most=room_most
    )


def bound_flat(problem: Problem, demand: Ints, prices: Floats) -> PackingInput:
    """The packing problem without choices of zones, with what is there pooled if it is much."""
    problem = problem._replace(welcome=problem.roomy)
    layout = ZoneLayout("bound", tuple(sure_shares(problem, demand)))
    numbers = [share.number for share in layout.shares]
    flat = flat_of(problem, layout, prices)
    most = _bound_most(problem, numbers, demand)
    extra = np.where(flat.room_most > 0, most - flat.most, 0)
    flat = coarser(flat._replace(bound_most=most, room_most=flat.room_most + extra, shared=()))
    return pooled(flat, problem.node_labels) if len(flat.room) > ROOMS else flat


def _flat(problem: Problem, numbers: Sequence[int], demand: Ints, prices: Floats) -> PackingInput:
    host = problem.rules.host
    shared = tuple((group[numbers], most) for group, most in host.shared)
    most = host.most[numbers]
    limits = problem.limits
    return PackingInput(
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
    for place, number in enumerate(numbers):
        if host.skewed[number] and most[place] < UNLIMITED:
            fewest = 1 if len(problem.room) else _fewest(problem, number, demand)
            like = int(demand[host.like[number]].sum() + host.running[number])
            most[place] += like // max(fewest, int(host.hosts[number]))
    return most


def _fewest(problem: Problem, number: int, demand: Ints) -> int:
    """How many nodes that a class may run on there are at least: those of all who may run nowhere else."""
    mine = problem.allowed[:, number]
    within = ~(problem.allowed & ~mine[:, None]).any(axis=0)
    total = (problem.requests * np.where(within, demand, 0)[:, None]).sum(axis=0)
    largest = np.maximum(problem.free[mine].max(axis=0, initial=1), 1)
    return max(int(np.ceil((total / largest).max(initial=1))), 1)


def coarser(flat: PackingInput) -> PackingInput:
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


def pooled(flat: PackingInput, labels: Sequence[Mapping[str, str]]) -> PackingInput:
    """The nodes that are there, added up where they have the same labels: never less room than there is."""
    keys: dict[frozenset[tuple[str, str]], list[int]] = {}
    for node, each in enumerate(labels):
        if flat.welcome[node].any():
            keys.setdefault(frozenset((k, v) for k, v in each.items() if k != HOSTNAME), []).append(node)
    groups = list(keys.values())
    if len(groups) > ROOMS:
        groups = [[node for group in groups for node in group]]
    room = np.array([flat.room[group].sum(axis=0) for group in groups]).reshape(len(groups), flat.room.shape[1])
    most = np.array([flat.room_most[group].sum(axis=0) for group in groups]).reshape(len(groups), -1)
    welcome = np.array([flat.welcome[group].any(axis=0) for group in groups], dtype=bool).reshape(len(groups), -1)
    return flat._replace(room=room, welcome=welcome, room_most=most)
