"""The packing solver, compared with every possible packing."""

import itertools
import random

import numpy as np
import pytest

from tutti.cluster.work.meter import Meter
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.replay.kube_scheduler_binder import purchases_between
from tutti.recommend.search.column_generation.knapsack_bounds import exact_bound, surrogate_bounds
from tutti.recommend.search.column_generation.packing_input import PackingInput, undominated_kinds
from tutti.recommend.search.column_generation.pattern_heuristics import best_patterns, max_items_alone, varied_patterns
from tutti.recommend.search.column_generation.solve import lower_bound, solve

UNLIMITED = 1 << 40


def random_input(seed, *, limited=False):
    """Return a small problem: up to 3 classes, 3 kinds and 4 resources; most classes request only some resources."""
    rng = random.Random(seed)
    classes, kinds, resources = rng.randint(1, 3), rng.randint(1, 3), rng.randint(2, 4)
    requests = np.array([[rng.choice((0, 1, 2, 3, 5)) for _ in range(resources)] for _ in range(classes)], dtype=float)
    requests[:, 0] = np.maximum(requests[:, 0], 1)
    free = np.array([[rng.choice((0, 4, 6, 9)) for _ in range(resources)] for _ in range(kinds)], dtype=float)
    free[:, 0] = [rng.choice((4, 6, 9)) for _ in range(kinds)]
    max_per_node = np.array([rng.choice((1, 2, UNLIMITED, UNLIMITED)) for _ in range(classes)], dtype=np.int64)
    conflicts = np.zeros((classes, classes), dtype=bool)
    if classes > 1 and rng.random() < 0.3:
        conflicts[0, 1] = conflicts[1, 0] = True
    allowed = (free[:, None, :] >= requests[None]).all(axis=2)
    allowed &= np.array([[rng.random() < 0.9 for _ in range(classes)] for _ in range(kinds)])
    limit_left = np.array([rng.randint(1, 4)] if limited else [], dtype=float)
    return PackingInput(
        requests=requests, demand=np.array([rng.randint(1, 5) for _ in range(classes)], dtype=np.int64),
        max_per_node=max_per_node, bound_max_per_node=max_per_node, conflicts=conflicts,
        group_limits=(), free=free, allowed=allowed,
        price=np.array([rng.randint(2, 12) for _ in range(kinds)], dtype=float),
        limit_usage=np.ones((len(limit_left), kinds)), limit_left=limit_left, node_free=np.zeros((0, resources)),
        node_feasible=np.zeros((0, classes), dtype=bool), node_max=np.zeros((0, classes), dtype=np.int64),
    )  # fmt: skip


def all_patterns(inputs, kind):
    """Yield all patterns of a kind."""
    for counts in itertools.product(*(range(int(demand) + 1) for demand in inputs.demand)):
        pattern = np.array(counts)
        if pattern.any() and inputs.fitting_kinds(pattern)[kind] and inputs.obeys_node_rules(pattern):
            yield counts


def least_costs(inputs):
    """Return the least cost of covering each part of the demand, with as many nodes as limits allow."""
    kinds = [(float(inputs.price[kind]), list(all_patterns(inputs, kind))) for kind in range(len(inputs.price))]
    nodes = int(inputs.limit_left[0]) if len(inputs.limit_left) else int(inputs.demand.sum())
    best = {tuple([0] * len(inputs.demand)): 0.0}
    for _ in range(nodes):
        reached = dict(best)
        for done, cost in best.items():
            for price, options in kinds:
                for counts in options:
                    more = tuple(a + b for a, b in zip(done, counts, strict=True))
                    if all(a <= b for a, b in zip(more, inputs.demand.tolist(), strict=True)):
                        reached[more] = min(reached.get(more, np.inf), cost + price)
        best = reached
    return best


def unlimited_budget():
    return WorkBudget.of_seconds(10**9, itertools.count().__next__)


@pytest.mark.parametrize("seed", range(120))
def test_solve_finds_the_optimum_and_a_valid_bound(seed):
    inputs = random_input(seed, limited=seed % 3 == 0)
    costs = least_costs(inputs)
    solved = solve(inputs, unlimited_budget())
    placed = tuple((inputs.demand - solved.packing.dropped).tolist())
    max_covered = max(map(sum, costs))
    assert sum(placed) == max_covered
    assert solved.packing.cost(inputs) == min(cost for done, cost in costs.items() if sum(done) == max_covered)
    optimum = costs.get(tuple(inputs.demand.tolist()))
    if optimum is not None:
        assert solved.bound <= optimum * (1 + 1e-9)
        assert lower_bound(inputs, unlimited_budget(), cost=optimum * 2) <= optimum * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(60))
def test_no_pattern_is_worth_more_than_its_bound(seed):
    inputs = random_input(seed)
    rng = random.Random(seed)
    values = np.array([rng.random() for _ in inputs.demand])
    bounds = surrogate_bounds(inputs, values, Meter())
    for kind in range(len(inputs.price)):
        best = max((float(np.array(each) @ values) for each in all_patterns(inputs, kind)), default=0.0)
        value, pattern = exact_bound(inputs, kind, values, budget=unlimited_budget())
        assert best <= bounds[kind] + 1e-9
        assert best <= value * (1 + 1e-9)
        if pattern is not None:
            assert float(pattern @ values) <= best + 1e-9
    for find_patterns in (best_patterns, varied_patterns):
        found, values_found = find_patterns(inputs, values, Meter())
        for kind, pattern in enumerate(found):
            assert values_found[kind] == pytest.approx(float(pattern @ values))
            assert not pattern.any() or (inputs.fitting_kinds(pattern)[kind] and inputs.obeys_node_rules(pattern))


def test_unrequested_resources_do_not_limit_a_class():
    inputs = random_input(0)._replace(
        requests=np.array([[1.0, 0.0], [0.0, 1.0]]), free=np.array([[4.0, 0.0], [4.0, 2.0]]),
        allowed=np.array([[True, False], [True, True]]), demand=np.array([9, 9]),
        max_per_node=np.array([UNLIMITED, UNLIMITED]),
        price=np.array([1.0, 2.0]), limit_usage=np.zeros((0, 2)), limit_left=np.zeros(0),
    )  # fmt: skip
    assert max_items_alone(inputs).tolist() == [[4, 0], [4, 2]]
    inputs = inputs._replace(bound_max_per_node=inputs.max_per_node)
    assert surrogate_bounds(inputs, np.array([1.0, 1.0]), Meter()).tolist() == pytest.approx([4.0, 6.0])


def test_a_dominated_kind_is_left_out():
    inputs = random_input(0)._replace(
        free=np.array([[4.0, 4.0], [8.0, 8.0], [8.0, 8.0]]), allowed=np.ones((3, 1), dtype=bool),
        price=np.array([3.0, 2.0, 2.0]), limit_usage=np.zeros((0, 3)), requests=np.array([[1.0, 1.0]]),
    )  # fmt: skip
    assert undominated_kinds(inputs) == [1]


def test_all_purchases_between_two_costs():
    prices = np.array([3.0, 2.0, 2.0])
    assert purchases_between(prices, 4.0, 6.0, limit=99) == [(1, 1), (1, 2), (2, 2), (0, 1), (0, 2)]
    assert purchases_between(prices, 4.0, 6.0, limit=4) is None
    assert purchases_between(prices, 0.0, 10**9, limit=99) is None
    # There are half a million purchases of a thousand nodes of three kinds: they are counted, not listed.
    assert purchases_between(np.ones(3), 1000.0, 1001.0, limit=99) is None
