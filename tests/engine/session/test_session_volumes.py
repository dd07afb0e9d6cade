"""Sessions that place pods whose claims wait for their first consumer."""

from __future__ import annotations

import random
from collections.abc import Iterable

import pytest

from tests.support.builders import HOSTNAME, node, pod_group
from tests.support.cluster_state import cluster_state
from tests.support.volumes import (
    DYNAMIC,
    bound_volume,
    claim,
    pod_with_claims,
    relabelled,
    selected_claim,
    storage_classes,
    volume,
)
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import AssumeVolume, Put, Remove, Unbind
from tutti.engine.placement.engine import Engine
from tutti.engine.session.plan import Bound, Plan
from tutti.engine.session.policy import OFFLINE, SECOND, Patience, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.session import session
from tutti.kube import objects as k

START = 1_800_000_000 * SECOND
MINUTE = 60 * SECOND


def cluster_of(*objects: k.Object) -> Cluster:
    return Cluster([*storage_classes(), *objects])


def run(cluster: Cluster, queue: Queue, now: int = START, policy: Policy | None = None) -> Plan:
    """Run a session, and check that the edits of its plan give the cluster after it."""
    twin = cluster.copy()
    plan = session(Engine(cluster), queue, now, policy or Policy())
    for edit in plan.edits():
        twin.apply(edit)
    assert cluster_state(twin) == cluster_state(cluster)
    return plan


def binds(plan: Plan) -> dict[str, tuple[str, list[AssumeVolume]]]:
    """Return the node and the volumes of every bound pod."""
    return {each.pod.removeprefix("default/"): (each.node, list(_volumes(each))) for each in plan.binds}


def _volumes(bound: Bound) -> Iterable[AssumeVolume]:
    for edit in bound.volumes:
        assert isinstance(edit, AssumeVolume)
        yield edit


def claim_of(cluster: Cluster, name: str) -> str | None:
    """Return the claim that a volume of a cluster is bound to."""
    obj = cluster.objects["PersistentVolume"][name]
    assert isinstance(obj, k.PersistentVolume)
    return obj.spec.claim_ref.name if obj.spec.claim_ref is not None else None


def test_the_plan_has_the_volumes_to_bind_and_the_claims_to_provision() -> None:
    local, wanted, made = volume("v", on="n", version=5), claim("c", version=6), claim("d", DYNAMIC, version=7)
    cluster = cluster_of(node("n"), node("m"), local, wanted, made, pod_with_claims("p", "c", "d"))
    plan = run(cluster, Queue(cluster))
    taken = [
        AssumeVolume(bound_volume(local, "c", version=5), "default/p"),
        AssumeVolume(selected_claim(made, "n", version=7), "default/p"),
    ]
    assert binds(plan) == {"p": ("n", taken)}
    assert [edit.obj for edit in taken] == [
        cluster.objects["PersistentVolume"]["v"],
        cluster.objects["PersistentVolumeClaim"]["default/d"],
    ]


def test_a_binding_that_fails_gives_the_volume_back() -> None:
    first, second = volume("v", on="a", version=1), volume("w", on="b", version=2)
    cluster = cluster_of(node("a"), node("b"), first, second, claim("c"), pod_with_claims("p", "c"))
    queue = Queue(cluster)
    assert binds(run(cluster, queue))["p"][0] == "a"
    cluster.observe(Put(relabelled(first, "written before our binding", version=3)))
    assert claim_of(cluster, "v") == "c"
    cluster.apply(Unbind("default/p"))
    queue.bind_failed("default/p", "a", "conflict", now=START, patience=Patience())
    assert claim_of(cluster, "v") is None
    plan = run(cluster, queue, START + 5 * SECOND)
    assert binds(plan) == {"p": ("b", [AssumeVolume(bound_volume(second, "c", version=2), "default/p")])}
    assert (claim_of(cluster, "v"), claim_of(cluster, "w")) == (None, "c")


def test_two_pods_compete_for_one_volume() -> None:
    cluster = cluster_of(
        node("a"), volume("v", on="a", version=1), claim("c"), claim("d"),
        pod_with_claims("p", "c", priority=5), pod_with_claims("q", "d"),
    )  # fmt: skip
    queue = Queue(cluster)
    plan = run(cluster, queue)
    assert list(binds(plan)) == ["p"]
    assert [each.pod for each in plan.unschedulable] == ["default/q"]
    assert not run(cluster, queue, START + MINUTE).binds
    cluster.observe(Put(volume("v", on="a", version=1)))
    cluster.observe(Put(relabelled(volume("v", on="a"), "x", version=2)))
    assert not run(cluster, queue, START + 2 * MINUTE).binds, "an update without the binding does not free the volume"
    cluster.apply(Unbind("default/p"))
    queue.bind_failed("default/p", "a", "conflict", now=START + 3 * MINUTE, patience=Patience())
    plan = run(cluster, queue, START + 3 * MINUTE)
    assert list(binds(plan)) == ["q"], "the volume is an event for the other pod"
    assert claim_of(cluster, "v") == "d"


@pytest.mark.parametrize("policy", [Policy(), Policy(consolidation=True), OFFLINE], ids=["live", "moves", "offline"])
def test_no_pod_is_evicted_for_its_volume(policy: Policy) -> None:
    """The claim of an evicted pod stays bound to its volume."""
    cluster = cluster_of(
        node("n", "4"), volume("v", on="n"), claim("c"), claim("d"), pod_with_claims("low", "c", cpu="4")
    )
    queue = Queue(cluster)
    assert list(binds(run(cluster, queue))) == ["low"]
    cluster.observe(Put(pod_with_claims("high", "d", cpu="4", priority=10)))
    plan = run(cluster, queue, START + MINUTE, policy)
    assert not plan.evictions
    (refused,) = plan.unschedulable
    assert refused.message == (
        "0/1 nodes are available: 1 Insufficient cpu. preemption: 0/1 nodes are available: "
        "1 node(s) didn't find available persistent volumes to bind."
    )


def test_a_removed_pod_gives_the_volume_to_a_waiting_pod() -> None:
    cluster = cluster_of(
        node("a"), volume("v"), claim("c"), claim("d"), pod_with_claims("p", "c", priority=5), pod_with_claims("q", "d")
    )
    queue = Queue(cluster)
    run(cluster, queue)
    cluster.observe(Remove("Pod", "default/p", "p"))
    assert list(binds(run(cluster, queue, START + MINUTE))) == ["q"]


def test_gangs_and_their_surplus_take_their_volumes() -> None:
    label = {"scheduling.x-k8s.io/pod-group": "g"}
    cluster = cluster_of(
        pod_group("g", 2), *(node(name) for name in "abc"), *(volume(f"v-{name}", on=name) for name in "abc"),
        *(claim(f"c{number}") for number in range(3)),
        *(pod_with_claims(f"p{number}", f"c{number}", labels=label) for number in range(3)),
    )  # fmt: skip
    plan = run(cluster, Queue(cluster))
    found = {pod: (node, [edit.obj.key for edit in edits]) for pod, (node, edits) in binds(plan).items()}
    assert {volumes[0]: node for node, volumes in found.values()} == {"v-a": "a", "v-b": "b", "v-c": "c"}
    assert sorted(claim_of(cluster, name) or "" for name in ("v-a", "v-b", "v-c")) == ["c0", "c1", "c2"]


def test_a_preemptor_takes_its_volume() -> None:
    cluster = cluster_of(
        node("a"), volume("v", on="a"), claim("c"), pod_with_claims("low", on="a", cpu="4"),
        pod_with_claims("high", "c", cpu="4", priority=10),
    )  # fmt: skip
    plan = run(cluster, Queue(cluster), policy=OFFLINE)
    assert [each.pod for each in plan.evictions] == ["default/low"]
    assert [edit.obj.key for edit in binds(plan)["high"][1]] == ["v"]


def test_a_pod_that_is_moved_in_the_session_has_the_volumes_of_its_new_node() -> None:
    cluster = cluster_of(
        node("large", "8"), node("small", "4"), volume("v-large", on="large"), volume("v-small", on="small"),
        claim("c"), pod_with_claims("p", "c", cpu="2"), pod_with_claims("q", cpu="8"),
    )  # fmt: skip
    plan = run(cluster, Queue(cluster), policy=Policy(consolidation=True))
    assert {pod: node for pod, (node, _) in binds(plan).items()} == {"p": "small", "q": "large"}
    assert [edit.obj.key for edit in binds(plan)["p"][1]] == ["v-small"]
    assert (claim_of(cluster, "v-large"), claim_of(cluster, "v-small")) == (None, "c")


def test_a_pod_that_is_displaced_in_the_session_leaves_its_volume() -> None:
    """The important pod needs another pod beside it: it is tried again after that pod, and displaces a third one."""
    selector = k.LabelSelector(match_labels={"app": "z"})
    beside = k.PodAffinity(required=[k.PodAffinityTerm(label_selector=selector, topology_key=HOSTNAME)])
    cluster = cluster_of(
        node("n", "4"), volume("v", on="n"), volume("w", on="n"), claim("c"), claim("d"),
        pod_with_claims("z", app="z", priority=10), pod_with_claims("low", "c", cpu="3", priority=1),
        pod_with_claims("high", "d", cpu="3", priority=10, affinity=k.Affinity(pod_affinity=beside)),
    )  # fmt: skip
    plan = run(cluster, Queue(cluster), policy=OFFLINE)
    assert [turn.key.removeprefix("default/") for turn in plan.turns] == ["high", "z", "low", "high", "low"]
    assert [each.pod for each in plan.unschedulable] == ["default/low"]
    taken = {pod: [edit.obj.key for edit in edits] for pod, (_, edits) in binds(plan).items()}
    assert taken == {"z": [], "high": ["v"]}
    assert (claim_of(cluster, "v"), claim_of(cluster, "w")) == ("d", None)
    assert set(cluster.assumed_volumes.by_pod) == {"default/high"}


def test_a_pod_that_an_earlier_session_bound_and_that_moves_takes_other_volumes() -> None:
    cluster = cluster_of(
        node("large", "8"), node("small", "4"), volume("v-large", on="large"), volume("v-small", on="small"),
        claim("c"), pod_with_claims("p", "c", cpu="2"),
    )  # fmt: skip
    queue = Queue(cluster)
    assert binds(run(cluster, queue))["p"][0] == "large"
    cluster.observe(Put(pod_with_claims("q", cpu="8")))
    plan = run(cluster, queue, START + MINUTE, Policy(consolidation=True))
    (move,) = plan.evictions
    assert (move.pod, move.to) == ("default/p", "small")
    assert [edit.obj.key for edit in move.volumes if isinstance(edit, AssumeVolume)] == ["v-small"]
    assert (claim_of(cluster, "v-large"), claim_of(cluster, "v-small")) == (None, "c")


# Many clusters --------------------------------------------------------------------------------------------------------


def random_objects(draw: random.Random) -> list[k.Object]:
    """Nodes with local volumes, and pods and gangs of several priorities with claims for them."""
    names = [f"n{number}" for number in range(draw.randrange(2, 5))]
    objects: list[k.Object] = [node(name, draw.choice(("2", "4"))) for name in names]
    objects += [volume(f"v{number}", on=draw.choice(names)) for number in range(draw.randrange(2, 7))]
    objects += [claim(f"c{number}", DYNAMIC if draw.random() < 0.3 else "static") for number in range(8)]
    objects.append(pod_group("g", draw.randrange(2, 4)))
    for number in range(draw.randrange(4, 10)):
        labels = {"scheduling.x-k8s.io/pod-group": "g"} if draw.random() < 0.4 else None
        claims = draw.sample([f"c{each}" for each in range(8)], draw.choice((0, 1, 1, 2)))
        on = draw.choice(names) if not claims and draw.random() < 0.4 else None
        size, priority = draw.choice(("1", "2", "4")), 5 if labels else draw.choice((0, 10))
        objects.append(pod_with_claims(f"p{number}", *claims, cpu=size, priority=priority, labels=labels, on=on))
    return objects


def assert_volumes_are_complete(cluster: Cluster, bound: Bound) -> None:
    """Check that a bound pod takes one volume that its node reaches, or a provisioning, for each of its claims."""
    met = set()
    for edit in _volumes(bound):
        assert edit.pod == bound.pod
        obj = edit.obj
        if isinstance(obj, k.PersistentVolume):
            assert obj.spec.claim_ref is not None
            assert obj.spec.node_affinity is not None
            term = obj.spec.node_affinity.required.node_selector_terms[0]  # type: ignore[union-attr,index]
            assert term.match_expressions[0].values == [bound.node]  # type: ignore[index]
            met.add(obj.spec.claim_ref.name)
        else:
            assert obj.metadata.annotations == {"volume.kubernetes.io/selected-node": bound.node}
            met.add(obj.metadata.name)
        assert cluster.objects[obj.KIND][obj.key] == obj
    mounts = cluster.pod(bound.pod).spec.volumes or ()
    assert met == {mount.name for mount in mounts}


@pytest.mark.parametrize("policy", [Policy(), Policy(consolidation=True), OFFLINE], ids=["live", "moves", "offline"])
@pytest.mark.parametrize("seed", range(40))
def test_every_bound_pod_has_its_volumes_and_no_other_pod_has_any(seed: int, policy: Policy) -> None:
    draw = random.Random(seed)
    cluster = cluster_of(*random_objects(draw))
    queue = Queue(cluster)
    for step in range(4):
        now = START + step * MINUTE
        plan = run(cluster, queue, now, policy)
        for bound in plan.binds:
            assert_volumes_are_complete(cluster, bound)
        for pod in cluster.assumed_volumes.by_pod:
            assert cluster.pods.node_names[cluster.pod_row(pod)] is not None
        for bound in plan.binds:
            if draw.random() < 0.3:
                cluster.apply(Unbind(bound.pod))
                queue.bind_failed(bound.pod, bound.node, "conflict", now=now, patience=Patience())
        for eviction in plan.evictions:
            if eviction.change is not None:
                cluster.apply(Remove("Pod", eviction.pod))
