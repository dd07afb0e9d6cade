"""Gardener snapshots: every field's effect, names in any case, and what is said of what is wrong."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from tests.support.paths import EXAMPLES
from tests.support.wire_bodies import (
    BOOK,
    NOW,
    ZERO,
    Data,
    answer,
    changed,
    daemon,
    encoded,
    node,
    nodes_of,
    pod,
    pods_of,
    read,
    smallest,
    source,
)  # fmt: skip
from tutti.exceptions import InputError, PoolError
from tutti.kube.objects import PriorityClass
from tutti.kube.reading.sources import Source
from tutti.market.offerings import NODES
from tutti.recommend.records.down_plan import DownPlan, Removal, RemovalReason, ScaleDownStep
from tutti.recommend.records.new_nodes import ScaleUp
from tutti.recommend.records.recommendation import LeftPod, Recommendation
from tutti.recommend.records.request import DownOptions, RecommendOptions, Request
from tutti.wire.field_names import checker
from tutti.wire.gardener.response import gardener_answer, gardener_error
from tutti.wire.gardener.schema import GardenerSnapshotText
from tutti.wire.request_formats import identify, parse_request
from tutti.wire.wire_document import WireFormat

EXAMPLE = EXAMPLES / "recommend" / "gardener-snapshot.json"
_AT = "AutoscalerConfig.NodeTemplates.g-a"


def one_offering(tree: Data) -> Any:
    ((offering,),) = [pool.offerings for pool in read(tree).catalogue.pools]
    return offering


# What is answered -----------------------------------------------------------------------------------------------------


def test_the_smallest_body_is_answered_field_for_field():
    request = read(smallest())
    response = encoded(gardener_answer(answer(request), request, millis=12))
    names = [f"p1-eu-west-1a-new-{number}" for number in (1, 2, 3)]
    assert response == {
        "recommendation": {
            "scaleUp": [
                {
                    "zone": "eu-west-1a",
                    "nodePoolName": "p1",
                    "incrementBy": 3,
                    "instanceType": "m5.large",
                    "nodeNames": names,
                }
            ],
            "scaleDown": [],
        },
        "unscheduledPods": [],
        "runTime": "12 millis",
        "error": "",
    }


def test_pods_that_are_left_keep_their_namespaces_and_names():
    tree = changed(smallest(), "WorkerPools.0.Maximum", 1)
    tree["Pods"].append(pod("w-0", Namespace="other", spec={"schedulingGates": [{"name": "quota"}]}))
    request = read(tree)
    response = encoded(gardener_answer(answer(request), request, millis=1))
    left = [(each["Namespace"], each["Name"]) for each in response["unscheduledPods"]]
    assert left == [("shop", "w-1"), ("shop", "w-2"), ("other", "w-0")]


def removal(name: str) -> Removal:
    where = {"pool": "p", "zone": "z", "instance_type": "t", "capacity_type": "on-demand"}
    return Removal(node=name, **where, why=RemovalReason.EMPTY, utilization=0.0)


def test_nodes_that_can_go_are_told_as_far_as_nothing_is_bought_in_their_place():
    request = read(smallest())
    base = Recommendation(strategy="optimal", objective="cost", binder="tutti")
    down = DownPlan(
        removals=(removal("a"), removal("b")), steps=(ScaleDownStep(removes=("a",)), ScaleDownStep(removes=("b",)))
    )
    response = encoded(gardener_answer(replace(base, down=down), request, millis=1))
    assert response["recommendation"]["scaleDown"] == ["a", "b"]
    bought = ScaleUp(pool="p", zone="z", instance_type="t", capacity_type="on-demand", increment=1, node_names=("n",))
    swap = DownPlan(
        removals=down.removals,
        scale_up=(bought,),
        steps=(ScaleDownStep(removes=("a",)), ScaleDownStep(adds=("n",)), ScaleDownStep(removes=("b",))),
    )
    response = encoded(gardener_answer(replace(base, down=swap), request, millis=1))
    assert response["recommendation"] == {"scaleUp": [], "scaleDown": ["a"]}


def test_an_error_has_the_same_envelope():
    response = encoded(gardener_error("pool p: no", millis=3))
    good = encoded(
        gardener_answer(
            Recommendation(strategy="", objective="", binder="", left=(LeftPod(pod="a/b", reason=""),)),
            read(smallest()),
            millis=3,
        )
    )
    assert response.keys() == good.keys()
    assert response["recommendation"].keys() == good["recommendation"].keys()
    assert (response["error"], response["runTime"]) == ("pool p: no", "3 millis")


# Pods -----------------------------------------------------------------------------------------------------------------


def with_pod(**fields: Any) -> Data:
    return smallest() | {"Nodes": [node("n1")], "Pods": [pod("a", **fields)]}


@pytest.mark.parametrize(
    ("fields", "on", "nominated"),
    [
        ({"NodeName": "n1", "PodScheduleStatus": 1}, "n1", None),
        ({"NodeName": "n1"}, "n1", None),
        ({"spec": {"nodeName": "n1"}}, "n1", None),
        ({"NodeName": "", "spec": {"nodeName": ""}, "PodScheduleStatus": 0}, None, None),
        ({"PodScheduleStatus": -2}, None, None),
        ({"PodScheduleStatus": -1, "NominatedNodeName": "n1"}, None, "n1"),
        ({"PodScheduleStatus": None, "NodeName": None}, None, None),
    ],
)
def test_where_a_pod_is(fields: Data, on: str | None, nominated: str | None):
    made = pods_of(read(with_pod(**fields)))["shop/a"]
    assert (made.spec.node_name, made.status.nominated_node_name) == (on, nominated)


def test_a_pod_that_is_committed_to_a_node_without_a_name_neither_waits_nor_counts():
    request = read(with_pod(PodScheduleStatus=1))
    assert not pods_of(request)
    assert request.notes == ("1 pod is committed to a node without naming it, and counts nowhere",)


def test_a_pod_on_a_node_that_is_not_there_is_told():
    assert "1 pod is on a node that is not in the snapshot" in read(with_pod(NodeName="gone")).notes[0]


def test_pods_keep_what_the_snapshot_says_of_them():
    fields = {
        "UID": "u-1", "Labels": {"app": "a"}, "CreationTimestamp": NOW, "DeletionTimestamp": ZERO,
        "PodPhase": "Running", "NodeName": "n1",
    }  # fmt: skip
    made = pods_of(read(with_pod(**fields)))["shop/a"]
    meta = made.metadata
    assert (meta.uid, meta.labels, meta.creation_timestamp, meta.deletion_timestamp) == ("u-1", {"app": "a"}, NOW, None)
    assert made.status.phase == "Running"


def test_finished_and_leaving_pods_do_not_wait():
    for fields in ({"PodPhase": "Succeeded"}, {"PodPhase": "Failed"}, {"DeletionTimestamp": NOW}):
        assert answer(read(with_pod(**fields))).pods == 0


def test_requests_are_used_when_the_spec_has_none():
    request = {"cpu": "300m", "memory": "1Gi"}
    bare = {"containers": [{"name": "x"}, {"name": "y"}]}
    made = pods_of(read(with_pod(Requests=request, spec=bare)))["shop/a"]
    assert [each.resources and each.resources.requests for each in made.spec.containers or ()] == [request, None]
    assert (
        pods_of(read(with_pod(Requests=request, Spec=None)))["shop/a"].spec.containers[0].resources.requests == request
    )
    own = pods_of(read(with_pod(Requests=request)))["shop/a"]
    assert own.spec.containers[0].resources.requests == {"cpu": "1", "memory": "2Gi"}


def test_the_original_recommender_s_own_scheduler_is_the_usual_one():
    made = pods_of(read(with_pod(spec={"schedulerName": "bin-packing-scheduler"})))["shop/a"]
    assert made.spec.scheduler_name == "default-scheduler"
    assert pods_of(read(with_pod(spec={"schedulerName": "other"})))["shop/a"].spec.scheduler_name == "other"


def test_system_pods_run_and_daemons_are_expected_on_new_nodes():
    tree = smallest() | {"Nodes": [node("n1")], "Pods": [daemon("proxy-abcde", "n1"), pod("a", "1900m")]}
    request = read(tree)
    assert pods_of(request)["kube-system/proxy-abcde"].spec.node_name == "n1"
    assert [each.key for each in request.daemon_sets] == ["kube-system/proxy"]
    # 1,900m of 1,920m: not beside a daemon of 100m, there or on a new node.
    assert answer(request).placed == 0


@pytest.mark.parametrize(
    ("name", "labels", "owner"),
    [
        ("web-7d9c-b2x4t", {"pod-template-hash": "7d9c"}, ("apps/v1", "ReplicaSet", "web-7d9c")),
        ("db-0", {"statefulset.kubernetes.io/pod-name": "db-0"}, ("apps/v1", "StatefulSet", "db")),
        ("db-12", {"controller-revision-hash": "db-x"}, ("apps/v1", "StatefulSet", "db")),
        ("db-x7q2p", {"controller-revision-hash": "5c7d"}, None),
        ("n-0-4xk2p", {"batch.kubernetes.io/job-name": "n"}, ("batch/v1", "Job", "n")),
        ("n-4xk2p", {"job-name": "n"}, ("batch/v1", "Job", "n")),
        ("bare", {"app": "bare"}, None),
        ("bare", None, None),
    ],
)
def test_who_made_a_pod_is_told_by_its_labels(name: str, labels: Data | None, owner: tuple[str, str, str] | None):
    tree = smallest() | {"Pods": [pod(name, Labels=labels)]}
    references = pods_of(read(tree))[f"shop/{name}"].metadata.owner_references or ()
    assert [(each.api_version, each.kind, each.name) for each in references] == ([owner] if owner else [])
    assert all(each.controller for each in references)


def test_pods_that_somebody_makes_again_do_not_keep_their_node():
    made = {"Labels": {"pod-template-hash": "7d9c"}}
    tree = smallest() | {"Nodes": [node("n1"), node("n2")]}
    for labels, gone in ((made, 1), ({}, 0)):
        tree["Pods"] = [pod(f"w-7d9c-{on}", "100m", NodeName=on, **labels) for on in ("n1", "n2")]
        recommendation = answer(read(tree, options=RecommendOptions(down=DownOptions())))
        assert recommendation.down is not None
        assert len(recommendation.down.removals) == gone


def test_the_example_can_shrink():
    recommendation = answer(read(json.loads(EXAMPLE.read_bytes()), options=RecommendOptions(down=DownOptions())))
    assert recommendation.down is not None
    assert recommendation.down.removals
    assert not [each for each in recommendation.down.staying_nodes if "no controller" in each.message]


def test_priority_classes_are_looked_up():
    classes = [{"RowID": 1, "Hash": "x", "metadata": {"name": "high"}, "value": 7, "preemptionPolicy": "Never"}]
    tree = with_pod(UID="u", spec={"priorityClassName": "high"}) | {"PriorityClasses": classes}
    request = read(tree)
    made = pods_of(request)["shop/a"]
    assert (made.spec.priority, made.spec.preemption_policy) == (7, "Never")
    assert [obj.value for obj in request.objects if isinstance(obj, PriorityClass)] == [7]
    with pytest.raises(InputError, match=r'pod shop/a: Spec.priorityClassName: there is no PriorityClass "low"'):
        read(changed(tree, "Pods.0.Spec.priorityClassName", "low"))
    # Without any classes nobody can look: what the pod says itself counts.
    del tree["PriorityClasses"]
    assert pods_of(read(tree))["shop/a"].spec.priority == 0


def test_volume_claims_are_left_out_of_the_question():
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]
    request = read(with_pod(spec={"volumes": volumes}))
    assert answer(request).placed == 1
    line = "the snapshot does not tell of volume claims: pods are placed without regard to them"
    assert request.notes == (line,)
    for tree in ({"Nodes": [node("n", AllocatableVolumes=25)]}, {"Nodes": [], "AutoscalerConfig": {
        "ExistingNodes": [node("n", AllocatableVolumes=25)]}}):  # fmt: skip
        notes = read(smallest() | {"Pods": [pod("a", spec={"volumes": volumes})]} | tree).notes
        assert notes == (f"{line}, nor to AllocatableVolumes of nodes",)
    assert not read(smallest() | {"Nodes": [node("n", AllocatableVolumes=25)]}).notes


# Nodes ----------------------------------------------------------------------------------------------------------------


def test_nodes_keep_what_the_snapshot_says_of_them():
    taint = {"key": "k", "value": "v", "effect": "NoSchedule"}
    made = nodes_of(read(smallest() | {"Nodes": [node("n1", ProviderID="aws:///x", Taints=[taint])]}))["n1"]
    assert made.spec.provider_id == "aws:///x"
    assert [(each.key, each.value, each.effect) for each in made.spec.taints or ()] == [("k", "v", "NoSchedule")]
    assert made.status.allocatable == {"cpu": "1920m", "memory": "6776184Ki", "pods": "110"}


def test_pods_use_the_nodes_that_are_there():
    recommendation = answer(read(smallest() | {"Nodes": [node("n1")]}))
    assert (len(recommendation.on_existing), len(recommendation.nodes)) == (1, 2)


def test_a_node_that_is_being_deleted_takes_no_more_pods():
    recommendation = answer(read(smallest() | {"Nodes": [node("n1", DeletionTimestamp=NOW)]}))
    assert not recommendation.on_existing
    assert not read(smallest() | {"Nodes": [node("n1", DeletionTimestamp=ZERO)]}).objects[0].spec.unschedulable


def test_existing_nodes_of_the_autoscaler_stand_in_for_nodes():
    tree = changed(smallest(), "AutoscalerConfig.ExistingNodes", [node("n1")])
    assert list(nodes_of(read(tree | {"Nodes": None}))) == ["n1"]


# Pools ----------------------------------------------------------------------------------------------------------------


def test_a_template_is_a_node_with_the_labels_of_every_kubelet():
    labels = one_offering(smallest()).node.metadata.labels
    assert labels == {
        "kubernetes.io/arch": "amd64", "beta.kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux", "beta.kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m5.large", "beta.kubernetes.io/instance-type": "m5.large",
        "topology.kubernetes.io/region": "eu-west-1", "failure-domain.beta.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": "eu-west-1a", "failure-domain.beta.kubernetes.io/zone": "eu-west-1a",
        "worker.gardener.cloud/pool": "p1", "kubernetes.io/hostname": "p1-eu-west-1a",
    }  # fmt: skip


def test_architecture_labels_and_taints_of_a_pool_are_on_its_nodes():
    taint = {"key": "k", "effect": "NoExecute"}
    tree = smallest()
    tree["WorkerPools"][0] |= {"Architecture": "arm64", "Labels": {"team": "a"}, "Taints": [taint]}
    made = one_offering(tree).node
    assert made.metadata.labels["kubernetes.io/arch"] == "arm64"
    assert made.metadata.labels["team"] == "a"
    assert [each.key for each in made.spec.taints or ()] == ["k"]


@pytest.mark.parametrize(
    "label", ["worker.gardener.cloud/pool", "worker_gardener_cloud_pool", "worker.gardener.cloud_pool"]
)
def test_templates_are_found_by_any_pool_label(label: str):
    tree = changed(smallest(), f"{_AT}.Labels", {label: "p1"})
    tree = changed(tree, f"{_AT}.Allocatable", {"cpu": "1", "memory": "1Gi"})
    assert one_offering(tree).node.status.allocatable == {"cpu": "1", "memory": "1Gi", "pods": "110"}


def test_templates_are_found_by_node_group():
    tree = changed(smallest(), f"{_AT}.Labels", None)
    tree = changed(tree, f"{_AT}.Allocatable.cpu", "1")
    group = {"Name": "g-a", "PoolName": "p1", "Zone": "eu-west-1a", "MaxSize": 5}
    tree["AutoscalerConfig"]["NodeGroups"] = {"g-a": group}
    assert one_offering(tree).node.status.allocatable["cpu"] == "1"


def test_without_an_allocatable_the_capacity_less_the_reserve_counts():
    left = one_offering(changed(smallest(), f"{_AT}.Allocatable", None)).node.status.allocatable
    assert left == {"cpu": "1920m", "memory": "7Gi", "pods": "110"}


def test_a_zone_without_a_template_is_like_another_zone_of_the_pool():
    tree = changed(smallest(), "WorkerPools.0.Zones", ["eu-west-1a", "eu-west-1b"])
    ((first, second),) = [pool.offerings for pool in read(tree).catalogue.pools]
    assert second.node.status == first.node.status
    assert second.node.metadata.labels["topology.kubernetes.io/zone"] == "eu-west-1b"
    assert (second.zone, second.price) == ("eu-west-1b", first.price)


def test_a_pool_without_a_template_is_like_its_nodes_or_what_the_book_knows():
    tree = changed(smallest(), "AutoscalerConfig", None)
    assert one_offering(tree).node.status.capacity["cpu"] == "2"
    there = tree | {"Nodes": [node("n1", Allocatable={"cpu": "1", "memory": "1Gi"})]}
    assert one_offering(there).node.status.allocatable == {"cpu": "1", "memory": "1Gi"}
    with pytest.raises(PoolError, match=r"pool p1: Zones: there is no node template for zone eu-west-1a, and nobody "):
        read(changed(tree, "WorkerPools.0.MachineType", "m5.huge"))
    with pytest.raises(PoolError, match="it has no MachineType"):
        read(changed(tree, "WorkerPools.0.MachineType", ...))


def test_prices_are_those_of_the_zone_s_region():
    assert one_offering(smallest()).price == BOOK.price("m5.large", "eu-west-1")
    other = json.loads(json.dumps(smallest()).replace("eu-west-1", "us-east-1"))
    assert one_offering(other).price == BOOK.price("m5.large", "us-east-1") != one_offering(smallest()).price


def test_without_a_price_nodes_are_counted_and_a_note_says_so():
    tree = json.loads(json.dumps(smallest()).replace("eu-west-1", "mars-north-1"))
    recommendation = answer(read(tree))
    assert (recommendation.objective, recommendation.cost, recommendation.placed) == ("nodes", None, 3)
    assert any("no price is known for m5.large" in note for note in recommendation.notes)


def limits(tree: Data) -> list[tuple[int, str | None]]:
    request = read(tree)
    (pool,) = request.catalogue.pools
    assert all(each.what == NODES for each in (*pool.limits, *request.catalogue.limits))
    return [(each.left, each.zone) for each in (*pool.limits, *request.catalogue.limits)]


def test_limits():
    tree = smallest() | {"Nodes": [node("n1")]}
    assert limits(tree) == [(2, None)]
    group = {"Name": "g-a", "PoolName": "p1", "Zone": "eu-west-1a", "TargetSize": 2, "MinSize": 1, "MaxSize": 7}
    grouped = changed(tree, "AutoscalerConfig.NodeGroups", {"g-a": group})
    assert limits(grouped) == [(1, None), (5, "eu-west-1a")]  # two were ordered
    snapshot = changed(grouped, "AutoscalerConfig.CASettings", {"NodeGroupsMinMax": {"g-a": {"Min": 0, "Max": 4}}})
    assert limits(snapshot) == [(1, None), (2, "eu-west-1a")]
    snapshot["AutoscalerConfig"]["CASettings"]["MaxNodesTotal"] = 6
    assert limits(snapshot) == [(1, None), (2, "eu-west-1a"), (4, None)]
    assert limits(changed(tree, "WorkerPools.0.DeletionTimestamp", NOW))[0] == (0, None)
    assert limits(changed(tree, "WorkerPools.0.Maximum", ...)) == [(0, None)]  # Go's zero


@pytest.mark.parametrize(
    ("limits", "least", "most"),
    [(None, 1, 7), ({"Min": 2}, 2, 7), ({"Max": 4}, 1, 4), ({"Min": 2, "Max": 4}, 2, 4), ({"Min": None}, 1, 7)],
)
def test_a_group_s_minimum_holds_in_its_zone(limits: Data | None, least: int, most: int):
    group = {"Name": "g-a", "PoolName": "p1", "Zone": "eu-west-1a", "MinSize": 1, "MaxSize": 7}
    other = group | {"Name": "g-b", "Zone": "eu-west-1b"}
    tree = changed(smallest(), "AutoscalerConfig.NodeGroups", {"g-a": group, "g-b": other})
    tree["AutoscalerConfig"]["CASettings"] = {"NodeGroupsMinMax": {"g-a": limits} if limits is not None else None}
    (pool,) = read(tree).catalogue.pools
    assert (pool.zone_minimums, pool.minimum) == ({"eu-west-1a": least, "eu-west-1b": 1}, least + 1)
    assert [limit.left for limit in pool.limits if limit.zone == "eu-west-1a"] == [most]


def test_minimum_maximum_and_members_of_a_pool():
    tree = changed(smallest() | {"Nodes": [node("n1"), node("n2", pool="other")]}, "WorkerPools.0.Minimum", 1)
    (pool,) = read(tree).catalogue.pools
    assert (pool.minimum, pool.maximum, pool.current) == (1, 3, 1)
    ((member),) = pool.members
    assert (member.node, member.instance_type, member.zone) == ("n1", "m5.large", "eu-west-1a")
    assert member.price == BOOK.price("m5.large", "eu-west-1")


def test_a_snapshot_with_node_groups_alone():
    tree = changed(smallest(), "WorkerPools", None)
    group = {"Name": "g-a", "PoolName": "p1", "Zone": "eu-west-1a", "TargetSize": 0, "MinSize": 0, "MaxSize": 2}
    tree["AutoscalerConfig"]["NodeGroups"] = {"g-a": group}
    (pool,) = read(tree).catalogue.pools
    assert (pool.name, pool.maximum, pool.offerings[0].instance_type) == ("p1", 2, "m5.large")


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("WorkerPools.0.Minimum", 4, "pool p1: Minimum: the minimum 4 is above the maximum 3"),
        (
            "AutoscalerConfig.NodeGroups",
            {"g": {"MinSize": 2, "MaxSize": 1}},
            "node group g: MinSize: the minimum 2 is above the maximum 1",
        ),
    ],
)
def test_pools_that_cannot_be(path: str, value: Any, line: str):
    with pytest.raises(PoolError, match=re.escape(line)):
        read(changed(smallest(), path, value))


# The text -------------------------------------------------------------------------------------------------------------


def in_case(tree: Any, change: Any) -> Any:
    """The tree with the case of names changed; names in mappings of data stay."""
    if isinstance(tree, list):
        return [in_case(each, change) for each in tree]
    if not isinstance(tree, dict):
        return tree
    made = {}
    for key, value in tree.items():
        if key in (
            "Labels",
            "labels",
            "matchLabels",
            "nodeSelector",
            "requests",
            "Requests",
            "Capacity",
            "Allocatable",
        ):
            made[change(key)] = value
        elif key in ("NodeTemplates", "NodeGroups"):
            made[change(key)] = {name: in_case(each, change) for name, each in value.items()}
        else:
            made[change(key)] = in_case(value, change)
    return made


@pytest.mark.parametrize("change", [str.lower, str.upper, str.swapcase])
def test_the_case_of_names_does_not_matter(change: Any):
    tree = json.loads(EXAMPLE.read_bytes())
    assert read(in_case(tree, change)) == read(tree)


def test_one_name_in_another_case_is_enough():
    tree = smallest()
    odd = changed(tree, "WorkerPools.0.Maximum", ...)
    odd["WorkerPools"][0]["maximum"] = 3
    assert read(odd) == read(tree)
    spec = tree["Pods"][0]["Spec"]
    odd = changed(tree, "Pods.0.Spec", {"Containers": spec["containers"]})
    assert read(odd) == read(tree)


@pytest.mark.parametrize("name", ["NodeSelector", "nodeselector", "nodeSELECTOR"])
def test_one_name_in_another_case_within_a_spec_is_enough(name: str):
    tree = smallest()
    tree["Pods"][0]["Spec"][name] = {"disk": "ssd"}
    assert pods_of(read(tree))["shop/w-0"].spec.node_selector == {"disk": "ssd"}
    tree = smallest()
    tree["Pods"][0]["Spec"]["containers"][0]["resources"]["Limits"] = {"nvidia.com/gpu": "1"}
    (container,) = pods_of(read(tree))["shop/w-0"].spec.containers or ()
    assert container.resources is not None
    assert container.resources.limits == {"nvidia.com/gpu": "1"}


def test_usual_names_are_not_in_another_case():
    tree = smallest()
    tree["Pods"][0]["Spec"] |= {"dnsPolicy": "ClusterFirst", "volumes": [{"name": "v", "configMap": {"name": "c"}}]}
    tree["Pods"][0]["Spec"]["containers"][0] |= {"imagePullPolicy": "Always", "ports": [{"name": "http"}]}
    for good in (json.dumps(tree).encode(), EXAMPLE.read_bytes()):
        checker(GardenerSnapshotText).decode(good)
    with pytest.raises(msgspec.ValidationError):
        checker(GardenerSnapshotText).decode(json.dumps(changed(tree, "Pods.0.Spec.Affinity", {})).encode())


def test_an_exact_name_comes_before_another():
    tree = smallest()
    tree["WorkerPools"][0]["MAXIMUM"] = 9
    assert limits(tree) == [(3, None)]


def test_unknown_fields_nulls_and_zero_times_are_accepted():
    tree = smallest() | {"Colour": "red", "PriorityClasses": None, "SnapshotTime": ZERO, "Number": None}
    tree["WorkerPools"][0] |= {"MaxSurge": "25%", "MaxUnavailable": 0, "DeletionTimestamp": ZERO, "Labels": None}
    tree["Pods"][0] |= {"Colour": 1, "Labels": None, "CreationTimestamp": ZERO, "Requests": None, "NodeName": None}
    tree["Pods"][0]["Spec"] |= {"serviceAccountName": "x", "nodeSelector": None, "containers": [
        {"name": "main", "image": None, "resources": {"requests": {"cpu": "1", "memory": "2Gi"}, "limits": None}}
    ]}  # fmt: skip
    tree["AutoscalerConfig"] |= {"Mode": "replay-mode-run", "CASettings": {"ScanInterval": 10_000_000_000}}
    assert answer(read(tree)).placed == 3


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("WorkerPools.0.Maximum", "3", "body.json: WorkerPools[0].Maximum: want an integer, not text"),
        ("WorkerPools.0.Maximum", -1, "WorkerPools[0].Maximum: want an integer >= 0"),
        ("WorkerPools.0.Zones", "a", "WorkerPools[0].Zones: want a list, not text"),
        ("WorkerPools.0.Labels", {"a": 1}, "WorkerPools[0].Labels.a: want text, not an integer"),
        ("WorkerPools", {}, "WorkerPools: want a list, not an object"),
        ("WorkerPools.0.Name", "", "WorkerPools[0].Name: a name is required"),
        ("WorkerPools.0.Taints", [{"key": "k", "effect": "No"}], 'pool p1: Taints[0].effect: "No" is not an effect'),
        ("Pods.1.PodScheduleStatus", 2, "Pods[1].PodScheduleStatus: want an integer <= 1"),
        ("Pods.1.Name", "", "pod 2: Name: a name is required"),
        ("Pods.1.Name", "w-0", "pod shop/w-0: defined twice, with different content"),
        ("Pods.1.CreationTimestamp", "noon", 'pod shop/w-1: CreationTimestamp: "noon" is not a time'),
        ("Pods.1.Spec.containers.0.resources.requests.cpu", "much", "pod shop/w-1: Spec.containers[0].resources.req"),
        ("Pods.1.Spec.priority", "high", "Pods[1].Spec.priority: want an integer, not text"),
        ("Pods.1.Spec.containers", [], "pod shop/w-1: Spec.containers: at least one container is required"),
        ("Nodes", [{"Name": "n", "Allocatable": {"cpu": "x"}}], "node n: Allocatable.cpu: "),
        (f"{_AT}.Capacity", {"cpu": "x"}, "node template g-a: Capacity.cpu: "),
        (f"{_AT}.Zone", 7, "AutoscalerConfig.NodeTemplates.g-a.Zone: want text, not an integer"),
        (f"{_AT}.Capacity", {"cpu": True}, "AutoscalerConfig.NodeTemplates.g-a.Capacity.cpu: want a quantity"),
        ("AutoscalerConfig.CASettings", {"ScanInterval": "10s"}, "AutoscalerConfig.CASettings.ScanInterval: want an i"),
        ("PriorityClasses", [{"metadata": {"name": "a"}, "value": "x"}], "PriorityClasses[0].value: want an integer"),
    ],
)
def test_what_is_wrong_is_named(path: str, value: Any, line: str):
    tree = smallest()
    tree["Pods"][1]["Labels"] = {"a": "b"}
    with pytest.raises(InputError) as error:
        read(changed(tree, path, value))
    assert line in str(error.value)


def read_snapshot(given: Source) -> Request:
    """The request of a body that is posted to Gardener's route."""
    return parse_request(identify(given, WireFormat.GARDENER)).read(BOOK)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (b"", "it is empty"),
        (b"[]", "want an object, a ClusterSnapshot"),
        (b'{"Pods": [', "JSON is malformed: it ends too early"),
        (b'{\n"Pods": x}', "(line 2)"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_text_that_is_no_snapshot(text: bytes, line: str):
    with pytest.raises(InputError, match=re.escape(line)):
        read_snapshot(source({})._replace(data=text))


_ODD: list[Any] = [
    None,
    "",
    "x",
    0,
    -1,
    2**40,
    1.5,
    True,
    [],
    {},
    [None],
    {"a": None},
    ["x"],
    [[]],
    "\ud83d\ude00",
    ZERO,
]


def leaves(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    pairs = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in pairs:
        found += leaves(value, (*path, key))
    return found


@pytest.mark.parametrize("seed", range(3))
def test_whatever_is_changed_there_is_a_request_or_an_input_error(seed: int):
    chance = random.Random(seed)
    good = json.loads(EXAMPLE.read_bytes())
    places = leaves(good)
    lines, read_ones = [], 0
    for _ in range(120):
        tree = copy.deepcopy(good)
        for *steps, last in chance.sample(places, chance.choice((1, 1, 2))):
            place = tree
            try:
                for step in steps:
                    place = place[step]
                place[last] = chance.choice(_ODD)
            except (KeyError, IndexError, TypeError):
                continue
        try:
            read_snapshot(source(tree))
            read_ones += 1
        except InputError as error:
            lines.append(str(error))
    assert read_ones
    assert not [line for line in lines if "\n" in line]
