"""Karpenter's node pools: requirements held against types, objects of a dump, limits."""

import pytest

from tests.support.builders import node
from tests.support.loading import load
from tutti.exceptions import InputError
from tutti.kube.objects import KarpenterPool, LabelSelectorRequirement
from tutti.kube.reading.sources import Source
from tutti.market.instance_types import InstanceOffer, InstanceType
from tutti.market.pool_context import PoolContext
from tutti.market.pools.karpenter_offerings import karpenter_pool
from tutti.market.pools.reader import read_pools
from tutti.market.price_book import PriceBook

ZONE, TYPE, CAPACITY = "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type", "karpenter.sh/capacity-type"


def kind(name, cpu=2, **labels):
    offers = tuple(
        InstanceOffer(zone=zone, capacity_type=capacity, price=cpu * 1000)
        for zone in ("a", "b")
        for capacity in ("on-demand", "spot")
    )
    capacity = {"cpu": str(cpu), "memory": f"{cpu * 4}Gi", "pods": "29"}
    return InstanceType(
        name=name, capacity=capacity, overhead={"cpu": "70m", "memory": "1Gi"}, labels=labels, offers=offers
    )


TYPES = [kind("small", arch="arm64", cpus="2"), kind("big", 8, arch="amd64", cpus="8", gpu="yes")]


def pool(*requirements, **fields):
    wanted = [LabelSelectorRequirement(key=k, operator=o, values=list(v) or None) for k, o, *v in requirements]
    return karpenter_pool(name="p", requirements=wanted, types=TYPES, **fields)


def bought(made):
    return {(o.instance_type, o.zone, o.capacity_type) for o in made.offerings}


@pytest.mark.parametrize(
    ("requirement", "types"),
    [
        (("arch", "In", "amd64"), {"big"}),
        (("arch", "NotIn", "amd64"), {"small"}),
        (("gpu", "Exists"), {"big"}),
        (("gpu", "DoesNotExist"), {"small"}),
        (("gpu", "NotIn", "no"), {"small", "big"}),
        (("gpu", "In", "no"), set()),
        (("cpus", "Gt", "2"), {"big"}),
        (("cpus", "Lt", "3"), {"small"}),
        (("cpus", "Gte", "8"), {"big"}),
        (("gpu", "Gt", "0"), set()),
        ((TYPE, "In", "small"), {"small"}),
        (("beta.kubernetes.io/instance-type", "In", "small"), {"small"}),
    ],
)
def test_requirements_select_types(requirement, types):
    assert {o.instance_type for o in pool(requirement).offerings} == types


def test_requirements_select_offers():
    made = pool((ZONE, "In", "a"), (CAPACITY, "In", "spot"), (TYPE, "In", "big"))
    assert bought(made) == {("big", "a", "spot")}
    node = made.offerings[0].node
    assert (
        node.metadata.labels.items() >= {ZONE: "a", CAPACITY: "spot", TYPE: "big", "karpenter.sh/nodepool": "p"}.items()
    )
    assert node.metadata.labels["kubernetes.io/hostname"] == node.metadata.name
    assert node.status.allocatable == {"cpu": "7930m", "memory": "31Gi", "pods": "29"}


def test_a_label_of_the_pool_alone_gives_a_variant_for_each_value():
    made = pool(("stage", "In", "x", "y"), (ZONE, "In", "a"), (CAPACITY, "In", "spot"), labels={"team": "ml"})
    assert sorted((o.instance_type, o.node.metadata.labels["stage"]) for o in made.offerings) == [
        ("big", "x"), ("big", "y"), ("small", "x"), ("small", "y"),
    ]  # fmt: skip
    assert len({o.node.metadata.name for o in made.offerings}) == 4
    assert all(o.node.metadata.labels["team"] == "ml" for o in made.offerings)
    assert not any("stage" in o.node.metadata.labels for o in pool(("stage", "NotIn", "x")).offerings)


def test_limits_count_the_nodes_of_the_pool():
    mine, other = (
        node(name, "7", capacity={"cpu": "8"}, labels={"karpenter.sh/nodepool": owner})
        for name, owner in (("n1", "p"), ("n2", "other"))
    )
    made = pool(limits={"cpu": 20, "nodes": 1}, nodes=[mine, other])
    cpu, nodes = made.limits
    assert (cpu.what, cpu.left, cpu.reason) == ("cpu", 12000, "pool p has 8 of at most 20 cpu")
    assert (nodes.what, nodes.left, made.current, made.maximum) == ("nodes", 0, 1, 1)


def test_a_bad_operator_is_refused():
    with pytest.raises(InputError, match=r"requirements\.arch: a requirement cannot have the operator 'Is'"):
        pool(("arch", "Is", "amd64"))


OBJECT = """
apiVersion: karpenter.sh/v1beta1
kind: NodePool
metadata: {name: general}
spec:
  weight: 10
  limits: {cpu: 100}
  template:
    metadata: {labels: {team: a}}
    spec:
      taints: [{key: dedicated, effect: NoSchedule}]
      startupTaints: [{key: starting, effect: NoSchedule}]
      requirements:
      - {key: karpenter.k8s.aws/instance-family, operator: In, values: [m5, g4dn]}
      - {key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: ["5"]}
      - {key: karpenter.k8s.aws/instance-hypervisor, operator: In, values: [nitro]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
      - {key: topology.kubernetes.io/zone, operator: In, values: [eu-west-1b]}
"""


def test_objects_take_their_types_from_the_price_book():
    catalogue = read_pools(Source("pools.yaml", OBJECT.encode()), PoolContext(PriceBook(), region="eu-west-1"))
    (made,) = catalogue.pools
    assert {o.instance_type for o in made.offerings} == {"m5.large", "m5.xlarge", "g4dn.xlarge"}
    gpu = next(o for o in made.offerings if o.instance_type == "g4dn.xlarge")
    assert (gpu.price, gpu.zone, gpu.node.status.capacity["nvidia.com/gpu"]) == (587_000_000, "eu-west-1b", "1")
    assert [taint.key for taint in gpu.node.spec.taints] == ["dedicated"]
    assert any("instance-hypervisor is not looked at" in note for note in catalogue.notes)
    assert made.weight == 10
    assert not any("weight" in note for note in catalogue.notes)  # a pool alone has nobody to be heavier than


def test_a_dump_keeps_karpenter_pools_and_skips_those_of_others(tmp_path):
    file = tmp_path / "dump.yaml"
    other = "apiVersion: hypershift.openshift.io/v1\nkind: NodePool\nmetadata: {name: x}\n"
    file.write_text(f"{OBJECT}\n---\n{other}")
    snapshot = load([str(file)])
    assert [each.metadata.name for each in snapshot.objects_of(KarpenterPool)] == ["general"]
    assert snapshot.skipped == {"NodePool.hypershift.openshift.io": 1}


def test_a_bad_object_names_file_object_and_field():
    with pytest.raises(InputError) as caught:
        read_pools(Source("p.yaml", OBJECT.replace("cpu: 100", "cpu: lots").encode()), PoolContext(PriceBook()))
    assert str(caught.value).startswith("p.yaml: nodepool general: spec.limits.cpu: ")
