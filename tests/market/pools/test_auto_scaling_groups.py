"""Auto Scaling groups, and pools inferred from nodes."""

import json

import pytest

from tests.support import builders
from tests.support.builders import amounts
from tutti.exceptions import InputError
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.sources import Source
from tutti.market.pool_context import PoolContext
from tutti.market.pools.reader import catalogue_of, read_pools
from tutti.market.price_book import PriceBook

TEMPLATE = "k8s.io/cluster-autoscaler/node-template/"


def cloud_node(name, kind="m5.large", zone="eu-west-1a", *, ready="True", taints=(), provider="", **labels):
    """A node of a cloud; ``__`` in the name of a label stands for a slash, ``_`` for a dot."""
    named = {k.replace("__", "/").replace("_", "."): v for k, v in labels.items()}
    where = {"node.kubernetes.io/instance-type": kind, "topology.kubernetes.io/zone": zone} if kind else {}
    status = {"conditions": [{"type": "Ready", "status": ready}], "capacity": amounts("2", "8Gi", pods="29")}
    spec = {"taints": list(taints), "provider_id": provider}
    return builders.node(name, "1900m", memory="7Gi", pods="29", labels=where | named, **status, **spec)


def group(name="workers", tags=(), **fields):
    listed = [{"Key": key, "Value": value} for key, value in dict(tags).items()]
    zones = ["eu-west-1a", "eu-west-1b"]
    made = {"AutoScalingGroupName": name, "MinSize": 1, "MaxSize": 5, "DesiredCapacity": 2, "AvailabilityZones": zones}
    return made | {"Tags": listed} | fields


def groups(*listed, nodes=()):
    source = Source("asg.json", json.dumps({"AutoScalingGroups": list(listed)}).encode())
    return read_pools(source, PoolContext(PriceBook(), nodes=nodes))


def test_a_group_is_made_from_its_tags():
    tags = {
        f"{TEMPLATE}label/node.kubernetes.io/instance-type": "g4dn.xlarge",
        f"{TEMPLATE}label/team": "ml",
        f"{TEMPLATE}taint/gpu": "yes:NoSchedule",
        f"{TEMPLATE}resources/example.com/fpga": "2",
        "eks:nodegroup-name": "ng",
    }
    (made,) = groups(group(tags=tags)).pools
    assert [(o.instance_type, o.zone, o.price) for o in made.offerings] == [
        ("g4dn.xlarge", "eu-west-1a", 587_000_000), ("g4dn.xlarge", "eu-west-1b", 587_000_000),
    ]  # fmt: skip
    new = made.offerings[1].node
    expected = {"team": "ml", "eks.amazonaws.com/nodegroup": "ng", "eks.amazonaws.com/capacityType": "ON_DEMAND"}
    assert new.metadata.labels.items() >= expected.items()
    assert (new.spec.taints[0].key, new.spec.taints[0].value) == ("gpu", "yes")
    assert new.status.allocatable["example.com/fpga"] == "2"
    assert new.status.allocatable["nvidia.com/gpu"] == "1"
    assert [(each.left, each.zone) for each in made.limits] == [(3, None)]
    assert (made.current, made.minimum, made.maximum) == (2, 1, 5)


def test_a_mixed_group_of_spot_and_a_group_that_is_not_enabled():
    mixed = {
        "LaunchTemplate": {"Overrides": [{"InstanceType": "m5.large"}, {"InstanceType": "m5a.large"}]},
        "InstancesDistribution": {"OnDemandPercentageAboveBaseCapacity": 0, "OnDemandBaseCapacity": 0},
    }
    enabled = {"k8s.io/cluster-autoscaler/enabled": "true"}
    catalogue = groups(group("a", enabled, MixedInstancesPolicy=mixed), group("b"))
    assert [pool.name for pool in catalogue.pools] == ["a"]
    assert {(o.instance_type, o.capacity_type) for o in catalogue.pools[0].offerings} == {("m5.large", "spot")}
    assert catalogue.notes == (
        "1 group is ignored because it lacks the tag k8s.io/cluster-autoscaler/enabled: b",
        "group a: m5.large stands for its 2 types",
    )


def test_a_group_of_an_unknown_type_is_left_out_if_there_are_others():
    named = f"{TEMPLATE}label/node.kubernetes.io/instance-type"
    catalogue = groups(group("a", {named: "m5.large"}), group("b", {named: "x9.huge"}), group("c"))
    assert [pool.name for pool in catalogue.pools] == ["a"]
    assert catalogue.notes == (
        "group b is left out: the size of instance type x9.huge is not known: give it with --prices",
        f"group c is left out: its instance type is not known: give it in the tag {named}",
    )
    with pytest.raises(InputError, match=r"group b: the size of instance type x9\.huge is not known"):
        groups(group("b", {named: "x9.huge"}))


def test_a_group_with_nodes_makes_more_of_them():
    there = cloud_node("n1", provider="aws:///eu-west-1a/i-1", disk="ssd")
    (made,) = groups(group(Instances=[{"InstanceId": "i-1", "InstanceType": "m5.large"}]), nodes=[there]).pools
    for offering in made.offerings:
        assert offering.node.metadata.labels["disk"] == "ssd"
        assert offering.node.metadata.labels["topology.kubernetes.io/zone"] == offering.zone
        assert offering.node.status.allocatable["cpu"] == "1900m"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({}, "asg.json: group workers: its instance type is not known"),
        ({"MaxSize": 0}, "asg.json: group workers: MaxSize: want 0 <= MinSize <= MaxSize"),
        ({"MaxSize": "x"}, "asg.json: group workers: expected int, got str - at MaxSize"),
        (
            {"tags": {f"{TEMPLATE}taint/a": "b", f"{TEMPLATE}label/node.kubernetes.io/instance-type": "m5.large"}},
            '"b" is not value:Effect',
        ),
    ],
)
def test_faults_of_groups(fields, problem):
    with pytest.raises(InputError) as caught:
        groups(group(**fields))
    assert problem in str(caught.value)


def inferred(*nodes):
    return catalogue_of(Snapshot(), PoolContext(PriceBook(), nodes=nodes))


def test_pools_are_inferred_from_the_labels_of_every_cloud():
    catalogue = inferred(
        cloud_node("a1", eks_amazonaws_com__nodegroup="a", eks_amazonaws_com__capacityType="SPOT"),
        cloud_node("a2", "m5.xlarge", "eu-west-1b", eks_amazonaws_com__nodegroup="a"),
        cloud_node(
            "g",
            "n1-standard-2",
            "europe-west1-b",
            cloud_google_com__gke_nodepool="g",
            **{"cloud.google.com/gke-nodepool": "g"},
        ),
        cloud_node("m", **{"node-role.kubernetes.io/control-plane": ""}),
        cloud_node("x"),
    )
    assert [(pool.name, pool.current, pool.maximum, len(pool.offerings)) for pool in catalogue.pools] == [
        ("a", 2, None, 4), ("g", 1, None, 1), ("nodes-like-m5.large", 1, None, 1),
    ]  # fmt: skip
    spot = catalogue.pools[0].offerings[0]
    assert (spot.instance_type, spot.zone, spot.capacity_type, spot.price) == (
        "m5.large",
        "eu-west-1a",
        "spot",
        54_000_000,
    )
    moved = catalogue.pools[0].offerings[1].node.metadata.labels
    assert moved["topology.kubernetes.io/zone"] == "eu-west-1b"
    assert "minimum and maximum are not known" in catalogue.notes[0]
    assert any("n1-standard-2" in note for note in catalogue.notes)


def test_the_example_is_a_ready_node_and_what_passes_is_not_copied():
    trouble = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
    own = {"key": "dedicated", "effect": "NoSchedule"}
    pool = {"worker.gardener.cloud/pool": "w"}
    (made,) = inferred(
        cloud_node("n1", taints=[trouble], ready="False", **pool), cloud_node("n2", taints=[own], mark="this", **pool)
    ).pools
    (offering,) = made.offerings
    assert offering.node.metadata.labels["mark"] == "this"
    assert [taint.key for taint in offering.node.spec.taints] == ["dedicated"]


def test_unlabelled_nodes_of_one_size_form_one_pool():
    (made,) = inferred(cloud_node("n1", ""), cloud_node("n2", "")).pools
    assert (made.name, made.current, made.offerings[0].price) == ("nodes-like-n1", 2, None)


def test_without_nodes_nothing_is_inferred():
    catalogue = inferred()
    assert (catalogue.pools, len(catalogue.notes)) == ((), 1)
