"""scaling-advisor: planner requests, constraints beside a cluster, responses, and its own worked cases."""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.paths import EXAMPLES
from tests.support.wire_bodies import (
    BOOK,
    NOW,
    advisor_pod,
    advisor_pool,
    answer,
    changed,
    encoded,
    nodes_of,
    planner,
    pods_of,
    prices,
    read,
    source,
)
from tutti.cluster.work.work_budget import WorkBudget
from tutti.conformance.purchase_run import bought_offerings
from tutti.exceptions import InputError, PoolError
from tutti.kube.reading.sources import Source
from tutti.present.report.drawing_data import drawing_data_of
from tutti.recommend.after_purchase import OfferingIndex, apply_recommendation
from tutti.recommend.compare import compare
from tutti.recommend.records.down_plan import DownPlan, Removal, RemovalReason
from tutti.recommend.records.new_nodes import NewNode, ScaleUp
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, RecommendOptions, Strategy
from tutti.recommend.records.scale_ups import merge
from tutti.wire.merged_scale_ups import purchases
from tutti.wire.request_formats import identify, parse_request, read_request
from tutti.wire.scaling_advisor.request import constraint_of_request
from tutti.wire.scaling_advisor.response import advisor_answer, advisor_error, scaling_advice
from tutti.wire.scaling_advisor.schema import ConstraintText, PlannerText

EXAMPLE = EXAMPLES / "recommend" / "scaling-advisor.json"
POOL, TEMPLATE = "sa.gardener.cloud/node-pool-name", "sa.gardener.cloud/node-template-name"
BERRY, HALF, GRAPE = ("1", "5100Mi"), ("500m", "2500Mi"), ("3", "13Gi")
TWO = [advisor_pool("a"), advisor_pool("b", kind="m5.xlarge", cpu="4", memory="16Gi", priority=1)]
TUTTI = RecommendOptions(binder=Binder.TUTTI)


def parsed(tree: Any) -> PlannerText:
    text = parse_request(identify(source(tree))).content
    assert isinstance(text, PlannerText)
    return text


def constraint(tree: Any) -> ConstraintText:
    request = parse_request(identify(source(tree)))
    found = constraint_of_request(request.content, request.document)
    assert found is not None
    return found


def there(name: str = "n1", pool: str = "a") -> dict[str, Any]:
    labels = {POOL: pool, TEMPLATE: "m5.large", "topology.kubernetes.io/zone": "eu-west-1a"}
    size = {"cpu": "1920m", "memory": "7Gi", "pods": "110"}
    return {"name": name, "labels": labels, "instanceType": "m5.large", "capacity": size, "allocatable": size}


def bought(
    *asks: tuple[str, str], pools: list[dict[str, Any]] | None = None, options: RecommendOptions = TUTTI
) -> Counter[str]:
    tree = planner(*(advisor_pod(f"p-{n}", *ask) for n, ask in enumerate(asks)), pools=pools)
    recommendation = answer(read(tree, options=options))
    assert not recommendation.left
    return Counter(node.instance_type for node in recommendation.nodes)


# The worked cases of its tests and documents --------------------------------------------------------------------------


@pytest.mark.parametrize("binder", list(Binder))
@pytest.mark.parametrize("asks", [[BERRY], [HALF] * 2])
def test_one_node(asks: list[tuple[str, str]], binder: Binder):
    assert bought(*asks, options=RecommendOptions(binder=binder)) == {"m5.large": 1}


def test_three_nodes():
    assert bought(HALF, HALF, BERRY, BERRY) == {"m5.large": 3}
    # kube-scheduler puts the halves on two nodes, for these have more left, and then no berry fits beside them.
    assert bought(HALF, HALF, BERRY, BERRY, options=RecommendOptions()) == {"m5.large": 4}


def test_two_pools():
    assert bought(BERRY, GRAPE, pools=TWO) == {"m5.large": 1, "m5.xlarge": 1}


def test_two_pools_when_kube_scheduler_binds():
    # With one node of each there, it puts the berry on the larger one, for that has more left, and the grape waits.
    assert bought(BERRY, GRAPE, pools=TWO, options=RecommendOptions()) == {"m5.xlarge": 2}


def test_the_greedy_trap():
    pools = [
        advisor_pool("s", kind="small", cpu="4", memory="16Gi"), advisor_pool("l", kind="large", cpu="8", memory="32Gi")
    ]  # fmt: skip
    for pool in pools:
        pool["nodeTemplates"][0]["kubeReservedCapacity"] = {}
    tree = planner(*(advisor_pod(f"p-{n}", "2", "8Gi") for n in range(3)), pools=pools)
    recommendation = answer(read(tree, prices(small=72, large=120)))
    assert (recommendation.cost, [each.instance_type for each in recommendation.nodes]) == (120 * 10**9, ["large"])


# What the fields do ---------------------------------------------------------------------------------------------------


def test_a_pod_keeps_its_fields():
    tree = planner(
        advisor_pod(
            "a", "1", "1Gi", labels={"app": "a"}, nodeSelector={"x": "y"}, overhead={"cpu": "100m"}, priority=5,
            schedulerName="default-scheduler", tolerations=[{"key": "k", "operator": "Exists"}], uid="u",
            preemptionPolicy="Never", affinity={"podAntiAffinity": {}}, topologySpreadConstraints=[
                {"maxSkew": 1, "topologyKey": "t", "whenUnsatisfiable": "DoNotSchedule"}
            ],
        )
    )  # fmt: skip
    made = pods_of(read(tree))["default/a"]
    spec = made.spec
    assert (made.metadata.labels, spec.node_selector, spec.overhead) == ({"app": "a"}, {"x": "y"}, {"cpu": "100m"})
    assert (spec.priority, spec.preemption_policy, spec.scheduler_name) == (5, "Never", "default-scheduler")
    assert spec.containers[0].resources.requests == {"cpu": "1", "memory": "1Gi"}
    assert all((spec.tolerations, spec.affinity, spec.topology_spread_constraints))


def test_priority_and_runtime_classes():
    tree = planner(
        advisor_pod("a", "1", "1Gi", priorityClassName="high", uid="u", creationTimestamp=NOW),
        priorityClasses=[{"metadata": {"name": "high"}, "value": 9}],
    )
    assert pods_of(read(tree))["default/a"].spec.priority == 9


def test_nodes_and_what_is_on_them():
    tree = planner(
        advisor_pod("a", "1", "5100Mi", nodeName="n1"), advisor_pod("b", *BERRY),
        nodes=[there() | {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True,
                          "csiNodeSpec": {"drivers": [{"name": "ebs", "nodeID": "i", "allocatable": {"count": 3}}]}}],
    )  # fmt: skip
    request = read(tree)
    node = nodes_of(request)["n1"]
    assert node.spec.unschedulable
    assert [taint.key for taint in node.spec.taints or ()] == ["k"]
    assert sorted(obj.KIND for obj in request.objects) == ["CSINode", "Node", "Pod", "Pod"]
    (pool,) = request.catalogue.pools
    assert (pool.current, [member.node for member in pool.members]) == (1, ["n1"])
    assert [each.increment for each in answer(request).scale_up] == [1]


@pytest.mark.parametrize(
    "claim",
    [
        {"volumeName": "v", "phase": "Bound", "storageClassName": "s"},
        {"storageClassName": "s", "phase": "Pending"},
    ],
)
@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
def test_volumes(claim: dict[str, Any], mode: str):
    volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}]
    size = {"resources": {"requests": {"storage": "1Gi"}}}
    zone = {"key": "topology.kubernetes.io/zone", "operator": "In", "values": ["eu-west-1a"]}
    tree = planner(
        advisor_pod("a", *BERRY, volumes=volumes),
        pvcs=[{"name": "c", "namespace": "default", "uid": "u", "accessModes": ["ReadWriteOnce"], **size, **claim}],
        pvs=[{
            "name": "v", "uid": "w", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "phase": "Bound",
            "storageClassName": "s", "claimRef": {"name": "c", "namespace": "default"},
            "nodeAffinity": {"nodeSelectorTerms": [{"matchExpressions": [zone]}]},
        }] if "volumeName" in claim else [],
        storageClasses=[{"metadata": {"name": "s", "uid": "x"}, "provisioner": "ebs", "volumeBindingMode": mode}],
    )  # fmt: skip
    assert len(answer(read(tree)).nodes) == 1


def test_pools_have_labels_taints_reserves_and_quotas():
    pool = advisor_pool(
        "a", labels={"team": "x"}, taints=[{"key": "k", "effect": "NoSchedule"}], quota={"cpu": "6"}, min=1,
        availabilityZones=["eu-west-1a", "eu-west-1b"],
    )  # fmt: skip
    pool["nodeTemplates"][0]["systemReservedCapacity"] = {"cpu": "20m"}
    (made,) = read(planner(pools=[pool], nodes=[there()])).catalogue.pools
    first, second = made.offerings
    assert (first.zone, second.zone, made.minimum) == ("eu-west-1a", "eu-west-1b", 1)
    assert first.price == BOOK.price("m5.large", "eu-west-1")
    assert first.node.status.allocatable == {"cpu": "1900m", "memory": "7Gi", "pods": "110"}
    labels = first.node.metadata.labels or {}
    assert (labels["team"], labels[POOL], labels[TEMPLATE]) == ("x", "a", "m5.large")
    assert [taint.key for taint in first.node.spec.taints or ()] == ["k"]
    assert [(limit.what, limit.left) for limit in made.limits] == [("cpu", 4080)]


def with_volumes(number: int, mode: str, *, most: int | None, classes: int = 1) -> dict[str, Any]:
    """Small pods with a claim each, and a large node that takes so many volumes."""
    size = {"resources": {"requests": {"storage": "1Gi"}}, "accessModes": ["ReadWriteOnce"]}
    pods, claims = [], []
    for place in range(number):
        volumes = [{"name": "d", "persistentVolumeClaim": {"claimName": f"c{place}"}}]
        pods.append(advisor_pod(f"p{place}", "100m", "100Mi", volumes=volumes))
        claims.append({"name": f"c{place}", "namespace": "default", "uid": f"u{place}", "storageClassName": "s0",
                       "phase": "Pending", **size})  # fmt: skip
    storage = [
        {"metadata": {"name": f"s{place}"}, "provisioner": f"disk-{place}", "volumeBindingMode": mode}
        for place in range(classes)
    ]
    pool = advisor_pool("a", kind="m5.xlarge", cpu="4", memory="16Gi")
    if most is not None:
        pool = changed(pool, "nodeTemplates.0.maxVolumes", most)
    return planner(*pods, pools=[pool], pvcs=claims, storageClasses=storage)


@pytest.mark.parametrize("mode", ["Immediate", "WaitForFirstConsumer"])
@pytest.mark.parametrize(
    ("most", "nodes"), [(2, [2, 2, 2]), (3, [3, 3]), (4, [2, 4]), (6, [6]), (0, [6]), (None, [6])]
)  # fmt: skip
@pytest.mark.parametrize("binder", [Binder.KUBE_SCHEDULER, Binder.TUTTI])
def test_a_new_node_takes_so_many_volumes(mode: str, most: int | None, nodes: list[int], binder: Binder):
    made = read(with_volumes(6, mode, most=most), options=RecommendOptions(binder=binder))
    found = answer(made)
    assert not found.left
    assert len(found.nodes) == len(nodes)
    assert max(len(node.pods) for node in found.nodes) <= (most or 6)
    assert not any("maxVolumes" in note for note in made.catalogue.notes)


def test_why_a_pod_with_more_volumes_than_a_node_takes_waits():
    tree = with_volumes(2, "WaitForFirstConsumer", most=1)
    first, second = tree["snapshot"]["pods"]
    first["volumes"] += [second["volumes"][0] | {"name": "e"}]
    tree["snapshot"]["pods"] = [first]
    found = answer(read(tree))
    assert [each.pod for each in found.left] == ["default/p0"]
    assert "exceed max volume count" in found.left[0].reason


def test_how_the_volumes_of_a_template_count_is_told():
    assert read(with_volumes(2, "Immediate", most=2, classes=2)).catalogue.notes == (
        "maxVolumes of templates counts for each CSI driver by itself: disk-0, disk-1",
    )
    assert read(with_volumes(0, "Immediate", most=2, classes=0)).catalogue.notes == (
        "maxVolumes of templates does not count: the input names no CSI driver, by storage class, volume or node",
    )
    assert read(with_volumes(2, "Immediate", most=None, classes=2)).catalogue.notes == ()


def test_priorities_do_not_count_and_a_note_says_who_would_be_first():
    request = read(planner(advisor_pod("p", *BERRY), pools=TWO))
    assert request.catalogue.notes == (
        "priorities of pools and templates do not count, price decides; scaling-advisor would try b/m5.xlarge first",
    )
    assert [each.pool for each in answer(request).scale_up] == ["a"]
    assert not read(planner(pools=TWO[:1])).catalogue.notes


def test_least_waste_is_a_strategy_of_its_own():
    tree = planner(advisor_pod("a", *BERRY))
    assert read(tree | {"scoringStrategy": "least-waste"}).options.strategy is Strategy.LEAST_WASTE
    assert read(tree | {"scoringStrategy": "least-cost"}).options.strategy is None


@pytest.mark.parametrize(("options", "followed"), [(None, True), (Strategy.LEAST_WASTE, True), ("optimal", False)])
def test_a_scoring_strategy_that_is_not_followed_is_told(options: Any, followed: bool):
    chosen = RecommendOptions(strategy=None if options is None else Strategy(options))
    request = read(planner(advisor_pod("a", *BERRY)) | {"scoringStrategy": "least-waste"}, options=chosen)
    line = "scoringStrategy least-waste is not followed: strategy optimal was asked for"
    assert (line in request.notes) is not followed


def test_simulators_and_modes_are_told_and_not_looked_at():
    tree = planner(advisor_pod("a", *BERRY)) | {"simulatorStrategy": "single-node-multi-sim"}
    request = read(tree | {"adviceGenerationMode": "Incremental"})
    response = encoded(advisor_answer(answer(request), request, planner=parsed(tree), millis=1))
    notes = response["labels"]["sa.gardener.cloud/notes"]
    assert "simulatorStrategy single-node-multi-sim is not looked at: one search is made for all pods" in notes
    assert "adviceGenerationMode incremental is not looked at: the whole plan is one answer" in notes
    assert read(planner() | {"adviceGenerationMode": "all-at-once", "simulatorStrategy": ""}).notes == ()


@pytest.mark.parametrize(
    ("more", "seconds"),
    [
        ({}, 5.0),
        ({"AdviceGenerationTimeout": 1_500_000_000}, 1.5),
        ({"adviceGenerationTIMEOUT": 1_500_000_000}, 1.5),
        ({"AdviceGenerationTimeout": 60_000_000_000}, 5.0),
        ({"AdviceGenerationTimeout": 0}, 5.0),
        ({"AdviceGenerationTimeout": None}, 5.0),
    ],
)
def test_the_timeout_is_the_most_that_is_searched(more: dict[str, Any], seconds: float):
    assert parse_request(identify(source(planner() | more))).seconds(5.0) == seconds


def test_a_timeout_that_is_no_number_is_refused():
    with pytest.raises(InputError, match="AdviceGenerationTimeout: want an integer"):
        parse_request(identify(source(planner() | {"AdviceGenerationTimeout": "soon"})))


def test_two_templates_of_one_type_are_two_things_to_buy():
    pool = advisor_pool("p", cpu="2", memory="8Gi")
    large = pool["nodeTemplates"][0] | {"name": "large", "capacity": {"cpu": "8", "memory": "32Gi"}}
    pool["nodeTemplates"].append(large)
    tree = planner(advisor_pod("a", "6", "1Gi"), pools=[pool])
    request = read(tree)
    recommendation = answer(request)
    assert (recommendation.placed, [each.template for each in recommendation.scale_up]) == (1, ["p-large-eu-west-1a"])
    (item,) = encoded(advisor_answer(recommendation, request, planner=parsed(tree), millis=1))["scaleOutPlan"]["items"]
    assert item["templateName"] == "large"
    settled = apply_recommendation(recommendation, request)
    assert [each.pod for each in settled.plan.binds] == ["default/a"]
    assert compare(request, recommendation, budget=WorkBudget.of_seconds(5, time.process_time), peers=())[0].kept == 1
    assert bought_offerings(request, recommendation) == [(request.catalogue.pools[0].offerings[1], 1)]
    (place,) = drawing_data_of(request, recommendation).places
    assert place.boxes[0].room["cpu"] == 7920


def test_nodes_of_two_templates_are_two_scale_ups():
    where = {"pool": "p", "zone": "z", "instance_type": "t", "capacity_type": "on-demand"}
    nodes = [NewNode(name=name, template=name[0], **where) for name in ("b-1", "a-1", "b-2")]
    assert [(each.template, each.node_names) for each in merge(nodes)] == [("a", ("a-1",)), ("b", ("b-1", "b-2"))]
    twice = Recommendation(
        strategy="", objective="", binder="", scale_up=merge(nodes), down=DownPlan(scale_up=merge(nodes))
    )
    assert [(each.template, each.increment) for each in purchases(twice)] == [("a", 2), ("b", 4)]


def test_a_node_without_a_template_is_of_the_first_offering():
    request = read(planner(pools=[advisor_pool("a")]))
    (offering,) = request.catalogue.pools[0].offerings
    bought = NewNode(name="n", pool="a", zone="eu-west-1a", instance_type="m5.large", capacity_type="on-demand")
    assert OfferingIndex(request.catalogue).find(bought) is offering
    assert OfferingIndex(request.catalogue).find(replace(bought, template="gone")) is offering
    with pytest.raises(KeyError):
        OfferingIndex(request.catalogue).find(replace(bought, zone="elsewhere"))


def test_a_template_s_name_is_its_own():
    pool = advisor_pool("a")
    pool["nodeTemplates"] *= 2
    line = "constraint.spec.nodePools[0].nodeTemplates[1].name: there is another template of this name in the pool"
    with pytest.raises(InputError, match=re.escape(line)):
        read(planner(pools=[pool]))


def test_a_constraint_beside_a_pod_that_is_called_snapshot():
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "labels": {"app": "snapshot"}},
        "spec": {"containers": [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]},
    }  # fmt: skip
    tree = {"apiVersion": "v1", "kind": "List", "items": [pod, planner()["constraint"]]}
    request = read(tree)
    assert answer(request).placed == 1
    advice = encoded(scaling_advice(answer(request), request, constraint=constraint(tree)))
    assert advice["metadata"] == {"name": "c", "namespace": "default"}


def test_a_constraint_among_the_objects_of_a_cluster_or_beside_it():
    tree = planner()
    pod = {
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"},
        "spec": {"containers": [{"name": "m", "resources": {"requests": {"cpu": "1"}}}]},
    }  # fmt: skip
    both = read({"apiVersion": "v1", "kind": "List", "items": [pod, tree["constraint"]]})
    assert [each.pool for each in answer(both).scale_up] == ["a"]
    beside = read_request(source(pod), BOOK, pools=source(tree["constraint"], "c.json"))
    assert beside.catalogue == both.catalogue
    text = (
        b"apiVersion: sa.gardener.cloud/v1alpha1\nkind: ScalingConstraint\nmetadata: {name: c}\nspec: {nodePools: []}\n"
    )
    assert read_request(source(pod), BOOK, pools=Source("c.yaml", text)).catalogue.pools == ()


def test_older_names_in_another_case_are_read():
    pod = {"Name": "a", "Namespace": "default", "AggregatedRequests": {"memory": 5662310400}, "NodeName": "n1"}
    tree = planner() | {"snapshot": {"Pods": [pod], "Nodes": [there()]}}
    made = pods_of(read(tree))["default/a"]
    assert (made.spec.node_name, made.spec.containers[0].resources.requests) == ("n1", {"memory": 5662310400})


# Answers --------------------------------------------------------------------------------------------------------------


def test_the_response_field_for_field():
    tree = planner(advisor_pod("a", *BERRY), advisor_pod("b", "64", "1Gi"), nodes=[there()])
    tree["snapshot"]["pods"].append(advisor_pod("c", "1", "5100Mi", nodeName="n1"))
    request = read(tree)
    response = encoded(advisor_answer(answer(request), request, planner=parsed(tree), millis=12))
    plan = {
        "poolName": "a", "templateName": "m5.large", "instanceType": "m5.large", "region": "eu-west-1",
        "availabilityZone": "eu-west-1a", "currentReplicas": 1, "delta": 1,
    }  # fmt: skip
    assert response["RequestRef"] == {"id": "r-1", "correlationID": "c-1"}
    assert response["scaleOutPlan"] == {"unsatisfiedPodNames": ["default/b"], "items": [plan]}
    assert response["labels"] == {
        "sa.gardener.cloud/request-id": "r-1", "sa.gardener.cloud/correlation-id": "c-1",
        "sa.gardener.cloud/total-simulation-runs": "1", "sa.gardener.cloud/plan-generate-duration": "12ms",
        "sa.gardener.cloud/constraint-num-pools": "1", "sa.gardener.cloud/snapshot-num-unscheduled-pods": "2",
    }  # fmt: skip
    assert response["id"]
    assert "scaleInPlan" not in response
    assert "error" not in response
    advice = encoded(scaling_advice(answer(request), request, constraint=constraint(tree)))
    assert (advice["apiVersion"], advice["kind"]) == ("sa.gardener.cloud/v1alpha1", "ScalingAdvice")
    assert advice["spec"]["constraintRef"] == {"name": "c", "namespace": "default"}
    assert advice["spec"]["scaleOutPlan"] == response["scaleOutPlan"]


def test_nodes_that_go_are_the_scale_in_plan_with_what_replaces_them():
    tree = planner(nodes=[there()])
    request = read(tree)
    where = {"pool": "a", "zone": "eu-west-1a", "instance_type": "m5.large", "capacity_type": "on-demand"}
    gone = Removal(node="n1", why=RemovalReason.CONSOLIDATED, utilization=0.2, **where)
    down = DownPlan(removals=(gone,), scale_up=(ScaleUp(increment=1, node_names=("n2",), **where),))
    response = encoded(advisor_answer(replace(answer(request), down=down), request, planner=parsed(tree), millis=1))
    placement = {
        "poolName": "a", "templateName": "m5.large", "instanceType": "m5.large", "region": "",
        "availabilityZone": "eu-west-1a",
    }  # fmt: skip
    assert response["scaleInPlan"] == {"items": [placement | {"nodeName": "n1"}]}
    assert [each["delta"] for each in response["scaleOutPlan"]["items"]] == [1]


def test_an_error_names_the_request_as_far_as_it_can_be_read():
    assert encoded(advisor_error("no", planner=parsed(planner()))) == {
        "RequestRef": {"id": "r-1", "correlationID": "c-1"}, "error": "no",
    }  # fmt: skip
    assert encoded(advisor_error("no")) == {"RequestRef": {"id": ""}, "error": "no"}


def test_the_example_is_answered():
    request = read(json.loads(EXAMPLE.read_bytes()), options=TUTTI)
    assert Counter(node.instance_type for node in answer(request).nodes) == {"m5.xlarge": 2}


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ("constraint", ..., "body.json: constraint: it is required: a ScalingConstraint"),
        ("constraint.spec.nodePools.0.name", "", "constraint.spec.nodePools[0].name: a name is required"),
        ("constraint.spec.nodePools.0.min", "x", "constraint.spec.nodePools[0].min: want an integer, not text"),
        ("constraint.spec.nodePools.0.quota", {"cpu": "x"}, "constraint.spec.nodePools[0].quota.cpu: "),
        ("scoringStrategy", "best", 'scoringStrategy: "best" is not a strategy'),
        ("simulatorStrategy", "fast", 'simulatorStrategy: "fast" is not a strategy (want single-node-multi-sim or'),
        ("adviceGenerationMode", "now", 'adviceGenerationMode: "now" is not a mode (want all-at-once or incremental)'),
        ("AdviceGenerationTimeout", -1, "AdviceGenerationTimeout: want an integer >= 0"),
        ("snapshot.pods.0.aggregatedRequests", {"cpu": "x"}, "pod default/a: spec.containers[0]"),
        ("snapshot.pods.0.priority", [], "snapshot.pods[0].priority: want an integer, not a list"),
        ("snapshot.pods.0.name", "", "pod without a name: metadata.name: a name is required"),
        ("snapshot", [], "snapshot: want an object, not a list"),
    ],
)
def test_what_is_wrong_is_named(path: str, value: Any, line: str):
    with pytest.raises(InputError, match=re.escape(line)):
        read(changed(planner(advisor_pod("a", *BERRY)), path, value))


def test_pools_that_cannot_be():
    with pytest.raises(PoolError, match=r"pool a: .*it has no node template"):
        read(planner(pools=[advisor_pool("a", nodeTemplates=[])]))
    with pytest.raises(PoolError, match=r"nodeTemplates\[0\].capacity: it has no capacity, and nobody knows"):
        read(planner(pools=[changed(advisor_pool("a", kind="huge"), "nodeTemplates.0.capacity", {})]))
