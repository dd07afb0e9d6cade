"""Random purchase problems at real prices, made from a seed: the inputs of purchases.py.

Two families: ``ten-pools`` (a pool for each of ten types, m5, c5 and r5 from large to 4xlarge) and ``all-types`` (one
pool of all c, m and r types for amd64 up to 64 cpus), both in three zones of us-east-1 at the packaged on-demand
prices. 5 to 30 shapes of 30 to 1,000 pods in all; 100m to 8 cpus, 0.5 to 8 GiB for each, at most 48 GiB, in the steps
in which people write them. `EXTRAS` add to that. Nodes have Amazon's reserved parts taken off.
"""

from __future__ import annotations

import math
import random
import re
from collections.abc import Collection, Iterable, Mapping, Sequence

from tutti.kube.gangs.coscheduling import LABEL
from tutti.kube.objects import (
    Affinity,
    Container,
    CoschedulingPodGroup,
    CoschedulingSpec,
    DaemonSet,
    LabelSelector,
    Node,
    Object,
    ObjectMeta,
    OwnerReference,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    PodStatus,
    PodTemplate,
    ResourceRequirements,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    WorkloadSpec,
)
from tutti.market.instance_types import ARCH, HOSTNAME, INSTANCE_TYPE, OS, ZONE, template_name, template_node
from tutti.market.offerings import Catalogue, NodePool, Offering, PoolLimit
from tutti.market.pool_limits import nodes_limit
from tutti.market.price_book import PriceBook
from tutti.recommend.records.request import Request

REGION = "us-east-1"
ZONES = tuple(REGION + letter for letter in "abc")
POOL = "pool"
TEN = (
    "m5.large", "m5.xlarge", "m5.2xlarge", "m5.4xlarge", "c5.large", "c5.xlarge", "c5.2xlarge",
    "r5.large", "r5.xlarge", "r5.2xlarge",
)  # fmt: skip
FAMILIES = ("ten-pools", "all-types")
EXTRAS = ("spread", "anti-affinity", "daemons", "gangs", "existing", "limits")
"""A fifth of the shapes spread over zones, a tenth one to a node, daemons, a third in gangs, nodes that are there and
partly full, limits on what the pools give."""
MIB = 2**20
BOOK = PriceBook()


def draw(family: str, seed: int, extras: Collection[str] = ()) -> Request:
    """Return the instance of a family and a seed; a seed has the same pods with all extras."""
    chance = random.Random(f"{family}/{seed}")
    shapes = chance.randint(5, 30)
    pods = max(shapes, round(30 * (1000 / 30) ** chance.random()))
    counts = split(chance, pods, shapes)
    sizes = [size(chance) for _ in counts]
    more = random.Random(f"{family}/{seed}/{sorted(extras)}")
    objects: list[Object] = []
    for number, (count, asks) in enumerate(zip(counts, sizes, strict=True)):
        objects += group(more, f"shape-{number:02}", count, asks, extras)
    types = all_types() if family == "all-types" else TEN
    daemons = daemon_sets() if "daemons" in extras else ()
    if "existing" in extras:
        objects += standing(more, max(3, pods // 20), types, daemons)
    pools = [pool("all", types)] if family == "all-types" else [pool(kind.replace(".", "-"), (kind,)) for kind in types]
    if "limits" in extras:
        pools = [limited(more, each, sizes, counts) for each in pools]
    return Request(objects=tuple(objects), daemon_sets=daemons, catalogue=Catalogue(pools=tuple(pools)))


# Pods -----------------------------------------------------------------------------------------------------------------


def size(chance: random.Random) -> dict[str, str]:
    """Return the requests of a pod."""
    raw = 100 * 80 ** chance.random()
    step = 50 if raw < 500 else 100 if raw < 2000 else 250
    cpu = max(100, round(raw / step) * step)
    raw = min(cpu / 1000 * 512 * 16 ** chance.random(), 48 * 1024)
    step = 64 if raw < 1024 else 128 if raw < 4096 else 256
    return {"cpu": f"{cpu}m", "memory": f"{max(64, round(raw / step) * step)}Mi"}


def split(chance: random.Random, total: int, parts: int) -> list[int]:
    """A number in random parts of at least one."""
    weights = [chance.random() + 0.2 for _ in range(parts)]
    counts = [max(1, math.floor(total * weight / sum(weights))) for weight in weights]
    while (over := sum(counts) - total) != 0:
        place = counts.index(max(counts)) if over > 0 else counts.index(min(counts))
        counts[place] -= 1 if over > 0 else -1
    return counts


def group(chance: random.Random, name: str, count: int, asks: dict[str, str], extras: Collection[str]) -> list[Object]:
    """The pods of one shape, with the rules that are drawn for them, in gangs if they are."""
    rule = chance.random()
    spread = "spread" in extras and rule < 0.2
    apart = "anti-affinity" in extras and 0.2 <= rule < 0.3
    if "gangs" not in extras or rule < 2 / 3:
        return [pod(f"{name}-{i:04}", name, asks, spread=spread, apart=apart) for i in range(count)]
    made: list[Object] = []
    most = chance.randint(3, 20)
    for first in range(0, count, most):
        gang, members = f"{name}-gang-{first // most}", min(most, count - first)
        meta = ObjectMeta(name=gang, namespace="default")
        made.append(CoschedulingPodGroup(metadata=meta, spec=CoschedulingSpec(min_member=members)))
        made += [pod(f"{name}-{first + i:04}", name, asks, labels={LABEL: gang}) for i in range(members)]
    return made


def pod(
    name: str,
    app: str,
    asks: Mapping[str, str],
    *,
    node: str | None = None,
    spread: bool = False,
    apart: bool = False,
    tolerates: str | None = None,
    selector: dict[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    daemon_set: str | None = None,
) -> Pod:
    """A pod that waits, or runs on a node."""
    own = LabelSelector(match_labels={"app": app})
    away = PodAffinity(required=[PodAffinityTerm(label_selector=own, topology_key=HOSTNAME)])
    even = TopologySpreadConstraint(max_skew=1, topology_key=ZONE, label_selector=own)
    owner = OwnerReference(api_version="apps/v1", kind="DaemonSet", name=daemon_set or "", controller=True)
    return Pod(
        metadata=ObjectMeta(
            name=name,
            namespace="kube-system" if daemon_set else "default",
            labels={"app": app, **(labels or {})},
            owner_references=[owner] if daemon_set else None,
        ),
        spec=PodSpec(
            containers=[container(asks)],
            node_name=node,
            node_selector=selector,
            affinity=Affinity(pod_anti_affinity=away) if apart else None,
            tolerations=[Toleration(key="dedicated", operator="Equal", value=tolerates)] if tolerates else None,
            topology_spread_constraints=[even] if spread else None,
            scheduler_name="default-scheduler",
        ),
        status=PodStatus(phase="Running" if node else "Pending"),
    )


def container(asks: Mapping[str, str]) -> Container:
    """The only container of a pod."""
    return Container(name="main", image="app", resources=ResourceRequirements(requests=dict(asks)))


DAEMONS = {"cni": ("50m", "64Mi"), "logs": ("100m", "200Mi"), "metrics": ("60m", "128Mi")}


def daemon_sets() -> tuple[DaemonSet, ...]:
    """Return the DaemonSets that run on every node, whatever its taints are."""
    return tuple(
        DaemonSet(
            metadata=ObjectMeta(name=name, namespace="kube-system"),
            spec=WorkloadSpec(
                selector=LabelSelector(match_labels={"app": name}),
                template=PodTemplate(
                    metadata=ObjectMeta(labels={"app": name}),
                    spec=PodSpec(
                        containers=[container({"cpu": cpu, "memory": memory})],
                        tolerations=[Toleration(operator="Exists")],
                        scheduler_name="default-scheduler",
                    ),
                ),
            ),
        )
        for name, (cpu, memory) in DAEMONS.items()
    )


# Nodes ----------------------------------------------------------------------------------------------------------------


def all_types() -> tuple[str, ...]:
    """All c, m and r types for amd64 with up to 64 cpus that are in three zones and have no GPU."""
    found = []
    for name in BOOK.types(REGION):
        shape = BOOK.shape(name, REGION)
        if re.match(r"[cmr]\d", name) and shape and shape.arch == "amd64" and shape.vcpus <= 64 and not shape.gpus:
            found += [name] if shape.zones >= 3 and BOOK.price(name, REGION) is not None else []
    return tuple(found)


def amounts(instance_type: str) -> tuple[dict[str, int], dict[str, int]]:
    """What a node of a type has, and what is left for pods: millicores, MiB, pods.

    7.5 % of the memory is the machine's own. Amazon's kubelet keeps 6 % of the first cpu, 1 % of the second, 0.5 % of
    two more and 0.25 % of all others, and 255 MiB with 11 for each pod; 100 MiB are left to evict by.
    """
    shape = BOOK.shape(instance_type, REGION)
    assert shape is not None, f"{instance_type} is not in the price book"
    memory = math.floor(shape.memory / MIB * 0.925)
    kept = sum(60 if core == 0 else 10 if core == 1 else 5 if core < 4 else 2.5 for core in range(shape.vcpus))
    has = {"cpu": shape.vcpus * 1000, "memory": memory, "pods": shape.max_pods}
    return has, has | {"cpu": has["cpu"] - int(kept), "memory": memory - 355 - 11 * shape.max_pods}


def written(numbers: Mapping[str, int]) -> dict[str, str]:
    """Amounts as a node's status has them."""
    return {"cpu": f"{numbers['cpu']}m", "memory": f"{numbers['memory']}Mi", "pods": str(numbers["pods"])}


def node(name: str, instance_type: str, zone: str, *, of: str, taint: str | None = None) -> Node:
    """A node of a pool."""
    has, left = amounts(instance_type)
    labels = {ZONE: zone, INSTANCE_TYPE: instance_type, ARCH: "amd64", OS: "linux", POOL: of}
    taints = [Taint(key="dedicated", value=taint, effect="NoSchedule")] if taint else []
    return template_node(
        name,
        labels=labels | ({"dedicated": taint} if taint else {}),
        taints=taints,
        capacity=written(has),
        allocatable=written(left),
    )


def pool(name: str, types: Iterable[str], *, zones: Sequence[str] = ZONES, taint: str | None = None) -> NodePool:
    """A pool that buys these types in these zones."""
    offerings = tuple(
        Offering(
            pool=name,
            instance_type=kind,
            zone=zone,
            price=BOOK.price(kind, REGION),
            node=node(template_name(name, kind, zone=zone), kind, zone, of=name, taint=taint),
        )
        for kind in types
        for zone in zones
    )
    return NodePool(name=name, offerings=offerings)


def limited(
    chance: random.Random, each: NodePool, sizes: Sequence[Mapping[str, str]], counts: Sequence[int]
) -> NodePool:
    """A pool with a limit: on nodes if it is one of several, else on cpus, a half more than the pods ask for."""
    if len({offering.instance_type for offering in each.offerings}) > 1:
        requested = sum(int(asks["cpu"][:-1]) * count for asks, count in zip(sizes, counts, strict=True))
        left = requested * 3 // 2
        limit = PoolLimit(what="cpu", left=left, reason=f"pool {each.name} has 0 of at most {left // 1000} cpu")
        return NodePool(name=each.name, offerings=each.offerings, limits=(limit,))
    if chance.random() < 0.5:
        return each
    most = chance.randint(1, 2 + sum(counts) // 25)
    limit = nodes_limit(f"pool {each.name}", most, current=0)
    return NodePool(name=each.name, offerings=each.offerings, limits=(limit,), maximum=most)


def standing(
    chance: random.Random,
    number: int,
    types: Sequence[str],
    daemons: Iterable[DaemonSet] = (),
    *,
    full: tuple[float, float] = (0.4, 1.0),
    taints: Mapping[str, str] | None = None,
) -> list[Object]:
    """Nodes that are there, full by a share between two, with their daemons and up to six other pods each."""
    made: list[Object] = []
    for i in range(number):
        name, kind = f"node-{i:03}", chance.choice(types)
        made.append(node(name, kind, ZONES[i % 3], of="old", taint=(taints or {}).get(kind)))
        left = dict(amounts(kind)[1])
        for daemon in daemons:
            of = daemon.metadata.name
            asks = dict(zip(("cpu", "memory"), DAEMONS[of], strict=True))
            made.append(pod(f"{of}-{name}", of, asks, node=name, daemon_set=of))
            left = {"cpu": left["cpu"] - int(asks["cpu"][:-1]), "memory": left["memory"] - int(asks["memory"][:-2])}
        share, parts = chance.uniform(*full), chance.randint(1, 6)
        for part in range(parts):
            cpu, memory = (math.floor(left[what] * share / parts) for what in ("cpu", "memory"))
            made.append(pod(f"old-{i:03}-{part}", "old", {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}, node=name))
    return made
