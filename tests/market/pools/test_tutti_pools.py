"""Tutti's own text of node pools."""

import pytest

from tests.support.builders import node
from tutti.exceptions import InputError
from tutti.kube.reading.sources import Source
from tutti.market.pool_context import PoolContext
from tutti.market.pools.reader import read_pools
from tutti.market.price_book import PriceBook

TEXT = """
region: eu-west-1
limits: {nodes: 100}
pools:
- name: general
  instanceTypes: [m5.large, m5.xlarge]
  zones: [eu-west-1a, eu-west-1b]
  capacityTypes: [on-demand, spot]
  max: 12
  maxPerZone: 4
  labels: {team: ml}
  taints: [{key: gpu, value: "true", effect: NoSchedule}]
  limits: {cpu: "200"}
- name: own
  template:
    capacity: {cpu: "8", memory: 32Gi, example.com/fpga: 2}
    allocatable: {cpu: 7500m, memory: 30Gi, example.com/fpga: 2}
  price: 0.5
"""


def read(text, **market):
    return read_pools(Source("pools.yaml", text.encode()), PoolContext(PriceBook(), **market))


def test_every_type_zone_and_capacity_type_is_offered():
    general, own = read(TEXT).pools
    assert len(general.offerings) == 8
    first = general.offerings[0]
    assert (first.instance_type, first.zone, first.price) == ("m5.large", "eu-west-1a", 107_000_000)
    # 2 cores: 60m + 10m; 8 GiB less 7.5 % less 255 + 11 x 29 + 100 MiB.
    assert first.node.status.allocatable == {
        "cpu": "1930m", "memory": "6903Mi", "pods": "29", "ephemeral-storage": "17Gi",
    }  # fmt: skip
    labels = first.node.metadata.labels
    assert labels["team"] == "ml"
    assert labels["topology.kubernetes.io/region"] == "eu-west-1"
    assert first.node.spec.taints[0].value == "true"
    assert [(each.what, each.left, each.zone) for each in general.limits] == [
        ("nodes", 12, None), ("nodes", 4, "eu-west-1a"), ("nodes", 4, "eu-west-1b"), ("cpu", 200_000, None),
    ]  # fmt: skip
    assert (own.offerings[0].price, own.offerings[0].zone) == (500_000_000, "")
    assert own.offerings[0].node.status.allocatable["example.com/fpga"] == 2
    assert own.offerings[0].node.status.allocatable["pods"] == "110"


def test_nodes_of_a_pool_count_by_their_pool_label():
    labels = {"eks.amazonaws.com/nodegroup": "general", "topology.kubernetes.io/zone": "eu-west-1a"}
    there = node("n", labels=labels, capacity={"cpu": "4"})
    general, _ = read(TEXT, nodes=[there]).pools
    assert [each.left for each in general.limits] == [11, 3, 4, 196_000]
    assert general.limits[0].reason == "pool general has 1 of at most 12 nodes"
    assert general.offerings[0].node.metadata.labels["eks.amazonaws.com/nodegroup"] == "general"
    assert read(TEXT, nodes=[there]).limits[0].left == 99


def test_without_nodes_a_limit_of_the_cluster_counts_what_pools_say_they_have():
    text = (
        "limits: {nodes: 9}\npools: [{name: a, instanceType: m5.large, current: 4}, {name: b, instanceType: m5.large}]"
    )
    (limit,) = read(text, region="eu-west-1").limits
    assert (limit.left, limit.reason) == (5, "all pools have 4 of at most 9 nodes")


def test_the_reserve_can_be_given():
    text = "pools: [{name: a, instanceType: m5.large, reserved: {cpu: 80m, memory: 1Gi}, disk: 100Gi}]"
    (made,) = read(text, region="eu-west-1").pools
    assert made.offerings[0].node.status.allocatable == {
        "cpu": "1920m", "memory": "6553Mi", "pods": "29", "ephemeral-storage": "100Gi",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ("instanceType: m5.large, foo: 1", "pools.yaml: pool a: foo: no such field"),
        ("instanceType: m5.large, max: -1", "pool a: max: expected int >= 0"),
        ("instanceType: m5.large, max: 1, min: 2", "pool a: min: the minimum 2 is above the maximum 1"),
        ("instanceType: m5.large, max: many", "pool a: max: expected int, got str"),
        ("instanceType: tiny", "pool a: instanceTypes: unknown instance type tiny: give a template"),
        ("zones: [x]", "pool a: instanceTypes: instance types or a template are required"),
        ("instanceType: m5.large, limits: {cpu: lots}", 'pool a: limits.cpu: "lots" is not a quantity'),
        ("instanceType: m5.large, price: -3", 'pool a: price: "-3" is not an amount of dollars'),
        ("instanceType: m5.large, price: {m5.tiny: 3}", "pool a: price.m5.tiny: the pool has no such instance type"),
        ("instanceType: m5.large, capacityTypes: [free]", 'pool a: capacityTypes: "free" is not a capacity type'),
        ("instanceType: m5.large, taints: [{key: x, effect: Never}]", "pool a: taints[0].effect"),
        ("template: {capacity: {cpu: 4}}", "pools.yaml: pool a: template.capacity.memory: it is required"),
        ("template: {capacity: {cpu: 0, memory: 4Gi}}", "pool a: template.capacity.cpu: it is required"),
        (
            "template: {capacity: {cpu: 4, memory: 4Gi}, allocatable: {cpu: 4}}",
            "pool a: template.allocatable.memory: it is required",
        ),
        (
            "template: {capacity: {cpu: 4, memory: 4Gi}, allocatable: {cpu: 4100m, memory: 4Gi}}",
            'pool a: template.allocatable.cpu: "4100m" is more than the capacity "4"',
        ),
        ("instanceType: m5.large}, {name: a, instanceType: m5.large", "pool a: name: there is another pool"),
    ],
)
def test_faults_are_one_line_with_file_pool_and_field(fields, problem):
    with pytest.raises(InputError) as caught:
        read(f"pools: [{{name: a, {fields}}}]", region="eu-west-1")
    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "text", ["foo: 1", "[1, 2]", "", "pools: []", "kind: Pod\napiVersion: v1\nmetadata: {name: x}"]
)
def test_other_files_are_refused(text):
    with pytest.raises(InputError, match=r"^pools\.yaml: "):
        read(text)
