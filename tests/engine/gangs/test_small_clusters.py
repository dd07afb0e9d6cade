"""Clusters of a node or two in which gangs once went wrong; each was found by trying everything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as changed

from tests.engine.session.test_session import node as a_node
from tests.engine.session.test_session import pod as session_pod
from tests.support.brute_force import Instance, Job, Machine, Team
from tests.support.gang_instances import Verdict, instance, judged
from tutti.cluster.cluster import Cluster
from tutti.engine.session.schedule import schedule
from tutti.kube import objects as k


def machine(name: str, cpu: int, rack: str | None = None) -> Machine:
    return Machine(name, (cpu * 1000, 65536, 0, 110), rack=rack)


def job(name: str, cpu: int, part: str = "", *, on: str | None = None) -> Job:
    return Job(name, (cpu * 1000, 1024, 0, 1), 10, 0, on, "new", part)


def other(name: str, cpu: int, on: str, **fields: object) -> Job:
    return Job(name, (cpu * 1000, 1024, 0, 1), machine=on, **fields)


SMALL = {
    "a running member pins the rack, and somebody has to go": Instance(
        (machine("n", 2, "r"),),
        (job("a", 1, on="n"), other("low", 1, "n"), job("b", 1)),
        (Team("new", 2, required="rack"),),
    ),
    "a part finds no room in any rack before the other pods were looked at": Instance(
        (machine("n", 4, "r"),),
        (other("low", 2, "n"), job("b", 3, "b"), replace(job("own", 1), tolerates=True)),
        (Team("new", 2, parts=(("b", 1, "rack"),)),),
    ),
    "the gang lacks more than its own pods, and cannot start": Instance(
        (machine("n", 2),),
        (job("a1", 1, "a"), job("a2", 5, "a"), job("own", 1)),
        (Team("new", 3, parts=(("a", 1, None),)),),
    ),
    "a pod of a part makes up the minimum where one of none does not fit": Instance(
        (machine("n", 2),),
        (job("a1", 1, "a"), job("a2", 1, "a"), job("own", 5)),
        (Team("new", 2, parts=(("a", 1, None),)),),
    ),
    "two small pods of a part rather than a large one": Instance(
        (machine("n", 2),),
        (job("a1", 2, "a"), job("a2", 1, "a"), job("a3", 1, "a")),
        (Team("new", 2, parts=(("a", 1, None),)),),
    ),
    "beyond the minimums of parts, whichever pod fits": Instance(
        (machine("n", 3), machine("m", 2)),
        (job("a1", 2, "a"), job("a2", 2, "a"), job("b1", 3, "b"), job("b2", 1, "b")),
        (Team("new", 3, parts=(("a", 1, None), ("b", 1, None))),),
    ),
    "nobody goes where the gang fits without": Instance(
        (machine("n", 3),),
        (other("low", 1, "n"), job("a1", 2, "a"), job("a2", 1, "a"), job("a3", 1, "a")),
        (Team("new", 2, parts=(("a", 1, None),)),),
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_small(name: str) -> None:
    assert judged(SMALL[name]) == Verdict()


@pytest.mark.parametrize(
    "name",
    [
        "5/391",  # all ten have to go, and nothing less will do
        "5/2560",  # more units than are tried in every combination
    ],
)
def test_drawn(name: str) -> None:
    seed, number = map(int, name.split("/"))
    assert judged(instance(seed, number)) == Verdict()


# Found in review ------------------------------------------------------------------------------------------------------


def a_pod(
    name: str,
    *,
    gang: str | None = None,
    cpu: str = "4",
    priority: int = 0,
    on: str | None = None,
    labels: dict[str, str] | None = None,
    **spec: object,
) -> k.Pod:
    made = session_pod(name, gang=gang, cpu=cpu, priority=priority, on=on)
    return changed(made, metadata=changed(made.metadata, labels=labels), spec=changed(made.spec, **spec))


def members(name: str, size: int, *, cpu: str, on: str | None = None) -> list[k.Pod]:
    return [a_pod(f"{name}-{number}", gang=name, cpu=cpu, on=on) for number in range(size)]


def test_a_pod_with_the_name_of_a_gang_evicts_it() -> None:
    cluster = Cluster((a_node("a"), *members("g", 2, cpu="2", on="a"), a_pod("g", cpu="4", priority=10)))
    plan = schedule(cluster)
    assert {each.pod for each in plan.evictions} == {"default/g-0", "default/g-1"}


def test_pods_that_only_their_own_terms_tell_apart_are_not_alike() -> None:
    selector = k.LabelSelector(match_labels={"role": "x"})
    term = k.PodAffinityTerm(label_selector=selector, topology_key="kubernetes.io/hostname")
    near = k.Affinity(pod_affinity=k.PodAffinity(required=[term]))
    first = a_pod("m-0", gang="m", cpu="1", affinity=near)
    second = a_pod("m-1", gang="m", cpu="1", labels={"role": "x"}, affinity=near)
    assert len(schedule(Cluster((a_node("a"), a_node("b"), first, second))).binds) == 2


def test_a_claim_that_cannot_be_read_is_a_reason_and_no_crash() -> None:
    claim = k.PersistentVolumeClaim(
        metadata=k.ObjectMeta(name="c", namespace="default"),
        spec=k.ClaimSpec(storage_class_name="w"),
        status=k.ClaimStatus(phase="Pending"),
    )
    volume = k.Volume(name="v", persistent_volume_claim=k.ClaimVolume(claim_name="c"))
    storage = k.StorageClass(metadata=k.ObjectMeta(name="w"), provisioner="x")
    cluster = Cluster(
        (a_node("a"), storage, claim, a_pod("g-0", gang="g", cpu="1"), a_pod("g-1", gang="g", volumes=[volume]))
    )
    plan = schedule(cluster)
    assert not plan.binds
    assert "VolumeBindingMode" in plan.gangs[0].message


def test_a_gang_of_many_kinds_and_pods_is_not_searched_too_deeply() -> None:
    nodes = [a_node(f"n{i:02}", cpu="62") for i in range(20)]
    many = members("g", 1200, cpu="1")
    pinned = [
        a_pod(f"pinned-{i}", gang="g", cpu="500m", node_selector={"kubernetes.io/hostname": "n00"}) for i in range(124)
    ]
    assert not schedule(Cluster((*nodes, *many, *pinned))).binds


def test_the_maximum_counts_who_runs_and_not_who_waits() -> None:
    said = {"pod-group": "g", "tutti.dev/min-member": "1", "tutti.dev/max-member": "2"}
    pods = [a_pod("g-0", cpu="1", on="a"), a_pod("g-1", cpu="8"), a_pod("g-2", cpu="1"), a_pod("g-3", cpu="1")]
    pods = [changed(each, metadata=changed(each.metadata, annotations=said)) for each in pods]
    plan = schedule(Cluster((a_node("a"), *pods)))
    assert [each.pod for each in plan.binds] == ["default/g-2"]
    assert {each.pod: each.message for each in plan.unschedulable}["default/g-3"] == "the gang has its 2 pods"
