"""Reports that no command would make: with bad names everywhere, and as large as one likes."""

from __future__ import annotations

from tests.support.builders import offering, pod, pool
from tutti.kube.objects import Container, Node, NodeStatus, ObjectMeta, Pod, PodSpec, ResourceRequirements
from tutti.market.offerings import Catalogue, NodePool, Offering
from tutti.present.report.page import Report
from tutti.recommend.compare import OURS, ComparedPurchase
from tutti.recommend.records.down_plan import DownPlan, Move, Removal, RemovalReason, ScaleDownStep, StayingNode
from tutti.recommend.records.new_nodes import NewNode, ScaleUp
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request

HOSTILE = '<script>alert("1")</script>\'"><img src=x onerror=alert(2)>'
REASONS = ("NotUnderutilized", "BlockedByPod", "NodeGroupMinSizeReached", "ScaleDownDisabledAnnotation")
WHY = "96% of it is requested, more than 50%; and pool general would fall below its minimum of 3 nodes. "


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
        down=DownPlan(
            staying_nodes=(StayingNode(node=HOSTILE, pool=HOSTILE, reason=HOSTILE, message=HOSTILE),), notes=(HOSTILE,)
        ),
    )  # fmt: skip
    catalogue = Catalogue(pools=(NodePool(name=HOSTILE, offerings=(made,)),))
    return Report(Request(objects=pods, catalogue=catalogue), answer, (), (), (HOSTILE,))


def large(nodes: int, pods: int, *, kinds: int) -> Report:
    """So many nodes with so many pods each; every node is one of so many kinds."""
    made = offering("p", 10**9, kind="m5.24xlarge", zone="z", cpu="96", memory="384Gi", pods="250")
    objects, new = [], []
    for number in range(nodes):
        keys = []
        for each in range(pods):
            name, cpu = f"w{each % 30}-{number * pods + each}", f"{100 + number % kinds}m"
            objects.append(pod(name, cpu, memory="1Gi", namespace="team"))
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
    return Report(Request(objects=tuple(objects), catalogue=Catalogue(pools=(pool(made),))), answer)


def beside(nodes: int = 0) -> Report:
    """A pod that waits, ours and two peers with so many nodes each, one of which did not get done; nodes that go."""
    made = offering("general", 2 * 10**8, kind="m6i.xlarge", zone="us-east-1a")
    bought = ((made, nodes),) if nodes else ()
    cost = nodes * 2 * 10**8
    peer = "cluster-autoscaler/least-waste"
    compared = (
        ComparedPurchase(who=OURS, bought=bought, cost=cost, placed=1, kept=1, change=0.0),
        ComparedPurchase(who=peer, bought=bought, cost=cost, placed=1, kept=1, change=0.0),
        ComparedPurchase(who="karpenter", problem="not done in 5.0 s"),
    )
    name = "ip-10-0-{}-20.us-east-1.compute.internal"
    stays = tuple(
        StayingNode(node=name.format(number), pool="general", reason=reason, message=WHY * (1 + number % 3))
        for number, reason in enumerate(REASONS)
    )
    removal = Removal(
        node=name.format(99), pool="general", zone="us-east-1a", instance_type="m6i.xlarge", capacity_type="on-demand",
        price=2 * 10**8, why=RemovalReason.UNDERUSED, utilization=0.25, moves=8,
    )  # fmt: skip
    moves = tuple(
        Move(pod=f"shop/api-5d8f7-a9x2{each}", source=name.format(99), target=name.format(each)) for each in range(8)
    )
    down = DownPlan(
        removals=(removal,), staying_nodes=stays, steps=(ScaleDownStep(moves=moves, removes=(name.format(99),)),),
        moves=8,
        purchase=cost, before=10**9 + cost, after=8 * 10**8 + cost, saving=2 * 10**8,
    )  # fmt: skip
    answer = Recommendation(
        strategy="optimal", objective="cost", binder="kube-scheduler", pods=1, placed=1, cost=cost, bound=cost,
        gap=0.0, down=down,
    )  # fmt: skip
    return Report(Request(objects=(), catalogue=Catalogue()), answer, compared)
