"""Cures of gangs: every cure, applied to a fresh cluster, lets the gang start."""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support import builders
from tests.support.cluster_state import cluster_state
from tests.support.paths import VECTORS
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put
from tutti.conformance import gang_cases as cases
from tutti.engine.explain.cures import find_cures
from tutti.engine.explain.gang_explanation import GangExplanation, explain_gang
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.placement.engine import Engine
from tutti.engine.session.schedule import schedule
from tutti.kube import objects as k
from tutti.kube.objects import pod_groups as g

RECORDED = VECTORS / "gang.jsonl.gz"
RACK = "example.com/rack"
PART = "tutti.dev/sub-group"
Objects = list[k.Object]


def useless_cures(objects: Objects, key: str, explanation: GangExplanation) -> list[str]:
    """Apply every cure to a fresh cluster; return the texts of cures that do not help."""
    wrong = []
    for cure in explanation.cures:
        cluster = Cluster(objects)
        for edit in cure.edits:
            cluster.apply(edit)
        gangs = Gangs(cluster)
        schedule(cluster)
        standing = gangs.state(key, ())
        reached = len(standing.running) >= standing.gang.minimum and not standing.need().least
        if standing.gang.problem is not None or not reached:
            wrong.append(cure.text)
    return wrong


def explained(objects: Objects, key: str = "default/train") -> GangExplanation:
    """Explain a gang; check that the cluster is unchanged and that every cure helps."""
    cluster = Cluster(objects)
    before = cluster_state(cluster)
    explanation = explain_gang(Engine(cluster), key)
    assert cluster_state(cluster) == before
    assert useless_cures(objects, key, explanation) == []
    return explanation


def texts(explanation: GangExplanation, kind: str) -> list[str]:
    return [cure.text for cure in explanation.cures if cure.kind == kind]


# Recorded and random ------------------------------------------------------------------------------------------------


def recorded() -> Iterator[cases.GangCase]:
    if RECORDED.exists():
        for number, line in enumerate(gzip.decompress(RECORDED.read_bytes()).splitlines(), start=1):
            yield cases.read_gang_case(RECORDED.name, number, line)


@pytest.mark.skipif(not RECORDED.exists(), reason="the recorded cases of gangs are not there")
@pytest.mark.parametrize("case", list(recorded()), ids=lambda case: case.name)
def test_cures_of_recorded_gangs(case: cases.GangCase) -> None:
    groups = map(cases._pod_group, case.pod_groups)
    objects: Objects = [*case.nodes, *case.pod_disruption_budgets, *groups, *case.pods]
    for key in Gangs(Cluster(objects)).keys():  # noqa: SIM118 - not a dict
        explained(objects, key)


@given(seed=st.integers(0, 2**32))
def test_cures_of_random_gangs(seed: int) -> None:
    objects = list(random_cluster(random.Random(seed)))
    for key in Gangs(Cluster(objects)).keys():  # noqa: SIM118 - not a dict
        explained(objects, key)


def random_cluster(draw: random.Random) -> Iterator[k.Object]:
    """Yield a few nodes, some tainted or cordoned, pods and a gang on them, and a pending gang."""
    names = [f"n{number}" for number in range(draw.randint(1, 4))]
    for name in names:
        taints = [k.Taint(key="gpu", value=draw.choice((None, "yes")), effect="NoSchedule")]
        yield rack_node(
            name,
            rack=draw.choice((None, "r1", "r2")),
            cpu=draw.choice((2, 4)),
            labels={"disk": draw.choice(("ssd", "hdd"))},
            taints=taints if draw.random() < 0.3 else None,
            unschedulable=draw.random() < 0.2 or None,
        )
    for number in range(draw.randint(0, 5)):
        on = draw.choice(names)
        deleted = "2026-01-01T00:00:00Z" if draw.random() < 0.15 else None
        yield pod(f"solo-{number}", cpu=draw.choice((1, 2)), on=on, priority=draw.choice((0, 10, 100)), deleted=deleted)
    if draw.random() < 0.5:
        yield from gang(draw, "other", names, running=draw.randint(1, 2), waiting=draw.randint(0, 1))
    yield from gang(draw, "train", names, running=draw.choice((0, 0, 1)), waiting=draw.randint(0, 4))


def gang(draw: random.Random, name: str, names: list[str], *, running: int, waiting: int) -> Iterator[k.Object]:
    minimum = max(1, running + waiting + draw.choice((-1, 0, 0, 0, 1)))
    rack = RACK if draw.random() < 0.4 else None
    labels, annotations, group, objects = MAKERS[draw.choice(sorted(MAKERS))](name, minimum, rack)
    if draw.random() > 0.15:
        yield from objects
    spec = {
        "priority": draw.choice((0, 50)),
        "node_selector": {"disk": "ssd"} if draw.random() < 0.2 else None,
        "preemption_policy": "Never" if draw.random() < 0.1 else None,
        "scheduling_group": group,
    }
    cpu = draw.choice((1, 2))
    for number in range(running + waiting):
        if PART in labels:
            labels = labels | {PART: "work" if number else "lead"}
        on = draw.choice(names) if number < running else None
        gates = [k.SchedulingGate(name="wait")] if on is None and draw.random() < 0.1 else None
        about = {"labels": labels, "annotations": annotations}
        yield pod(f"{name}-{number}", cpu=cpu, on=on, scheduling_gates=gates, **about, **spec)


# Dialects -----------------------------------------------------------------------------------------------------------

Made = tuple[dict[str, str], dict[str, str], k.SchedulingGroup | None, Objects]
"""Labels, annotations and group of pods, and objects."""


def coscheduling(name: str, minimum: int, rack: str | None) -> Made:
    meta = k.ObjectMeta(name=name, namespace="default", annotations=near(rack))
    group = g.CoschedulingPodGroup(metadata=meta, spec=g.CoschedulingSpec(min_member=minimum))
    return {"scheduling.x-k8s.io/pod-group": name}, {}, None, [group]


def in_parts(name: str, minimum: int, rack: str | None) -> Made:
    """A leader and workers, of which only the workers are bound to a rack."""
    work = {"name": "work", "minMember": minimum - 1, "topology": {"required": rack} if rack else {}}
    annotations = {"tutti.dev/sub-groups": json.dumps([{"name": "lead", "minMember": 1}, work])}
    labels, _, _, (group,) = coscheduling(name, minimum, None)
    return (
        labels | {PART: "work"},
        {},
        None,
        [replace(group, metadata=replace(group.metadata, annotations=annotations))],
    )


def volcano(name: str, minimum: int, rack: str | None) -> Made:
    meta = k.ObjectMeta(name=name, namespace="default", annotations=near(rack))
    group = g.VolcanoPodGroup(metadata=meta, spec=g.VolcanoSpec(min_member=minimum))
    return {}, {"scheduling.k8s.io/group-name": name}, None, [group]


def kai(name: str, minimum: int, rack: str | None) -> Made:
    topology = g.KaiTopology(required_topology_level=rack)
    spec = g.KaiSpec(min_member=minimum, topology_constraint=topology)
    group = g.KaiPodGroup(metadata=k.ObjectMeta(name=name, namespace="default"), spec=spec)
    return {}, {"pod-group-name": name}, None, [group]


def native(name: str, minimum: int, rack: str | None) -> Made:
    constraints = g.SchedulingConstraints(topology=[g.TopologyConstraint(key=rack)]) if rack else None
    policy = g.SchedulingPolicy(gang=g.GangPolicy(min_count=minimum))
    template = g.GroupTemplate(name="t", scheduling_policy=policy, scheduling_constraints=constraints)
    meta = k.ObjectMeta(name=name, namespace="default")
    workload = g.Workload(metadata=meta, spec=g.WorkloadTemplates(pod_group_templates=[template]))
    ref = g.WorkloadReference(workload_name=name, template_name="t")
    group = g.PodGroup(metadata=meta, spec=g.GroupSpec(workload_ref=ref))
    return {}, {}, k.SchedulingGroup(pod_group_name=name), [workload, group]


def kueue(name: str, minimum: int, rack: str | None) -> Made:
    domain = "kueue.x-k8s.io/"
    annotations = {f"{domain}pod-group-total-count": str(minimum)}
    return (
        {f"{domain}pod-group-name": name},
        annotations | ({f"{domain}podset-required-topology": rack} if rack else {}),
        None,
        [],
    )


def fluence(name: str, minimum: int, rack: str | None) -> Made:
    return {"fluence.group": name, "fluence.group-size": str(minimum)}, near(rack) or {}, None, []


def annotation(name: str, minimum: int, rack: str | None) -> Made:
    return {}, {"pod-group": name, **(near(rack) or {})}, None, []


MAKERS: dict[str, Callable[[str, int, str | None], Made]] = {
    made.__name__: made for made in (coscheduling, volcano, kai, native, kueue, fluence, annotation, in_parts)
}


def near(rack: str | None) -> dict[str, str] | None:
    return {"tutti.dev/topology-required": rack} if rack else None


def rack_node(name: str, *, rack: str | None = None, labels: dict[str, str] | None = None, **how: Any) -> k.Node:
    """A node in a rack."""
    return builders.node(name, labels={**({RACK: rack} if rack else {}), **(labels or {})}, **how)


pod = partial(builders.pod, cpu=2)


def members(made: Made, count: int, *, first: int = 0, **fields) -> Objects:
    labels, annotations, group, _ = made
    about = {"labels": labels, "annotations": annotations, "scheduling_group": group}
    return [pod(f"train-{n}", **about, **fields) for n in range(first, first + count)]


@pytest.mark.parametrize("dialect", sorted(MAKERS.keys() - {"in_parts"}))
def test_three_of_four_in_every_dialect(dialect: str) -> None:
    """Each rack has room for three of four pods."""
    made = MAKERS[dialect]("train", 4, RACK)
    nodes = [rack_node(f"n{n}", rack=f"r{n // 2}", cpu=4 if n % 2 else 2) for n in range(4)]
    explanation = explained([*nodes, *made[3], *members(made, 4)])
    assert (explanation.outcome.best, explanation.outcome.wanted, explanation.outcome.where) == (3, 4, {RACK: "r0"})
    assert [(d.name, d.nodes, d.fits) for d in explanation.domains] == [("r0", 2, 3), ("r1", 2, 3)]
    assert texts(explanation, "topology") == [f"drop its required topology {RACK}"]
    assert texts(explanation, "minimum") == ["lower its minimum from 4 to 3"]
    assert texts(explanation, "nodes")[0] == f"add 1 node like n0 (in {RACK} r0)"


@pytest.mark.parametrize("dialect", ["coscheduling", "volcano", "kai", "native"])
def test_a_missing_group_is_made(dialect: str) -> None:
    made = MAKERS[dialect]("train", 2, None)
    explanation = explained([rack_node("a"), *members(made, 2)])
    kind, size = ("PodGroup", "minCount" if dialect == "native" else "minMember")
    assert [cure.text for cure in explanation.cures] == [f"create {kind} default/train with {size} 2"]
    explanation = explained([rack_node("a", cpu=2), *members(made, 2)])
    assert f"create PodGroup default/train with {size} 2, and add 1 node like a" in texts(explanation, "nodes")


@pytest.mark.parametrize("dialect", ["coscheduling", "native", "volcano", "kai"])
def test_a_raised_priority(dialect: str) -> None:
    made = MAKERS[dialect]("train", 2, None)
    objects = [
        rack_node("a"),
        rack_node("b", cpu=2),
        pod("low", on="a", priority=7),
        *members(made, 1, on="b", priority=5),
    ]
    explanation = explained([*objects, *members(made, 2, first=1, priority=5), *with_minimum(made[3], 3)])
    assert texts(explanation, "priority") == ["raise its priority above 7; it then evicts low"]
    assert texts(explanation, "evict") == ["evict low (priority 7)"]


def with_minimum(objects: Objects, minimum: int) -> Objects:
    """Return the same groups with another minimum."""
    cluster = Cluster(objects)
    from tutti.engine.explain.group_edits import with_minimum as changed

    new = {(o.KIND, o.key): o for o in changed(objects, [], minimum, lambda kind, key: cluster.objects[kind].get(key))}
    return [new.get((o.KIND, o.key), o) for o in objects]


# Kinds of cures -----------------------------------------------------------------------------------------------------


def test_taints_cordons_and_selectors() -> None:
    made = coscheduling("train", 2, None)
    taint = k.Taint(key="gpu", effect="NoSchedule")
    objects = [rack_node("a", cpu=2), *made[3], *members(made, 2)]
    explanation = explained([*objects, rack_node("b", taints=[taint])])
    assert texts(explanation, "toleration") == ["let its pods tolerate gpu:NoSchedule (on 1 node)"]
    explanation = explained([*objects, rack_node("b", cpu=1, unschedulable=True), rack_node("c", unschedulable=True)])
    assert texts(explanation, "uncordon") == ["uncordon c"]
    picky = members(made, 2, node_selector={"disk": "ssd"})
    explanation = explained([rack_node("a"), *made[3], *picky])
    assert texts(explanation, "nodeSelector") == ["drop nodeSelector disk=ssd of its pods"]
    assert not texts(explanation, "nodes")


def test_gates_then_pods_then_room() -> None:
    made = coscheduling("train", 3, None)
    gated = members(made, 1, scheduling_gates=[k.SchedulingGate(name="quota")])
    explanation = explained([rack_node("a"), *made[3], *gated, *members(made, 1, first=1)])
    (cure,) = texts(explanation, "nodes")
    expected = "remove the scheduling gate quota of 1 pod, and create 1 more pod like train-0, and add 1 node like a"
    assert cure == expected


def test_a_toleration_after_which_the_gang_evicts() -> None:
    made = coscheduling("train", 2, None)
    taint = k.Taint(key="gpu", value="a", effect="NoSchedule")
    busy = [rack_node("a", taints=[taint]), pod("low", cpu=4, on="a")]
    explanation = explained([*busy, *made[3], *members(made, 2, priority=9)])
    assert texts(explanation, "toleration") == [
        "let its pods tolerate gpu=a:NoSchedule (on 1 node); it then evicts low"
    ]


def test_own_system_and_daemon_pods_are_not_evicted() -> None:
    made = coscheduling("train", 3, None)
    own = members(made, 1, on="a")
    rest = [rack_node("a"), *made[3], *own, *members(made, 2, first=1)]
    for other in (
        pod("system", on="a", priority=2_000_000_000),
        pod("daemon", on="a", owner=("DaemonSet", "d")),
    ):
        explanation = explained([*rest, other])
        assert not texts(explanation, "evict")
    explanation = explained([*rest, pod("solo", on="a")])
    assert not texts(explanation, "evict")  # only one of two would fit
    explanation = explained([*rest, rack_node("b"), pod("solo", cpu=4, on="b"), pod("other", on="a")])
    assert texts(explanation, "evict") == ["evict solo (priority 0)"]


def test_cures_that_combine_two_changes() -> None:
    made = coscheduling("train", 2, None)
    taint = k.Taint(key="gpu", effect="NoSchedule")
    system = pod("system", on="a", priority=2_000_000_000)
    explanation = explained(
        [rack_node("a", taints=[taint]), system, *made[3], *members(made, 2, node_selector={"disk": "ssd"})]
    )
    assert explanation.cures == ()
    explanation = explained([rack_node("a", cpu=2, taints=[taint]), *made[3], *members(made, 2)])
    assert [cure.text for cure in explanation.cures] == [
        "let its pods tolerate gpu:NoSchedule (on 1 node), and add 1 node like a"
    ]


def test_waiting_for_terminating_pods() -> None:
    made = coscheduling("train", 2, None)
    leaving = pod("old", on="a", deleted="2026-01-01T00:00:00Z")
    explanation = explained([rack_node("a"), leaving, *made[3], *members(made, 2)])
    assert explanation.outcome.state == "leaving"
    explanation = explained([rack_node("a"), leaving, *made[3], *members(made, 2, preemption_policy="Never")])
    assert "wait until old has left" in texts(explanation, "wait")


def test_no_cure() -> None:
    made = coscheduling("train", 2, None)
    other = replace(made[3][0], spec=g.CoschedulingSpec(min_member=2))
    objects = [rack_node("a"), other, *members(made, 1, cpu=8), *members(made, 1, first=1, cpu=9)]
    cluster = Cluster(objects)
    assert find_cures(Engine(cluster), "default/train") == ()
    cluster.apply(Put(pod("extra")))
    assert explained(objects).cures == ()
