"""Partial gangs under the policy of the live scheduler: completed, or undone, and then left alone for a while.

The tests play the API server and the controllers of the pods; the time is an argument, so nothing here waits.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import pytest
from msgspec.structs import replace

from tests.support.builders import COSCHEDULING_LABEL, node, pod, pod_group
from tutti.cluster.edits import Put, Remove
from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import Bound, Plan
from tutti.kube import objects as k
from tutti.kube.objects.pod_groups import PodGroupStatus
from tutti.kube.times import timestamp
from tutti.live.inbox import Entry, RefusedBinding
from tutti.live.options import SchedulerOptions
from tutti.live.watched_cluster import WatchedCluster

NOW = 1_800_000_000_000_000
SECOND = 1_000_000


class World:
    """A cluster, its clock, and what it reports to the next session."""

    def __init__(self, nodes: int) -> None:
        self.cluster = WatchedCluster(Profile.default(), SchedulerOptions().policy)
        self.now = NOW
        self.wake: int | None = NOW
        self.reports: list[Entry] = [Put(node(f"n{number:02}")) for number in range(nodes)]
        self.pods: dict[str, k.Pod] = {}
        self.plan = Plan(counts={})

    def create(self, gang: str, numbers: Iterable[int], cpu: str = "4") -> None:
        """Create pods of a gang, as a ReplicaSet does."""
        for number in numbers:
            made = pod(f"{gang}-{number}", cpu, labels={COSCHEDULING_LABEL: gang}, owner=("ReplicaSet", gang))
            created = replace(made.metadata, creation_timestamp=timestamp(self.now))
            self.put(replace(made, metadata=created))

    def put(self, changed: k.Pod) -> None:
        """Report a pod."""
        self.pods[changed.key] = changed
        self.reports.append(Put(changed))

    def bind(self, bound: Bound) -> None:
        """Carry out a binding."""
        condition = k.Condition(type="PodScheduled", status="True", last_transition_time=timestamp(self.now))
        old = self.pods[bound.pod]
        status = replace(old.status, conditions=(condition,))
        self.put(replace(old, spec=replace(old.spec, node_name=bound.node), status=status))

    def start(self, key: str) -> None:
        """Start a pod, as a kubelet does."""
        status = replace(self.pods[key].status, phase="Running", start_time=timestamp(self.now))
        self.put(replace(self.pods[key], status=status))

    def reject(self, key: str) -> None:
        """Reject a pod, as a kubelet does."""
        self.put(replace(self.pods[key], status=k.PodStatus(phase="Failed", reason="OutOfcpu")))

    def refuse(self, bound: Bound, message: str = "no", *, avoids_node: bool = False) -> None:
        """Refuse a binding."""
        self.reports.append(RefusedBinding(bound.pod, bound.uid, bound.node, message, avoids_node))

    def remove(self, key: str) -> None:
        """Remove a pod."""
        self.reports.append(Remove("Pod", key, self.pods.pop(key).metadata.uid))

    def session(self, after: float = 0) -> Plan:
        """Run a session some seconds later."""
        self.now += int(after * SECOND)
        reports, self.reports = self.reports, []
        result = self.cluster.run_session(reports, self.now)
        self.plan, self.wake = result.plan, result.wake
        return self.plan

    def until(self, seconds: float) -> Plan:
        """Run the sessions that the queue asks for, until a plan does something or a time after the start is over."""
        self.plan = Plan(counts={})
        while self.wake is not None and self.wake <= NOW + int(seconds * SECOND):
            self.now = max(self.now, self.wake)
            if self.session().binds or self.plan.evictions or self.plan.partial_gangs:
                break
        return self.plan

    @property
    def seconds(self) -> float:
        """Return the time since the start."""
        return (self.now - NOW) / SECOND


def test_members_that_are_refused_are_bound_elsewhere_before_the_gang_is_undone() -> None:
    """Three refusals of one plan are one failure."""
    world = World(16)
    world.reports.append(Put(pod_group("g", 8)))
    world.create("g", range(8))
    binds = world.session().binds
    for bound in binds[:5]:
        world.bind(bound)
    for bound in binds[5:]:
        world.refuse(bound, avoids_node=True)
    assert not world.session(0.1).binds
    assert len(world.until(10).binds) == 3
    assert world.seconds == 1.1
    assert {bound.node for bound in world.plan.binds}.isdisjoint(bound.node for bound in binds)


def test_a_partial_gang_is_undone_only_after_an_attempt_to_complete_it() -> None:
    """The answers to three bindings come when the time of the partial gang is over."""
    world = World(8)
    world.reports.append(Put(pod_group("g", 8)))
    world.create("g", range(8))
    binds = world.session().binds
    for bound in binds[:5]:
        world.bind(bound)
    world.session(0.1)
    for bound in binds[5:]:
        world.refuse(bound, "503 busy")
    assert not world.session(4).evictions
    assert len(world.until(10).binds) == 3
    assert world.seconds == 5.1
    for bound in world.plan.binds:
        world.refuse(bound, "503 busy")
    assert len(world.session(0.1).evictions) == 5


def test_a_gang_of_which_a_member_is_always_refused_is_undone_less_and_less_often() -> None:
    """Its ReplicaSet replaces evicted pods at once."""
    world = World(40)
    world.reports.append(Put(pod_group("g", 8)))
    world.create("g", range(8), cpu="1")
    undone: list[float] = []
    created = 8
    while len(undone) < 10:
        for bound in world.plan.binds:
            if bound.pod == "default/g-7":
                world.refuse(bound, "denied by policy", avoids_node=True)
            else:
                world.bind(bound)
        if world.plan.evictions:
            undone.append(world.seconds)
            for eviction in world.plan.evictions:
                world.remove(eviction.pod)
                world.create("g", [created], cpu="1")
                created += 1
        if world.reports:
            world.session(0.1)
        else:
            world.until(3_600)
    pauses = [later - earlier for earlier, later in pairwise(undone)]
    assert [round(pause - pauses[0]) for pause in pauses[1:]] == [1, 3, 7, 15, 31, 63, 127, 255]


def test_the_pause_after_an_undo_is_forgotten_once_the_gang_has_run_whole() -> None:
    world = World(3)
    world.reports.append(Put(pod_group("g", 2)))
    world.create("g", range(2))
    first, second = world.session().binds
    world.bind(first)
    for _ in range(3):
        world.refuse(second)
        world.session(0.1)
        second = next(iter(world.until(20).binds), second)
        if world.plan.evictions:
            break
    assert [eviction.pod for eviction in world.plan.evictions] == [first.pod]
    assert world.cluster.queue.partial.pauses["default/g"].rounds == 1
    world.remove(first.pod)
    world.create("g", [2])
    world.session(0.1)
    assert len(world.until(20).binds) == 2
    for bound in world.plan.binds:
        world.bind(bound)
        world.start(bound.pod)
    world.session(0.1)
    assert not world.cluster.queue.partial.pauses


def bound_whole(world: World, *gangs: str) -> None:
    """Bind gangs of four; their kubelets have not started them yet."""
    for gang in gangs:
        world.reports.append(Put(pod_group(gang, 4)))
        world.create(gang, range(4))
    for bound in world.session().binds:
        world.bind(bound)
    world.session(0.2)
    assert not world.cluster.queue.partial.since


def test_two_gangs_of_which_kubelets_reject_members_do_not_keep_each_other_out() -> None:
    """Another scheduler took room on two nodes, so that neither gang can be completed."""
    world = World(8)
    bound_whole(world, "a", "b")
    for gang in "ab":
        for number in range(3):
            world.start(f"default/{gang}-{number}")
        lost = world.pods[f"default/{gang}-3"]
        world.reports.append(Put(pod(f"other-{gang}", "4", on=lost.spec.node_name, priority=1_000)))
        world.reject(lost.key)
        world.create(gang, [4])
    assert not world.session(1).evictions
    assert set(world.cluster.queue.partial.since) == {"default/a", "default/b"}
    evictions = world.until(60).evictions
    assert world.seconds == 4.2
    assert len(evictions) == 6
    for eviction in evictions:
        world.remove(eviction.pod)
    for gang in "ab":
        world.create(gang, range(5, 8))
    world.session(0.1)
    assert len(world.until(60).binds) == 4


def test_a_gang_waits_for_the_replacement_of_a_rejected_member() -> None:
    """A Job creates it after a backoff of ten seconds."""
    world = World(4)
    bound_whole(world, "g")
    for number in range(3):
        world.start(f"default/g-{number}")
    world.reject("default/g-3")
    world.session(0.1)
    assert not world.until(10).evictions
    world.now = NOW + 11 * SECOND
    world.create("g", [4])
    assert len(world.session().binds) == 1


def test_a_gang_whose_rejected_member_is_not_replaced_is_undone() -> None:
    world = World(4)
    bound_whole(world, "g")
    for number in range(3):
        world.start(f"default/g-{number}")
    world.reject("default/g-3")
    world.session(0.1)
    assert len(world.until(100).evictions) == 3
    assert world.seconds == 30.3


def test_a_gang_that_has_started_whole_is_never_undone() -> None:
    world = World(4)
    bound_whole(world, "g")
    for number in range(4):
        world.start(f"default/g-{number}")
    world.session(0.1)
    lost = world.pods["default/g-3"]
    world.reports.append(Put(pod("other", "4", on=lost.spec.node_name, priority=1_000)))
    world.remove(lost.key)
    world.create("g", [4])
    world.session(0.1)
    assert not world.until(1_000).evictions
    assert not world.cluster.queue.partial.since


@pytest.mark.parametrize(("seconds", "is_partial"), [(30, True), (90, False)])
def test_a_new_process_believes_a_group_that_its_gang_ran_whole_unless_that_is_new(
    seconds: int, is_partial: bool
) -> None:
    """A kubelet may have rejected a pod since."""
    world = World(1)
    stamp = timestamp(NOW - seconds * SECOND)
    condition = k.Condition(type="PodGroupInitiallyScheduled", status="True", last_transition_time=stamp)
    group = k.PodGroup(
        metadata=k.ObjectMeta(name="g", namespace="default", creation_timestamp=stamp),
        spec=k.GroupSpec(scheduling_policy=k.SchedulingPolicy(gang=k.GangPolicy(min_count=2))),
        status=PodGroupStatus(conditions=[condition]),
    )
    member = k.SchedulingGroup(pod_group_name="g")
    running = pod("g-0", "4", on="n00", created=stamp, started=stamp, scheduling_group=member)
    world.reports += [Put(group), Put(running), Put(pod("g-1", "4", created=stamp, scheduling_group=member))]
    world.session()
    assert bool(world.cluster.queue.partial.since) == is_partial
