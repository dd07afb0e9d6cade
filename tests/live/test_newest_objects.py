"""What the newest reports say of pods, nodes and groups, before a binding is sent."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from tests.support import builders
from tests.support.builders import COSCHEDULING_LABEL, node, pod, pod_group
from tutti.client.reflector import Unreadable
from tutti.cluster.edits import Put, Remove
from tutti.kube import objects as k
from tutti.live.newest_objects import NewestObjects

LATER = "2026-01-01T00:00:00Z"
CORDONED, NOT_READY = "node.kubernetes.io/unschedulable", "node.kubernetes.io/not-ready"


def newest(*objects: k.Object) -> NewestObjects:
    made = NewestObjects()
    made.observe(map(Put, objects))
    return made


def leaving(obj: Any) -> Any:
    return replace(obj, metadata=replace(obj.metadata, deletion_timestamp=LATER))


@pytest.mark.parametrize(
    ("known", "problem"),
    [
        (pod("p"), None),
        (None, "the pod is gone"),
        (pod("p", uid="other"), "the pod is gone"),
        (pod("p", deleted=LATER), "the pod is being deleted"),
        (pod("p", on="n2"), "the pod is already on node n2"),
        (pod("p", schedulingGates=[{"name": "g"}]), "the pod has a scheduling gate"),
        (pod("p", on="n2", phase="Failed"), "the pod is gone"),
        (pod("p", on="n2", phase="Succeeded"), "the pod is gone"),
    ],
)
def test_pods_that_cannot_be_bound(known: k.Pod | None, problem: str | None) -> None:
    found = newest(*([known] if known is not None else []))
    assert found.problem_of_pod("default/p", "p") == problem


@pytest.mark.parametrize(
    ("known", "how", "problem"),
    [
        (node("n"), {}, None),
        (None, {}, "node n is gone"),
        (leaving(node("n")), {}, "node n is being deleted"),
        (node("n", unschedulable=True), {}, "node n is cordoned"),
        (node("n", unschedulable=True), {"tolerates": "node.kubernetes.io/unschedulable"}, None),
        (node("n", unschedulable=True), {"tolerations": [{"operator": "Exists"}]}, None),
        (node("n", taint="node.kubernetes.io/not-ready"), {}, "node n is not ready"),
        (node("n", taint="node.kubernetes.io/unreachable"), {}, "node n is not ready"),
        (node("n", taint="node.kubernetes.io/not-ready"), {"tolerates": "node.kubernetes.io/not-ready"}, None),
        (node("n", taint="node.kubernetes.io/not-ready"), {"tolerates": "other"}, "node n is not ready"),
        (node("n", taint="example.com/reserved"), {}, None),
        (node("n", taint=NOT_READY), {"tolerations": builders.DEFAULT_TOLERATIONS}, "node n is not ready"),
        (node("n", taint=NOT_READY), {"tolerations": [{"key": NOT_READY, "value": "x"}]}, "node n is not ready"),
        (node("n", unschedulable=True), {"tolerations": builders.DEFAULT_TOLERATIONS}, "node n is cordoned"),
        (
            node("n", unschedulable=True),
            {"tolerations": [{"key": CORDONED, "operator": "Exists", "effect": "NoExecute"}]},
            "node n is cordoned",
        ),
        (node("n", taints=[{"key": "node.kubernetes.io/not-ready", "effect": "PreferNoSchedule"}]), {}, None),
    ],
)
def test_nodes_that_take_no_pods(known: k.Node | None, how: dict[str, Any], problem: str | None) -> None:
    found = newest(*([known] if known is not None else []))
    assert found.problem_of_node("n", pod("p", **how)) == problem


def test_groups_under_deletion() -> None:
    found = newest(pod_group("g", 3), leaving(pod_group("h", 3)))
    assert not found.is_group_deleted(pod("p", labels={COSCHEDULING_LABEL: "g"}))
    assert found.is_group_deleted(pod("p", labels={COSCHEDULING_LABEL: "h"}))
    assert not found.is_group_deleted(pod("p", labels={COSCHEDULING_LABEL: "unknown"}))
    assert not found.is_group_deleted(pod("p"))
    found.observe([Put(pod_group("h", 3))])
    assert not found.is_group_deleted(pod("p", labels={COSCHEDULING_LABEL: "h"}))


def test_groups_below_and_above_one_under_deletion() -> None:
    """A composite group that is being deleted closes all groups below; a group closes itself."""
    parent = k.GroupSpec(parent_composite_pod_group_name="root")
    about = k.ObjectMeta(namespace="default")
    root = k.CompositePodGroup(metadata=replace(about, name="root"))
    leaves = [k.PodGroup(metadata=replace(about, name=name), spec=parent) for name in ("a", "b")]
    in_a, in_b = (pod(name, scheduling_group={"podGroupName": name}) for name in "ab")
    found = newest(root, leaving(leaves[0]), leaves[1])
    assert found.is_group_deleted(in_a)
    assert not found.is_group_deleted(in_b)
    found = newest(leaving(root), *leaves)
    assert found.is_group_deleted(in_a)
    assert found.is_group_deleted(in_b)


def test_an_object_of_the_same_name_that_does_not_describe_the_gang() -> None:
    found = newest(leaving(k.Workload(metadata=k.ObjectMeta(name="train", namespace="default"))))
    assert not found.is_group_deleted(pod("p", gang="train"))


def test_the_newest_report_counts() -> None:
    found = newest(pod("p"), pod("p", on="n1"), node("n1"))
    found.observe([Unreadable("Pod", "default/p", "p", "broken")])
    known = found.pod("default/p")
    assert known is not None
    assert known.spec.node_name == "n1"
    found.observe([Remove("Pod", "default/p", "p"), Remove("Node", "n1", "n1"), Remove("Service", "default/s", None)])
    assert found.pod("default/p") is None
    assert found.node("n1") is None
    found.observe([Put(k.Namespace(metadata=k.ObjectMeta(name="kept-nowhere")))])
