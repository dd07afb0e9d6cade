"""The whole pipeline: what is bought, for whom, at what price, and why the rest waits."""

import itertools
from functools import partial

import pytest
from msgspec.structs import replace

from tests.support import builders
from tests.support.builders import COSCHEDULING_LABEL, ZONE, apart, daemon_set, offering, pod_group, spread
from tutti.cluster.work.work_budget import WorkBudget
from tutti.market.offerings import Catalogue, NodePool, PoolLimit
from tutti.recommend.pipeline import recommend
from tutti.recommend.records.request import Binder, Objective, RecommendOptions, Request, Strategy

BINDERS = tuple(Binder)
node = partial(builders.node, zone="a")
pod = partial(builders.pod, memory="1Gi", priority=0)


def at_most(number, pool="a"):
    return PoolLimit(left=number, reason=f"pool {pool} has 0 of at most {number} nodes")


def pool(*offerings, most=None):
    return builders.pool(*offerings, limits=() if most is None else (at_most(most, offerings[0].pool),))


def ask(objects, *pools, seconds=5.0, limits=(), **options):
    request = Request(
        objects=tuple(objects),
        catalogue=Catalogue(pools=pools, limits=tuple(limits)),
        options=RecommendOptions(**{"binder": Binder.TUTTI, **options}),
    )
    ticks = itertools.count()
    return recommend(request, WorkBudget.of_seconds(seconds, lambda: next(ticks) * 1e-4))


def bought(answer):
    return {(each.pool, each.zone): each.increment for each in answer.scale_up}


def member(name, gang, **how):
    return pod(name, labels={COSCHEDULING_LABEL: gang}, **how)


# Cost -----------------------------------------------------------------------------------------------------------------


def test_the_cheapest_mix_of_sizes_is_found_and_proved():
    pods = [pod(f"p{i}", "2", memory="8Gi") for i in range(3)]  # the greedy trap: 2 x 72 where 120 will do
    small, large = offering("s", 72, cpu="4", memory="16Gi"), offering("l", 120, cpu="8", memory="32Gi")
    answer = ask(pods, pool(small), pool(large))
    assert (bought(answer), answer.cost, answer.gap) == ({("l", "a"): 1}, 120, 0)
    assert answer.minimal is True


def test_existing_nodes_cost_nothing():
    answer = ask([node("n", "4", memory="16Gi"), pod("a"), pod("b")], pool(offering("a", 10)))
    assert (answer.cost, answer.bound, [each.node for each in answer.on_existing]) == (0, 0, ["n", "n"])


def test_without_prices_the_fewest_nodes_are_bought_and_it_says_so():
    pods = [pod(f"p{i}", "1500m") for i in range(4)]
    answer = ask(pods, pool(offering("s", cpu="2")), pool(offering("l", cpu="8")))
    assert (bought(answer), answer.cost, answer.bound) == ({("l", "a"): 1}, None, 1)
    assert any("fewest nodes" in note for note in answer.notes)


def test_two_nodes_beat_nine_that_save_a_cent():
    pods = [pod(f"p{i}", "100m", memory=f"{5 * 1024}Mi") for i in range(20)]
    small, large = offering("s", 182_040, cpu="2", memory="6Gi"), offering("l", 1_456_650, cpu="16", memory="60Gi")
    assert len(ask(pods, pool(small), pool(large)).nodes) == 2


@pytest.mark.parametrize("objective", list(Objective))
def test_as_many_pods_as_possible_come_first(objective):
    pods = [pod("big", "3500m"), *(pod(f"small{i}", "1200m") for i in range(3))]
    answer = ask(pods, pool(offering("a", 10), most=1), objective=objective)
    assert sorted(answer.nodes[0].pods) == ["default/small0", "default/small1", "default/small2"]
    assert [each.reason for each in answer.left] == ["pool a has 0 of at most 1 nodes, and the plan buys the rest"]


def test_of_equally_many_pods_the_objective_pods_takes_the_larger():
    pods = [pod("big", "3500m"), pod("small", "2500m")]
    assert ask(pods, pool(offering("a", 10), most=1), objective=Objective.PODS).nodes[0].pods == ("default/big",)


@pytest.mark.parametrize("strategy", list(Strategy))
@pytest.mark.parametrize("binder", BINDERS)
def test_a_higher_priority_never_loses_a_node_to_a_lower_one(strategy, binder):
    low = [pod(f"a-low{i}", "1") for i in range(8)]
    high = [pod(f"z-high{i}", "3", priority=10) for i in range(2)]
    answer = ask([*low, *high], pool(offering("a", 10), most=2), strategy=strategy, binder=binder)
    placed = {pod for new in answer.nodes for pod in new.pods}
    assert {"default/z-high0", "default/z-high1"} <= placed


@pytest.mark.parametrize("binder", BINDERS)
def test_one_important_pod_outweighs_four_others(binder):
    low = [pod(f"a-low{i}", "950m", tolerates="c") for i in range(4)]
    high = pod("z-high", "900m", gpu=1, priority=10)
    pools = pool(offering("g", 50, cpu="1", gpu=1)), pool(offering("c", 10, cpu="4", taint="c"))
    answer = ask([*low, high], *pools, limits=[at_most(1, "all")], binder=binder)
    assert [new.pods for new in answer.nodes] == [("default/z-high",)]


def test_a_free_offering_keeps_the_bound_valid():
    pods = [pod("a", "3"), pod("b", "3", tolerates="t")]
    answer = ask(pods, pool(offering("free", 0, cpu="4", taint="t")), pool(offering("a", 10, cpu="4")))
    assert (answer.cost, answer.bound) == (10, 10)


# Rules ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("binder", BINDERS)
def test_pods_that_keep_apart_get_a_node_each(binder):
    pods = [pod(f"p{i}", "500m", app="web", affinity=apart("web")) for i in range(3)]
    answer = ask(pods, pool(offering("s", 3, cpu="1"), offering("s", 10, cpu="8", kind="l")), binder=binder)
    assert (len(answer.nodes), answer.cost, answer.bound) == (3, 9, 9)


def test_a_spread_counts_the_zones_that_have_nodes():
    pods = [pod(f"p{i}", "1500m", app="web", topology_spread_constraints=[spread("web")]) for i in range(4)]
    zones = [offering("s", 10, cpu="2", zone=zone) for zone in "ab"]
    there = [node("old-a", "0.1", zone="a"), node("old-b", "0.1", zone="b")]
    assert bought(ask([*there, *pods], pool(*zones))) == {("s", "a"): 2, ("s", "b"): 2}
    # One zone alone counts as evenly spread when the other has no node: then the cheaper zone is enough.
    one = replace(zones[1], price=1)
    answer = ask(pods, pool(zones[0], one))
    assert bought(answer) == {("s", "b"): 4}
    assert any("are all in b" in note for note in answer.notes)


def test_pods_that_keep_apart_by_zone_run_out_of_zones():
    pods = [pod(f"p{i}", "500m", app="web", affinity=apart("web", ZONE)) for i in range(3)]
    (left,) = ask(pods, pool(*(offering("s", 3, zone=zone) for zone in "ab"))).left
    assert "anti-affinity" in left.reason


def test_a_node_that_is_shut_only_for_now_counts_as_room():
    pods = [pod(f"w{i}", "1", app="web", topology_spread_constraints=[spread("web")]) for i in range(4)]
    there = [node("na", "4.2", zone="a"), node("nb", "0.1", zone="b"), pod("r", "100m", app="web", on="na")]
    answer = ask([*there, *pods], pool(offering("s", 10, cpu="4", zone="b")))
    assert (answer.cost, answer.bound, answer.placed) == (10, 10, 4)


def test_zones_that_are_too_full_already_take_nothing_of_a_spread():
    running = [
        pod(f"r{z}{i}", "10m", on=f"n{z}", app="web") for z, n in zip("abc", (4, 1, 2), strict=True) for i in range(n)
    ]
    there = [node(f"n{zone}", "0.1", zone=zone) for zone in "abc"]
    waiting = pod("w", "1", app="web", topology_spread_constraints=[spread("web", skew=2)])
    answer = ask([*there, *running, waiting], pool(offering("b", 100, zone="b")), pool(offering("c", 1, zone="c")))
    assert (answer.cost, answer.bound) == (1, 1)


def test_daemons_reduce_the_room_of_new_nodes():
    daemon = daemon_set(pod("agent", app="agent"), namespace="kube-system")
    request = Request(
        objects=tuple(pod(f"p{i}", "2") for i in range(2)),
        daemon_sets=(daemon,),
        catalogue=Catalogue(pools=(pool(offering("a", 10, cpu="4")),)),
        options=RecommendOptions(binder=Binder.TUTTI),
    )
    assert len(recommend(request, WorkBudget.of_seconds(10**6, itertools.count().__next__)).nodes) == 2


def test_cpu_limits_of_a_pool_count_capacity():
    limit = PoolLimit(what="cpu", left=8000, reason="pool a has 0 of at most 8 cores")
    wide = NodePool(name="a", offerings=(offering("a", 10, cpu="4"),), limits=(limit,))
    answer = ask([pod(f"p{i}", "3") for i in range(3)], wide)
    assert (len(answer.nodes), len(answer.left)) == (2, 1)


# Gangs ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("binder", BINDERS)
@pytest.mark.parametrize("strategy", list(Strategy))
def test_no_node_is_bought_for_a_gang_that_cannot_start(strategy, binder):
    gang = [member(f"g{i}", "train", cpu="3") for i in range(10)]
    answer = ask([pod_group("train", 10), *gang], pool(offering("a", 10), most=4), strategy=strategy, binder=binder)
    assert (answer.nodes, len(answer.left)) == ((), 10)
    assert answer.left[0].reason.startswith("its gang could not start whole")
    assert "at most 4 nodes" in answer.left[0].reason


@pytest.mark.parametrize("binder", BINDERS)
def test_of_two_gangs_one_starts_rather_than_none(binder):
    gangs = [member(f"{name}{i}", name, cpu="3") for name in ("one", "two") for i in range(3)]
    answer = ask([pod_group("one", 3), pod_group("two", 3), *gangs], pool(offering("a", 10), most=5), binder=binder)
    assert (len(answer.nodes), {each.gang for each in answer.left}) == (3, {"default/two"})


@pytest.mark.parametrize("binder", BINDERS)
def test_a_gang_that_must_share_a_zone_gets_all_its_nodes_there(binder):
    gang = [member(f"g{i}", "train", cpu="3") for i in range(3)]
    near = pod_group("train", 3, {"tutti.dev/topology-required": ZONE})
    scarce = NodePool(
        name="a",
        offerings=(offering("a", 1, zone="a"), offering("a", 5, zone="b")),
        limits=(PoolLimit(left=2, zone="a", reason="pool a has 0 of at most 2 nodes in a"),),
    )
    assert bought(ask([near, *gang], scarce, binder=binder)) == {("a", "b"): 3}


@pytest.mark.parametrize("binder", BINDERS)
def test_a_gang_that_only_large_nodes_can_start_gets_them(binder):
    gang = [member(f"g{i}", "train", cpu="900m") for i in range(8)]  # node by node the small ones look better
    sizes = offering("a", 1, cpu="1"), offering("a", 100, cpu="4", kind="l")
    answer = ask([pod_group("train", 8), *gang], pool(*sizes, most=2), binder=binder)
    assert (answer.placed, answer.cost) == (8, 200)


@pytest.mark.parametrize("binder", BINDERS)
def test_a_gang_that_starts_on_nodes_that_are_there_is_not_given_up(binder):
    gang = [member(f"m{i}", "g", cpu="1") for i in range(3)]
    answer = ask([pod_group("g", 2), node("n", "2.2"), *gang], pool(offering("a", 10, taint="t")), binder=binder)
    assert [(each.pod, each.node) for each in answer.on_existing] == [("default/m0", "n"), ("default/m1", "n")]


def test_giving_nodes_back_does_not_tear_a_gang_out_of_its_zone():
    near = pod_group("train", 2, {"tutti.dev/topology-required": ZONE})
    gang = [member(f"g{i}", "train", cpu="2500m") for i in range(2)]
    pinned = pod("z", "1", node_selector={ZONE: "b"})
    answer = ask([near, *gang, pinned], pool(offering("a", 10, zone="a")), pool(offering("b", 30, zone="b")))
    assert bought(answer) == {("a", "a"): 2, ("b", "b"): 1}


@pytest.mark.parametrize("binder", BINDERS)
def test_a_gang_that_lacks_pods_gets_nothing(binder):
    answer = ask([pod_group("g", 3), member("m0", "g"), member("m1", "g")], pool(offering("a", 10)), binder=binder)
    assert (answer.nodes, {each.reason for each in answer.left}) == (
        (),
        {"its gang could not start whole: 2 of 3 pods exist, or a part of the gang lacks pods"},
    )


# Who binds ------------------------------------------------------------------------------------------------------------


def test_a_scheduler_that_spreads_needs_more_than_one_that_follows():
    # Small pods first: spread over both nodes, they leave no room for the large one.
    pods = [*(pod(f"a{i}", "1") for i in range(4)), pod("b", "4")]
    cheap = pool(offering("a", 10, cpu="4"))
    assert ask(pods, cheap).cost == 20
    answer = ask(pods, cheap, binder=Binder.KUBE_SCHEDULER)
    assert (answer.placed, answer.cost) == (5, 50)  # only a fifth node stays empty until the large pod comes


def test_a_promised_node_counts_as_placed():
    waiting = pod("first", "1", priority=5)
    waiting = replace(waiting, status=replace(waiting.status, nominated_node_name="n"))
    victim = pod("victim", "3500m", on="n")
    answer = ask([node("n", "4"), victim, waiting], pool(offering("a", 10)))
    assert (answer.nodes, [(each.pod, each.node) for each in answer.on_existing]) == ((), [("default/first", "n")])


@pytest.mark.parametrize("binder", BINDERS)
def test_room_that_was_promised_is_not_promised_again(binder):
    first = pod("first", "1800m")
    first = replace(first, status=replace(first.status, nominated_node_name="n"))
    answer = ask([node("n", "2"), first, pod("second", "1800m", priority=10)], pool(offering("a", 10)), binder=binder)
    assert (answer.cost, answer.nodes[0].pods) == (10, ("default/second",))


def test_possible_evictions_are_alternatives():
    objects = [node("n", "4"), pod("idle", "3500m", on="n"), pod("urgent", "3", priority=100)]
    answer = ask(objects, pool(offering("a", 10)))
    assert answer.cost == 10
    assert [(each.who, each.evicting) for each in answer.alternatives] == [("default/urgent", ("default/idle",))]


def test_a_pod_that_fits_no_offering_has_a_reason():
    (left,) = ask([pod("huge", "64")], pool(offering("a", 10))).left
    assert "Insufficient cpu" in left.reason


def test_nothing_to_do():
    answer = ask([node("n")], pool(offering("a", 10)))
    assert (answer.pods, answer.nodes, answer.cost, answer.left) == (0, (), 0, ())
    assert ask([pod("a")]).left[0].pod == "default/a"
