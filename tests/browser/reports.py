"""Reports that no command would make: with bad names everywhere, and as large as one likes."""

from __future__ import annotations

from tutti.cli.report.page import Report
from tutti.kube.objects import Container, Node, NodeStatus, ObjectMeta, Pod, PodSpec, ResourceRequirements
from tutti.recommend.answer import Recommendation
from tutti.recommend.bought import NewNode, ScaleUp
from tutti.recommend.down.plan import DownPlan, Stay
from tutti.recommend.offerings import Catalogue, NodePool, Offering
from tutti.recommend.request import Request

HOSTILE = '<script>alert("1")</script>\'"><img src=x onerror=alert(2)>'


def hostile() -> Report:
    """Everything that has a name has a bad one."""
    made = Offering(
        pool=HOSTILE,
        instance_type=HOSTILE,
        zone=HOSTILE,
        price=10**8,
        node=Node(metadata=ObjectMeta(name=HOSTILE), status=NodeStatus(allocatable={"cpu": "4", HOSTILE + "/x": "2"})),
    )
    asks = ResourceRequirements(requests={"cpu": "1", HOSTILE + "/x": "1"})
    names = (HOSTILE, "x" * 253, "\x00\x1b[31m\u202ename\ud800")
    pods = tuple(
        Pod(metadata=ObjectMeta(name=name, namespace=HOSTILE), spec=PodSpec(containers=[Container(resources=asks)]))
        for name in names
    )
    keys = tuple(each.key for each in pods)
    bought = {"pool": HOSTILE, "zone": HOSTILE, "instance_type": HOSTILE, "capacity_type": "on-demand", "price": 10**8}
    answer = Recommendation(
        strategy="optimal", objective="cost", binder="kube-scheduler", pods=3, placed=3,
        cost=10**8, bound=10**8, gap=0.0,
        nodes=(NewNode(name=HOSTILE, pods=keys, **bought),), notes=(HOSTILE,),
        scale_up=(ScaleUp(increment=1, node_names=(HOSTILE,), **bought),),
        down=DownPlan(stays=(Stay(node=HOSTILE, pool=HOSTILE, reason=HOSTILE, message=HOSTILE),), notes=(HOSTILE,)),
    )  # fmt: skip
    catalogue = Catalogue(pools=(NodePool(name=HOSTILE, offerings=(made,)),))
    return Report(Request(objects=pods, catalogue=catalogue), answer, (), (), (HOSTILE,))


def large(nodes: int, pods: int, *, kinds: int) -> Report:
    """So many nodes with so many pods each; every node is one of so many kinds."""
    made = Offering(
        pool="p",
        instance_type="m5.24xlarge",
        zone="z",
        price=10**9,
        node=Node(
            metadata=ObjectMeta(name="t"),
            status=NodeStatus(allocatable={"cpu": "96", "memory": "384Gi", "pods": "250"}),
        ),
    )
    objects, new = [], []
    for number in range(nodes):
        keys = []
        for each in range(pods):
            cpu = f"{100 + number % kinds}m"
            meta = ObjectMeta(name=f"w{each % 30}-{number * pods + each}", namespace="team")
            resources = ResourceRequirements(requests={"cpu": cpu, "memory": "1Gi"})
            objects.append(Pod(metadata=meta, spec=PodSpec(containers=[Container(resources=resources)])))
            keys.append(objects[-1].key)
        new.append(
            NewNode(
                name=f"p-z-new-{number}", pool="p", zone="z", instance_type="m5.24xlarge", capacity_type="on-demand",
                price=10**9, pods=tuple(keys),
            )
        )  # fmt: skip
    answer = Recommendation(
        strategy="optimal", objective="cost", binder="tutti", nodes=tuple(new), pods=nodes * pods,
        placed=nodes * pods, cost=nodes * 10**9,
    )  # fmt: skip
    return Report(
        Request(objects=tuple(objects), catalogue=Catalogue(pools=(NodePool(name="p", offerings=(made,)),))), answer
    )
