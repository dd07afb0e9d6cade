"""Sessions with a queue, over simulated time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial as with_defaults
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.support import builders
from tests.support.cluster_state import cluster_state, rebuilt
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Evict, Put, Remove, Unbind, Unevict
from tutti.cluster.work.meter import POD_TRIED
from tutti.engine.placement.engine import Engine
from tutti.engine.session.gang_attempts import GangAttempts
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import SECOND, Patience, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.queue_state import QueueRecord
from tutti.engine.session.session import session
from tutti.exceptions import InputError
from tutti.kube import objects as k
from tutti.kube.times import timestamp

MINUTE = 60 * SECOND
START = 1_800_000_000 * SECOND


node = with_defaults(builders.node, memory="64Gi")


def pod(name: str, cpu: str = "4", *, created: int = START, lasts: str | None = None, **how: Any) -> k.Pod:
    """Return a pod as large as a node; `lasts` is its duration annotation."""
    when = {"created": timestamp(created), "started": timestamp(created) if how.get("on") else None}
    annotations = {"tutti.dev/duration": lasts} if lasts else None
    return builders.pod(name, cpu, **{"memory": "1Gi", "priority": 0, "annotations": annotations, **when, **how})


def gang(name: str, size: int, **how: Any) -> list[k.Pod]:
    """Return the pods of a gang whose size is only counted; they are so old that no further pod is expected."""
    how = {"created": START - MINUTE, **how}
    return [pod(f"{name}-{number}", gang=name, **how) for number in range(size)]


def run(queue: Queue, now: int, policy: Policy | None = None) -> Plan:
    """Run a session with an engine of its own, as after a restart."""
    return session(Engine(queue.cluster), queue, now, policy or Policy())


def bound(plan) -> dict[str, str]:
    return {each.pod.removeprefix("default/"): each.node for each in plan.binds}


def test_victims_leave_before_the_gang_is_bound() -> None:
    nodes = [node(name) for name in "abc"]
    low = [pod(f"low-{n.metadata.name}", on=n.metadata.name) for n in nodes]
    cluster = Cluster((*nodes, *low, *gang("high", 2, priority=10)))
    queue = Queue(cluster)
    plan = run(queue, START)
    assert len(plan.evictions) == 2
    assert not plan.binds
    assert {each.pod for each in plan.nominated} == {"default/high-0", "default/high-1"}
    # While the victims terminate, later sessions evict no further pod for the same gang.
    again = run(queue, START + MINUTE)
    assert not again.evictions
    assert not again.binds
    for victim in plan.evictions:
        cluster.apply(Remove("Pod", victim.pod))
    last = run(queue, START + 2 * MINUTE)
    assert bound(last) == {each.pod.removeprefix("default/"): each.node for each in plan.nominated}
    assert not queue.waiting
    assert not cluster.holds


def test_room_of_terminating_pods_is_held_for_the_preemptor() -> None:
    cluster = Cluster((node("a"), pod("old", on="a"), pod("high", priority=10)))
    queue = Queue(cluster)
    run(queue, START)
    cluster.apply(Remove("Pod", "default/old"))
    cluster.apply(Put(pod("later", priority=5, created=START + SECOND)))
    plan = run(queue, START + MINUTE)
    assert bound(plan) == {"high": "a"}


def test_a_failed_turn_is_retried_after_a_relevant_event_and_its_backoff() -> None:
    cluster = Cluster((node("a"), pod("busy", on="a"), *gang("g", 2)))
    queue = Queue(cluster)
    plan = run(queue, START)
    assert [each.gang for each in plan.gangs] == ["default/g"]
    quiet = run(queue, START + 20 * SECOND)
    assert not quiet.gangs  # nothing has happened
    cluster.apply(Put(node("b")))
    cluster.apply(Put(node("c")))
    plan = run(queue, START + 20 * SECOND)
    assert len(plan.binds) == 2


def test_backoff_doubles() -> None:
    # The cluster has room for two pods, but not in one zone, so that only an attempt shows that the gang cannot start.
    in_one_zone = {"tutti.dev/topology-required": builders.ZONE}
    cluster = Cluster((node("a", zone="a"), *gang("g", 2, annotations=in_one_zone)))
    queue = Queue(cluster)
    run(queue, START)
    now = START
    waits = []
    for _ in range(6):
        cluster.apply(Remove("Node", "b"))
        cluster.apply(Put(node("b", zone="b")))
        entry = queue.waiting["gang/default/g"]
        early = run(queue, entry.backoff_ends(Patience()) - 1)
        assert not early.gangs
        waits.append((entry.backoff_ends(Patience()) - now) // SECOND)
        now = entry.backoff_ends(Patience())
        tried = run(queue, now)
        assert tried.gangs
    assert waits == [1, 2, 4, 8, 10, 10]


def test_a_turn_is_not_tried_if_arithmetic_shows_too_little_room() -> None:
    cluster = Cluster((node("a"), pod("busy", on="a"), *gang("g", 2)))
    queue = Queue(cluster)
    assert run(queue, START).turns
    cluster.apply(Put(node("b")))  # room for one of the two
    assert not run(queue, START + MINUTE).turns
    cluster.apply(Put(node("c")))
    assert len(run(queue, START + MINUTE + SECOND).binds) == 2


def test_room_that_is_taken_again_is_not_tried_by_turns_of_other_kinds() -> None:
    cluster = Cluster((node("a"), pod("busy", on="a"), *(pod(f"p-{i}", f"{4 - i}") for i in range(3))))
    queue = Queue(cluster)
    assert len(run(queue, START).unschedulable) == 3
    cluster.apply(Remove("Pod", "default/busy"))
    plan = run(queue, START + MINUTE)
    assert bound(plan) == {"p-0": "a"}
    assert [turn.name for turn in plan.turns] == ["default/p-0"]


def test_all_turns_of_a_kind_start_when_there_is_room_for_all() -> None:
    cluster = Cluster((node("a"), pod("busy", on="a"), *(pod(f"p-{i}") for i in range(5))))
    queue = Queue(cluster)
    assert len(run(queue, START).unschedulable) == 5
    for name in "bcdefg":
        cluster.apply(Put(node(name)))
    assert len(run(queue, START + MINUTE).binds) == 5


def test_what_a_session_does_may_cure_a_turn_that_failed_before_in_the_same_session() -> None:
    near = k.PodAffinityTerm(label_selector=k.LabelSelector(match_labels={"app": "db"}), topology_key=builders.HOSTNAME)
    affinity = k.Affinity(pod_affinity=k.PodAffinity(required=[near]))
    cluster = Cluster((node("a"), pod("web", "1", priority=10, affinity=affinity), pod("db", "1", app="db")))
    queue = Queue(cluster)
    plan = run(queue, START)
    assert bound(plan) == {"db": "a"}
    assert queue.wake == START + SECOND  # the end of the backoff, not the end of the long wait
    assert bound(run(queue, START + SECOND)) == {"web": "a"}


def test_a_changed_gang_is_tried_at_once() -> None:
    cluster = Cluster((node("a"), node("b"), node("c"), *gang("g", 4)))
    queue = Queue(cluster)
    plan = run(queue, START)
    assert not plan.binds
    cluster.apply(Remove("Pod", "default/g-3"))
    plan = run(queue, START + 1)
    assert len(plan.binds) == 3


def test_a_budget_of_work_is_shared_fairly() -> None:
    """Turns that a session does not reach come first in the next session, so that no turn waits for ever."""
    cluster = Cluster(
        (node("a", cpu="1"), *(p for n in range(20) for p in gang(f"big-{n:02}", 2, priority=5)), pod("small", cpu="1"))
    )
    queue, policy = Queue(cluster), Policy(budget=1, preemption=False)
    for number in range(60):
        plan = run(queue, START + number * 20 * SECOND, policy)
        cluster.apply(Put(node("a", cpu="1")))
        if plan.binds:
            break
    assert bound(plan) == {"small": "a"}
    assert number <= 45


def test_a_search_that_the_budget_ends_is_continued_by_the_next_session() -> None:
    """A gang whose search was cut is not called unschedulable: it is the first of the next session."""
    nodes = [node(name, cpu="10") for name in "abc"]
    # They fit as 5 + 5, 4 + 3 + 3 and 4 + 3 + 3 only: spread evenly, the last one finds no room.
    old = START - MINUTE
    tight = [pod(f"tight-{i}", gang="tight", cpu=cpu, priority=5, created=old) for i, cpu in enumerate("55443333")]
    cluster = Cluster((*nodes, pod("first", cpu="0", priority=9), *tight))
    queue = Queue(cluster)
    plan = run(queue, START, Policy(budget=POD_TRIED + 1))
    assert set(bound(plan)) == {"first"}
    assert not plan.unschedulable
    assert queue.resume is not None
    assert not queue.waiting
    assert queue.wake == START
    assert len(run(queue, START).binds) == 8


def starving() -> Cluster:
    """Return two full nodes, whose pods end one after the other, and a gang that needs both nodes."""
    nodes = [node("a"), node("b")]
    busy = [pod("busy-a", on="a", lasts="5m"), pod("busy-b", on="b", lasts="10m")]
    return Cluster((*nodes, *busy, *gang("wide", 2)))


def test_a_starving_gang_gets_a_reservation() -> None:
    cluster = starving()
    queue = Queue(cluster)
    run(queue, START)
    assert queue.reservation is None
    run(queue, START + 2 * MINUTE)
    assert queue.reservation is not None
    assert {hold.node for hold in queue.reservation.holds} == {"a", "b"}
    assert queue.reservation.until == START + 10 * MINUTE
    # The first node is free: without the reservation small pods would take it again and again.
    cluster.apply(Remove("Pod", "default/busy-a"))
    cluster.apply(Put(pod("greedy", created=START + 3 * MINUTE)))
    plan = run(queue, START + 5 * MINUTE)
    assert not plan.binds
    cluster.apply(Remove("Pod", "default/busy-b"))
    plan = run(queue, START + 10 * MINUTE)
    assert set(bound(plan)) == {"wide-0", "wide-1"}


@pytest.mark.parametrize(("lasts", "fits"), [("4m", True), ("6m", False), (None, False)])
def test_pods_that_end_in_time_use_reserved_room(lasts: str | None, fits: bool) -> None:
    cluster = starving()
    queue = Queue(cluster)
    run(queue, START)
    run(queue, START + 2 * MINUTE)
    cluster.apply(Remove("Pod", "default/busy-a"))
    cluster.apply(Put(pod("short", created=START + 3 * MINUTE, lasts=lasts)))
    plan = run(queue, START + 5 * MINUTE)
    assert bound(plan) == ({"short": "a"} if fits else {})


def test_a_gang_that_can_never_start_reserves_nothing() -> None:
    cluster = Cluster((node("a"), node("b"), pod("busy", on="a"), *gang("huge", 3), pod("small", created=START + 1)))
    queue = Queue(cluster)
    plan = run(queue, START)
    assert bound(plan) == {"small": "b"}
    run(queue, START + 5 * MINUTE)
    assert queue.reservation is None


def test_a_reservation_passes_on_after_a_while() -> None:
    cluster = Cluster((node("a"), node("b"), pod("busy-a", on="a"), pod("busy-b", on="b"), *gang("wide", 2)))
    queue = Queue(cluster)
    held = []
    for minutes in range(0, 100, 10):
        run(queue, START + minutes * MINUTE)
        held.append(queue.reservation is not None)
    assert held == [False, True, True, True, True, True, True, False, False, False]


def test_a_queue_record_survives_encoding() -> None:
    cluster = starving()
    queue = Queue(cluster)
    run(queue, START)
    run(queue, START + 2 * MINUTE)
    record = queue.freeze()
    assert record.waiting
    assert record.reservation is not None
    assert msgspec.json.decode(msgspec.json.encode(record), type=QueueRecord) == record


def test_a_member_that_came_back_is_placed_alone() -> None:
    members = gang("g", 3, on="a", cpu="1")
    cluster = Cluster((node("a"), node("b"), *members))
    cluster.apply(Put(pod("g-2", gang="g", cpu="1", created=START - MINUTE)))
    plan = run(Queue(cluster), START)
    assert set(bound(plan)) == {"g-2"}


def test_the_same_input_gives_the_same_plan() -> None:
    plans = [msgspec.json.encode(run(Queue(starving()), START)) for _ in range(2)]
    assert plans[0] == plans[1]


# Regressions ----------------------------------------------------------------------------------------------------------


def tainted(name: str) -> k.Node:
    return replace(node(name), spec=k.NodeSpec(taints=[k.Taint(key="control-plane", effect="NoSchedule")]))


def test_one_tainted_node_does_not_keep_reservations_away() -> None:
    busy = [pod("busy-a", on="a", lasts="5m"), pod("busy-b", on="b", lasts="10m")]
    cluster = Cluster((node("a"), node("b"), tainted("control"), *busy, *gang("wide", 2)))
    queue = Queue(cluster)
    run(queue, START)
    run(queue, START + 2 * MINUTE)
    assert queue.reservation is not None


def test_small_pods_do_not_take_the_room_of_a_starving_pod() -> None:
    cluster = Cluster((node("a"), pod("b1", on="a", cpu="2"), pod("b2", on="a", cpu="2"), pod("big")))
    queue = Queue(cluster)
    run(queue, START)
    run(queue, START + 2 * MINUTE)
    seen: dict[str, str] = {}
    for number in (1, 2):
        cluster.apply(Remove("Pod", f"default/b{number}"))
        cluster.apply(Put(pod(f"later-{number}", cpu="2", created=START + (3 + number) * MINUTE)))
        plan = run(queue, START + (4 + number) * MINUTE)
        seen |= bound(plan)
    assert seen == {"big": "a"}


def test_a_session_that_ends_early_keeps_the_reservation() -> None:
    cluster = starving()
    queue = Queue(cluster)
    run(queue, START)
    run(queue, START + 2 * MINUTE)
    for number in range(3):
        cluster.apply(Put(replace(pod(f"first-{number}", cpu="1", priority=5), spec=never(5))))
    before = queue.reservation
    run(queue, START + 3 * MINUTE, Policy(budget=1))
    assert before is not None
    assert queue.reservation == before
    assert len(cluster.holds) == 2


def never(priority: int) -> k.PodSpec:
    return replace(pod("x", cpu="8", priority=priority).spec, preemption_policy="Never")


def with_condition(old: k.Pod) -> k.Pod:
    said = k.Condition(type="PodScheduled", status="False", reason="Unschedulable")
    return replace(old, status=replace(old.status, conditions=[said]))


def test_status_updates_are_no_events() -> None:
    cluster = Cluster((node("a"), pod("busy", on="a"), *gang("g", 2)))
    queue = Queue(cluster)
    run(queue, START)
    events = list(cluster.events)
    for key in ("default/g-0", "default/busy"):
        cluster.apply(Put(with_condition(cluster.pod(key))))
    plan = run(queue, START + 30 * SECOND)
    assert cluster.events == events
    assert not plan.gangs


def test_a_status_update_keeps_held_room() -> None:
    cluster = Cluster((node("a"), pod("old", on="a"), pod("high", priority=10)))
    queue = Queue(cluster)
    run(queue, START)
    cluster.apply(Put(with_condition(cluster.pod("default/high"))))
    cluster.apply(Remove("Pod", "default/old"))
    cluster.apply(Put(pod("later", priority=5, created=START + 1)))
    plan = run(queue, START + SECOND // 20)
    assert not plan.binds
    plan = run(queue, START + SECOND // 10)
    assert bound(plan) == {"high": "a"}, "a pod that waits for its victims alone has a short backoff"


def test_a_victim_that_never_terminates_does_not_block_for_ever() -> None:
    stuck = pod("stuck", on="a")
    stuck = replace(stuck, metadata=replace(stuck.metadata, deletion_timestamp=timestamp(START)))
    cluster = Cluster((node("a"), node("b"), stuck, *gang("pair", 2)))
    queue = Queue(cluster)
    run(queue, START)
    assert cluster.holds
    cluster.apply(Put(pod("other", created=START + MINUTE)))
    started: dict[str, str] = {}
    for hours in range(1, 6):
        plan = run(queue, START + hours * 3_600 * SECOND)
        started |= bound(plan)
    assert started == {"other": "b"}


def test_a_change_in_another_domain_may_cure_a_gang() -> None:
    labels = {"a1": "1", "b1": "2", "b2": "2"}
    nodes = [node("a1"), tainted("b1"), tainted("b2")]
    nodes = [replace(n, metadata=replace(n.metadata, labels={"zone": labels[n.metadata.name]})) for n in nodes]
    members = gang("g", 2)
    members = [
        replace(p, metadata=replace(p.metadata, annotations={"pod-group": "g", "tutti.dev/topology-required": "zone"}))
        for p in members
    ]
    cluster = Cluster((*nodes, *members))
    queue = Queue(cluster)
    run(queue, START)
    for name in ("b1", "b2"):
        cluster.apply(Put(replace(node(name), metadata=k.ObjectMeta(name=name, labels={"zone": "2"}))))
    plan = run(queue, START + 20 * SECOND)
    assert set(bound(plan)) == {"g-0", "g-1"}


def test_a_queue_for_a_new_cluster_tries_everything_again() -> None:
    cluster = Cluster((node("a"), node("b"), pod("busy", on="a"), *gang("g", 2)))
    queue = Queue(cluster)
    run(queue, START)
    read = msgspec.json.decode(msgspec.json.encode(queue.freeze()), type=QueueRecord)
    other = Cluster((node("a"), node("c"), node("d"), pod("busy", on="a"), *gang("g", 2)))
    plan = run(Queue(other, read), START + 2 * SECOND)
    assert len(plan.binds) == 2


def test_wake_is_never_in_the_past() -> None:
    cluster = Cluster((node("a"), node("b"), pod("busy-a", on="a"), pod("busy-b", on="b"), *gang("wide", 2)))
    queue = Queue(cluster)
    for minutes in (0, 10, 71, 72, 73, 100):
        now = START + minutes * MINUTE
        run(queue, now)
        assert queue.wake is not None
        assert queue.wake > now


# Under a mark ---------------------------------------------------------------------------------------------------------


def test_a_session_under_a_mark_is_rolled_back_with_its_queue() -> None:
    cluster = starving()
    queue = Queue(cluster)
    run(queue, START)
    record, events, holds = queue.freeze(), list(cluster.events), dict(cluster.holds)
    mark = cluster.mark()
    run(queue, START + 2 * MINUTE)
    assert queue.reservation is not None
    cluster.apply(Remove("Pod", "default/busy-a"))
    cluster.apply(Remove("Pod", "default/busy-b"))
    assert run(queue, START + 5 * MINUTE).binds
    cluster.rollback(mark)
    assert queue.freeze() == record
    assert cluster.events == events
    assert cluster.holds == holds


def test_a_committed_session_keeps_its_queue_and_an_outer_mark_undoes_it() -> None:
    cluster = starving()
    queue = Queue(cluster)
    empty = queue.freeze()
    outer = cluster.mark()
    inner = cluster.mark()
    run(queue, START)
    cluster.commit(inner)
    assert queue.waiting
    cluster.rollback(outer)
    assert queue.freeze() == empty


def test_holds_that_are_put_back_at_once_are_no_event() -> None:
    cluster = starving()
    queue = Queue(cluster)
    run(queue, START)
    run(queue, START + 2 * MINUTE)
    cluster.apply(Remove("Pod", "default/busy-a"))
    cluster.apply(Put(pod("short", cpu="8", created=START + 3 * MINUTE, lasts="1m")))
    before = list(cluster.events)
    plan = run(queue, START + 5 * MINUTE)
    assert "default/short" in {each.pod for each in plan.unschedulable}
    assert cluster.events == before


# The plan -------------------------------------------------------------------------------------------------------------


def test_a_plan_names_turns_holds_and_what_a_binder_needs() -> None:
    nodes = [node("a"), node("b"), node("c")]
    high = [
        replace(p, metadata=replace(p.metadata, uid=f"uid-{p.metadata.name}")) for p in gang("high", 2, priority=10)
    ]
    small = replace(pod("small", cpu="1", priority=20), metadata=replace(pod("small").metadata, uid="uid-small"))
    low = [pod("low-a", on="a"), pod("low-b", on="b"), pod("low-c", on="c", cpu="3")]
    cluster = Cluster((*nodes, *low, *high, small))
    queue = Queue(cluster)
    plan = run(queue, START)
    assert [turn.name for turn in plan.turns] == ["default/small", "gang/default/high", _SURPLUS]
    assert [(each.pod, each.node, each.uid) for each in plan.binds] == [("default/small", "c", "uid-small")]
    assert {hold.owner for hold in plan.holds} == {each.pod for each in plan.nominated} != set()
    assert all(isinstance(each.change, Evict) for each in plan.evictions)
    assert not plan.released
    later = run(queue, START + 2 * 3_600 * SECOND)  # the victims never left
    assert set(later.released) | {hold.owner for hold in later.holds} >= {"default/high-0", "default/high-1"}


_SURPLUS = "gang/default/high above its minimum"


def test_policies_that_need_a_clock_say_so() -> None:
    cluster = starving()
    with pytest.raises(ValueError, match="clock"):
        session(Engine(cluster), None, None, Policy(patience=None))
    with pytest.raises(ValueError, match="queue and a clock"):
        session(Engine(cluster), None, START, Policy())
    with pytest.raises(ValueError, match="another cluster"):
        session(Engine(cluster), Queue(starving()), START, Policy())


def test_only_some_pods() -> None:
    cluster = Cluster((node("a"), pod("one", cpu="1"), pod("two", cpu="1")))
    queue = Queue(cluster)
    plan = session(Engine(cluster), queue, START, Policy(), only=["default/two", "default/none-such"])
    assert bound(plan) == {"two": "a"}
    assert cluster.pods.node_names[cluster.pod_row("default/one")] is None


# Clocks and executors -------------------------------------------------------------------------------------------------


def job(name: str) -> k.OwnerReference:
    return builders.owner_reference("Job", name)


def test_a_counted_gang_waits_until_no_further_pod_comes() -> None:
    """The size of the gang is only counted: pods that arrive one by one must not be bound alone."""
    cluster = Cluster((node("a"), node("b")))
    queue, engine = Queue(cluster), Engine(cluster)
    for number in range(2):
        now = START + number * SECOND
        cluster.apply(Put(pod(f"g-{number}", gang="g", created=now)))
        assert not session(engine, queue, now, Policy()).binds
        assert queue.wake == now + 2 * SECOND
    assert len(session(engine, queue, START + 3 * SECOND, Policy()).binds) == 2


def test_binds_have_a_start_and_expected_ends_do_not_slide() -> None:
    cluster = Cluster((node("a"), pod("p", lasts="5m")))
    plan = run(Queue(cluster), START)
    assert [each.start for each in plan.binds] == [START]
    assert int(cluster.pods.start[cluster.pod_row("default/p")]) == START


def test_a_node_where_a_binding_failed_is_avoided() -> None:
    cluster = Cluster((node("a"), pod("p", cpu="1"), pod("small", cpu="1")))
    queue, engine = Queue(cluster), Engine(cluster)
    assert bound(session(engine, queue, START, Policy(preemption=False))) == {"p": "a", "small": "a"}
    cluster.apply(Unbind("default/p"))
    queue.bind_failed("default/p", "a", "OutOfcpu", now=START, patience=Patience())
    assert queue.waiting["default/p"].message == "binding to a failed: OutOfcpu"
    assert not session(engine, queue, START + SECOND // 2, Policy(preemption=False)).turns, "the backoff is not over"
    assert not session(engine, queue, START + 2 * SECOND, Policy(preemption=False)).binds, "there is no other node"
    cluster.apply(Put(node("b")))
    assert bound(session(engine, queue, START + 20 * SECOND, Policy(preemption=False))) == {"p": "b"}
    assert queue.freeze().avoided


def test_succeeded_members_count() -> None:
    label = {builders.COSCHEDULING_LABEL: "g"}
    done = pod("g-0", on="a", labels=label, phase="Succeeded")
    rest = [pod(f"g-{number}", cpu="1", labels=label) for number in (1, 2)]
    cluster = Cluster((node("a"), builders.pod_group("g", 3), done, *rest))
    assert len(run(Queue(cluster), START).binds) == 2


def partial() -> tuple[Cluster, Queue, Engine]:
    """Return a gang of three of which two pods were bound by somebody, and no room for the third."""
    label = {builders.COSCHEDULING_LABEL: "g"}
    two = [replace(pod(f"g-{n}", on="a", cpu="2", labels=label, owner=job("g")), status=k.PodStatus()) for n in (0, 1)]
    third = pod("g-2", cpu="2", labels=label, owner=job("g"))
    cluster = Cluster((node("a"), builders.pod_group("g", 3), *two, third))
    return cluster, Queue(cluster), Engine(cluster)


def test_a_partial_gang_is_undone_after_a_while() -> None:
    _, queue, engine = partial()
    assert not session(engine, queue, START, Policy()).evictions
    assert queue.wake is not None
    assert queue.wake <= START + MINUTE
    plan = session(engine, queue, START + MINUTE, Policy())
    assert [each.pod for each in plan.evictions] == ["default/g-0", "default/g-1"]
    assert plan.evictions[0].reason == "2 of 3 pods of gang default/g run, and it never ran whole"
    assert [(each.gang, each.running, each.minimum) for each in plan.partial_gangs] == [("default/g", 2, 3)]


def test_the_time_of_a_partial_gang_counts_from_its_last_binding_even_after_a_restart() -> None:
    cluster, _, engine = partial()
    for number, at in enumerate((START - 10 * MINUTE, START - 50 * SECOND)):
        bound_at = k.Condition(type="PodScheduled", status="True", last_transition_time=timestamp(at))
        cluster.apply(Put(replace(cluster.pod(f"default/g-{number}"), status=k.PodStatus(conditions=(bound_at,)))))
    queue = Queue(cluster)  # as a scheduler that has just started has it
    assert not session(engine, queue, START, Policy()).evictions
    assert not session(engine, queue, START + 10 * SECOND, Policy()).evictions
    assert queue.wake == START + 11 * SECOND, "the API server's times are whole seconds"
    assert len(session(engine, queue, START + 11 * SECOND, Policy()).evictions) == 2


def test_a_new_scheduler_looks_at_an_old_partial_gang_for_a_second() -> None:
    cluster, _, engine = partial()
    old = k.Condition(type="PodScheduled", status="True", last_transition_time=timestamp(START - 10 * MINUTE))
    for number in (0, 1):
        cluster.apply(Put(replace(cluster.pod(f"default/g-{number}"), status=k.PodStatus(conditions=(old,)))))
    queue = Queue(cluster)
    assert not session(engine, queue, START, Policy()).evictions, "it may be completed in a moment"
    assert len(session(engine, queue, START + SECOND, Policy()).evictions) == 2


def test_a_partial_gang_is_completed_if_there_is_room() -> None:
    cluster, queue, engine = partial()
    cluster.apply(Put(node("b")))
    assert bound(session(engine, queue, START, Policy())) == {"g-2": "b"}
    third = cluster.pod("default/g-2")
    cluster.apply(Put(replace(third, spec=replace(third.spec, node_name="b"))))
    assert not session(engine, queue, START + MINUTE, Policy()).evictions
    cluster.apply(Remove("Pod", "default/g-2"))
    assert not session(engine, queue, START + 10 * MINUTE, Policy()).evictions, "it once ran whole"


def test_members_that_started_or_have_no_controller_are_reported() -> None:
    cluster, queue, engine = partial()
    started = replace(cluster.pod("default/g-0"), status=k.PodStatus(start_time=timestamp(START)))
    alone = cluster.pod("default/g-1")
    alone = replace(alone, metadata=replace(alone.metadata, owner_references=None))
    cluster.apply(Put(started))
    cluster.apply(Put(alone))
    session(engine, queue, START, Policy())
    plan = session(engine, queue, START + MINUTE, Policy())
    assert not plan.evictions
    assert plan.partial_gangs[0].left == ("default/g-0", "default/g-1")


def test_an_exception_leaves_the_cluster_and_the_queue_as_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster((node("a"), pod("first", cpu="1"), *gang("second", 2, cpu="1")))
    queue = Queue(cluster)
    record, seen = queue.freeze(), cluster_state(cluster)

    def broken(*_arguments: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(GangAttempts, "_start_gang", broken)
    with pytest.raises(RuntimeError):
        run(queue, START)
    assert queue.freeze() == record
    assert cluster_state(cluster) == seen


def test_a_turn_that_cannot_be_evaluated_is_set_aside(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster((node("a"), pod("bad", cpu="1", priority=9), pod("good", cpu="1"), *gang("g", 2, cpu="1")))
    original = Engine.place

    def place(self: Engine, pods: Sequence[str], *arguments: Any, **options: Any) -> Any:
        if "default/bad" in pods:
            raise InputError("a volume has no size", obj="PersistentVolume v")
        return original(self, pods, *arguments, **options)

    monkeypatch.setattr(Engine, "place", place)
    plan = run(Queue(cluster), START)
    assert set(bound(plan)) == {"good", "g-0", "g-1"}
    assert [each.message for each in plan.unschedulable] == [
        "cannot be scheduled: PersistentVolume v: a volume has no size"
    ]


@pytest.mark.parametrize(("queueing", "expected"), [("fifo", set()), ("backfill", {"small"}), ("reservation", set())])
def test_queue_policies(queueing: Any, expected: set[str]) -> None:
    """A large pod starves, and a small one that runs for ever would keep it waiting."""
    cluster = Cluster((node("a"), pod("b1", on="a", cpu="2"), pod("b2", on="a", cpu="2"), pod("big")))
    queue, engine, policy = Queue(cluster), Engine(cluster), Policy(queueing=queueing)
    session(engine, queue, START, policy)
    session(engine, queue, START + 2 * MINUTE, policy)
    cluster.apply(Remove("Pod", "default/b1"))
    cluster.apply(Put(pod("small", cpu="2", created=START + 3 * MINUTE)))
    assert set(bound(session(engine, queue, START + 4 * MINUTE, policy))) == expected


@pytest.mark.parametrize("queueing", ["fifo", "backfill"])
def test_a_starving_turn_wakes_nobody_without_reservations(queueing: Any) -> None:
    cluster = Cluster((node("a"), pod("busy", on="a"), pod("big")))
    queue, policy = Queue(cluster), Policy(queueing=queueing, preemption=False)
    run(queue, START, policy)
    run(queue, START + 2 * MINUTE, policy)
    assert queue.wake == START + Patience().retry_after


def test_a_turn_that_begins_to_wait_for_room_late_does_not_wake_in_the_past() -> None:
    cluster = Cluster((node("a"), pod("picky", node_selector={"disk": "ssd"})))
    queue = Queue(cluster)
    run(queue, START)
    cluster.apply(Put(node("b", labels={"disk": "ssd"})))
    cluster.apply(Put(pod("busy", on="b")))
    run(queue, START + 6 * MINUTE)
    assert queue.waiting["default/picky"].needs_room
    assert queue.wake is not None
    assert queue.wake > START + 6 * MINUTE


def test_a_gang_is_whole_when_its_bindings_are_confirmed() -> None:
    """A session between a plan and the failure of one of its bindings does not take the gang for whole."""
    label = {builders.COSCHEDULING_LABEL: "g"}
    pods = [pod(f"g-{n}", cpu="2", labels=label, owner=job("g")) for n in (0, 1)]
    cluster = Cluster((node("a"), builders.pod_group("g", 2), *pods))
    queue, engine = Queue(cluster), Engine(cluster)
    assert len(session(engine, queue, START, Policy()).binds) == 2
    session(engine, queue, START + SECOND, Policy())
    cluster.apply(Unbind("default/g-1"))
    cluster.apply(Put(pod("other", cpu="2", on="a")))
    queue.bind_failed("default/g-1", "a", "conflict", now=START + SECOND, patience=Patience())
    session(engine, queue, START + 2 * SECOND, Policy())
    plan = session(engine, queue, START + 2 * MINUTE, Policy())
    assert [each.pod for each in plan.evictions] == ["default/g-0"]


def test_what_is_left_of_a_partial_gang_is_reported_once() -> None:
    cluster, queue, engine = partial()
    for number in (0, 1):
        started = replace(cluster.pod(f"default/g-{number}"), status=k.PodStatus(start_time=timestamp(START)))
        cluster.apply(Put(started))
    session(engine, queue, START, Policy(preemption=False, queueing="backfill"))
    policy = Policy(preemption=False, queueing="backfill")
    assert session(engine, queue, START + MINUTE, policy).partial_gangs[0].left == ("default/g-0", "default/g-1")
    assert queue.wake is not None
    assert queue.wake > START + 2 * MINUTE
    assert not session(engine, queue, START + MINUTE + SECOND, policy).partial_gangs
    cluster.apply(Remove("Pod", "default/g-1"))
    assert session(engine, queue, START + MINUTE + SECOND, policy).partial_gangs[0].left == ("default/g-0",)


def test_a_partial_gang_of_a_record_may_be_gone() -> None:
    _, queue, engine = partial()
    session(engine, queue, START, Policy())
    other = Queue(Cluster((node("a"),)), queue.freeze())
    assert not run(other, START + 2 * MINUTE).partial_gangs
    assert other.wake is None


def test_a_gang_without_its_group_is_not_undone() -> None:
    cluster, queue, engine = partial()
    cluster.apply(Remove(k.CoschedulingPodGroup.KIND, "default/g"))
    session(engine, queue, START, Policy())
    assert not session(engine, queue, START + 2 * MINUTE, Policy()).evictions


def fail_binding(queue: Queue, bound: Any, now: int) -> None:
    """Take back a binding as a live scheduler does."""
    queue.cluster.apply(Unbind(bound.pod, bound.uid))
    queue.bind_failed(bound.pod, bound.node, "no answer", uid=bound.uid, now=now, patience=Patience())


@pytest.mark.parametrize("meanwhile", ["bound", "gone", "another pod"])
def test_the_failure_of_a_binding_may_be_known_late(meanwhile: str) -> None:
    """A watch may report the pod with its node, its removal, or another pod of its name before the failure is known."""
    cluster = Cluster((node("a"), node("b"), pod("p", cpu="1")))
    queue, engine = Queue(cluster), Engine(cluster)
    (bind,) = session(engine, queue, START, Policy()).binds
    if meanwhile == "bound":
        cluster.observe(Put(pod("p", cpu="1", on=bind.node)))
    else:
        cluster.observe(Remove("Pod", bind.pod, bind.uid))
    if meanwhile == "another pod":
        cluster.observe(Put(pod("p", cpu="1", uid="second")))
        (second,) = session(engine, queue, START, Policy()).binds
        assert second.uid == "second"
    fail_binding(queue, bind, START)
    assert not queue.waiting
    assert not queue.freeze().avoided
    assert not session(engine, queue, START + 2 * SECOND, Policy()).binds


def test_a_node_is_tried_again_when_it_is_no_longer_avoided() -> None:
    cluster = Cluster((node("a"), pod("p", cpu="1")))
    queue, engine = Queue(cluster), Engine(cluster)
    (bind,) = session(engine, queue, START, Policy()).binds
    fail_binding(queue, bind, START)
    assert not session(engine, queue, START + 2 * SECOND, Policy()).binds
    assert queue.wake == START + Patience().avoided_for
    assert bound(session(engine, queue, queue.wake, Policy())) == {"p": "a"}


def test_a_new_pod_of_the_same_name_avoids_nothing() -> None:
    cluster = Cluster((node("a"), pod("p", cpu="1")))
    queue, engine = Queue(cluster), Engine(cluster)
    (bind,) = session(engine, queue, START, Policy()).binds
    fail_binding(queue, bind, START)
    cluster.observe(Remove("Pod", "default/p", "p"))
    cluster.observe(Put(pod("p", cpu="1", uid="second")))
    assert bound(session(engine, queue, START + SECOND, Policy())) == {"p": "a"}


def test_turns_behind_a_blocked_one_do_not_wake_the_scheduler() -> None:
    cluster = Cluster((node("a"), pod("busy", on="a"), pod("second", created=START)))
    queue, policy = Queue(cluster), Policy(queueing="fifo")
    run(queue, START, policy)
    cluster.apply(Put(pod("first", created=START - MINUTE)))
    run(queue, START + MINUTE, policy)
    restarted = Queue(cluster, queue.freeze())  # both may be cured; the second waits for the backoff of the first
    run(restarted, START + MINUTE + 1, policy)
    assert restarted.wake == START + MINUTE + SECOND


def test_a_quiet_session_takes_no_turn() -> None:
    """The surplus of a gang whose minimum waits is not taken again because the minimum was tried."""
    label = {builders.COSCHEDULING_LABEL: "g"}
    pods = [pod(f"g-{n}", cpu="3", labels=label) for n in range(3)]
    cluster = Cluster((node("a"), pod("low", cpu="1", on="a", priority=-1), builders.pod_group("g", 2), *pods))
    queue = Queue(cluster)
    assert run(queue, START).turns
    assert not run(queue, START + 1).turns


def waiting_beside_a_reservation() -> tuple[Cluster, Queue]:
    """Return a cluster where half of node a is free, but reserved for a large pod, and a small pod waits."""
    busy = [pod("busy-a", on="a", cpu="2", lasts="5m"), pod("busy-b", on="b", lasts="20m")]
    cluster = Cluster((node("a"), node("b"), *busy, pod("large")))
    queue = Queue(cluster)
    run(queue, START)
    run(queue, START + 2 * MINUTE)
    assert queue.reservation is not None
    assert [hold.node for hold in queue.reservation.holds] == ["a"]
    on_a = {"kubernetes.io/hostname": "a"}
    cluster.apply(Put(pod("small", cpu="2", created=START + 3 * MINUTE, node_selector=on_a)))
    assert not run(queue, START + 3 * MINUTE).binds
    cluster.apply(Put(tainted("control")))  # an event: the queue has then seen what was released up to now
    assert not run(queue, START + 190 * SECOND).binds
    return cluster, queue


def test_room_of_a_reservation_that_passes_to_another_turn_is_free() -> None:
    cluster, queue = waiting_beside_a_reservation()
    first = pod("first", priority=5, node_selector={"kubernetes.io/hostname": "b"})
    cluster.apply(Put(replace(first, spec=replace(first.spec, preemption_policy="Never"))))
    assert not run(queue, START + 200 * SECOND).binds
    plan = run(queue, START + 270 * SECOND)
    assert queue.reservation is not None
    assert queue.reservation.name == "default/first"
    assert queue.wake is not None
    assert queue.wake <= START + 280 * SECOND
    assert bound(plan) | bound(run(queue, queue.wake)) == {"small": "a"}


def test_room_of_a_reservation_that_moves_to_other_nodes_is_free() -> None:
    cluster, queue = waiting_beside_a_reservation()
    cluster.apply(Put(node("c")))
    cluster.apply(Put(pod("busy-c", on="c", cpu="3", lasts="4m")))
    cluster.apply(Put(pod("large", memory="2Gi")))  # a changed pod is tried again
    plan = run(queue, START + 200 * SECOND)
    assert queue.reservation is not None
    assert [hold.node for hold in queue.reservation.holds] == ["c"]
    assert bound(plan) == {"small": "a"}


def test_room_of_a_reservation_is_free_when_its_turn_starts_elsewhere() -> None:
    cluster, queue = waiting_beside_a_reservation()
    cluster.apply(Put(node("c")))
    assert bound(run(queue, START + 200 * SECOND)) == {"large": "c", "small": "a"}


def test_an_earlier_turn_gets_the_reservation_of_a_later_one() -> None:
    """Although the reserved room is all the room that there is."""
    cluster = Cluster((node("a"), pod("busy", on="a", cpu="3"), pod("first", node_selector={"disk": "ssd"})))
    cluster.apply(Put(pod("second", created=START + 1)))
    queue = Queue(cluster)
    run(queue, START)
    run(queue, START + 2 * MINUTE)
    assert queue.reservation is not None
    assert queue.reservation.name == "default/second"
    cluster.apply(Put(node("a", labels={"disk": "ssd"})))
    run(queue, START + 3 * MINUTE)
    run(queue, START + 4 * MINUTE)
    assert queue.reservation.name == "default/first"


def test_a_reservation_does_not_go_back_and_forth() -> None:
    """The first pod lacks room beside the reservation of the second, and is refused for its rules beside its own."""
    hostile = pod("hostile", on="a", cpu="1", affinity=builders.apart("first"))
    first, second = pod("first", cpu="2", labels={"app": "first"}), pod("second", created=START + 1)
    cluster = Cluster((node("a"), hostile, first, second))
    queue = Queue(cluster)
    owners = []
    run(queue, START)
    for _ in range(12):
        assert queue.wake is not None
        run(queue, queue.wake)
        owners.append(queue.reservation.name if queue.reservation is not None else "")
    assert sum(one != other for one, other in pairwise(owners)) <= 3


def test_a_pod_of_a_reservation_may_be_gone() -> None:
    """A session that runs out of budget restores a reservation without the pods that have left."""
    label = {builders.COSCHEDULING_LABEL: "g"}
    busy = [pod(f"busy-{name}", on=name) for name in "ab"]
    pods = [pod(f"g-{n}", labels=label) for n in range(3)]
    cluster = Cluster((node("a"), node("b"), builders.pod_group("g", 2), *busy, *pods))
    queue = Queue(cluster)
    run(queue, START)
    run(queue, START + 2 * MINUTE)
    assert set(cluster.holds) == {"default/g-0", "default/g-1"}
    cluster.apply(Remove("Pod", "default/g-0"))
    cluster.apply(Put(pod("first", cpu="0", priority=9)))
    plan = run(queue, START + 2 * MINUTE, Policy(budget=POD_TRIED + 1))
    assert set(bound(plan)) == {"first"}
    assert queue.reservation is not None
    assert set(cluster.holds) == {"default/g-1"}


def test_a_reservation_that_a_session_has_no_budget_for_is_not_refused() -> None:
    """The pods fit as 5 + 5, 4 + 3 + 3 and 4 + 3 + 3 only, which takes a search."""
    busy = [pod(f"busy-{name}", cpu="10", on=name) for name in "abc"]
    old = START - MINUTE
    tight = [pod(f"tight-{i}", gang="tight", cpu=cpu, created=old) for i, cpu in enumerate("55443333")]
    cluster = Cluster((*(node(name, cpu="10") for name in "abc"), *busy, *tight))
    queue = Queue(cluster)
    run(queue, START)
    cluster.apply(Put(pod("first", cpu="0", priority=9)))
    run(queue, START + 2 * MINUTE, Policy(budget=POD_TRIED + 1))
    assert queue.reservation is None
    assert queue.wake is not None
    run(queue, queue.wake, Policy(budget=POD_TRIED + 1))
    assert queue.reservation is not None


def test_what_a_session_places_may_cure_an_earlier_turn() -> None:
    """Nothing but the session itself happens, so that `wake` must say that the turn is due."""
    near = pod("near", cpu="1", priority=5, affinity=builders.near("web", builders.HOSTNAME))
    cluster = Cluster((node("a"), near, pod("web", cpu="1", app="web")))
    queue = Queue(cluster)
    assert bound(run(queue, START)) == {"web": "a"}
    assert queue.wake == START + SECOND
    assert bound(run(queue, queue.wake)) == {"near": "a"}


def test_a_plan_contains_nothing_of_an_attempt_that_ends_early() -> None:
    """The budget ends while surplus is added: the pod that was added first is neither bound nor in the plan."""
    label = {builders.COSCHEDULING_LABEL: "g"}
    runs = [pod(f"g-{n}", cpu="1", on="a", labels=label) for n in (0, 1)]
    more = [pod("g-2", cpu="1", labels=label), pod("g-3", cpu="4", labels=label)]
    first = pod("first", cpu="0", priority=9)
    cluster = Cluster((node("a"), builders.pod_group("g", 2), *runs, *more, first))
    for budget in range(1, 40 * POD_TRIED, POD_TRIED // 4):
        clone = cluster.copy()
        plan = run(Queue(clone), START, Policy(budget=budget, preemption=False))
        found = {key for key, row in clone.pods.row_of.items() if clone.pods.node_names[row] and "g-" in key}
        assert found == {f"default/g-{n}" for n in (0, 1)} | {each.pod for each in plan.binds if each.gang}


def evicting() -> tuple[Cluster, Queue, Engine, Any]:
    """Return a cluster in which a session has just evicted `low` for `high`, and the eviction."""
    low = pod("low", on="a")
    low = replace(low, metadata=replace(low.metadata, resource_version="5"))
    cluster = Cluster((node("a"), low, pod("high", priority=10)))
    queue, engine = Queue(cluster), Engine(cluster)
    (eviction,) = session(engine, queue, START, Policy()).evictions
    return cluster, queue, engine, eviction


def test_an_update_from_before_an_eviction_does_not_end_it() -> None:
    cluster, queue, engine, _ = evicting()
    old = pod("low", on="a", annotations={"note": "late"})
    cluster.observe(Put(replace(old, metadata=replace(old.metadata, resource_version="6"))))
    assert cluster.pods.terminating[cluster.pod_row("default/low")]
    assert cluster.pod("default/low").metadata.annotations == {"note": "late"}
    cluster.observe(Put(node("b", cpu="1")))
    assert not session(engine, queue, START + 20 * SECOND, Policy()).evictions


def test_an_update_from_before_its_binding_does_not_take_an_evicted_pod_off_its_node() -> None:
    cluster = Cluster((node("a"), pod("low")))
    queue, engine = Queue(cluster), Engine(cluster)
    session(engine, queue, START, Policy())
    cluster.observe(Put(pod("high", priority=10)))
    assert len(session(engine, queue, START, Policy()).evictions) == 1
    cluster.observe(Put(pod("low", annotations={"note": "late"})))
    assert cluster.pods.node_names[cluster.pod_row("default/low")] == "a"


def test_a_refused_eviction_is_taken_back_and_tried_again() -> None:
    cluster, queue, engine, eviction = evicting()
    cluster.apply(Unevict(eviction.pod, "another uid"))
    assert cluster.pods.terminating[cluster.pod_row("default/low")]
    cluster.apply(Unevict(eviction.pod, eviction.uid))
    assert not cluster.pods.terminating[cluster.pod_row("default/low")]
    assert not session(engine, queue, START, Policy()).evictions
    assert queue.wake == START + SECOND // 10, "after the backoff"
    again = queue.wake
    evictions = session(engine, queue, again, Policy()).evictions
    assert [each.pod for each in evictions] == ["default/low"]
    cluster.apply(Unevict(evictions[0].pod, evictions[0].uid))
    assert not session(engine, queue, again + 1, Policy()).evictions
    assert queue.wake == again + 2 * SECOND, "a longer backoff if the eviction was refused again"


def test_evictions_in_vain_end_until_nodes_change() -> None:
    """Another scheduler takes the room of every victim: after two rounds nobody else is evicted."""
    policy = Policy(eviction_rounds=2)
    cluster = Cluster((node("a"), node("b"), pod("low-0", on="a"), pod("low-1", on="b"), pod("high", priority=10)))
    queue, engine, now = Queue(cluster), Engine(cluster), START
    evicted: list[str] = []
    for number in range(6):
        plan = session(engine, queue, now, policy)
        for eviction in plan.evictions:
            evicted.append(eviction.pod)
            cluster.observe(Remove("Pod", eviction.pod))
            cluster.observe(Put(pod(f"thief-{number}", on=eviction.node, priority=number)))
        now += MINUTE
    assert len(evicted) == 2
    session(engine, queue, now, policy)
    (entry,) = queue.waiting.values()
    assert "nobody is evicted until nodes have changed" in entry.message
    cluster.observe(Put(tainted("c")))
    assert len(session(engine, queue, now + MINUTE, policy).evictions) == 1


def test_refused_evictions_are_not_in_vain() -> None:
    policy = Policy(eviction_rounds=1)
    cluster, queue, engine, eviction = evicting()
    cluster.apply(Unevict(eviction.pod, eviction.uid))
    queue.eviction_refused(eviction.by)
    assert len(session(engine, queue, START + MINUTE, policy).evictions) == 1


def test_a_clock_that_goes_back_delays_nobody() -> None:
    cluster = Cluster((node("a"), pod("big", cpu="100")))
    queue, engine = Queue(cluster), Engine(cluster)
    session(engine, queue, START + 60 * MINUTE, Policy())
    session(engine, queue, START, Policy())
    assert queue.waiting["default/big"].backoff_ends(Patience()) <= START + 10 * SECOND


def test_a_pod_that_terminates_is_not_taken_back() -> None:
    cluster, _, _, eviction = evicting()
    gone = pod("low", on="a", deleted=timestamp(START))
    cluster.observe(Put(replace(gone, metadata=replace(gone.metadata, resource_version="7"))))
    cluster.apply(Unevict(eviction.pod, eviction.uid))
    assert cluster.pods.terminating[cluster.pod_row("default/low")]


def test_evictions_roll_back_and_are_part_of_the_state() -> None:
    cluster, _, _, eviction = evicting()
    before = cluster_state(cluster)
    mark = cluster.mark()
    cluster.apply(Unevict(eviction.pod, eviction.uid))
    cluster.apply(Remove("Pod", eviction.pod))
    cluster.rollback(mark)
    assert cluster_state(cluster) == before
    for same in (rebuilt(cluster), cluster.copy(), cluster):
        same.apply(Unevict(eviction.pod, eviction.uid))
        assert not same.pods.terminating[same.pod_row("default/low")]


def test_a_pod_that_is_terminating_already_is_no_eviction() -> None:
    cluster = Cluster((node("a"), pod("low", on="a", deleted=timestamp(START - SECOND)), pod("high", priority=10)))
    plan = run(Queue(cluster), START)
    assert not plan.evictions
    assert [each.pod for each in plan.nominated] == ["default/high"]


def test_a_gang_that_grows_does_not_wake_the_scheduler_before_it_is_complete() -> None:
    cluster = Cluster((node("a", cpu="1"), pod("g-0", gang="g")))
    queue = Queue(cluster)
    run(queue, START + MINUTE)
    cluster.apply(Put(pod("g-1", gang="g", created=START + 2 * MINUTE)))
    restarted = Queue(cluster, queue.freeze())
    assert not run(restarted, START + 2 * MINUTE).turns
    assert restarted.wake == START + 2 * MINUTE + Patience().counted_quiet_for


def test_a_gang_that_needs_a_search_starts_with_any_budget() -> None:
    """The pods fit as 5 + 5, 4 + 3 + 3 and 4 + 3 + 3 only, and the budget is too small for the search."""
    old = START - MINUTE
    tight = [pod(f"tight-{i}", gang="tight", cpu=cpu, created=old) for i, cpu in enumerate("55443333")]
    cluster = Cluster((*(node(name, cpu="10") for name in "abc"), *tight))
    assert len(run(Queue(cluster), START, Policy(budget=1)).binds) == 8


def test_pods_that_are_created_again_in_other_rows_are_not_lost() -> None:
    cluster = Cluster((node("n"), pod("a", cpu="5"), pod("b", cpu="5")))
    queue, engine = Queue(cluster), Engine(cluster)
    session(engine, queue, START, Policy())
    rows = dict(cluster.pods.row_of)
    for name in "ab":
        cluster.observe(Remove("Pod", f"default/{name}", name))
    for name in "ab":
        cluster.observe(Put(pod(name, cpu="1", uid=f"new {name}")))
    assert all(rows[key] != row for key, row in cluster.pods.row_of.items())
    assert set(bound(session(engine, queue, START + MINUTE, Policy()))) == {"a", "b"}


def test_a_changed_gang_is_tried_at_once_after_a_what_if() -> None:
    cluster = Cluster((node("a"), node("b"), node("c"), *gang("g", 4)))
    queue = Queue(cluster)
    run(queue, START)
    cluster.apply(Remove("Pod", "default/g-3"))
    mark = cluster.mark()
    assert len(run(queue, START + 1).binds) == 3
    cluster.rollback(mark)
    assert len(run(queue, START + 1).binds) == 3


def test_a_new_pod_of_the_same_name_starts_anew_after_a_restart() -> None:
    cluster = Cluster((node("a"), pod("busy", on="a"), pod("p")))
    queue = Queue(cluster)
    run(queue, START)
    other = Queue(Cluster((node("a"), pod("p", uid="second"))), queue.freeze())
    assert bound(run(other, START + 1)) == {"p": "a"}


def test_a_plan_that_undoes_a_partial_gang_names_the_budgets_that_it_spends() -> None:
    cluster, queue, engine = partial()
    for number in (0, 1):
        member = cluster.pod(f"default/g-{number}")
        labels = {**(member.metadata.labels or {}), "app": "g"}
        cluster.apply(Put(replace(member, metadata=replace(member.metadata, labels=labels))))
    cluster.apply(Put(builders.disruption_budget("g", 5)))
    session(engine, queue, START, Policy())
    before = cluster.copy()
    plan = session(engine, queue, START + MINUTE, Policy())
    assert [each.status.disruptions_allowed for each in plan.budgets] == [3]
    for edit in plan.edits():
        before.apply(edit)
    assert cluster_state(before) == cluster_state(cluster)


def test_a_gang_on_a_node_that_comes_late_may_be_partial() -> None:
    cluster, _, _ = partial()
    late = Cluster(obj for obj in cluster.pods.objects if obj is not None)
    late.apply(Put(builders.pod_group("g", 3)))
    queue, engine = Queue(late), Engine(late)
    session(engine, queue, START, Policy())
    late.apply(Put(node("a")))
    session(engine, queue, START, Policy())
    assert len(session(engine, queue, START + MINUTE, Policy()).evictions) == 2


def test_surplus_pods_avoid_nodes_too() -> None:
    label = {builders.COSCHEDULING_LABEL: "g"}
    runs = [pod(f"g-{n}", cpu="1", on="b", labels=label) for n in (0, 1)]
    more = [pod(f"g-{n}", cpu="1", labels=label) for n in (2, 3)]
    cluster = Cluster((node("a", cpu="8"), node("b"), builders.pod_group("g", 2), *runs, *more))
    queue, engine = Queue(cluster), Engine(cluster)
    binds = session(engine, queue, START, Policy()).binds
    assert {each.node for each in binds} == {"a"}
    for each in binds:
        fail_binding(queue, each, START)
    assert {each.node for each in session(engine, queue, START + 2 * SECOND, Policy()).binds} == {"b"}


@pytest.mark.parametrize("many", [0, 20])
def test_gangs_evict_no_pods_on_nodes_that_they_avoid(many: int) -> None:
    """With few and with many possible victims, which are searched in different ways."""
    others = [node(f"small-{n}", cpu="1") for n in range(many)]
    other_pods = [pod(f"on-small-{n}", cpu="1", on=f"small-{n}") for n in range(many)]
    low = [pod(f"low-{name}", on=name) for name in "cd"]
    members = gang("high", 2, priority=10)
    cluster = Cluster((*(node(name) for name in "abcd"), *others, *other_pods, *low, *members))
    queue, engine = Queue(cluster), Engine(cluster)
    for each in session(engine, queue, START, Policy()).binds:
        fail_binding(queue, each, START)
    for name in "ab":  # they would be the better victims
        cluster.apply(Put(pod(f"low-{name}", on=name, priority=-10)))
    plan = session(engine, queue, START + 2 * SECOND, Policy())
    assert {each.pod for each in plan.evictions} == {"default/low-c", "default/low-d"}
    assert {hold.node for hold in cluster.holds.values()} == {"c", "d"}


def test_a_pod_above_a_gang_evicts_no_pods_on_nodes_that_it_avoids() -> None:
    runs = [replace(each, spec=replace(each.spec, node_name="b")) for each in gang("low", 2, cpu="2")]
    cluster = Cluster((node("a"), node("b"), *runs, pod("high", priority=10)))
    queue, engine = Queue(cluster), Engine(cluster)
    for each in session(engine, queue, START, Policy()).binds:
        fail_binding(queue, each, START)
    cluster.apply(Put(pod("lower", on="a", priority=-10)))
    plan = session(engine, queue, START + 2 * SECOND, Policy())
    assert {each.pod for each in plan.evictions} == {"default/low-0", "default/low-1"}


def test_another_gang_of_the_same_name_has_not_run_whole() -> None:
    """The gang of a record was deleted and created again while the scheduler was down."""
    label = {builders.COSCHEDULING_LABEL: "g"}
    runs = [pod(f"g-{n}", cpu="1", on="a", labels=label) for n in range(3)]
    queue = Queue(Cluster((node("a"), builders.pod_group("g", 3), *runs)))
    run(queue, START)
    cluster, _, engine = partial()
    for number, uid in ((0, "new 0"), (1, "new 1")):
        member = cluster.pod(f"default/g-{number}")
        cluster.apply(Put(replace(member, metadata=replace(member.metadata, uid=uid))))
    again = Queue(cluster, queue.freeze())
    session(engine, again, START, Policy())
    assert len(session(engine, again, START + MINUTE, Policy()).evictions) == 2


def test_surplus_is_added_when_the_node_of_the_minimum_comes_back() -> None:
    label = {builders.COSCHEDULING_LABEL: "g"}
    runs = [pod(f"g-{n}", cpu="1", on="a", labels=label) for n in (0, 1)]
    cluster = Cluster((node("b"), builders.pod_group("g", 2), *runs, pod("g-2", cpu="1", labels=label)))
    queue, engine = Queue(cluster), Engine(cluster)
    assert not session(engine, queue, START, Policy()).binds, "nobody knows the node of the minimum"
    cluster.apply(Put(node("a", cpu="2")))
    assert bound(session(engine, queue, START + MINUTE, Policy())) == {"g-2": "b"}


def test_a_what_if_does_not_forget_partial_gangs() -> None:
    cluster, queue, engine = partial()
    mark = cluster.mark()
    session(engine, queue, START, Policy())
    cluster.rollback(mark)
    session(engine, queue, START, Policy())
    assert len(session(engine, queue, START + MINUTE, Policy()).evictions) == 2
