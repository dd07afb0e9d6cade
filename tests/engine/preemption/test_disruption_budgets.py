"""Which pods a budget selects, by kube-scheduler's rule and by the eviction API's; how a missing status is computed."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tutti.cluster.cluster import Cluster
from tutti.engine.preemption.disruption_budgets import Budgets, RemainingBudgets, remaining_budgets
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
    assert RemainingBudgets([budget(selector)]).left(pod("p", labels)) == (0 if by_eviction else None)
    assert RemainingBudgets([budget(selector)]).left(pod("q", labels, "other")) is None


def test_a_missing_status_is_computed() -> None:
    node = Node(metadata=msgspec.convert({"name": "n"}, type(Node().metadata)))
    pods = [pod(f"p{number}") for number in range(4)]
    for spec, left in (({"minAvailable": 1}, 3), ({"minAvailable": "50%"}, 2), ({"maxUnavailable": 1}, 1), ({}, 3)):
        cluster = Cluster([node, budget({}, None, **spec), *pods])
        assert remaining_budgets(cluster).left(pods[0]) == left
    assert remaining_budgets(Cluster([node, budget(None, None), *pods])).left(pods[0]) is None
