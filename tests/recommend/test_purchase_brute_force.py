"""The brute force over purchases: answers that are known, and a plainer search that takes one step after the other."""

from dataclasses import replace
from itertools import permutations

import pytest

from tests.support.brute_force.purchase_instances import instance
from tests.support.brute_force.purchase_search import (
    Instance,
    Kind,
    Machine,
    cheapest,
    faults,
    is_even,
    present,
    purchases,
    solve,
)

SMALL, XLARGE, DOUBLE, QUADRUPLE = 18_204, 36_425, 72_830, 145_665


def offer(name, room, price, **more):
    """A node that can be bought in zone a, of a pool of its own."""
    return Machine(name, more.pop("zone", "a"), room, price=price, pool=more.pop("pool", name), **more)


LARGE = offer("large", (1920, 6617, 110), SMALL)
XL = offer("xlarge", (3920, 14584, 110), XLARGE)
XL2 = offer("2xlarge", (7920, 30519, 110), DOUBLE)
XL4 = offer("4xlarge", (15920, 62389, 110), QUADRUPLE)
FIVE = Kind("five", 100, 5 * 1024, 5)
TWELVE = Kind("twelve", 100, 12 * 1024)
"""Types and pods of the scenarios s1 to s5; prices in thousandths of a dollar a month."""


@pytest.mark.parametrize(
    ("made", "best"),
    [
        # s1: a large node takes one pod of 5 GiB, the 4xlarge one takes 12 for the price of 8.
        (Instance((Kind("five", 100, 5 * 1024, 7),), (LARGE, XL4)), (7, 7 * SMALL)),
        (Instance((Kind("five", 100, 5 * 1024, 8),), (LARGE, XL4), maxima={"large": 6}), (8, QUADRUPLE)),
        # s2: five small pods and a large one: the large one needs an xlarge node, which takes nobody else.
        (Instance((FIVE, TWELVE), (LARGE, XL)), (6, 5 * SMALL + XLARGE)),
        # s2 again: two small pods fit an xlarge node, at the price of two large ones plus a bit.
        (Instance((FIVE, TWELVE), (LARGE, XL), maxima={"large": 1}), (6, SMALL + 3 * XLARGE)),
        # s3: without xlarge nodes the large pod needs a 4xlarge one, which takes nine small ones besides.
        (Instance((FIVE, TWELVE), (LARGE, XL4)), (6, QUADRUPLE)),
        # s5: 15 pods of 3 GiB on 1 large (2), 1 xlarge (4), 1 2xlarge (9), here 8 of them: 2xlarge takes them all.
        (Instance((Kind("three", 100, 3 * 1024, 8),), (LARGE, XL, XL2), maxima={"large": 1, "xlarge": 2}), (8, DOUBLE)),
        (Instance((Kind("three", 100, 3 * 1024, 6),), (LARGE, XL, XL2), maxima={"large": 1}), (6, SMALL + XLARGE)),
        # Nobody fits.
        (Instance((Kind("huge", 100, 70_000, 2),), (LARGE, XL4)), (0, 0)),
        # One of three fits, since the pool gives no more.
        (Instance((Kind("five", 100, 5 * 1024, 3),), (LARGE,), maxima={"large": 1}), (1, SMALL)),
        # One node less is needed for each pod that has room on a node that stands there.
        (Instance((FIVE,), (LARGE,), (Machine("n", "a", (1920, 12_000, 110)),)), (5, 3 * SMALL)),
        # Pods that stay apart need a node each; the one on which such a pod runs takes none.
        (Instance((Kind("k", 100, 10, 4, apart=True),), (LARGE, XL)), (4, 4 * SMALL)),
        (
            Instance(
                (Kind("k", 100, 10, 2, apart=True),), (LARGE,), (Machine("n", "a", (1920, 6617, 110), running=(1,)),)
            ),
            (2, 2 * SMALL),
        ),
        # A tainted node is only for those who bear it.
        (Instance((Kind("k", 100, 10),), (offer("cheap", (1920, 6617, 110), 1, tainted=True), LARGE)), (1, SMALL)),
        (
            Instance(
                (Kind("k", 100, 10, tolerates=True),), (offer("cheap", (1920, 6617, 110), 1, tainted=True), LARGE)
            ),
            (1, 1),
        ),
    ],
)
def test_known_answers(made, best):
    assert solve(made) == best
    assert sum(made.counts) != best[0] or cheapest(made, made.counts) == best[1]


def two_zones(**more):
    return (
        offer("in-a", (1000, 1000, 10), 10, zone="a", **more),
        offer("in-b", (1000, 1000, 10), 11, zone="b", **more),
    )


def test_one_zone_alone_is_even():
    """While no other zone has a node, the spread has one domain only."""
    assert solve(Instance((Kind("k", 250, 100, 4, skew=1),), two_zones())) == (4, 10)


def test_a_zone_with_a_node_counts():
    """A node in b, whoever it is for, makes b a zone; the pods then need room in it."""
    there = Machine("n", "b", (1000, 1000, 10), tainted=True)
    assert solve(Instance((Kind("k", 250, 100, 4, skew=1),), two_zones(), (there,))) == (4, 11)
    assert solve(Instance((Kind("k", 250, 100, 4, skew=1),), two_zones()[:1], (there,))) == (1, 10)


def test_a_zone_without_a_node_that_is_selected_does_not_count():
    there = Machine("n", "b", (1000, 1000, 10), family="r")
    assert solve(Instance((Kind("k", 250, 100, 4, skew=1, family="m"),), two_zones(), (there,))) == (4, 10)


def test_buying_for_others_opens_a_zone():
    """The second kind needs b, so the first has to be even over both, and one node in a is not enough for it."""
    kinds = Kind("k", 450, 100, 4, skew=1), Kind("b", 900, 100, 1, zone="b")
    assert solve(Instance(kinds, two_zones())) == (5, 10 + 11 + 11)


@pytest.mark.parametrize("skew", [1, 2])
@pytest.mark.parametrize("before", [(0, 0), (0, 2), (3, 1), (1, 1)])
def test_even_means_reachable_in_some_order(skew, before):
    machines = [Machine(z, z, (1, 1, 1), running=(n,)) for z, n in zip("ab", before, strict=True)]
    for in_a in range(5):
        for in_b in range(4):
            some_order = any(steps_within(skew, before, order) for order in set(permutations("a" * in_a + "b" * in_b)))
            assert is_even(Kind("k", 1, 1, skew=skew), 0, machines, {"a": in_a, "b": in_b}) == some_order


def steps_within(skew, before, order):
    counts = dict(zip("ab", before, strict=True))
    for zone in order:
        if counts[zone] + 1 - min(counts.values()) > skew:
            return False
        counts[zone] += 1
    return True


def test_faults_are_found():
    made = Instance((Kind("k", 500, 500, 4, skew=1, apart=True),), two_zones(), maxima={"in-a": 1})
    a, b = made.offers
    assert not faults(made, (1, 1), [(a, (1,)), (b, (1,))])
    assert faults(made, (2, 0), [(a, (1,)), (a, (1,))]) == ["pool in-a: 2 of 1"]
    assert faults(made, (0, 1), [(b, (2,))]) == ["in-b: 2 pods k"]
    assert faults(made, (0, 1), [(b, (1,)), (b, (1,))]) == ["in-b: used more often than there"]
    assert faults(made, (1, 2), [(a, (0,)), (b, (1,)), (b, (1,))]) == ["pods k are spread {'a': 0, 'b': 2}"]


@pytest.mark.parametrize("seed", range(1000, 1060))
def test_as_one_step_after_the_other(seed):
    """Small instances, solved by binding pods one by one in every way."""
    drawn = instance(seed)
    kinds = tuple(replace(kind, count=min(kind.count, 2)) for kind in drawn.kinds[:2])
    standing = tuple(replace(machine, running=machine.running[:2]) for machine in drawn.standing)
    made = replace(drawn, kinds=kinds, offers=drawn.offers[:3], standing=standing)
    reached = [(stepwise(made, purchase), -cost) for cost, purchase in purchases(made)]
    most, cost = max(reached)
    assert solve(made) == (most, -cost)


def stepwise(made, purchase):
    """The largest number of pods that can be bound, each where it is allowed at its turn."""
    machines = present(made, purchase)
    empty = tuple((0,) * len(made.kinds) for _ in machines)
    seen, todo = {empty}, [empty]
    while todo:
        state = todo.pop()
        for k, kind in enumerate(made.kinds):
            for m in range(len(machines)):
                if sum(on[k] for on in state) < kind.count and allowed(made, machines, state, k, m):
                    on = tuple(n + (place == k) for place, n in enumerate(state[m]))
                    after = (*state[:m], on, *state[m + 1 :])
                    todo += [after] if after not in seen else []
                    seen.add(after)
    return max(sum(map(sum, state)) for state in seen)


def allowed(made, machines, state, k, m):
    """Whether a further pod of a kind may go to a machine."""
    kind, machine = made.kinds[k], machines[m]
    selected = [kind.family in (None, each.family) and kind.zone in (None, each.zone) for each in machines]
    if not selected[m] or (machine.tainted and not kind.tolerates):
        return False
    pods = [each for each, n in zip(made.kinds, state[m], strict=True) for _ in range(n)]
    loads = zip(machine.used, *(each.ask for each in pods), kind.ask, strict=True)
    if any(sum(load) > room for load, room in zip(loads, machine.room, strict=True)):
        return False
    if kind.apart and (state[m][k] or machine.runs(k)):
        return False
    counts = {}
    for each, on, counted in zip(machines, state, selected, strict=True):
        if counted:
            counts[each.zone] = counts.get(each.zone, 0) + on[k] + each.runs(k)
    return kind.skew is None or counts[machine.zone] + 1 - min(counts.values()) <= kind.skew
