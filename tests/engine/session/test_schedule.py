"""Scheduling without a clock: the plan equals placing pods one by one, with kube-scheduler's messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pytest
from msgspec.structs import replace

from tests.support import builders
from tests.support.random_clusters import RandomCluster
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Hold, Release, Remove
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.engine.preemption.default_preemption import preempt
from tutti.engine.reasons.pod_failure import pod_failure
from tutti.engine.session.passes import pending_pods
from tutti.engine.session.plan import Plan
from tutti.engine.session.queue_order import creation_time, not_considered
from tutti.engine.session.schedule import schedule
from tutti.kube import objects as k

WAITING = "2026-01-01T00:00:00Z"


node = partial(builders.node, pods="10")
pod = partial(builders.pod, created=WAITING)


def message(*objects: k.Object, profile: Profile | None = None) -> str:
    """Return why the only pending pod cannot be placed."""
    (refused,) = schedule(Cluster(objects), profile=profile).unschedulable
    return refused.message


# Messages -------------------------------------------------------------------------------------------------------------


def test_reasons_are_sorted_as_text_and_counted() -> None:
    nodes = (*(node(f"a-{number}", "1") for number in range(12)), node("b", "1", unschedulable=True), node("c", "1"))
    assert message(*nodes, pod("p", "2")) == (
        "0/14 nodes are available: 1 node(s) were unschedulable, 13 Insufficient cpu. "
        "preemption: 0/14 nodes are available: 14 Preemption is not helpful for scheduling."
    )


def test_no_victims_found() -> None:
    assert message(node("a"), node("b", "1"), pod("x", "3", on="a"), pod("p", "2")) == (
        "0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
        "1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."
    )


def test_evicting_all_lower_priority_pods_is_not_enough() -> None:
    there = (pod("low", "1", on="a", priority=0), pod("high", "3", on="a", priority=9))
    assert message(node("a"), *there, pod("p", "2", priority=5)) == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: 1 Insufficient cpu."
    )


def test_pods_that_do_not_preempt() -> None:
    there = pod("low", "4", on="a", priority=0)
    waiting = pod("p", priority=5, preemption_policy="Never")
    assert message(node("a"), there, waiting) == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
    )
    without = Profile.default()._replace(preempts=False)
    assert message(node("a"), there, pod("p", priority=5), profile=without) == (
        "0/1 nodes are available: 1 Insufficient cpu."
    )


def test_a_pod_whose_victims_are_still_leaving_waits() -> None:
    leaving = replace(
        pod("low", "4", on="a", priority=0, created=None, deleted=WAITING),
        status=k.PodStatus(
            conditions=[k.Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")]
        ),
    )
    waiting = replace(pod("p", priority=5), status=k.PodStatus(nominated_node_name="a"))
    assert message(node("a"), leaving, waiting) == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: not eligible due to a terminating pod on the nominated node."
    )


def test_pods_that_are_refused_before_any_node_is_filtered() -> None:
    volume = k.Volume(name="v", persistent_volume_claim=k.ClaimVolume(claim_name="c"))
    assert message(node("a"), node("b"), pod("p", volumes=[volume])) == (
        '0/2 nodes are available: persistentvolumeclaim "c" not found. '
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    assert message(pod("p")) == "no nodes available to schedule pods"


# The queue ------------------------------------------------------------------------------------------------------------


def test_pods_that_are_not_considered() -> None:
    going = pod("c", created=None, deleted=WAITING)
    plan = schedule(
        Cluster((
            node("a"),
            pod("a", scheduler_name="volcano"),
            pod("b", scheduling_gates=[k.SchedulingGate(name="x"), k.SchedulingGate(name="y")]),
            going,
            pod("d", scheduler_name="default-scheduler"),
        ))
    )  # fmt: skip
    assert {each.pod: each.message for each in plan.not_considered} == {
        "default/a": "schedulerName is volcano",
        "default/b": "waiting for scheduling gates: [x y]",
        "default/c": "the pod is being deleted",
    }
    assert plan.causes == {"other scheduler": 1, "gated": 1, "terminating": 1}
    assert plan.counts == {"pending": 4, "binds": 1, "evictions": 0, "unschedulable": 0, "notConsidered": 3}


def test_only_the_given_pods_are_scheduled() -> None:
    cluster = Cluster((node("a"), pod("x"), pod("y"), pod("z")))
    plan = schedule(cluster, ["default/z", "default/x"])
    assert [each.pod for each in plan.binds] == ["default/x", "default/z"]
    assert pending_pods(cluster) == ["default/y"]


def test_pods_of_one_kind_fail_together_until_the_cluster_changes() -> None:
    pods = [pod(f"p-{number}", "3") for number in range(40)]
    plan = schedule(Cluster((node("a", "30"), *pods)))
    assert plan.counts["binds"] == 10  # as many pods as the node takes, and as many cores
    assert len({each.message for each in plan.unschedulable}) == 1


def test_pods_of_one_spec_that_differ_only_in_labels() -> None:
    near = builders.near("x", "host")
    host = node("a", labels={"host": "a"})
    # The first pod finds no pod of app x and has another app; the second may start the group, and the first then joins.
    first, second = (pod(name, labels={"app": app}, affinity=near) for name, app in (("1", "y"), ("2", "x")))
    plan = schedule(Cluster((host, first, second)))
    assert [(each.pod, each.node) for each in plan.binds] == [("default/2", "a"), ("default/1", "a")]


def test_budgets_shrink_with_every_eviction() -> None:
    """Otherwise the second pod would evict the pod of the same budget on the other node, which comes first by name."""
    budget = builders.disruption_budget("kept", 1)
    kept = [pod(f"kept-{name}", "4", on=name, priority=0, labels={"app": "kept"}) for name in ("a", "b")]
    free = pod("free", "4", on="c", priority=0)
    waiting = [pod(f"p-{number}", "3", priority=5) for number in range(3)]
    plan = schedule(Cluster((*(node(name) for name in "abc"), budget, *kept, free, *waiting)))
    assert [(each.node, each.budgets_broken) for each in plan.binds] == [("a", 0), ("c", 0), ("b", 1)]


# The same as one at a time --------------------------------------------------------------------------------------------


def random_objects(seed: int) -> Iterator[k.Object]:
    """Yield random objects with several pods of each spec, and a budget."""
    drawn = RandomCluster(seed)
    for obj in drawn.objects(pods=25):
        yield obj
        if isinstance(obj, k.Pod) and not obj.spec.node_name:
            for number in range(drawn.random.randrange(4)):
                twin = replace(obj.metadata, name=f"{obj.metadata.name}-{number}")
                yield replace(obj, metadata=twin, status=replace(obj.status, nominated_node_name=None))
    yield drawn.budget()


def place_until_stable(cluster: Cluster) -> dict[str, str | None]:
    """Place the pending pods with single decisions, again and again until nothing changes."""
    found: dict[str, str | None] = {}
    while True:
        now = dict(one_by_one(cluster))
        found |= now
        if not any(now.values()):
            return found


def one_by_one(cluster: Cluster) -> Iterator[tuple[str, str | None]]:
    """Place the pending pods with single decisions."""
    engine = Engine(cluster)
    waiting = [cluster.pod(key) for key in pending_pods(cluster)]
    queue = sorted(waiting, key=lambda each: (-(each.spec.priority or 0), creation_time(each), each.key))
    for key in [pod.key for pod in queue if not_considered(pod, engine.profile) is None]:
        (decision,) = engine.place([key])
        if decision.node is None and decision.error is None:
            found = preempt(engine, engine.attempt(key))
            if found.chosen:
                for victim in found.chosen[0].victims:
                    cluster.apply(Remove("Pod", victim))
                for other in list(cluster.held_on.get(found.chosen[0].node, ())):
                    if (cluster.pod(other).spec.priority or 0) < (cluster.pod(key).spec.priority or 0):
                        cluster.apply(Release(other))
                cluster.apply(Hold(key, found.chosen[0].node))
                (decision,) = engine.place([key])
            elif found.ineligible is None:
                cluster.apply(Release(key))
        yield key, decision.node


def without_budgets(objects: Iterable[k.Object]) -> list[k.Object]:
    return [obj for obj in objects if not isinstance(obj, k.PodDisruptionBudget)]


def places(plan: Plan) -> dict[str, str | None]:
    refused: dict[str, str | None] = {each.pod: None for each in plan.unschedulable}
    return refused | {each.pod: each.node for each in plan.binds}


@pytest.mark.parametrize("seed", range(30))
def test_a_plan_equals_single_decisions(seed: int) -> None:
    objects = without_budgets(random_objects(seed))
    plan = schedule(Cluster(objects))
    assert places(plan) == place_until_stable(Cluster(objects))
    assert [each.pod for each in plan.evictions] == [victim for each in plan.binds for victim in each.evicts]


@pytest.mark.parametrize("seed", range(10))
def test_pod_failure_does_not_change_the_cluster(seed: int) -> None:
    cluster = Cluster(random_objects(seed))
    engine = Engine(cluster)
    waiting = [key for key in pending_pods(cluster) if not cluster.pod(key).spec.scheduling_gates]
    decisions = {key: engine.decide(key) for key in waiting}
    refused = [key for key, decision in decisions.items() if decision.node is None]
    messages = {key: pod_failure(engine, engine.attempt(key)).message for key in refused}
    assert {key: engine.decide(key) for key in waiting} == decisions
    assert {key: pod_failure(engine, engine.attempt(key)).message for key in refused} == messages
    assert pending_pods(cluster) == pending_pods(Cluster(random_objects(seed)))
