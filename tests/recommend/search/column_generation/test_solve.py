"""The packing problem alone, against every other packing."""

import itertools
import random

import numpy as np
import pytest

from tutti.cluster.work.meter import Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.replay.kube_scheduler_binder import purchases_between
from tutti.recommend.search.column_generation.knapsack_bounds import exact, surrogate
from tutti.recommend.search.column_generation.packing_input import PackingInput, undominated
from tutti.recommend.search.column_generation.pattern_heuristics import alone, best_patterns, varied_patterns
from tutti.recommend.search.column_generation.solve import bound_of, solve

BIG = 1 << 40


def draw(seed, *, limited=False):
    """A small problem: up to 3 classes, 3 kinds, 4 resources of which most classes ask for only some."""
    chance = random.Random(seed)
    classes, kinds, resources = chance.randint(1, 3), chance.randint(1, 3), chance.randint(2, 4)
    requests = np.array(
        [[chance.choice((0, 1, 2, 3, 5)) for _ in range(resources)] for _ in range(classes)], dtype=float
    )
    requests[:, 0] = np.maximum(requests[:, 0], 1)
    free = np.array([[chance.choice((0, 4, 6, 9)) for _ in range(resources)] for _ in range(kinds)], dtype=float)
    free[:, 0] = [chance.choice((4, 6, 9)) for _ in range(kinds)]
    most = np.array([chance.choice((1, 2, BIG, BIG)) for _ in range(classes)], dtype=np.int64)
    apart = np.zeros((classes, classes), dtype=bool)
    if classes > 1 and chance.random() < 0.3:
        apart[0, 1] = apart[1, 0] = True
    allowed = (free[:, None, :] >= requests[None]).all(axis=2)
    allowed &= np.array([[chance.random() < 0.9 for _ in range(classes)] for _ in range(kinds)])
    left = np.array([chance.randint(1, 4)] if limited else [], dtype=float)
    return PackingInput(
        requests=requests, demand=np.array([chance.randint(1, 5) for _ in range(classes)], dtype=np.int64),
        most=most, bound_most=most, apart=apart, shared=(), free=free, allowed=allowed,
        price=np.array([chance.randint(2, 12) for _ in range(kinds)], dtype=float),
        takes=np.ones((len(left), kinds)), left=left, room=np.zeros((0, resources)),
        welcome=np.zeros((0, classes), dtype=bool), room_most=np.zeros((0, classes), dtype=np.int64),
    )  # fmt: skip


def patterns(flat, kind):
    for counts in itertools.product(*(range(int(demand) + 1) for demand in flat.demand)):
        pattern = np.array(counts)
        if pattern.any() and flat.fits(pattern)[kind] and flat.obeys(pattern):
            yield counts


def cheapest(flat):
    """The least cost of covering each demand with any number of nodes, by the demand and the number."""
    kinds = [(float(flat.price[kind]), list(patterns(flat, kind))) for kind in range(len(flat.price))]
    nodes = int(flat.left[0]) if len(flat.left) else int(flat.demand.sum())
    best = {tuple([0] * len(flat.demand)): 0.0}
    for _ in range(nodes):
        found = dict(best)
        for done, cost in best.items():
            for price, options in kinds:
                for counts in options:
                    more = tuple(a + b for a, b in zip(done, counts, strict=True))
                    if all(a <= b for a, b in zip(more, flat.demand.tolist(), strict=True)):
                        found[more] = min(found.get(more, np.inf), cost + price)
        best = found
    return best


def in_time():
    return WorkBudget.of_seconds(10**9, itertools.count().__next__)


@pytest.mark.parametrize("seed", range(120))
def test_bound_optimum_and_cost(seed):
    flat = draw(seed, limited=seed % 3 == 0)
    every = cheapest(flat)
    solved = solve(flat, in_time())
    placed = tuple((flat.demand - solved.packing.dropped).tolist())
    most = max(map(sum, every))
    assert sum(placed) == most
    assert solved.packing.cost(flat) == min(cost for done, cost in every.items() if sum(done) == most)
    whole = every.get(tuple(flat.demand.tolist()))
    if whole is not None:
        assert solved.bound <= whole * (1 + 1e-9)
        assert bound_of(flat, in_time(), cost=whole * 2) <= whole * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_no_pattern_is_worth_more_than_its_bound(seed):
    flat = draw(seed)
    chance = random.Random(seed)
    values = np.array([chance.random() for _ in flat.demand])
    bounds = surrogate(flat, values, Meter())
    for kind in range(len(flat.price)):
        best = max((float(np.array(each) @ values) for each in patterns(flat, kind)), default=0.0)
        value, pattern = exact(flat, kind, values, budget=in_time())
        assert best <= bounds[kind] + 1e-9
        assert best <= value * (1 + 1e-9)
        if pattern is not None:
            assert float(pattern @ values) <= best + 1e-9
    for pack in (best_patterns, varied_patterns):
        found, worth = pack(flat, values, Meter())
        for kind, pattern in enumerate(found):
            assert worth[kind] == pytest.approx(float(pattern @ values))
            assert not pattern.any() or (flat.fits(pattern)[kind] and flat.obeys(pattern))


def test_what_a_class_does_not_ask_for_does_not_keep_it_out():
    flat = draw(0)._replace(
        requests=np.array([[1.0, 0.0], [0.0, 1.0]]), free=np.array([[4.0, 0.0], [4.0, 2.0]]),
        allowed=np.array([[True, False], [True, True]]), demand=np.array([9, 9]), most=np.array([BIG, BIG]),
        price=np.array([1.0, 2.0]), takes=np.zeros((0, 2)), left=np.zeros(0),
    )  # fmt: skip
    assert alone(flat).tolist() == [[4, 0], [4, 2]]
    flat = flat._replace(bound_most=flat.most)
    assert surrogate(flat, np.array([1.0, 1.0]), Meter()).tolist() == pytest.approx([4.0, 6.0])


def test_a_kind_that_another_replaces_is_left_out():
    flat = draw(0)._replace(
        free=np.array([[4.0, 4.0], [8.0, 8.0], [8.0, 8.0]]), allowed=np.ones((3, 1), dtype=bool),
        price=np.array([3.0, 2.0, 2.0]), takes=np.zeros((0, 3)), requests=np.array([[1.0, 1.0]]),
    )  # fmt: skip
    assert undominated(flat) == [1]


def test_all_purchases_between_two_costs():
    prices = np.array([3.0, 2.0, 2.0])
    assert purchases_between(prices, 4.0, 6.0, limit=99) == [(1, 1), (1, 2), (2, 2), (0, 1), (0, 2)]
    assert purchases_between(prices, 4.0, 6.0, limit=4) is None
    assert purchases_between(prices, 0.0, 10**9, limit=99) is None
    # Half a million ways to buy a thousand nodes of three kinds: counted, not written out.
    assert purchases_between(np.ones(3), 1000.0, 1001.0, limit=99) is None
