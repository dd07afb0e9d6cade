"""Eviction races: evictions in vain count beyond the pod that was bound, until pods have started or nodes changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from tests.support.builders import COSCHEDULING_LABEL, node, pod, pod_group
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put, Remove, Unbind
from tutti.engine.placement.engine import Engine
from tutti.engine.session.policy import SECOND, Patience, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.session import session
from tutti.kube.objects import Pod

START = 1_800_000_000 * SECOND
POLICY = Policy(eviction_rounds=2)
Bound = Callable[["World", Pod], None]


class World:
    """Nodes full of pods whose controller creates them again, and a preemptor of higher priority."""

    def __init__(self, *nodes: str, gang: bool = False, policy: Policy = POLICY, tolerates: str | None = None) -> None:
        self.policy, self.tolerates = policy, tolerates
        self.labels = {COSCHEDULING_LABEL: "g"} if gang else {}
        self.cluster = Cluster((*map(node, nodes), pod_group("g", 1)))
        self.queue, self.engine, self.now = Queue(self.cluster), Engine(self.cluster), START
        self.names = iter(range(1_000))
        self.evicted: list[str] = []
        for name in nodes:
            self.fill(name)
        self.create()

    def fill(self, node_name: str) -> None:
        self.cluster.observe(Put(pod(f"low-{next(self.names)}", "3", on=node_name, owner=("ReplicaSet", "low"))))

    def create(self) -> None:
        name, owner = f"high-{next(self.names)}", ("ReplicaSet", "high")
        how = {"labels": self.labels, "tolerates": self.tolerates}
        self.cluster.observe(Put(pod(name, "3", priority=10, owner=owner, **how)))

    def run(self, rounds: int, bound: Bound) -> list[str]:
        """Run sessions in which victims leave at once; return what was evicted."""
        first = len(self.evicted)
        for _ in range(rounds):
            plan = session(self.engine, self.queue, self.now, self.policy)
            for eviction in plan.evictions:
                self.evicted.append(eviction.pod)
                self.cluster.observe(Remove("Pod", eviction.pod, eviction.uid))
            for each in plan.binds:
                found = self.cluster.pod(each.pod)
                bound(self, replace(found, spec=replace(found.spec, node_name=each.node)))
            self.now += SECOND
        return self.evicted[first:]


def reject(world: World, preemptor: Pod) -> None:
    """Another scheduler was faster, so the kubelet rejects the pod; its controller creates another one."""
    world.cluster.observe(Put(replace(preemptor, status=replace(preemptor.status, phase="Failed", reason="OutOfcpu"))))
    world.fill(preemptor.spec.node_name or "")
    world.create()


def refuse(world: World, preemptor: Pod) -> None:
    """The API server refuses the binding."""
    node_name = preemptor.spec.node_name or ""
    world.cluster.apply(Unbind(preemptor.key, preemptor.metadata.uid))
    world.queue.bind_failed(preemptor.key, node_name, "denied", now=world.now, patience=Patience())
    world.fill(node_name)


def start(world: World, preemptor: Pod) -> None:
    """The pod starts; its controller creates another one, and it goes."""
    status = replace(preemptor.status, phase="Running", start_time="2027-01-15T08:00:00Z")
    world.cluster.observe(Put(replace(preemptor, status=status)))


@pytest.mark.parametrize("gang", [False, True])
@pytest.mark.parametrize("lose", [reject, refuse])
def test_lost_races_end_the_evictions_until_nodes_change(gang: bool, lose: Bound) -> None:
    world = World("a", "b", "c", gang=gang)
    assert len(world.run(90, lose)) == 2
    (entry,) = world.queue.waiting.values()
    assert "nobody is evicted until nodes have changed" in entry.message
    world.cluster.observe(Put(node("d", cpu="1")))
    assert world.run(20, lose)


def test_evictions_after_which_the_pods_start_are_not_in_vain() -> None:
    world = World("a", "b", "c", "d", "e")
    for _ in range(5):
        assert len(world.run(5, start)) == 1
        world.create()
    assert not world.queue.races.lost
    assert not world.queue.races.open


def test_a_race_that_is_won_makes_good_for_those_that_were_lost() -> None:
    world = World("a", "b", "c", "d")
    assert len(world.run(2, reject)) == 1
    world.run(20, start)
    assert len(world.evicted) == 2
    assert not world.queue.races.lost
    world.create()
    assert len(world.run(20, reject)) == 2


@pytest.mark.parametrize("gang", [False, True])
def test_lost_races_do_not_limit_evictions_on_own_nodes(gang: bool) -> None:
    """No other scheduler uses nodes with the taint, although the victims there are dearer."""
    world = World(gang=gang, policy=replace(POLICY, own_nodes=("own", "yes")), tolerates="own")
    cluster = world.cluster
    for name, taint in (("shared", None), ("also-shared", None), ("mine", "own"), ("theirs", "other")):
        cluster.observe(Put(node(name, taint=taint)))
        cluster.observe(Put(pod(f"on-{name}", "3", on=name, priority=5 if taint else 1, owner=("ReplicaSet", "low"))))
    nodes = []

    def lose(world: World, preemptor: Pod) -> None:
        nodes.append(preemptor.spec.node_name)
        reject(world, preemptor)

    world.run(40, lose)
    assert set(nodes[:2]) <= {"shared", "also-shared"}
    assert len(nodes) > 5
    assert set(nodes[2:]) == {"mine"}


def test_a_record_keeps_the_races() -> None:
    world = World("a")
    world.run(20, reject)
    again = Queue(world.cluster, world.queue.freeze())
    assert again.races == world.queue.races
    assert again.races.lost


def test_a_rollback_keeps_the_races() -> None:
    world = World("a")
    world.run(2, reject)
    before = world.queue.races
    mark = world.cluster.mark()
    session(world.engine, world.queue, world.now, POLICY)
    world.cluster.rollback(mark)
    assert world.queue.races == before
