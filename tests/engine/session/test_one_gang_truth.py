"""`tutti explain`, `tutti schedule` and a live session say and do the same with every gang and every single pod.

Each test draws worlds from seeds (`tests/support/random_gang_worlds.py`). A world "limited to" a gang gives all other
pending pods to another scheduler, so that the three programs see the same picture and try the same pods. These
differences are right, and each is a rule of its own below:

- A live session does not remove its victims: they terminate, and room is held. The gang is compared where it is held,
  and again when its victims have left.
- Surplus that is tried after another surplus pod of its gang was nominated is not compared (`is_after_nomination`): a
  nominated pod counts for no scores, as in kube-scheduler, so such surplus may find another node, and in the end more
  or fewer pods may have room. The minimum is compared without exception.
- A gang whose size is counted from its pods waits live until its newest pod is `counted_quiet_for` old. All worlds are
  older than that; `test_a_counted_gang_waits_live_until_it_is_quiet` has the rule.
- A pod that has been terminating for an hour is expected to leave by `schedule`, which has no clock, and not by a
  session. All worlds are younger; `test_a_session_does_not_wait_for_a_stuck_pod` has the rule.

Set TUTTI_WORLDS to a range of seeds such as 1000-6000 to compare more worlds.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from tests.support import builders
from tests.support.random_gang_worlds import RandomGangWorld, limited_to
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put, Remove
from tutti.engine.explain.gang_explanation import GangOutcome, gang_outcome
from tutti.engine.explain.gang_status import gang_statuses
from tutti.engine.explain.pod_explanation import explain_pod
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import GangPhase
from tutti.engine.placement.engine import Engine
from tutti.engine.session.passes import pending_pods
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import OFFLINE, SECOND, Patience, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.schedule import schedule
from tutti.engine.session.session import session
from tutti.kube import objects as k
from tutti.kube.objects import Object
from tutti.kube.times import micros, timestamp

NOW = micros("2026-01-02T00:10:00Z")
"""Ten minutes after terminating pods of a world began to terminate, and long after its last pod was created."""
BACKOFF = 11 * SECOND
"""Longer than any backoff."""


FOUND = (498, 897, 1152, 2120, 4057, 5588, 10453, 10631, 11121)
"""Worlds in which a live session did not end as `schedule` said, for reasons that hardly any other world has."""


def _seeds(default: int) -> range:
    first, _, last = os.environ.get("TUTTI_WORLDS", "").partition("-")
    return range(int(first), int(last)) if last else range(default)


class GangAnswer(NamedTuple):
    """What a plan does with one gang, and how far the gang has come after the plan."""

    phase: GangPhase
    bound: dict[str, str]
    held: dict[str, str]
    """Nominated pods and their nodes."""
    evicts: frozenset[str]
    message: str
    """The gang's message, or that of its first pod without a place."""
    missing: int
    """How many pods the gang needed before the plan."""
    running: int
    """How many of its pods run after the plan."""
    tried: int
    """How many of its pods the plan binds, nominates or refuses."""

    @property
    def is_after_nomination(self) -> bool:
        """Whether the session nominated a surplus pod, and then tried another one."""
        return self.phase is GangPhase.WHOLE and bool(self.held) and self.tried > self.missing + 1

    @property
    def nodes(self) -> dict[str, str]:
        return self.bound | self.held


def gang_answer(plan: Plan, cluster: Cluster, gang: str) -> GangAnswer:
    found = next((each for each in plan.gangs if each.gang == gang), None)
    unplaced = next((each.message for each in plan.unschedulable if each.gang == gang), "")
    after = Gangs(cluster).state(gang, ())
    return GangAnswer(
        after.phase,
        {each.pod: each.node for each in plan.binds if each.gang == gang},
        {each.pod: each.node for each in plan.nominated if each.gang == gang},
        frozenset(found.evicts if found is not None else ()),
        (found.message if found is not None else "") or unplaced,
        found.missing if found is not None else 0,
        len(after.running),
        sum(each.gang == gang for part in (plan.binds, plan.nominated, plan.unschedulable) for each in part),
    )


def scheduled(objects: Sequence[Object], gang: str, pods: Collection[str] | None = None) -> GangAnswer:
    cluster = Cluster(objects)
    return gang_answer(schedule(cluster, pods), cluster, gang)


def gangs_of(objects: Sequence[Object]) -> dict[str, set[str]]:
    """Return the pods of each gang."""
    cluster = Cluster(objects)
    gangs = Gangs(cluster)
    keys = gangs.keys()
    return {key: {cluster.pods.keys[row] for row in gangs.rows(key)} for key in keys}


def phase_before(objects: Sequence[Object], gang: str) -> GangPhase:
    return Gangs(Cluster(objects)).state(gang, ()).phase


# Explain and schedule -------------------------------------------------------------------------------------------------


def check_explanation(outcome: GangOutcome, answer: GangAnswer, *, before: GangPhase, is_tried: bool) -> None:
    """Check that an explanation says what a plan does."""
    if answer.phase is GangPhase.WHOLE:
        expected = "runs" if before is GangPhase.WHOLE else "starts"
    elif answer.phase is GangPhase.PROBLEM:
        expected = "problem"
    else:
        expected = "leaving" if answer.held else "waits"
    assert outcome.state == expected
    assert (outcome.nodes, frozenset(outcome.evicts)) == (answer.nodes, answer.evicts)
    if is_tried:
        assert outcome.message == answer.message
    else:
        assert answer.message == ""  # the plan does not mention a gang of which no pod is tried


@pytest.mark.parametrize("seed", _seeds(12))
def test_explain_says_what_schedule_does_with_a_gang_alone(seed: int) -> None:
    objects = RandomGangWorld(seed).objects
    for gang, members in gangs_of(objects).items():
        alone = limited_to(objects, members)
        answer = scheduled(alone, gang)
        assert answer == scheduled(alone, gang, sorted(members)), gang
        cluster = Cluster(alone)
        is_tried = any(turn.gang == gang for turn in schedule(Cluster(alone)).turns)
        before = phase_before(alone, gang)
        check_explanation(gang_outcome(Engine(cluster), gang), answer, before=before, is_tried=is_tried)


@pytest.mark.parametrize("seed", _seeds(12))
def test_explain_says_what_schedule_does_with_each_gang_of_a_world(seed: int) -> None:
    objects = RandomGangWorld(seed).objects
    cluster = Cluster(objects)
    plan = schedule(cluster)
    tried = {turn.gang for turn in plan.turns}
    for gang in gangs_of(objects).keys() & tried:
        outcome = gang_outcome(Engine(Cluster(objects)), gang)
        before = phase_before(objects, gang)
        check_explanation(outcome, gang_answer(plan, cluster, gang), before=before, is_tried=True)


@pytest.mark.parametrize("seed", _seeds(12))
def test_the_list_of_gangs_has_the_phase_of_each_gang(seed: int) -> None:
    objects = RandomGangWorld(seed).objects
    named = {GangPhase.PROBLEM: "Refused", GangPhase.WHOLE: "Running"}
    for each in gang_statuses(Cluster(objects)):
        assert each.status == named.get(phase_before(objects, f"{each.namespace}/{each.name}"), "Pending")


# A live session -------------------------------------------------------------------------------------------------------


class LiveCluster:
    """A cluster with a live scheduler; victims leave as soon as a plan evicts them."""

    def __init__(self, objects: Sequence[Object]) -> None:
        self.cluster = Cluster(objects)
        self.queue, self.engine, self.now = Queue(self.cluster), Engine(self.cluster), NOW
        self.victims: set[str] = set()
        """The pods that were evicted to make room."""

    def run_session(self, **policy: bool) -> Plan:
        plan = session(self.engine, self.queue, self.now, Policy(**policy))
        self.victims |= {each.pod for each in plan.evictions if not each.reason}
        return plan

    def remove(self, pods: Collection[str]) -> None:
        for pod in pods:
            self.cluster.apply(Remove("Pod", pod))

    def terminating(self) -> list[str]:
        pods = self.cluster.pods
        return [key for key, row in pods.row_of.items() if pods.terminating[row] and pods.node_names[row] is not None]

    def node_of(self, pod: str) -> str | None:
        return self.cluster.pods.node_names[self.cluster.pod_row(pod)]

    def play(self, sessions: int = 100) -> None:
        """Run sessions until several in a row do nothing, at the times for which the queue asks."""
        quiet = 0
        for _ in range(sessions):
            plan = self.run_session()
            self.remove(self.terminating())
            quiet = 0 if plan.binds or plan.evictions or plan.nominated else quiet + 1
            if quiet >= 6 or (quiet and self.queue.wake is None):
                return
            wake = self.queue.wake if quiet and self.queue.wake is not None else 0
            self.now = max(self.now + SECOND, wake)
        raise AssertionError("the sessions do not come to rest")


@pytest.mark.parametrize("seed", [*_seeds(12), *FOUND])
def test_a_session_does_what_schedule_does_with_a_gang_alone(seed: int) -> None:
    objects = RandomGangWorld(seed).objects
    for gang, members in gangs_of(objects).items():
        alone = limited_to(objects, members)
        answer = scheduled(alone, gang)
        live = LiveCluster(alone)
        first = gang_answer(live.run_session(), live.cluster, gang)
        limited = LiveCluster(objects)
        plan = session(limited.engine, limited.queue, NOW, Policy(), only=sorted(members))
        assert gang_answer(plan, limited.cluster, gang) == first, gang
        check_held_room_stays(live, first)
        if not answer.evicts:
            assert first == answer, gang
        else:
            check_played_gang(live, gang, answer, first)


def check_held_room_stays(live: LiveCluster, first: GangAnswer) -> None:
    """Check that a gang keeps its nominations, or starts there, in an attempt while its victims still terminate."""
    live.now += BACKOFF
    live.run_session()
    holds = live.cluster.holds
    held_or_bound = {pod: holds[pod].node if pod in holds else live.node_of(pod) for pod in first.held}
    assert held_or_bound == first.held


def check_played_gang(live: LiveCluster, gang: str, answer: GangAnswer, first: GangAnswer) -> None:
    """Check that a gang that evicts pods ends as `schedule` says, on the nodes where room was held for it."""
    held, is_exact = dict(first.held), not first.is_after_nomination
    for _ in range(10):
        live.remove(live.victims & set(live.cluster.pods.row_of))
        live.now += BACKOFF
        plan = live.run_session()
        later = gang_answer(plan, live.cluster, gang)
        for pod, node in held.items():
            assert not is_exact or later.bound.get(pod, node) == node, (gang, pod)
        held = {pod: node for pod, node in held.items() if pod not in later.bound} | later.held
        is_exact = is_exact and not later.is_after_nomination
        if not plan.binds and not plan.evictions:
            break
    after = Gangs(live.cluster).state(gang, ())
    assert after.phase is answer.phase, gang
    if is_exact:
        assert (len(after.running), frozenset(live.victims)) == (answer.running, answer.evicts), gang
    # The pods of the minimum come first, and are exactly where `schedule` places them.
    minimum = list((first.bound or first.held).items())[: first.missing]
    assert minimum == list(answer.nodes.items())[: first.missing], gang


@pytest.mark.parametrize("seed", _seeds(12))
def test_a_session_without_preemption_places_what_one_pass_of_schedule_places(seed: int) -> None:
    objects = RandomGangWorld(seed).objects
    policy = replace(OFFLINE, preemption=False, passes=1)
    plan = session(Engine(Cluster(objects)), None, None, policy)
    live = LiveCluster(objects).run_session(preemption=False)
    assert {each.pod: each.node for each in live.binds} == {each.pod: each.node for each in plan.binds}
    assert live.gangs == plan.gangs
    assert live.unschedulable == plan.unschedulable
    assert live.nominated == plan.nominated == ()


@pytest.mark.parametrize("seed", _seeds(8))
def test_played_sessions_leave_no_gang_partial_and_start_as_many_important_gangs(seed: int) -> None:
    objects = RandomGangWorld(seed).objects
    offline, live = Cluster(objects), LiveCluster(objects)
    gangs = gangs_of(objects)
    partial = {gang for gang in gangs if phase_before(objects, gang) is GangPhase.PARTIAL}
    overfilled = overfilled_nodes(live.cluster)
    pending = set(pending_pods(offline))
    priorities = {gang: Gangs(offline).priority(gang) for gang, pods in gangs.items() if pods & pending}
    schedule(offline)
    live.play()
    assert overfilled_nodes(live.cluster) <= overfilled
    for gang, pods in gangs.items():
        # A gang that was partial before, or lost pods to a more important one, may stay so.
        if gang not in partial and not pods & live.victims:
            assert Gangs(live.cluster).state(gang, ()).phase is not GangPhase.PARTIAL, gang
    important = [gang for gang, priority in priorities.items() if priority == max(priorities.values())]
    assert _whole(live.cluster, important) >= _whole(offline, important)


def overfilled_nodes(cluster: Cluster) -> set[str]:
    nodes = cluster.nodes
    is_full = (nodes.used[:, : nodes.length] > nodes.alloc[:, : nodes.length]).any(axis=0)
    return {nodes.names[row] for row in range(nodes.length) if is_full[row]}


def _whole(cluster: Cluster, gangs: Collection[str]) -> int:
    return sum(Gangs(cluster).state(gang, ()).phase is GangPhase.WHOLE for gang in gangs)


# Single pods ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", _seeds(20))
def test_explain_says_what_schedule_and_a_session_do_with_a_single_pod(seed: int) -> None:
    objects = RandomGangWorld(seed).objects
    cluster = Cluster(objects)
    for pod in pending_pods(cluster):
        if Gangs(cluster).key_of(cluster.pod_row(pod)) is not None:
            continue
        alone = limited_to(objects, {pod})
        explanation = explain_pod(Engine(Cluster(alone)), pod)
        plan = schedule(Cluster(alone))
        bound = next((each.node for each in plan.binds), None)
        held = next((each.node for each in plan.nominated), None)
        evicts = {each.pod for each in plan.evictions}
        messages = [each.message for each in plan.unschedulable]
        live = LiveCluster(alone).run_session()
        if explanation.remark is not None:
            assert (bound, held, messages, live.counts["binds"]) == (None, None, [], 0), pod
        elif explanation.goes_to is not None:
            assert (explanation.goes_to, evicts) == (bound, set()), pod
        elif explanation.nominated is not None:
            assert (explanation.nominated, set(explanation.evicts)) == (bound or held, evicts), pod
        else:
            assert [explanation.message] == messages, pod
        # Victims of a live session terminate, so that room is held where `schedule` binds.
        assert [(each.pod, each.node) for each in (*live.binds, *live.nominated)] == [
            (each.pod, each.node) for each in (*plan.binds, *plan.nominated)
        ]
        assert {each.pod for each in live.evictions if not each.reason} == evicts, pod
        assert [each.message for each in live.unschedulable] == messages, pod


# Rules that only a clock has ------------------------------------------------------------------------------------------


def test_a_counted_gang_waits_live_until_it_is_quiet() -> None:
    created = timestamp(NOW - SECOND)
    objects: list[Object] = [builders.node("n1"), *builders.members("g", 2, created=created)]
    assert scheduled(objects, "default/g").phase is GangPhase.WHOLE
    live = LiveCluster(objects)
    assert gang_answer(live.run_session(), live.cluster, "default/g").phase is GangPhase.WAITING
    assert live.queue.wake == NOW - SECOND + Patience().counted_quiet_for
    live.now = live.queue.wake
    assert gang_answer(live.run_session(), live.cluster, "default/g").phase is GangPhase.WHOLE


def test_a_session_does_not_wait_for_a_stuck_pod() -> None:
    stuck = builders.pod("old", "4", on="n1", deleted=timestamp(NOW - 2 * Patience().reserved_for))
    objects: list[Object] = [builders.node("n1"), stuck, *builders.members("g", 2, created="2026-01-01T00:00:00Z")]
    assert set(scheduled(objects, "default/g").held) == {"default/g-0", "default/g-1"}
    live = LiveCluster(objects)
    assert gang_answer(live.run_session(), live.cluster, "default/g").held == {}


# Disagreements that were found ----------------------------------------------------------------------------------------

OLD = "2026-01-01T00:00:00Z"
MIN_ONE = {"tutti.dev/min-member": "1"}


def _nominated(pod: k.Pod, node: str) -> k.Pod:
    return replace(pod, status=replace(pod.status, nominated_node_name=node))


def test_surplus_of_an_earlier_gang_does_not_come_before_the_minimum_of_a_later_one() -> None:
    objects: list[Object] = [
        builders.node("n1"),
        *builders.members("a", 4, annotations={"tutti.dev/min-member": "2"}, created=OLD),
        *builders.members("b", 2, created="2026-01-01T01:00:00Z"),
    ]
    outcome = gang_outcome(Engine(Cluster(objects)), "default/b")
    assert outcome.state == "starts"
    assert outcome.nodes == scheduled(objects, "default/b").bound
    first = gang_outcome(Engine(Cluster(objects)), "default/a")
    assert first.nodes == scheduled(objects, "default/a").bound == {"default/a-0": "n1", "default/a-1": "n1"}


def test_a_gang_starts_on_the_nodes_for_which_it_evicted_pods() -> None:
    """Another rack with enough room, that would come first, appears while the victims leave."""
    rack = {"tutti.dev/topology-required": "rack"}
    objects: list[Object] = [
        builders.node("n1", labels={"rack": "r1"}),
        *(builders.pod(f"low-{number}", "2", on="n1") for number in range(2)),
        *builders.members("g", 2, cpu="2", priority=10, annotations=rack, created=OLD),
    ]
    live = LiveCluster(objects)
    first = gang_answer(live.run_session(), live.cluster, "default/g")
    assert first.held == {"default/g-0": "n1", "default/g-1": "n1"}
    live.remove(live.victims)
    live.cluster.apply(Put(builders.node("n0", labels={"rack": "r0"})))
    live.now += BACKOFF
    assert gang_answer(live.run_session(), live.cluster, "default/g").bound == first.held


def test_surplus_pods_keep_the_room_that_is_held_for_each_of_them() -> None:
    surplus = builders.members("g", 2, first=1, annotations=MIN_ONE, created=OLD)
    objects: list[Object] = [
        *(builders.node(name) for name in ("n1", "n2", "n3")),
        builders.pod("other", "2", on="n1"),
        builders.pod("g-0", on="n2", gang="g", annotations=MIN_ONE, created=OLD),
        _nominated(surplus[0], "n2"),
        _nominated(surplus[1], "n1"),
    ]
    assert scheduled(objects, "default/g").bound == {"default/g-1": "n2", "default/g-2": "n1"}


def test_the_message_of_surplus_that_waits_is_not_lost() -> None:
    objects: list[Object] = [
        builders.node("n1"),
        builders.node("n2", "2"),
        builders.pod("old", "4", on="n1", deleted="2026-01-02T00:00:00Z"),
        builders.pod("g-0", on="n2", gang="g", annotations=MIN_ONE, created=OLD),
        builders.pod("g-1", "3", gang="g", annotations=MIN_ONE, created=OLD),
        builders.pod("g-2", "1", gang="g", annotations=MIN_ONE, created=OLD),
    ]
    live = LiveCluster(objects)
    answer = gang_answer(live.run_session(), live.cluster, "default/g")
    assert answer == scheduled(objects, "default/g")
    assert (answer.bound, answer.held) == ({"default/g-2": "n2"}, {"default/g-1": "n1"})
    assert answer.message == gang_outcome(Engine(Cluster(objects)), "default/g").message
    assert answer.message == "waits for default/old to leave"


def _grouped(name: str, **how: object) -> k.Pod:
    return builders.pod(name, labels={builders.COSCHEDULING_LABEL: "g"}, created=OLD, **how)  # type: ignore[arg-type]


def test_members_that_have_succeeded_count_when_surplus_is_evicted() -> None:
    objects: list[Object] = [
        builders.node("n1", "3"),
        builders.pod_group("g", 3),
        _grouped("g-0", phase="Succeeded", on="n1"),
        *(_grouped(f"g-{number}", on="n1") for number in range(1, 4)),
        builders.pod("high", priority=10),
    ]
    cluster = Cluster(objects)
    plan = schedule(cluster)
    assert len(plan.evictions) == 1
    assert Gangs(cluster).state("default/g", ()).phase is GangPhase.WHOLE


def test_a_gang_that_its_succeeded_members_complete_runs() -> None:
    objects: list[Object] = [
        builders.node("n1", "1"),
        builders.pod_group("g", 1),
        _grouped("g-0", phase="Succeeded", on="n1"),
        _grouped("g-1", cpu="8"),
    ]
    outcome = gang_outcome(Engine(Cluster(objects)), "default/g")
    assert outcome.state == "runs"
    assert outcome.message == scheduled(objects, "default/g").message != ""


def test_the_number_of_pods_that_exist_counts_those_that_have_succeeded() -> None:
    objects: list[Object] = [
        builders.node("n1"),
        builders.pod_group("g", 4),
        _grouped("g-0", phase="Succeeded", on="n1"),
        _grouped("g-1", on="n1"),
        _grouped("g-2"),
    ]
    assert scheduled(objects, "default/g").message == "3 of 4 pods exist: the gang waits for 1 more"


def test_a_gang_without_a_valid_declaration_is_not_undone_as_partial() -> None:
    """Its minimum is not known: explain calls it a problem, and a session must not evict its pods."""
    job = ("Job", "train")
    objects: list[Object] = [builders.node("n1"), *(_grouped(f"g-{n}", on="n1", owner=job) for n in range(2))]
    objects.append(_grouped("g-2", owner=job))
    assert gang_outcome(Engine(Cluster(objects)), "default/g").state == "problem"
    live = LiveCluster(objects)
    for _ in range(3):
        plan = live.run_session()
        assert (plan.evictions, plan.partial_gangs) == ((), ())
        live.now += 2 * Patience().partial_for


def test_explain_names_the_whole_gang_that_a_single_pod_evicts() -> None:
    objects: list[Object] = [
        *(builders.node(name, "2") for name in ("n1", "n2")),
        builders.pod("g-0", "2", on="n1", gang="g"),
        builders.pod("g-1", "2", on="n2", gang="g"),
        builders.pod("high", "2", priority=10),
    ]
    explanation = explain_pod(Engine(Cluster(objects)), "default/high")
    assert sorted(explanation.evicts) == sorted(each.pod for each in schedule(Cluster(objects)).evictions)
    assert set(explanation.evicts) == {"default/g-0", "default/g-1"}


def _with_two_victims(annotations: dict[str, str]) -> list[Object]:
    """Return a running gang with two surplus pods, each of which fits only where a pod of lower priority runs."""
    return [
        *(builders.node(name, labels={"rack": rack}) for name, rack in (("n1", "r1"), ("n2", "r2"))),
        builders.node("n0", "1", labels={"rack": "r1"}),
        *(builders.pod(f"low-{name}", "4", on=name) for name in ("n1", "n2")),
        builders.pod("g-0", on="n0", gang="g", priority=10, annotations={**MIN_ONE, **annotations}, created=OLD),
        *builders.members("g", 2, first=1, cpu="4", priority=10, annotations={**MIN_ONE, **annotations}, created=OLD),
    ]


def test_surplus_that_waits_for_its_victims_counts_for_the_maximum() -> None:
    objects = _with_two_victims({"tutti.dev/max-member": "2"})
    live = LiveCluster(objects)
    live.run_session()
    assert len(live.victims) == len(scheduled(objects, "default/g").evicts) == 1


def test_surplus_that_waits_for_its_victims_determines_the_domain_of_its_part() -> None:
    parts = {"tutti.dev/sub-groups": '[{"name": "a", "minMember": 0, "topology": {"required": "rack"}}]'}
    objects = [
        replace(obj, metadata=replace(obj.metadata, labels={"tutti.dev/sub-group": "a"}))
        if isinstance(obj, k.Pod) and obj.metadata.name in ("g-1", "g-2")
        else obj
        for obj in _with_two_victims(parts)
    ]
    live = LiveCluster(objects)
    live.run_session()
    assert len(live.victims) == len(scheduled(objects, "default/g").evicts) == 1


def test_a_gang_that_starts_releases_the_holds_of_its_surplus_with_and_without_evictions() -> None:
    """Room that is held for more pods than the gang needs must not decide which surplus pod starts."""
    host = {**MIN_ONE, "tutti.dev/topology-required": builders.HOSTNAME}
    first, second, *others = builders.members("g", 4, cpu="2", priority=10, annotations=host, created=OLD)
    objects: list[Object] = [
        builders.node("n1"),
        builders.pod("low", "3", on="n1"),
        first,
        second,
        *(_nominated(pod, "n1") for pod in others),
    ]
    answer, live = scheduled(objects, "default/g"), LiveCluster(objects)
    assert answer.bound == {"default/g-2": "n1", "default/g-0": "n1"}
    check_played_gang(live, "default/g", answer, gang_answer(live.run_session(), live.cluster, "default/g"))
    assert live.node_of("default/g-0") == "n1"
    assert " in kubernetes.io/hostname n1" in answer.message
