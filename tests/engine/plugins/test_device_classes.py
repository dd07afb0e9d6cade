"""Extended resources of DeviceClasses: nodes that offer the resource take the pod, other nodes say what is missing."""

from __future__ import annotations

import pytest

from tests.support.builders import GPU, members, node, pod
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put, Remove
from tutti.engine.explain.node_verdicts import node_verdicts
from tutti.engine.placement.engine import Engine
from tutti.engine.plugins.device_classes import IMPLICIT_PREFIX, device_class_of
from tutti.engine.reasons.pod_failure import fit_error
from tutti.engine.session.schedule import schedule
from tutti.kube import objects as k

NEEDS_DEVICE = f"node(s) would need devices of DeviceClass gpus for {GPU}: Tutti does not allocate devices yet"


def device_class(name: str, resource: str | None = None, created: str | None = None) -> k.DeviceClass:
    return k.DeviceClass(
        metadata=k.ObjectMeta(name=name, creation_timestamp=created),
        spec=k.DeviceClassSpec(extended_resource_name=resource),
    )


def requests(name: str, resource: str) -> k.Pod:
    resources = k.ResourceRequirements(requests={"cpu": "1", resource: "1"})
    return pod(name, containers=[k.Container(name="main", resources=resources)])


def message(cluster: Cluster, name: str = "p") -> str:
    return fit_error(Engine(cluster).decide(f"default/{name}"))


def test_without_the_class_the_resource_is_insufficient() -> None:
    cluster = Cluster([node("a"), device_class("gpus"), pod("p", gpu=1)])
    assert message(cluster) == f"0/1 nodes are available: 1 Insufficient {GPU}."


def test_the_reason_names_the_class_and_the_resource() -> None:
    cluster = Cluster([device_class("gpus", GPU), node("a"), node("b"), pod("p", gpu=1)])
    assert message(cluster) == f"0/2 nodes are available: 2 {NEEDS_DEVICE}."
    cluster.apply(Remove("DeviceClass", "gpus"))
    assert message(cluster) == f"0/2 nodes are available: 2 Insufficient {GPU}."
    cluster.apply(Put(device_class("gpus", GPU)))
    assert message(cluster) == f"0/2 nodes are available: 2 {NEEDS_DEVICE}."


def test_a_node_that_offers_the_resource_takes_the_pod() -> None:
    cluster = Cluster([device_class("gpus", GPU), node("a"), node("b", gpu=1), pod("p", gpu=1)])
    assert Engine(cluster).decide("default/p").node == "b"


def test_a_full_node_that_offers_the_resource_is_insufficient() -> None:
    full = pod("full", on="b", gpu=1)
    cluster = Cluster([device_class("gpus", GPU), node("a", 0), node("b", gpu=1), full, pod("p", gpu=1)])
    expected = f"0/2 nodes are available: 1 Insufficient cpu, 1 Insufficient {GPU}, 1 {NEEDS_DEVICE}."
    assert message(cluster) == expected
    rejected = node_verdicts(Engine(cluster), "default/p").rejected
    assert rejected["a"].messages == ("Insufficient cpu", NEEDS_DEVICE)
    assert not rejected["a"].resolvable
    assert rejected["b"].messages == (f"Insufficient {GPU}",)
    assert rejected["b"].resolvable


def test_a_gang_is_told_too() -> None:
    gang = members("g", 2, gpu=1)
    plan = schedule(Cluster([device_class("gpus", GPU), node("a"), *gang]))
    assert {refused.pod for refused in plan.unschedulable} == {"default/g-0", "default/g-1"}
    assert all(NEEDS_DEVICE in refused.message for refused in plan.unschedulable)


def test_the_implicit_resource_of_a_class() -> None:
    resource = f"{IMPLICIT_PREFIX}gpus"
    cluster = Cluster([node("a"), requests("p", resource)])
    assert message(cluster) == f"0/1 nodes are available: 1 Insufficient {resource}."
    cluster.apply(Put(device_class("gpus")))
    assert message(cluster).endswith(
        f"devices of DeviceClass gpus for {resource}: Tutti does not allocate devices yet."
    )


@pytest.mark.parametrize(
    ("classes", "expected"),
    [
        ([], None),
        ([device_class("other", "example.com/other")], None),
        ([device_class("b", GPU), device_class("a", GPU)], "a"),
        ([device_class("a", GPU, "2026-01-01T00:00:00Z"), device_class("b", GPU, "2026-01-02T00:00:00Z")], "b"),
        ([device_class("a", GPU, "2026-01-01T00:00:00+01:00"), device_class("b", GPU, "2025-12-31T23:30:00Z")], "b"),
    ],
)
def test_the_newest_class_counts_then_the_first_by_name(classes: list[k.DeviceClass], expected: str | None) -> None:
    assert device_class_of(Cluster(classes), GPU) == expected
    assert device_class_of(Cluster(classes[::-1]), GPU) == expected
