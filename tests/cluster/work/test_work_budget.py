"""Work budgets: counted work, not the clock, decides where a search ends."""

import random

import msgspec
import pytest
from msgspec.structs import replace

from tests.support.builders import node, offering, pod, pool
from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind
from tutti.cluster.trial import Trial
from tutti.cluster.work import meter as rates_module
from tutti.cluster.work.meter import SECOND, Meter, work_units
from tutti.cluster.work.work_budget import CLOCK_FACTOR, CLOCK_MINIMUM, WorkBudget
from tutti.market.offerings import Catalogue
from tutti.recommend.records.request import Binder, DownOptions, RecommendOptions, Request


def large_request(seed, *, pods=300, shapes=25):
    """Return a request with many pod shapes and pool sizes, too large for a short search."""
    chance = random.Random(seed)
    asks = [(chance.randint(1, 40) * 100, chance.randint(1, 40) * 256) for _ in range(shapes)]
    waiting = []
    for number in range(pods):
        cpu, memory = asks[number % shapes]
        waiting.append(pod(f"p{number}", f"{cpu}m", memory=f"{memory}Mi", priority=0))
    sizes = [(2, 4, 5), (4, 8, 10), (4, 16, 13), (8, 16, 19), (8, 64, 34), (16, 64, 51)]
    pools = tuple(
        pool(offering(f"n{cpu}-{memory}", cpu=cpu, memory=f"{memory}Gi", price=price)) for cpu, memory, price in sizes
    )
    standing = [node(f"old{number}", "8", memory="32Gi", zone="a") for number in range(3)]
    return Request(objects=(*standing, *waiting), catalogue=Catalogue(pools=pools))


def irregular_clock(seed, seconds):
    """Return a clock with irregular steps that never reaches the alarm."""
    chance, now = random.Random(seed), 0.0

    def clock():
        nonlocal now
        now = min(now + chance.choice((0, 0, 1e-4, 0.01, 0.3)), 0.99 * CLOCK_FACTOR * seconds)
        return now

    return clock


@pytest.mark.parametrize("binder", Binder)
def test_the_plan_does_not_depend_on_the_clock(binder):
    request = replace(large_request(1), options=RecommendOptions(binder=binder, down=DownOptions()))
    seconds = 0.5
    answer = make_recommendation(request, WorkBudget.of_seconds(seconds, lambda: 0.0))
    assert answer.gap > 1e-3  # the budget cut the search
    plan = msgspec.json.encode(answer)
    for seed in range(2):
        assert (
            msgspec.json.encode(
                make_recommendation(request, WorkBudget.of_seconds(seconds, irregular_clock(seed, seconds)))
            )
            == plan
        )


def test_more_work_is_not_worse():
    request = replace(large_request(2), options=RecommendOptions(binder=Binder.TUTTI))
    costs = [make_recommendation(request, WorkBudget.of_seconds(seconds, lambda: 0.0)).cost for seconds in (0.05, 1.5)]
    assert costs[1] <= costs[0]


def test_a_clock_far_beyond_the_budget_cuts_the_search():
    request = large_request(3)
    clock = iter(range(0, 10**9, 60))
    answer = make_recommendation(request, WorkBudget.of_seconds(5.0, lambda: float(next(clock))))
    assert any("cut by the clock" in note for note in answer.notes)
    assert not any(
        "cut by the clock" in note
        for note in make_recommendation(request, WorkBudget.of_seconds(0.2, lambda: 0.0)).notes
    )


def test_budgets_made_from_one_another_count_on_one_meter():
    now = [0.0]
    whole = WorkBudget.of_seconds(10.0, lambda: now[0])
    half = whole.share(0.5)
    half.meter.count += 4 * SECOND
    assert (half.remaining, whole.remaining) == (SECOND, 6 * SECOND)
    assert whole.limited_to(2 * SECOND).remaining == 2 * SECOND
    assert whole.limited_to(20 * SECOND) is whole
    assert not half.is_below(0.19)
    assert half.is_below(0.2)
    half.meter.count += 3 * SECOND // 2
    assert half.is_exhausted()
    assert not half.is_exceeded_by(SECOND)
    assert half.is_exceeded_by(SECOND // 2)
    assert whole.extended_to(5 * SECOND).remaining == 5 * SECOND
    assert whole.extended_to(4 * SECOND) is whole
    now[0] = 10.0 * CLOCK_FACTOR  # a share has no clock of its own
    assert whole.is_exhausted()
    assert whole.remaining == whole.share(0.5).remaining == 0
    assert whole.cut_by_clock
    later = whole.extended_to(SECOND)  # an extended budget gets a later alarm
    assert not later.is_exhausted()


def test_a_nested_budget_spends_from_its_parent_and_ends_with_it():
    session = WorkBudget(100)
    search = session.limited_to(60)
    step = search.limited_to(50)
    assert step.spend(50)
    assert step.is_exhausted()
    assert (search.remaining, session.remaining) == (10, 50)
    assert not search.spend(30)  # counts no more than the budget had
    assert session.remaining == 40
    last = session.limited_to(60)
    assert last.remaining == 40
    assert session.spend(40)
    assert last.is_exhausted()
    assert not last.spend(1)
    assert session.meter.count == 100


def test_a_budget_without_a_limit_is_never_exhausted():
    budget = WorkBudget(None)
    assert budget.spend(10**12)
    assert not budget.is_exhausted()
    assert budget.limited_to(7).remaining == 7
    assert not budget.cut_by_clock


def test_seconds_become_units_and_back():
    assert work_units(0.05) == SECOND // 20
    for seconds in (0.0, 0.1, 0.7, 5.0, 30.0):
        assert WorkBudget.of_seconds(seconds, lambda: 0.0).seconds == seconds


def test_rates_are_whole_numbers():
    rates = {name: rate for name, rate in vars(rates_module).items() if name.isupper()}
    assert len(rates) > 30
    assert all(type(rate) is int and rate > 0 for rate in rates.values())


def test_a_small_budget_is_not_cut_by_a_slow_start():
    now = [0.0]
    budget = WorkBudget.of_seconds(0.1, lambda: now[0])
    now[0] = CLOCK_MINIMUM - 0.1
    assert not budget.is_exhausted()
    now[0] = CLOCK_MINIMUM
    assert budget.is_exhausted()
    assert budget.cut_by_clock


def test_exhausted_work_is_not_a_cut_by_clock():
    budget = WorkBudget.of_seconds(1.0, lambda: 100.0)
    budget.meter.count += SECOND
    assert budget.is_exhausted()
    assert not budget.cut_by_clock


def test_clusters_count_their_edits():
    meter = Meter()
    cluster = Cluster((node("a", memory="8Gi"), pod("p", memory="1Gi")), meter=meter)
    built = meter.count
    with Trial(cluster):
        cluster.apply(Bind("default/p", "a"))
        tried = meter.count
    assert 0 < built < tried < meter.count
