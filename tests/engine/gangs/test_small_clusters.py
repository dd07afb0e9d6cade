"""Small clusters in which gangs were once scheduled wrongly; most were found by brute force."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest

from tests.support import builders
from tests.support.brute_force.gang_instances import instance
from tests.support.brute_force.gang_search import Instance, Job, Machine, Team
from tests.support.brute_force.gang_verdicts import Verdict, verdict_of
from tests.support.builders import HOSTNAME
from tutti.cluster.cluster import Cluster
from tutti.engine.session.schedule import schedule
from tutti.kube import objects as k

START = "2027-01-15T08:00:00Z"


def machine(name: str, cpu: int, rack: str | None = None) -> Machine:
    return Machine(name, (cpu * 1000, 65536, 0, 110), rack=rack)


def job(name: str, cpu: int, part: str = "", *, on: str | None = None) -> Job:
    return Job(name, (cpu * 1000, 1024, 0, 1), 10, 0, on, "new", part)


def other_job(name: str, cpu: int, on: str, **fields: object) -> Job:
    return Job(name, (cpu * 1000, 1024, 0, 1), machine=on, **fields)


SMALL_CLUSTERS = {
    "a running member pins the rack, and a pod must be evicted": Instance(
        (machine("n", 2, "r"),),
        (job("a", 1, on="n"), other_job("low", 1, "n"), job("b", 1)),
        (Team("new", 2, required="rack"),),
    ),
    "a part has no room in any rack before evictions": Instance(
        (machine("n", 4, "r"),),
        (other_job("low", 2, "n"), job("b", 3, "b"), replace(job("own", 1), tolerates=True)),
        (Team("new", 2, parts=(("b", 1, "rack"),)),),
    ),
    "the gang misses more pods than fit, and cannot start": Instance(
        (machine("n", 2),),
        (job("a1", 1, "a"), job("a2", 5, "a"), job("own", 1)),
        (Team("new", 3, parts=(("a", 1, None),)),),
    ),
    "a pod of a part counts for the minimum where a pod without a part does not fit": Instance(
        (machine("n", 2),),
        (job("a1", 1, "a"), job("a2", 1, "a"), job("own", 5)),
        (Team("new", 2, parts=(("a", 1, None),)),),
    ),
    "two small pods of a part instead of a large pod": Instance(
        (machine("n", 2),),
        (job("a1", 2, "a"), job("a2", 1, "a"), job("a3", 1, "a")),
        (Team("new", 2, parts=(("a", 1, None),)),),
    ),
    "above the minimums of parts, any pod that fits": Instance(
        (machine("n", 3), machine("m", 2)),
        (job("a1", 2, "a"), job("a2", 2, "a"), job("b1", 3, "b"), job("b2", 1, "b")),
        (Team("new", 3, parts=(("a", 1, None), ("b", 1, None))),),
    ),
    "no pod is evicted where the gang fits without evictions": Instance(
        (machine("n", 3),),
        (other_job("low", 1, "n"), job("a1", 2, "a"), job("a2", 1, "a"), job("a3", 1, "a")),
        (Team("new", 2, parts=(("a", 1, None),)),),
    ),
}


@pytest.mark.parametrize("name", SMALL_CLUSTERS)
def test_small_cluster(name: str) -> None:
    assert verdict_of(SMALL_CLUSTERS[name]) == Verdict()


@pytest.mark.parametrize(
    "name",
    [
        "5/391",  # all ten pods must be evicted
        "5/2560",  # more eviction units than are tried in every combination
    ],
)
def test_drawn_cluster(name: str) -> None:
    seed, number = map(int, name.split("/"))
    assert verdict_of(instance(seed, number)) == Verdict()


# Cases found in review ------------------------------------------------------------------------------------------------


node = partial(builders.node, memory="64Gi")
pod = partial(builders.pod, cpu="4", memory="1Gi", priority=0, created=START)
members = partial(builders.members, memory="1Gi", priority=0, created=START)


def test_a_pod_with_the_name_of_a_gang_evicts_it() -> None:
    cluster = Cluster((node("a"), *members("g", 2, cpu="2", on="a", started=START), pod("g", cpu="4", priority=10)))
    plan = schedule(cluster)
    assert {each.pod for each in plan.evictions} == {"default/g-0", "default/g-1"}


def test_pods_that_differ_in_their_own_terms_only_are_not_alike() -> None:
    near = builders.near("x", HOSTNAME)
    first = pod("m-0", gang="m", cpu="1", affinity=near)
    second = pod("m-1", gang="m", cpu="1", app="x", affinity=near)
    assert len(schedule(Cluster((node("a"), node("b"), first, second))).binds) == 2


def test_an_invalid_claim_is_reported_as_a_reason() -> None:
    claim = k.PersistentVolumeClaim(
        metadata=k.ObjectMeta(name="c", namespace="default"),
        spec=k.ClaimSpec(storage_class_name="w"),
        status=k.ClaimStatus(phase="Pending"),
    )
    volume = k.Volume(name="v", persistent_volume_claim=k.ClaimVolume(claim_name="c"))
    storage = k.StorageClass(metadata=k.ObjectMeta(name="w"), provisioner="x")
    cluster = Cluster(
        (node("a"), storage, claim, pod("g-0", gang="g", cpu="1"), pod("g-1", gang="g", volumes=[volume]))
    )
    plan = schedule(cluster)
    assert not plan.binds
    assert "VolumeBindingMode" in plan.gangs[0].message


def test_a_gang_of_many_kinds_and_pods_is_not_searched_too_deeply() -> None:
    nodes = [node(f"n{i:02}", cpu="62") for i in range(20)]
    many = members("g", 1200, cpu="1")
    pinned = [pod(f"pinned-{i}", gang="g", cpu="500m", node_selector={HOSTNAME: "n00"}) for i in range(124)]
    assert not schedule(Cluster((*nodes, *many, *pinned))).binds


def test_the_maximum_counts_running_pods_only() -> None:
    two = partial(pod, gang="g", annotations={"tutti.dev/min-member": "1", "tutti.dev/max-member": "2"})
    pods = [two("g-0", cpu="1", on="a", started=START), two("g-1", cpu="8"), two("g-2", cpu="1"), two("g-3", cpu="1")]
    plan = schedule(Cluster((node("a"), *pods)))
    assert [each.pod for each in plan.binds] == ["default/g-2"]
    assert {each.pod: each.message for each in plan.unschedulable}[
        "default/g-3"
    ] == "the gang already has its maximum of 2 pods"
