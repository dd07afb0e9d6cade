"""Nominations and held room end when they serve nobody: after refusals, without preemption, and behind stuck pods."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.builders import COSCHEDULING_LABEL, node, pod, pod_group
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put, Unbind
from tutti.engine.placement.engine import Engine
from tutti.engine.preemption.victim_rules import VictimRules
from tutti.engine.session.plan import Plan
from tutti.engine.session.policy import SECOND, Patience, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.session import session
from tutti.kube.objects import Condition, Pod
from tutti.kube.times import timestamp

START = 1_800_000_000 * SECOND


def nominated(name: str, node_name: str, **how: Any) -> Pod:
    made = pod(name, "3", **how)
    return replace(made, status=replace(made.status, nominated_node_name=node_name))


def run(queue: Queue, now: int = START, **policy: Any) -> Plan:
    return session(Engine(queue.cluster), queue, now, Policy(**policy))


def test_the_nomination_of_a_pod_whose_binding_was_refused_is_cleared() -> None:
    """The binding has ended the hold, so that no hold is released; autoscalers take nominated pods for served."""
    cluster = Cluster((node("a"), nominated("high", "a", priority=10)))
    queue = Queue(cluster)
    assert [each.node for each in run(queue).binds] == ["a"]
    cluster.apply(Unbind("default/high", "high"))
    queue.bind_failed("default/high", "a", "denied", uid="high", now=START, patience=Patience())
    plan = run(queue, START + SECOND)
    assert not plan.binds
    assert plan.released == ("default/high",)


def test_a_pod_that_waits_for_its_victim_keeps_its_nomination() -> None:
    cluster = Cluster((node("a"), pod("low", "3", on="a", deleted=timestamp(START))))
    cluster.observe(Put(nominated("high", "a", priority=10)))
    queue = Queue(cluster)
    assert not run(queue).released
    assert "default/high" in cluster.holds


@pytest.mark.parametrize("hard_budgets", [False, True])
@pytest.mark.parametrize("reason", ["PreemptionByScheduler", "EvictionByEvictionAPI"])
def test_a_terminating_victim_is_known_by_its_condition(reason: str, hard_budgets: bool) -> None:
    """While it leaves no other pod is evicted, even if it is cheaper; only hard budgets evict by the API."""
    condition = Condition(type="DisruptionTarget", status="True", reason=reason)
    low = pod("low", "3", on="a", deleted=timestamp(START))
    low = replace(low, status=replace(low.status, conditions=[condition]))
    cluster = Cluster((node("a"), node("b"), low, pod("cheap", "3", on="b", priority=-1)))
    cluster.observe(Put(nominated("high", "a", priority=10)))
    evictions = run(Queue(cluster), victims_allowed=VictimRules(hard_budgets=hard_budgets)).evictions
    assert bool(evictions) == (reason == "EvictionByEvictionAPI" and not hard_budgets)


@pytest.mark.parametrize("gang", [False, True])
def test_without_preemption_older_nominations_hold_no_room(gang: bool) -> None:
    """A process that may not preempt follows one that could."""
    labels = {COSCHEDULING_LABEL: "g"} if gang else None
    cluster = Cluster((node("a"), pod("low", "2", on="a"), pod_group("g", 1)))
    cluster.observe(Put(nominated("high", "a", priority=10, labels=labels)))
    cluster.observe(Put(pod("small", "1")))
    plan = run(Queue(cluster), preemption=False)
    assert plan.released == ("default/high",)
    assert [each.pod for each in plan.binds] == ["default/small"]


@pytest.mark.parametrize("gang", [False, True])
@pytest.mark.parametrize("is_nominated", [False, True])
def test_a_terminating_pod_that_should_have_left_is_not_waited_for(gang: bool, is_nominated: bool) -> None:
    """The scheduler did not evict it, so nothing else says that it is overdue."""
    patience = Patience(leaves_within=30 * SECOND)
    stuck, other = pod("stuck", "3", on="a", deleted=timestamp(START)), pod("other", "3", on="b", priority=5)
    cluster = Cluster((node("a"), node("b"), pod_group("g", 1), stuck, other))
    labels = {COSCHEDULING_LABEL: "g"} if gang else None
    high = pod("high", "3", priority=10, labels=labels)
    cluster.observe(Put(nominated("high", "a", priority=10, labels=labels) if is_nominated else high))
    queue = Queue(cluster)
    plan = run(queue, patience=patience)
    assert not plan.evictions
    assert "default/high" in cluster.holds
    assert queue.wake == START + 30 * SECOND + 1
    assert [each.pod for each in run(queue, queue.wake, patience=patience).evictions] == ["default/other"]


def test_evictions_whose_victims_are_overdue_are_not_in_vain() -> None:
    """Nobody took the room, so that the preemptor may go on, node by node."""
    patience = Patience(leaves_within=30 * SECOND)
    names = "abcd"
    cluster = Cluster([*map(node, names), *(pod(f"low-{name}", "3", on=name) for name in names)])
    cluster.observe(Put(pod("high", "3", priority=10)))
    queue, now, evicted = Queue(cluster), START, list[str]()
    for _ in names:
        plan = run(queue, now, patience=patience, eviction_rounds=2)
        evicted += [each.pod for each in plan.evictions]
        assert queue.wake is not None
        now = max(now + 31 * SECOND, queue.wake)
    assert len(evicted) == len(names)


def test_nobody_is_evicted_for_a_gang_whose_group_is_being_deleted() -> None:
    """Its pods are told, and the room that was held is given back."""
    group = pod_group("g", 1)
    cluster = Cluster((node("a"), pod("low", "3", on="a"), group))
    cluster.observe(Put(pod("high", "3", priority=10, labels={COSCHEDULING_LABEL: "g"})))
    queue = Queue(cluster)
    assert run(queue).nominated
    cluster.observe(Put(replace(group, metadata=replace(group.metadata, deletion_timestamp=timestamp(START)))))
    plan = run(queue, START + SECOND)
    assert plan.released == ("default/high",)
    (waiting,) = plan.unschedulable
    assert waiting.waits_for == "members"
    assert "the group default/g is being deleted" in waiting.message
    assert not plan.evictions
