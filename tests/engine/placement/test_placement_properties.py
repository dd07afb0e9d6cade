"""Properties of placements: every fast path gives the same results as the plain path."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import builders
from tests.support.random_clusters import RandomCluster
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Hold, Remove
from tutti.engine.explain.node_verdicts import node_verdicts
from tutti.engine.placement.engine import Engine
from tutti.engine.plugins.base import NodeRow, NodeRows, PodPlugin, SpecColumns
from tutti.engine.plugins.verdict import Reason
from tutti.engine.preemption.default_preemption import Candidate, _DryRuns
from tutti.engine.preemption.disruption_budgets import Budgets
from tutti.engine.preemption.room_dry_runs import RoomDryRuns
from tutti.engine.preemption.victim_rules import VictimRules
from tutti.kube import objects as k

SIZES = st.sampled_from(("100m", "250m", "333m", "1", "1500m", "0"))
MEMORY = st.sampled_from(("64Mi", "100M", "1Gi", "1500Mi", "0"))


def pending(cluster: Cluster) -> list[str]:
    """Return the keys of the pods without a node, sorted."""
    return sorted(key for key, row in cluster.pods.row_of.items() if cluster.pods.node_names[row] is None)


def numbered_node(number: int, cpu: str, memory: str, **how: Any) -> k.Node:
    return builders.node(f"node-{number:02}", cpu, memory=memory, **how)


def numbered_pod(number: int, cpu: str, memory: str, **how: Any) -> k.Pod:
    """Return a pod without a request where the amount is "0"."""
    requests = {name: value for name, value in (("cpu", cpu), ("memory", memory)) if value != "0"}
    return builders.pod(f"pod-{number:04}", **{"cpu": None, **requests}, **how)


@given(
    nodes=st.lists(st.tuples(st.sampled_from(("1", "2", "3900m", "8")), st.sampled_from(("2Gi", "3G", "16Gi")),
                             st.sampled_from(("5", "110"))), min_size=1, max_size=12),
    cpu=SIZES, memory=MEMORY, count=st.integers(8, 120), soft=st.booleans(),
)  # fmt: skip
@settings(max_examples=150)
def test_a_batch_equals_deciding_one_by_one(
    nodes: list[tuple[str, str, str]], cpu: str, memory: str, count: int, soft: bool
) -> None:
    slow = [k.Taint(key="slow", effect="PreferNoSchedule")]
    objects: list[k.Object] = [
        numbered_node(i, c, m, pods=p, taints=slow if soft and i % 3 == 0 else None)
        for i, (c, m, p) in enumerate(nodes)
    ]
    objects += [numbered_pod(i, cpu, memory) for i in range(count)]
    at_once, singly = Cluster(objects), Cluster(objects)
    keys = pending(at_once)
    decided = Engine(at_once).place(keys)
    engine = Engine(singly)
    one_by_one = [engine.place([key])[0] for key in keys]
    assert decided == one_by_one


@given(seed=st.integers(0, 10**6))
@settings(max_examples=150)
def test_a_decision_is_the_best_explained_node(seed: int) -> None:
    drawn = RandomCluster(seed)
    cluster = Cluster(drawn.objects(pods=25))
    engine = Engine(cluster)
    for key in pending(cluster):
        explained = node_verdicts(engine, key)
        decision = engine.place([key])[0]
        assert decision.node == (explained.best[0] if explained.best else None)
        if explained.scores:
            assert decision.score == explained.scores[explained.best[0]]
        assert (decision.held, decision.refused) == (explained.held, explained.refused)
        if not explained.best and explained.rejected:
            counted: dict[str, int] = {}
            for reason in explained.rejected.values():
                for message in reason.messages:
                    counted[message] = counted.get(message, 0) + 1
            assert {m: n for m, n in decision.reasons.items() if "didn't satisfy plugin" not in m} == counted


@given(seed=st.integers(0, 10**6))
def test_no_node_is_filled_beyond_its_allocatable(seed: int) -> None:
    drawn = RandomCluster(seed)
    cluster = Cluster(o for o in drawn.objects(pods=40) if not (isinstance(o, k.Pod) and o.spec.node_name))
    Engine(cluster).place(pending(cluster))
    for row in cluster.nodes.row_of.values():
        assert (cluster.nodes.used[:, row] <= cluster.nodes.alloc[:, row]).all()


@given(seed=st.integers(0, 10**6))
def test_results_in_plain_integers_equal_results_in_columns(seed: int) -> None:
    drawn = RandomCluster(seed)
    cluster = Cluster(drawn.objects(pods=20))
    engine = Engine(cluster)
    rows = np.flatnonzero(cluster.nodes.on)
    specs = [cluster.spec_of(cluster.pods.row_of[key]) for key in pending(cluster)]
    for plugin in (e.plugin for e in engine.profile.plugins):
        if not isinstance(plugin, PodPlugin):
            continue
        for spec in specs:
            window = NodeRows(cluster, rows)
            answers, scores = plugin.filter(window, SpecColumns(spec)), plugin.score(window, SpecColumns(spec))
            for place, row in enumerate(rows.tolist()):
                one = NodeRow(cluster, row)
                assert plugin.fits(one, spec) == (answers is None or not answers[place, 0])
                assert plugin.score_row(one, spec) == (0 if scores is None else int(scores[place, 0]))


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_decisions_do_not_depend_on_the_order_of_objects(seed: int) -> None:
    objects = list(RandomCluster(seed).objects(pods=25))
    shuffled = objects.copy()
    random.Random(seed).shuffle(shuffled)
    first, second = Cluster(objects), Cluster(shuffled)
    keys = pending(first)
    assert keys == pending(second)
    # All images have the same size here; otherwise the size that the first node reports would count.
    assert Engine(first).place(keys) == Engine(second).place(keys)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=30)
def test_specs_evaluated_together_equal_each_evaluated_alone(seed: int) -> None:
    draw = random.Random(seed)
    objects: list[k.Object] = [
        numbered_node(i, draw.choice(("2", "4")), draw.choice(("4Gi", "8Gi"))) for i in range(10)
    ]
    objects += [numbered_pod(i, f"{draw.randrange(1, 20) * 50}m", f"{draw.randrange(1, 20) * 64}Mi") for i in range(60)]
    together, alone = Cluster(objects), Cluster(objects)
    keys = pending(together)
    decided = Engine(together).place(keys)
    fresh = [Engine(alone).place([key])[0] for key in keys]
    assert decided == fresh


def test_a_removed_pod_frees_its_room() -> None:
    cluster = Cluster([numbered_node(0, "1", "4Gi"), numbered_pod(0, "1", "1Gi"), numbered_pod(1, "1", "1Gi")])
    engine = Engine(cluster)
    first, second = engine.place(pending(cluster))
    assert (first.node, second.node) == ("node-00", None)
    assert second.reasons == {"Insufficient cpu": 1}
    cluster.apply(Remove("Pod", first.pod))
    assert engine.place([second.pod])[0].node == "node-00"
    assert np.count_nonzero(cluster.nodes.used[0]) == 1


@given(seed=st.integers(0, 10**6))
@settings(max_examples=100)
def test_room_arithmetic_finds_the_victims_of_the_dry_run(seed: int) -> None:
    draw = random.Random(seed)
    objects: list[k.Object] = [numbered_node(i, "2", "4Gi", pods=draw.choice(("4", "110"))) for i in range(4)]
    for i in range(24):
        running = numbered_pod(
            i, draw.choice(("100m", "500m", "1")), draw.choice(("256Mi", "1Gi", "0")), app=draw.choice("ab"),
            on=f"node-0{draw.randrange(4)}", priority=draw.choice((0, 5, 10)),
            started=f"2026-01-01T00:{draw.randrange(60):02}:00Z",
        )  # fmt: skip
        objects.append(running)
    objects.append(builders.disruption_budget("a", draw.randrange(3)))
    objects.append(numbered_pod(99, "1500m", "1Gi", priority=7))
    cluster = Cluster(objects)
    for number in range(draw.randrange(4)):
        amounts = (("cpu", draw.choice((500, 1500))), ("pods", 1))
        cluster.apply(Hold(f"reservation/{number}", f"node-{draw.randrange(6):02}", None, draw.choice((3, 9)), amounts))
    engine = Engine(cluster)
    incoming = engine.evaluator.incoming_pod(cluster.pod_row("default/pod-0099"))
    filtered = engine.evaluator.filter(incoming)
    assert not isinstance(filtered, Reason)
    rules = VictimRules()
    dry_runs = _DryRuns(engine.evaluator, incoming, filtered, {}, best_only=False, rules=rules, stuck_before=None)
    room, messages = RoomDryRuns(engine.evaluator, incoming), Counter[str]()
    pods = dry_runs._lower_priority_pods(np.flatnonzero(cluster.nodes.on))
    rows = np.unique(cluster.pods.node[pods])
    full = room.rows_without_room(pods, rows, lambda texts, number: messages.update(dict.fromkeys(texts, number)))
    found = room.candidates(pods[~np.isin(cluster.pods.node[pods], full)], Budgets(cluster))
    candidates = {int(row): number for number, row in enumerate(found.rows)}
    expected_messages = Counter[str]()
    for row, lower in dry_runs._pods_by_row(pods).items():
        expected = dry_runs._dry_run(row, lower)
        if isinstance(expected, Candidate):
            victims = found.victims(candidates[row]) if row in candidates else []
            assert tuple(cluster.pods.keys[pod] for pod in victims) == expected.victims
            if victims:
                assert found.cost(candidates[row]) == dry_runs._cost(expected)
        else:
            assert row in full
            expected_messages.update(expected)
    assert messages == expected_messages
