"""Which pods a budget selects, by kube-scheduler's rule and by the eviction API's; how a missing status is computed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.support import builders
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put
from tutti.engine.placement.engine import Engine
from tutti.engine.preemption.disruption_budgets import Budgets, RemainingBudgets, remaining_budgets
from tutti.engine.preemption.victim_rules import VictimRules
from tutti.engine.session.policy import Patience, Policy
from tutti.engine.session.queue import Queue
from tutti.engine.session.session import session
from tutti.kube.objects import Node, Pod, PodDisruptionBudget

LABELS, UNLABELLED = {"app": "a"}, None


def pod(name: str, labels: dict[str, str] | None = LABELS, namespace: str = "x") -> Pod:
    raw = {"metadata": {"name": name, "namespace": namespace, "labels": labels}, "spec": {"nodeName": "n"}}
    return msgspec.convert(raw, Pod)


def budget(selector: Any, allowed: int | None = 0, **spec: Any) -> PodDisruptionBudget:
    raw = {
        "metadata": {"name": "b", "namespace": "x"},
        "spec": {"selector": selector, **spec},
        "status": {"disruptionsAllowed": allowed},
    }
    return msgspec.convert(raw, PodDisruptionBudget)


@pytest.mark.parametrize(
    ("selector", "labels", "by_scheduler", "by_eviction"),
    [
        ({"matchLabels": LABELS}, LABELS, True, True),
        ({"matchLabels": {"app": "b"}}, LABELS, False, False),
        ({}, LABELS, False, True),
        ({}, UNLABELLED, False, True),
        (None, LABELS, False, False),
        (None, UNLABELLED, False, False),
        ({"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}, UNLABELLED, False, True),
    ],
)
def test_empty_and_absent_selectors(
    selector: Any, labels: dict[str, str] | None, by_scheduler: bool, by_eviction: bool
) -> None:
    node = Node(metadata=msgspec.convert({"name": "n"}, type(Node().metadata)))
    cluster = Cluster([node, budget(selector), pod("p", labels), pod("q", labels, "other")])
    rows = [cluster.pod_row("x/p"), cluster.pod_row("other/q")]
    assert Budgets(cluster).violating(rows) == ({rows[0]} if by_scheduler else set())
    assert Budgets(cluster).protects(rows) is by_scheduler
    assert Budgets(cluster, hard=True).violating(rows) == ({rows[0]} if by_eviction else set())
    assert Budgets(cluster, hard=True).protects(rows) is by_eviction
    assert RemainingBudgets([budget(selector)]).left(pod("p", labels)) == (0 if by_eviction else None)
    assert RemainingBudgets([budget(selector)]).left(pod("q", labels, "other")) is None


def world(*objects: Any) -> Cluster:
    return Cluster([builders.node("n1"), builders.node("n2"), *objects])


HARD = Policy(victims_allowed=VictimRules(hard_budgets=True))


def evicted(cluster: Cluster, *, ports: bool = False, gang: bool = False) -> list[str]:
    """Return what is evicted for a pod with 3 cores, found by arithmetic, in dry runs, or for a gang."""
    preemptor = builders.pod("high", "3", priority=9, host_port=8080 if ports else None, gang="g" if gang else None)
    cluster.observe(Put(preemptor))
    policy = replace(HARD, patience=Patience(counted_quiet_for=0))
    plan = session(Engine(cluster), Queue(cluster), 1_800_000_000_000_000, policy)
    assert plan.evictions or plan.unschedulable[0].waits_for == "budgets"
    return [each.pod.removeprefix("default/") for each in plan.evictions]


HOW = pytest.mark.parametrize("how", [{}, {"ports": True}, {"gang": True}], ids=["arithmetic", "dry runs", "gang"])


@HOW
def test_hard_budgets_need_to_allow_the_chosen_victims_only(how: dict[str, bool]) -> None:
    """The budget allows one of two pods, and one is enough."""
    old = builders.pod("old", "1", on="n1", app="web", started="2026-01-01T00:00:00Z")
    new = builders.pod("new", "3", on="n1", app="web", started="2026-02-01T00:00:00Z")
    full = builders.pod("full", "4", on="n2", priority=10)
    assert evicted(world(old, new, full, builders.disruption_budget("web", 1)), **how) == ["new"]
    assert evicted(world(old, new, full, builders.disruption_budget("web", 0)), **how) == []


@HOW
def test_the_eviction_api_refuses_a_pod_with_two_budgets(how: dict[str, bool]) -> None:
    budgets = [builders.disruption_budget("web", 5, name=name) for name in ("one", "two")]
    low = builders.pod("low", "3", on="n1", app="web")
    assert evicted(world(low, builders.pod("free", "3", on="n2", priority=1), *budgets), **how) == ["free"]


@HOW
def test_an_empty_selector_protects_every_pod_that_has_started(how: dict[str, bool]) -> None:
    budget, full = builders.disruption_budget(None, 0), builders.pod("full", "4", on="n2", priority=10)
    assert evicted(world(builders.pod("low", "3", on="n1"), full, budget), **how) == []
    assert evicted(world(builders.pod("low", "3", on="n1", phase="Pending"), full, budget), **how) == ["low"]


def test_hard_budgets_are_spent_as_the_eviction_api_spends_them() -> None:
    low = [builders.pod(name, "3", on=node) for name, node in (("a", "n1"), ("b", "n2"))]
    cluster = world(*low, builders.disruption_budget(None, 1))
    cluster.observe(Put(builders.pod("other", "3", priority=9)))
    assert evicted(cluster) in (["a"], ["b"])


def test_a_missing_status_is_computed() -> None:
    node = Node(metadata=msgspec.convert({"name": "n"}, type(Node().metadata)))
    pods = [pod(f"p{number}") for number in range(4)]
    for spec, left in (({"minAvailable": 1}, 3), ({"minAvailable": "50%"}, 2), ({"maxUnavailable": 1}, 1), ({}, 3)):
        cluster = Cluster([node, budget({}, None, **spec), *pods])
        assert remaining_budgets(cluster).left(pods[0]) == left
    assert remaining_budgets(Cluster([node, budget(None, None), *pods])).left(pods[0]) is None
