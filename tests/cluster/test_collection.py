"""Collection: nothing that a cluster answers changes, and nothing that nobody refers to stays."""

from __future__ import annotations

import random
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.support.builders import HOSTNAME, ZONE, apart, members, near, node, pod, spread
from tests.support.cluster_state import answers, cluster_state, rebuilt
from tests.support.random_clusters import RandomCluster
from tests.support.random_gang_clusters import RandomGangCluster
from tutti.cluster import collection, node_table
from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import RowLog
from tutti.cluster.edits import Bind, Put, Remove
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.placer import GangPlacer
from tutti.engine.placement.engine import Engine
from tutti.engine.session.policy import OFFLINE
from tutti.engine.session.schedule import schedule
from tutti.engine.session.session import session
from tutti.exceptions import ConflictError, NotFoundError
from tutti.kube import objects as k

SEQUENCES, EDITS = 10, 150
GANG_SEQUENCES, GANG_STEPS = 12, 24


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give back everything that is unused, and every label column, at every collection."""
    for name in ("_MIN_NEW", "_NEW_PER_POD", "_NEW_PER_ENTRY"):
        monkeypatch.setattr(collection, name, 0)
    monkeypatch.setattr(collection, "_SPARE_KEYS", -(10**6))
    for name in ("_SPARE_TAINT_SETS", "_SPARE_VALUES", "_SPARE_COLUMNS"):
        monkeypatch.setattr(node_table, name, -(10**6))


def apply(cluster: Cluster, drawn: RandomCluster) -> None:
    """Apply an edit, if it does not contradict the cluster."""
    with suppress(ConflictError, NotFoundError):
        cluster.apply(drawn.edit(cluster))


def counts(cluster: Cluster, other: Cluster) -> dict[object, object]:
    """Return the pods per node of every counter of another cluster, and of every term that pods carry."""
    rows = {name: row for name, row in cluster.nodes.row_of.items() if cluster.pods_on_row[row]}
    found: dict[object, object] = {}
    for key in other.labels.counters:
        column = cluster.pod_counters.counter(key).column
        found[key] = {name: int(column[row]) for name, row in rows.items()}
    for term in cluster.labels.carried_terms.values():
        if term.total:
            found[term.key] = {name: int(term.column[row]) for name, row in rows.items()}
    return found


def assert_only_used_entries(cluster: Cluster) -> None:
    """Check that every entry of the registries is in use; there has been an eager collection just before."""
    pods, rows = cluster.pods, list(cluster.pods.row_of.values())
    specs, labels = set(pods.spec[rows].tolist()), set(pods.labels[rows].tolist())
    assert set(cluster.specs.classes) == specs
    assert set(cluster.labels.classes) == labels
    assert all(counter.specs and counter.specs <= specs for counter in cluster.labels.counters.values())
    for label_class in cluster.labels.classes.values():
        assert all(cluster.labels.counters[counter.key] is counter for counter in label_class.counters)
    assert cluster.pod_counters._carried_terms.keys() <= specs
    assert cluster.pod_counters._watched_specs <= specs
    assert cluster.pod_updates._usage_of_spec.keys() <= specs
    assert sorted(cluster.usages._numbers.values()) == sorted(set(pods.usage[rows].tolist()))
    nodes = cluster.nodes
    assert set(nodes._taint_ids.values()) == {0, *nodes.taints.tolist()}
    assert not nodes.labels
    groups = cluster.groups
    assert set(groups.number_of.values()) == set(groups.finished) | {n for n, rows in enumerate(groups.members) if rows}


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(SEQUENCES))
def test_a_collected_cluster_answers_as_one_built_from_scratch(seed: int) -> None:
    drawn, draw = RandomCluster(seed, ports=False), random.Random(seed)
    cluster = Cluster(drawn.objects())
    engine = Engine(cluster)
    for number in range(EDITS):
        apply(cluster, drawn)
        if draw.random() < 0.5:
            cluster.collect()
            assert_only_used_entries(cluster)
        fresh = rebuilt(cluster)
        assert cluster_state(cluster) == cluster_state(fresh), number
        assert answers(cluster, engine, most=2) == answers(fresh, Engine(fresh), most=2), number
        assert counts(cluster, cluster) == counts(fresh, cluster), number


@pytest.mark.usefixtures("eager")
@given(seed=st.integers(0, 10**6), before=st.integers(0, 20), tried=st.integers(1, 15))
@settings(max_examples=30)
def test_rollback_after_a_collection_restores_the_state(seed: int, before: int, tried: int) -> None:
    drawn = RandomCluster(seed)
    cluster = Cluster(drawn.objects())
    engine = Engine(cluster)
    for _ in range(before):
        apply(cluster, drawn)
    answers(cluster, engine)
    cluster.collect()
    seen, before_answers = cluster_state(cluster), answers(cluster, engine)
    for _ in range(2):
        mark = cluster.mark()
        for _ in range(tried):
            apply(cluster, drawn)
        answers(cluster, engine)
        cluster.rollback(mark)
        assert cluster_state(cluster) == seen
        assert answers(cluster, engine) == before_answers
        cluster.collect()


@pytest.mark.usefixtures("eager")
@given(seed=st.integers(0, 10**6), edits=st.integers(0, 25))
@settings(max_examples=30)
def test_a_copy_and_its_original_are_collected_independently(seed: int, edits: int) -> None:
    drawn = RandomCluster(seed, ports=False)
    cluster = Cluster(drawn.objects())
    engine = Engine(cluster)
    answers(cluster, engine)
    cluster.collect()
    twin = cluster.copy()
    twin_engine = Engine(twin)
    for number in range(edits):
        apply(twin, drawn)
        apply(cluster, drawn)
        (twin if number % 2 else cluster).collect()
    for each, its_engine in ((cluster, engine), (twin, twin_engine)):
        fresh = rebuilt(each)
        assert cluster_state(each) == cluster_state(fresh)
        assert answers(each, its_engine) == answers(fresh, Engine(fresh))
        assert counts(each, each) == counts(fresh, each)


def gang_state(cluster: Cluster, gangs: Gangs) -> object:
    """Return gangs, members and parts, by names."""
    names = cluster.pods.keys
    keys = gangs.keys()
    return [(gangs.gang(key), {names[row]: part for row, part in gangs.parts_of(key).items()}) for key in keys]


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("seed", range(GANG_SEQUENCES))
def test_collected_gangs_are_planned_as_in_a_cluster_built_from_scratch(seed: int) -> None:
    """Gangs come, go and come back under the same name; one engine and its gangs follow."""
    drawn, draw = RandomGangCluster(f"collection {seed}"), random.Random(seed)
    cluster = Cluster(drawn.objects)
    engine, gangs = Engine(cluster), Gangs.of(cluster)
    for step in range(GANG_STEPS):
        name = f"later-{draw.randrange(4)}"
        for obj in [*drawn.pods, *drawn.groups]:
            if obj.metadata.name.startswith(name) or draw.random() < 0.1:
                cluster.apply(Remove(obj.KIND, obj.key))
        if draw.random() < 0.6:
            first_pod, first_group = len(drawn.pods), len(drawn.groups)
            drawn.add(drawn.draw_gang(name), running=draw.random() < 0.5)
            for obj in [*drawn.groups[first_group:], *drawn.pods[first_pod:]]:
                cluster.apply(Put(obj))
        if draw.random() < 0.3:  # label values get other numbers when their column is built again
            changed = draw.choice(drawn.nodes)
            if changed.metadata.name in cluster.nodes.row_of:
                cluster.apply(Remove("Node", changed.metadata.name))
            if draw.random() < 0.8:
                cluster.apply(Put(changed))
        if draw.random() < 0.7:
            cluster.collect()
            assert_only_used_entries(cluster)
        fresh = rebuilt(cluster)
        assert gang_state(cluster, gangs) == gang_state(fresh, Gangs(fresh)), step
        mark = cluster.mark()
        plan = session(engine, None, None, OFFLINE)
        cluster.rollback(mark)
        assert plan == schedule(fresh), step


# Single registries ----------------------------------------------------------------------------------------------------


def test_a_cluster_with_an_open_mark_is_not_collected() -> None:
    cluster = Cluster()
    mark = cluster.mark()
    with pytest.raises(ConflictError, match="open mark"):
        cluster.collect()
    cluster.rollback(mark)
    assert cluster.collect() == 0


def job(number: int) -> list[k.Pod]:
    """Return the pods of a Job whose rules name the Job, and whose size and node labels no other Job has."""
    name = f"job-{number}"
    rules = ({"affinity": apart(name)}, {"affinity": near(name)}, {"topology_spread_constraints": [spread(name)]})
    return [
        pod(
            f"{name}-{index}", f"{100 + number % 400}m", app=name, annotations={"pod-group": name},
            node_selector={f"only-{number}": "x"} if number % 10 == 0 else None, **rules[number % 3],
        )
        for index in range(2)
    ]  # fmt: skip


def test_short_lived_objects_leave_nothing() -> None:
    """Without changed thresholds: registries and caches stay small however much passes through."""
    cluster = Cluster([node(f"node-{number}", cpu=16) for number in range(5)])
    engine, gangs = Engine(cluster), Gangs.of(cluster)
    for number in range(3_000):
        pods = job(number)
        for each in pods:
            cluster.apply(Put(each))
        engine.place([each.key for each in pods])
        gangs.keys()
        name = f"new-{number}"
        taint = k.Taint(key="since", value=str(number), effect="NoSchedule")
        cluster.apply(Put(node(name, labels={HOSTNAME: name}, taints=[taint])))
        for each in pods:
            cluster.apply(Remove("Pod", each.key))
        cluster.apply(Remove("Node", name))
        if number % 50 == 49:
            cluster.collect()
    assert collection_sizes(cluster) < 1_000
    assert len(engine.evaluator._row_cache_of) < 500
    assert len(engine.evaluator._node_caches) < 100
    assert len(cluster.nodes.taint_sets) < 200
    assert len(cluster.nodes.column(HOSTNAME).values) < 200
    assert len(cluster.nodes.labels) < 100
    assert len(cluster.groups.keys) < 100
    assert len(gangs._groups_of) < 100
    assert len(cluster.usages.matrix) <= 512


def collection_sizes(cluster: Cluster) -> int:
    """Return the number of classes, counters and terms."""
    labels = cluster.labels
    return len(cluster.specs.classes) + len(labels.classes) + len(labels.counters) + len(labels.carried_terms)


def test_a_quiet_collection_does_nothing() -> None:
    cluster = Cluster([node("a"), *(pod(f"p{number}", f"{number + 1}m") for number in range(1_000))])
    cluster.collect()
    count, generation = cluster.meter.count, cluster.specs.generation
    assert cluster.collect() == 0
    assert (cluster.meter.count, cluster.specs.generation) == (count, generation)


@pytest.mark.usefixtures("eager")
def test_spec_and_label_numbers_are_never_used_again() -> None:
    cluster = Cluster([node("a")])
    seen: set[tuple[str, int]] = set()
    for number in range(5):
        cluster.apply(Put(pod(f"p{number}", f"{number + 1}m", app=f"app-{number}", affinity=apart(f"app-{number}"))))
        cluster.pod_counters.label_class_of(cluster.pod_row(f"default/p{number}"))
        row = cluster.pod_row(f"default/p{number}")
        numbers = {("spec", int(cluster.pods.spec[row])), ("labels", int(cluster.pods.labels[row]))}
        assert not numbers & seen
        seen |= numbers
        cluster.apply(Remove("Pod", f"default/p{number}"))
        cluster.collect()
    copied = cluster.copy()
    for each, cpu in ((cluster, "7m"), (copied, "8m")):
        each.apply(Put(pod("q", cpu)))
    assert cluster.pods.spec[cluster.pod_row("default/q")] != copied.pods.spec[copied.pod_row("default/q")]


@pytest.mark.usefixtures("eager")
def test_a_usage_number_is_used_again_for_another_usage() -> None:
    cluster = Cluster([node("a", cpu=4)])
    for cpu in ("1", "2", "3"):
        cluster.apply(Put(pod("p", cpu)))
        cluster.apply(Bind("default/p", "a"))
        assert cluster.nodes.used[0, cluster.node_row("a")] == 1000 * int(cpu)
        cluster.apply(Remove("Pod", "default/p"))
        cluster.collect()
    assert len(cluster.usages._keys) == 1


def test_a_group_number_is_used_again_with_a_higher_version() -> None:
    cluster = Cluster([node("a"), *members("old", 3)])
    gangs = Gangs.of(cluster)
    assert gangs.keys() == ["default/old"]
    number, version = cluster.groups.number_of["default/old"], gangs.version("default/old")
    place = gangs.roots_of(np.array([number], dtype=np.int32))[0]
    assert gangs.root_keys[place] == "default/old"
    for each in members("old", 3):
        cluster.apply(Remove("Pod", each.key))
    cluster.collect()
    assert gangs.keys() == []
    for each in members("new", 2):
        cluster.apply(Put(each))
    assert cluster.groups.number_of["default/new"] == number
    assert gangs.keys() == ["default/new"]
    assert gangs.gang("default/new").minimum == 2
    assert gangs.version("default/new") > version
    place = gangs.roots_of(np.array([number], dtype=np.int32))[0]
    assert gangs.root_keys[place] == "default/new"


def test_gangs_that_missed_log_entries_are_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowLog.__init__, "__defaults__", (1024,))
    cluster = Cluster([node("a"), *members("first", 2), *members("second", 2)])
    gangs = Gangs.of(cluster)
    assert gangs.gang("default/first").minimum == 2
    cluster.apply(Remove("Pod", "default/first-0"))
    churned = members("second", 1)[0]
    for _ in range(1_500):
        cluster.apply(Remove("Pod", churned.key))
        cluster.apply(Put(churned))
    assert gangs.gang("default/first") == Gangs(cluster).gang("default/first")
    assert gangs.gang("default/first").minimum == 1


@pytest.mark.usefixtures("eager")
def test_succeeded_members_keep_their_group() -> None:
    cluster = Cluster([node("a"), *members("g", 2)])
    for each in members("g", 2):
        cluster.apply(Put(replace(each, status=k.PodStatus(phase="Succeeded"))))
    cluster.collect()
    assert len(cluster.groups.finished[cluster.groups.number_of["default/g"]]) == 2
    for each in members("g", 2):
        cluster.apply(Remove("Pod", each.key))
    cluster.collect()
    assert not cluster.groups.number_of


@pytest.mark.usefixtures("eager")
def test_label_keys_that_no_selector_reads_no_longer_split_classes() -> None:
    cluster = Cluster([node("a"), *(pod(f"p{number}", labels={"unique": str(number)}) for number in range(9))])
    reader = pod("reader", affinity=k.Affinity(pod_anti_affinity=k.PodAffinity(required=[
        k.PodAffinityTerm(topology_key=HOSTNAME, label_selector=k.LabelSelector(match_labels={"unique": "3"})),
    ])))  # fmt: skip
    cluster.apply(Put(reader))
    Engine(cluster).decide(reader.key)
    plain = [cluster.pod_row(f"default/p{number}") for number in range(9)]
    assert len(np.unique(cluster.pods.labels[plain])) == 9
    cluster.apply(Remove("Pod", reader.key))
    cluster.collect()
    assert len(np.unique(cluster.pods.labels[plain])) == 1
    assert not cluster.labels.watched


@pytest.mark.usefixtures("eager")
def test_a_counter_stays_while_a_pod_of_its_spec_waits() -> None:
    waiting = pod("waits", "64", app="w", topology_spread_constraints=[spread("w")])
    cluster = Cluster([node("a", labels={ZONE: "z"}), waiting])
    engine = Engine(cluster)
    engine.decide(waiting.key)
    (counter,) = cluster.labels.counters.values()
    cluster.collect()
    assert list(cluster.labels.counters.values()) == [counter]
    cluster.apply(Remove("Pod", waiting.key))
    cluster.collect()
    assert not cluster.labels.counters


@pytest.mark.usefixtures("eager")
def test_areas_follow_the_new_numbers_of_label_values() -> None:
    racks = {"a": "x", "b": "y", "c": "x"}
    nodes = {name: node(name, labels={"rack": rack}) for name, rack in racks.items()}
    cluster = Cluster(nodes.values())
    areas = GangPlacer.of(Engine(cluster)).areas

    def found() -> dict[str, set[str]]:
        domains = cluster.nodes.domains("rack").indices
        digits = {int(domains[cluster.node_row(name)]) for name in racks}
        return {
            areas.domain_name("rack", digit): {cluster.nodes.names[row] for row in areas.domain("rack", digit).rows}
            for digit in digits
        }

    expected = {"x": {"a", "c"}, "y": {"b"}}
    assert found() == expected
    cluster.apply(Remove("Node", "a"))
    cluster.apply(Put(nodes["a"]))  # now "y" is the first value
    assert found() == expected
    cluster.collect()
    assert found() == expected


@pytest.mark.usefixtures("eager")
def test_cached_keys_of_the_remaining_specs_stay_with_their_specs() -> None:
    sizes = [node(f"node-{cpu}", cpu=cpu) for cpu in (1, 2, 3, 4, 5, 6)]
    pods = [pod(f"p{cpu}", str(cpu)) for cpu in (6, 1, 5, 2, 4, 3)]
    cluster = Cluster([*sizes, *pods, pod("other", "3")])
    engine = Engine(cluster)
    for each in pods:
        engine.decide(each.key)
    cluster.apply(Bind("default/other", "node-6"))
    engine.decide(pods[0].key)  # the other specs are further behind the log
    for each in pods[:2]:
        cluster.apply(Remove("Pod", each.key))
    cluster.collect()
    cluster.apply(Put(pod("p7", "2500m")))
    for key in (*(each.key for each in pods[2:]), "default/p7"):
        assert engine.decide(key) == Engine(cluster).decide(key)
    for each in pods[2:5]:
        cluster.apply(Remove("Pod", each.key))
    cluster.collect()
    for key in (pods[5].key, "default/p7"):
        assert engine.decide(key) == Engine(cluster).decide(key)


@pytest.mark.usefixtures("eager")
def test_label_keys_of_waiting_specs_stay_watched() -> None:
    constraint = replace(spread("web"), match_label_keys=["rev"])
    waiting = pod("waits", app="web", labels={"rev": "2"}, topology_spread_constraints=[constraint])
    cluster = Cluster([waiting])
    engine = Engine(cluster)
    engine.decide(waiting.key)  # without nodes, no counter is made
    cluster.collect()
    for zone in "ab":
        cluster.apply(Put(node(zone, labels={ZONE: zone})))
    for number in range(3):
        cluster.apply(Put(pod(f"old-{number}", app="web", labels={"rev": "1"}, on="a")))
    cluster.apply(Put(pod("new", app="web", labels={"rev": "2"}, on="b")))
    assert engine.decide(waiting.key).node == "a"
    assert answers(cluster, engine) == answers(rebuilt(cluster), Engine(rebuilt(cluster)))
