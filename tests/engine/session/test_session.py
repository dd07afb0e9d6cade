"""Sessions: a queue in, a plan and a queue out, over simulated time."""

from __future__ import annotations

from functools import partial
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.support import builders
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put, Remove
from tutti.engine.session.queue import SECOND, Patience, Queue
from tutti.engine.session.session import Policy, session
from tutti.kube import objects as k
from tutti.kube.times import timestamp

MINUTE = 60 * SECOND
START = 1_800_000_000 * SECOND


node = partial(builders.node, memory="64Gi")


def pod(name: str, cpu: str = "4", *, created: int = START, lasts: str | None = None, **how: Any) -> k.Pod:
    """A pod as large as a node, that says for how long it runs."""
    when = {"created": timestamp(created), "started": timestamp(created) if how.get("on") else None}
    annotations = {"tutti.dev/duration": lasts} if lasts else None
    return builders.pod(name, cpu, **{"memory": "1Gi", "priority": 0, "annotations": annotations, **when, **how})


def gang(name: str, size: int, **how: Any) -> list[k.Pod]:
    return [pod(f"{name}-{number}", gang=name, **how) for number in range(size)]


def bound(plan) -> dict[str, str]:
    return {each.pod.removeprefix("default/"): each.node for each in plan.binds}


def test_victims_leave_before_the_gang_is_bound() -> None:
    nodes = [node(name) for name in "abc"]
    low = [pod(f"low-{n.metadata.name}", on=n.metadata.name) for n in nodes]
    cluster = Cluster((*nodes, *low, *gang("high", 2, priority=10)))
    plan, queue = session(cluster, Queue(), START)
    assert len(plan.evictions) == 2
    assert not plan.binds
    assert {each.pod for each in plan.nominated} == {"default/high-0", "default/high-1"}
    # They are leaving: nobody else is evicted for the same gang, however often it is asked.
    again, queue = session(cluster, queue, START + MINUTE)
    assert not again.evictions
    assert not again.binds
    for victim in plan.evictions:
        cluster.apply(Remove("Pod", victim.pod))
    last, queue = session(cluster, queue, START + 2 * MINUTE)
    assert bound(last) == {each.pod.removeprefix("default/"): each.node for each in plan.nominated}
    assert not queue.waiting
    assert not cluster.holds


def test_room_of_leaving_pods_is_promised_and_not_given_away() -> None:
    cluster = Cluster((node("a"), pod("old", on="a"), pod("high", priority=10)))
    _, queue = session(cluster, Queue(), START)
    cluster.apply(Remove("Pod", "default/old"))
    cluster.apply(Put(pod("later", priority=5, created=START + SECOND)))
    plan, queue = session(cluster, queue, START + MINUTE)
    assert bound(plan) == {"high": "a"}


def test_what_failed_is_tried_when_something_happens_that_may_cure_it_and_its_backoff_is_over() -> None:
    cluster = Cluster((node("a"), pod("busy", on="a"), *gang("g", 2)))
    plan, queue = session(cluster, Queue(), START)
    assert [each.gang for each in plan.gangs] == ["default/g"]
    quiet, queue = session(cluster, queue, START + 20 * SECOND)
    assert not quiet.gangs  # nothing has happened
    cluster.apply(Put(node("b")))
    cluster.apply(Put(node("c")))
    plan, queue = session(cluster, queue, START + 20 * SECOND)
    assert len(plan.binds) == 2


def test_backoff_doubles() -> None:
    cluster = Cluster((node("a"), pod("busy", on="a"), *gang("g", 2)))
    _, queue = session(cluster, Queue(), START)
    now = START
    waits = []
    for number in range(6):
        cluster.apply(Put(node(f"small-{number}", cpu="1")))
        entry = queue.waiting["gang/default/g"]
        early, queue = session(cluster, queue, entry.backoff_ends(Patience()) - 1)
        assert not early.gangs
        waits.append((entry.backoff_ends(Patience()) - now) // SECOND)
        now = entry.backoff_ends(Patience())
        tried, queue = session(cluster, queue, now)
        assert tried.gangs
    assert waits == [1, 2, 4, 8, 10, 10]


def test_a_changed_gang_is_tried_at_once() -> None:
    cluster = Cluster((node("a"), node("b"), node("c"), *gang("g", 4)))
    plan, queue = session(cluster, Queue(), START)
    assert not plan.binds
    cluster.apply(Remove("Pod", "default/g-3"))
    plan, queue = session(cluster, queue, START + 1)
    assert len(plan.binds) == 3


def test_a_budget_of_work_is_shared_fairly() -> None:
    """What a session does not come to is first in the next, so that nobody waits for ever."""
    cluster = Cluster(
        (node("a", cpu="1"), *(p for n in range(20) for p in gang(f"big-{n:02}", 2, priority=5)), pod("small", cpu="1"))
    )
    queue, policy = Queue(), Policy(work=1, preemption=False)
    for number in range(60):
        plan, queue = session(cluster, queue, START + number * 20 * SECOND, policy=policy)
        cluster.apply(Put(node("a", cpu="1")))
        if plan.binds:
            break
    assert bound(plan) == {"small": "a"}
    assert number <= 45


def starving() -> Cluster:
    """Two nodes busy with work that ends one after the other, a gang that wants both, and small work behind it."""
    nodes = [node("a"), node("b")]
    busy = [pod("busy-a", on="a", lasts="5m"), pod("busy-b", on="b", lasts="10m")]
    return Cluster((*nodes, *busy, *gang("wide", 2)))


def test_a_starving_gang_gets_a_reservation() -> None:
    cluster = starving()
    _, queue = session(cluster, Queue(), START)
    assert queue.reservation is None
    _, queue = session(cluster, queue, START + 2 * MINUTE)
    assert queue.reservation is not None
    assert {hold.node for hold in queue.reservation.holds} == {"a", "b"}
    assert queue.reservation.until == START + 10 * MINUTE
    # The first node is free: without the reservation small work would take it, again and again.
    cluster.apply(Remove("Pod", "default/busy-a"))
    cluster.apply(Put(pod("greedy", created=START + 3 * MINUTE)))
    plan, queue = session(cluster, queue, START + 5 * MINUTE)
    assert not plan.binds
    cluster.apply(Remove("Pod", "default/busy-b"))
    plan, queue = session(cluster, queue, START + 10 * MINUTE)
    assert set(bound(plan)) == {"wide-0", "wide-1"}


@pytest.mark.parametrize(("lasts", "fits"), [("4m", True), ("6m", False), (None, False)])
def test_work_that_ends_in_time_backfills(lasts: str | None, fits: bool) -> None:
    cluster = starving()
    _, queue = session(cluster, Queue(), START)
    _, queue = session(cluster, queue, START + 2 * MINUTE)
    cluster.apply(Remove("Pod", "default/busy-a"))
    cluster.apply(Put(pod("short", created=START + 3 * MINUTE, lasts=lasts)))
    plan, queue = session(cluster, queue, START + 5 * MINUTE)
    assert bound(plan) == ({"short": "a"} if fits else {})


def test_a_gang_that_can_never_start_reserves_nothing() -> None:
    cluster = Cluster((node("a"), node("b"), pod("busy", on="a"), *gang("huge", 3), pod("small", created=START + 1)))
    plan, queue = session(cluster, Queue(), START)
    assert bound(plan) == {"small": "b"}
    _, queue = session(cluster, queue, START + 5 * MINUTE)
    assert queue.reservation is None


def test_a_reservation_passes_on_after_a_while() -> None:
    cluster = Cluster((node("a"), node("b"), pod("busy-a", on="a"), pod("busy-b", on="b"), *gang("wide", 2)))
    queue = Queue()
    held = []
    for minutes in range(0, 100, 10):
        _, queue = session(cluster, queue, START + minutes * MINUTE)
        held.append(queue.reservation is not None)
    assert held == [False, True, True, True, True, True, True, False, False, False]


def test_a_queue_survives_being_written_down() -> None:
    cluster = starving()
    _, queue = session(cluster, Queue(), START)
    _, queue = session(cluster, queue, START + 2 * MINUTE)
    assert msgspec.json.decode(msgspec.json.encode(queue), type=Queue) == queue


def test_a_member_that_came_back_is_placed_alone() -> None:
    members = gang("g", 3, on="a", cpu="1")
    cluster = Cluster((node("a"), node("b"), *members))
    cluster.apply(Put(pod("g-2", gang="g", cpu="1", created=START)))
    plan, _ = session(cluster, Queue(), START)
    assert set(bound(plan)) == {"g-2"}


def test_the_same_input_gives_the_same_plan() -> None:
    plans = [msgspec.json.encode(session(starving(), Queue(), START)) for _ in range(2)]
    assert plans[0] == plans[1]


# Found in review ------------------------------------------------------------------------------------------------------


def tainted(name: str) -> k.Node:
    return replace(node(name), spec=k.NodeSpec(taints=[k.Taint(key="control-plane", effect="NoSchedule")]))


def test_one_tainted_node_does_not_keep_reservations_away() -> None:
    busy = [pod("busy-a", on="a", lasts="5m"), pod("busy-b", on="b", lasts="10m")]
    cluster = Cluster((node("a"), node("b"), tainted("control"), *busy, *gang("wide", 2)))
    _, queue = session(cluster, Queue(), START)
    _, queue = session(cluster, queue, START + 2 * MINUTE)
    assert queue.reservation is not None


def test_small_pods_beside_a_starving_one_do_not_take_its_room() -> None:
    cluster = Cluster((node("a"), pod("b1", on="a", cpu="2"), pod("b2", on="a", cpu="2"), pod("big")))
    _, queue = session(cluster, Queue(), START)
    _, queue = session(cluster, queue, START + 2 * MINUTE)
    seen: dict[str, str] = {}
    for number in (1, 2):
        cluster.apply(Remove("Pod", f"default/b{number}"))
        cluster.apply(Put(pod(f"later-{number}", cpu="2", created=START + (3 + number) * MINUTE)))
        plan, queue = session(cluster, queue, START + (4 + number) * MINUTE)
        seen |= bound(plan)
    assert seen == {"big": "a"}


def test_a_session_that_ends_early_keeps_the_reservation() -> None:
    cluster = starving()
    _, queue = session(cluster, Queue(), START)
    _, queue = session(cluster, queue, START + 2 * MINUTE)
    for number in range(3):
        cluster.apply(Put(replace(pod(f"first-{number}", cpu="1", priority=5), spec=never(5))))
    _, later = session(cluster, queue, START + 3 * MINUTE, policy=Policy(work=1))
    assert later.reservation == queue.reservation
    assert len(cluster.holds) == 2


def never(priority: int) -> k.PodSpec:
    return replace(pod("x", cpu="8", priority=priority).spec, preemption_policy="Never")


def with_condition(old: k.Pod) -> k.Pod:
    said = k.Condition(type="PodScheduled", status="False", reason="Unschedulable")
    return replace(old, status=replace(old.status, conditions=[said]))


def test_updates_of_a_status_are_no_news() -> None:
    cluster = Cluster((node("a"), pod("busy", on="a"), *gang("g", 2)))
    _, queue = session(cluster, Queue(), START)
    events = list(cluster.events)
    for key in ("default/g-0", "default/busy"):
        cluster.apply(Put(with_condition(cluster.pod(key))))
    plan, queue = session(cluster, queue, START + 30 * SECOND)
    assert cluster.events == events
    assert not plan.gangs


def test_an_update_of_a_status_keeps_the_room_that_was_promised() -> None:
    cluster = Cluster((node("a"), pod("old", on="a"), pod("high", priority=10)))
    _, queue = session(cluster, Queue(), START)
    cluster.apply(Put(with_condition(cluster.pod("default/high"))))
    cluster.apply(Remove("Pod", "default/old"))
    cluster.apply(Put(pod("later", priority=5, created=START + 1)))
    plan, queue = session(cluster, queue, START + SECOND // 2)
    assert not plan.binds
    plan, queue = session(cluster, queue, START + 2 * SECOND)
    assert bound(plan) == {"high": "a"}


def test_a_victim_that_never_leaves_blocks_nobody_for_ever() -> None:
    stuck = pod("stuck", on="a")
    stuck = replace(stuck, metadata=replace(stuck.metadata, deletion_timestamp=timestamp(START)))
    cluster = Cluster((node("a"), node("b"), stuck, *gang("pair", 2)))
    _, queue = session(cluster, Queue(), START)
    assert cluster.holds
    cluster.apply(Put(pod("other", created=START + MINUTE)))
    started: dict[str, str] = {}
    for hours in range(1, 6):
        plan, queue = session(cluster, queue, START + hours * 3_600 * SECOND)
        started |= bound(plan)
    assert started == {"other": "b"}


def test_another_domain_may_cure_too() -> None:
    labels = {"a1": "1", "b1": "2", "b2": "2"}
    nodes = [node("a1"), tainted("b1"), tainted("b2")]
    nodes = [replace(n, metadata=replace(n.metadata, labels={"zone": labels[n.metadata.name]})) for n in nodes]
    members = gang("g", 2)
    members = [
        replace(p, metadata=replace(p.metadata, annotations={"pod-group": "g", "tutti.dev/topology-required": "zone"}))
        for p in members
    ]
    cluster = Cluster((*nodes, *members))
    _, queue = session(cluster, Queue(), START)
    for name in ("b1", "b2"):
        cluster.apply(Put(replace(node(name), metadata=k.ObjectMeta(name=name, labels={"zone": "2"}))))
    plan, _ = session(cluster, queue, START + 20 * SECOND)
    assert set(bound(plan)) == {"g-0", "g-1"}


def test_a_queue_for_a_new_cluster_tries_everything_again() -> None:
    cluster = Cluster((node("a"), node("b"), pod("busy", on="a"), *gang("g", 2)))
    _, queue = session(cluster, Queue(), START)
    read = msgspec.json.decode(msgspec.json.encode(queue), type=Queue).for_new_cluster()
    other = Cluster((node("a"), node("c"), node("d"), pod("busy", on="a"), *gang("g", 2)))
    plan, _ = session(other, read, START + 2 * SECOND)
    assert len(plan.binds) == 2


def test_wake_is_never_in_the_past() -> None:
    cluster = Cluster((node("a"), node("b"), pod("busy-a", on="a"), pod("busy-b", on="b"), *gang("wide", 2)))
    queue = Queue()
    for minutes in (0, 10, 71, 72, 73, 100):
        now = START + minutes * MINUTE
        _, queue = session(cluster, queue, now)
        assert queue.wake is not None
        assert queue.wake > now
