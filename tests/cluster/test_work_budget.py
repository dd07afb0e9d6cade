"""Work is counted, so that no clock decides what a plan looks like."""

import random

import msgspec
import pytest
from msgspec.structs import replace

from tests.support.builders import node, offering, pod, pool
from tutti.app.recommend import ask
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind
from tutti.cluster.trial import Trial
from tutti.cluster.work_budget import AT_LEAST, PATIENCE, Deadline, Effort
from tutti.market.offerings import Catalogue
from tutti.recommend.records.request import Binder, Down, Options, Request


def crowd(seed, *, pods=300, shapes=25):
    """Pods of many shapes for pools of many sizes: more than a short search settles."""
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


def shaky(seed, seconds):
    """A clock that runs and stands still as it likes, but not longer than patience lasts."""
    chance, now = random.Random(seed), 0.0

    def clock():
        nonlocal now
        now = min(now + chance.choice((0, 0, 1e-4, 0.01, 0.3)), 0.99 * PATIENCE * seconds)
        return now

    return clock


@pytest.mark.parametrize("binder", Binder)
def test_the_same_plan_whatever_the_clock_does(binder):
    request = replace(crowd(1), options=Options(binder=binder, down=Down()))
    seconds = 0.5
    answer = ask(request, Deadline(lambda: 0.0, seconds))
    assert answer.gap > 1e-3  # a search that was cut, and not one that came to its end
    plan = msgspec.json.encode(answer)
    for seed in range(2):
        assert msgspec.json.encode(ask(request, Deadline(shaky(seed, seconds), seconds))) == plan


def test_more_work_is_not_worse():
    request = replace(crowd(2), options=Options(binder=Binder.TUTTI))
    costs = [ask(request, Deadline(lambda: 0.0, seconds)).cost for seconds in (0.05, 1.5)]
    assert costs[1] <= costs[0]


def test_the_clock_has_the_last_word():
    request = crowd(3)
    clock = iter(range(0, 10**9, 60))
    answer = ask(request, Deadline(lambda: float(next(clock)), 5.0))
    assert any("cut by the clock" in note for note in answer.notes)
    assert not any("cut by the clock" in note for note in ask(request, Deadline(lambda: 0.0, 0.2)).notes)


def test_deadlines_share_their_work():
    now = [0.0]
    whole = Deadline(lambda: now[0], 10.0)
    half = whole.part(0.5)
    half.effort.spend(4.0)
    assert (half.left, whole.left) == (1.0, 6.0)
    assert whole.within(2.0).left == 2.0
    assert whole.within(20.0) is whole
    half.effort.spend(1.5)
    assert half.is_over()
    assert not half.is_past(1.0)
    assert whole.at_least(5.0).left == 5.0
    now[0] = 10.0 * PATIENCE  # a part has no clock of its own
    assert whole.is_over()
    assert whole.left == whole.part(0.5).left == 0.0
    assert whole.effort.was_cut
    later = whole.at_least(1.0)  # what must be done still has its time
    assert not later.is_over()


def test_a_small_budget_is_not_cut_by_a_slow_start():
    now = [0.0]
    deadline = Deadline(lambda: now[0], 0.1)
    now[0] = AT_LEAST - 0.1
    assert not deadline.is_over()
    now[0] = AT_LEAST
    assert deadline.is_over()
    assert deadline.effort.was_cut


def test_work_that_is_done_is_no_cut():
    deadline = Deadline(lambda: 100.0, 1.0)
    deadline.effort.spend(1.0)
    assert deadline.is_over()
    assert not deadline.effort.was_cut


def test_clusters_count_their_edits_for_whoever_asks():
    effort = Effort()
    cluster = Cluster((node("a", memory="8Gi"), pod("p", memory="1Gi")), meter=effort.meter)
    built = effort.done
    with Trial(cluster):
        cluster.apply(Bind("default/p", "a"))
        tried = effort.done
    assert 0 < built < tried < effort.done
