"""Our purchase beside those of peers: the scenarios with known answers, and peers that do not play along."""

import time

import pytest
from msgspec.structs import replace

from tests.support.brute_force import purchase_instances
from tests.support.paths import SCENARIOS
from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.work.work_budget import WorkBudget
from tutti.exceptions import InputError
from tutti.kube.reading.sources import read_sources
from tutti.market.money import a_month
from tutti.recommend.build_request import price_book
from tutti.recommend.compare import NO_PRICES, OURS, PEERS, PeerModel, compare
from tutti.recommend.records.request import Binder, RecommendOptions, Strategy
from tutti.wire.request_formats import read_request

FOLDER = SCENARIOS
WASTE, ORIGINAL = "cluster-autoscaler/least-waste", "original-recommender"


def scenario(name, **options):
    (source,) = read_sources([str(FOLDER / f"{name}.json")])
    (prices,) = read_sources([str(FOLDER / "templates.csv")])
    chosen = RecommendOptions(**{"binder": Binder.TUTTI, "strategy": Strategy.OPTIMAL, **options})
    return read_request(source, price_book(prices), options=chosen)


def compared(request, *, seconds=30.0, answer=None, **more):
    answer = answer or make_recommendation(request, WorkBudget.of_seconds(5.0, time.process_time))
    found = compare(request, answer, budget=WorkBudget.of_seconds(seconds, time.process_time), **more)
    return {each.who: each for each in found}


def types(record):
    return {offering.instance_type: count for offering, count in record.bought}


# Known answers --------------------------------------------------------------------------------------------------------

KNOWN = [
    ("s1", OURS, {"m5.4xlarge": 2}, 291.33),
    ("s1", WASTE, {"m5.4xlarge": 2}, 291.33),
    ("s1", ORIGINAL, {"m5.large": 8, "m5.4xlarge": 1}, 291.30),
    ("s2", OURS, {"m5.large": 1, "m5.4xlarge": 1}, 163.87),
    ("s2", ORIGINAL, {"m5.xlarge": 1, "m5.4xlarge": 1}, 182.09),
    ("s3", OURS, {"m5.large": 2, "m5.4xlarge": 1}, 182.07),
    ("s3", ORIGINAL, {"m5.4xlarge": 2}, 291.33),
    ("s4", OURS, {"m5.large": 3, "m5.xlarge": 3, "m5.4xlarge": 1}, 309.55),
    ("s5", OURS, {"m5.large": 1, "m5.xlarge": 1, "m5.2xlarge": 1}, 127.46),
    ("s5", WASTE, {"m5.large": 1, "m5.xlarge": 2, "m5.2xlarge": 1}, 163.89),
    ("s5", ORIGINAL, {"m5.large": 1, "m5.xlarge": 1, "m5.2xlarge": 1}, 127.46),
]


@pytest.fixture(scope="module")
def scenarios():
    return {name: compared(scenario(name)) for name in ("s1", "s2", "s3", "s4", "s5")}


@pytest.mark.parametrize(("name", "who", "bought", "cost"), KNOWN)
def test_the_known_answers(scenarios, name, who, bought, cost):
    record = scenarios[name][who]
    assert (types(record), record.left, record.problem) == (bought, 0, "")
    assert a_month(record.cost) == pytest.approx(cost, abs=0.011)


def test_all_peers_answer_in_their_order_and_none_is_better(scenarios):
    for found in scenarios.values():
        assert list(found) == [OURS, *(peer.name for peer in PEERS)]
        assert not any(each.better or each.problem for each in found.values())


def test_extra_cost_of_peers(scenarios):
    assert scenarios["s2"][ORIGINAL].change == pytest.approx(0.111, abs=0.001)
    assert scenarios["s3"][ORIGINAL].change == pytest.approx(0.60, abs=0.001)
    assert scenarios["s2"][OURS].change == 0


def test_nine_nodes_that_save_a_cent_over_two_are_not_better(scenarios):
    record = scenarios["s1"][ORIGINAL]
    assert -0.001 < record.change < 0
    assert not record.better


def test_a_purchase_that_only_its_own_plan_can_fill_does_not_hold(scenarios):
    ours = scenarios["s3"][OURS]
    assert ours.placed == 12
    assert ours.kept < 12
    assert ours.holds is False
    assert compared(scenario("s3", binder=Binder.KUBE_SCHEDULER), peers=())[OURS].holds is True


# Peers that do not play along -----------------------------------------------------------------------------------------


class Clock:
    """A clock that goes when it is told."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_peer_that_fails_has_a_line_and_the_others_go_on():
    def fails(cluster, catalogue, daemon_sets, budget):
        raise KeyError("zone")

    def refuses(cluster, catalogue, daemon_sets, budget):
        raise InputError("no such expander")

    request = scenario("s1")
    found = compared(request, peers=(PeerModel("a", fails), PeerModel("b", refuses), PEERS[0]))
    assert found["a"].problem == "the model failed (KeyError: 'zone')"
    assert found["b"].problem == "the model failed (InputError: no such expander)"
    assert (found["a"].nodes, found["a"].cost, found["a"].kept, found["a"].better) == (0, None, None, False)
    assert found[WASTE].nodes == 2


def test_a_peer_that_is_too_slow_has_a_line_and_the_others_their_share():
    clock, seen = Clock(), []

    def slow(cluster, catalogue, daemon_sets, budget):
        seen.append(budget.seconds)
        clock.now += 100
        return Purchase()

    def quick(cluster, catalogue, daemon_sets, budget):
        seen.append(budget.seconds)
        clock.now += 1
        return Purchase()

    request = scenario("s1")
    answer = make_recommendation(request, WorkBudget.of_seconds(5.0, time.process_time))
    peers = (PeerModel("quick", quick), PeerModel("slow", slow), PeerModel("late", quick))
    found = {e.who: e for e in compare(request, answer, budget=WorkBudget.of_seconds(30.0, clock), peers=peers)}
    assert seen == [10.0, 10.0, 0.0]
    assert found["quick"].problem == ""
    assert found["slow"].problem == "not done in 10.0 s"
    assert found["late"].problem.startswith("not done in")


def test_without_time_nothing_is_replayed():
    clock = Clock()
    request = scenario("s1")
    answer = make_recommendation(request, WorkBudget.of_seconds(5.0, time.process_time))
    budget = WorkBudget.of_seconds(0.0, clock)
    (ours,) = compare(request, answer, budget=budget, peers=())
    assert (ours.kept, ours.holds, ours.real) == (None, None, 20)


def test_a_better_peer_is_called_better():
    request = scenario("s5", strategy=Strategy.LEAST_WASTE, binder=Binder.KUBE_SCHEDULER)
    answer = make_recommendation(request, WorkBudget.of_seconds(5.0, time.process_time))
    best = compared(
        request, answer=make_recommendation(scenario("s5"), WorkBudget.of_seconds(5.0, time.process_time)), peers=()
    )[OURS]
    cheap = Purchase(nodes=tuple((each, ()) for each, count in best.bought for _ in range(count)))
    dear = replace(answer, scale_up=(*answer.scale_up, *answer.scale_up), cost=2 * answer.cost)
    found = compared(request, answer=dear, peers=(PeerModel("cheap", lambda *_: cheap),))
    assert found["cheap"].better
    assert found["cheap"].change < 0


def test_a_purchase_that_gives_fewer_pods_a_node_is_not_better_for_being_cheap():
    found = compared(scenario("s1"), peers=(PeerModel("nobody", lambda *_: Purchase()),))
    assert (found["nobody"].cost, found["nobody"].kept, found["nobody"].better) == (0, 0, False)


# Markets --------------------------------------------------------------------------------------------------------------


def without_prices(request, *, of=lambda offering: True):
    pools = tuple(
        replace(pool, offerings=tuple(replace(each, price=None) if of(each) else each for each in pool.offerings))
        for pool in request.catalogue.pools
    )
    return replace(request, catalogue=replace(request.catalogue, pools=pools))


def test_without_prices_peers_that_need_prices_report_a_problem():
    found = compared(without_prices(scenario("s1")))
    problems = {who: each.problem for who, each in found.items() if each.problem}
    assert problems == {"cluster-autoscaler/price": NO_PRICES, ORIGINAL: NO_PRICES}
    assert {each.cost for each in found.values()} == {None}
    assert {each.change for who, each in found.items() if who != OURS} == {None}
    assert found[WASTE].nodes >= found[OURS].nodes


def test_unpriced_offerings_are_left_out_for_all():
    request = without_prices(scenario("s1"), of=lambda each: each.instance_type == "m5.4xlarge")
    for record in compared(request).values():
        assert set(types(record)) == {"m5.large"}
        assert record.cost is not None


@pytest.mark.parametrize("seed", range(12))
def test_counts_add_up(seed):
    request = purchase_instances.request(purchase_instances.instance(seed))
    request = replace(request, options=replace(request.options, binder=Binder.KUBE_SCHEDULER))
    answer = make_recommendation(request, WorkBudget.of_seconds(2.0, time.process_time))
    for record in compared(request, answer=answer).values():
        assert record.problem == ""
        assert record.placed + record.left == answer.pods
        assert not record.better
