"""The older scenario files, and requests made from them."""

import json

import pytest

from tutti.exceptions import InputError
from tutti.kube.objects import Node, Pod
from tutti.kube.reading.sources import Source
from tutti.kube.resources import allocatable
from tutti.market.node_daemons import daemon_pods_for
from tutti.recommend.build_request import price_book
from tutti.wire.request_formats import identify, read_request
from tutti.wire.wire_document import WireFormat

PRICES = b"instance_type,usd_month,cpu,memory_ki,pods\nm5.large,18.204,1920m,6776184,110\n"


def case(**fields):
    pool = {"name": "p1", "zones": ["eu-west-1a"], "max": 12, "current": 2, "instanceType": "m5.large"}
    pods = {"namePrefix": "pod-", "requests": {"cpu": "100m", "memory": "5Gi"}, "labels": {"a": "b"}, "count": 3}
    return {"id": "s", "nodePools": [pool], "pods": [pods], "nodes": []} | fields


def read(tree, prices=PRICES):
    source = Source("s.json", json.dumps(tree).encode())
    assert identify(source).format is WireFormat.SCENARIO
    return read_request(source, price_book(Source("t.csv", prices) if prices else None))


def test_a_case_by_hand():
    request = read(case())
    assert [obj.key for obj in request.objects] == ["default/pod-0", "default/pod-1", "default/pod-2"]
    (pool,) = request.catalogue.pools
    (offering,) = pool.offerings
    assert (offering.price, pool.limits[0].left) == (24_936_986, 10)
    assert allocatable(offering.node) | {"ephemeral-storage": 0} == {
        "cpu": 1920, "memory": 6776184 * 1024, "pods": 110, "ephemeral-storage": 0,
    }  # fmt: skip
    assert offering.node.metadata.labels["topology.kubernetes.io/zone"] == "eu-west-1a"


def test_nodes_of_a_case_say_what_is_left_free():
    place = {"name": "n1", "poolName": "p1", "zone": "eu-west-1a"}
    on = {"namePrefix": "on-", "requests": {"cpu": "100m", "memory": "5Gi"}, "scheduledOn": place, "count": 2}
    there = {"name": "n1", "labels": {"x": "y"}, "allocatable": {"cpu": "1", "memory": "1Gi"}, "capacity": {"cpu": "2"}}
    request = read(case(pods=[on], nodes=[there]))
    (node,) = [obj for obj in request.objects if isinstance(obj, Node)]
    assert allocatable(node) == {"cpu": 1200, "memory": 11 * 2**30, "pods": 110}
    assert node.metadata.labels["topology.kubernetes.io/zone"] == "eu-west-1a"
    assert all(obj.spec.node_name == "n1" for obj in request.objects if isinstance(obj, Pod))


def recording(**fields):
    labels = {"worker.gardener.cloud/pool": "p1", "topology.kubernetes.io/zone": "z-a", "kubernetes.io/hostname": "n1"}
    node = {"Name": "n1", "Labels": labels, "Taints": None, "Capacity": {"cpu": "2"}}
    node["Allocatable"] = {"cpu": "1920m", "memory": "6Gi", "pods": "110"}
    group = {"Name": "g-p1-z1", "CurrentSize": 1, "TargetSize": 3, "MinSize": 1, "MaxSize": 3, "Zone": "z-a"}
    group |= {"MachineType": "m5.large", "PoolName": "p1", "PoolMin": 1, "PoolMax": 3}
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m", "memory": "1Gi"}}}]}
    pod = {"Name": "a-1", "Namespace": "shop", "NodeName": "", "Labels": {"app": "a"}, "Spec": spec}
    scenario = {"UnscheduledPods": [pod], "ScheduledPods": [], "NodeGroups": [group], "Nodes": [node]}
    return {"Name": "r", "Scenarios": [scenario | {"CASettings": {"MaxNodesTotal": 10}} | fields]}, spec


def test_system_components_are_taken_off_nodes_whose_system_pods_are_not_listed():
    tree, _ = recording(SystemComponentRequests={"cpu": "20m", "memory": "1Gi"})
    request = read(tree)
    (pool,) = request.catalogue.pools
    assert allocatable(pool.offerings[0].node) == {"cpu": 1900, "memory": 5 * 2**30, "pods": 110}
    (node,) = [obj for obj in request.objects if isinstance(obj, Node)]
    assert allocatable(node)["cpu"] == 1900
    assert (pool.limits[0].left, request.catalogue.limits[0].left) == (2, 9)
    assert [obj.key for obj in request.objects if isinstance(obj, Pod)] == ["shop/a-1"]


def test_listed_daemons_come_with_new_nodes():
    _, spec = recording()
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    daemon = {"Name": "proxy-x7z", "Namespace": "kube-system", "NodeName": "n1"}
    daemon["Spec"] = spec | {"affinity": {"nodeAffinity": required}}
    tree, _ = recording(ScheduledPods=[daemon], SystemComponentRequests={"cpu": "20m"})
    request = read(tree)
    (node,) = [obj for obj in request.objects if isinstance(obj, Node)]
    assert allocatable(node)["cpu"] == 1920
    (pod,) = daemon_pods_for(request.daemon_sets, request.catalogue.pools[0].offerings[0].node)
    assert pod.metadata.owner_references[0].name == "proxy"


@pytest.mark.parametrize(
    ("tree", "problem"),
    [
        (
            case(nodePools=[{"name": "p", "max": 1, "instanceType": "tiny"}]),
            "pool p: instanceType: nobody knows what tiny",
        ),
        (case(nodePools=[{"name": "p", "max": "x", "instanceType": "m5.large"}]), "nodePools[0].max: expected int"),
        (case(pods=[{"namePrefix": "a", "requests": {"cpu": "x"}}]), "pod default/a0: spec.containers[0]"),
        ({"Scenarios": []}, "Scenarios: want a list of one scenario"),
    ],
)
def test_faults(tree, problem):
    with pytest.raises(InputError) as caught:
        read(tree)
    assert str(caught.value).startswith("s.json: ")
    assert problem in str(caught.value)
