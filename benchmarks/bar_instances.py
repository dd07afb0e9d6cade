"""The three instances that have bars of their own; purchases.py says which.

`mixed`: about what Cluster Autoscaler needs 40 CPU seconds for. `two_shapes`: BenchmarkBinpackingEstimate of Cluster
Autoscaler (estimator/binpacking_estimator_test.go): 50,000 pods of 50m and 100 MiB and 1,000 of 95m and 190 MiB, on
nodes of 1,000m, 5,000 MiB and 100 pods, at most 3,000 of them; it expects 2,595, which is all cpu divided by 1,000m.
`diverse`: Karpenter's own benchmark as oracle/karpenter/gen.py makes it.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from pathlib import Path

from instances import daemon_sets, pod, pool, size, split, standing

from tutti.kube.objects import Object
from tutti.market.instance_types import ZONE, template_node
from tutti.market.offerings import Catalogue, NodePool, Offering
from tutti.market.pool_limits import nodes_limit
from tutti.recommend.records.request import Request

GENERATOR = Path(__file__).resolve().parents[1] / "oracle" / "karpenter" / "gen.py"
THIRTY = tuple(
    "c5.9xlarge" if (family, length) == ("c5", "8xlarge") else f"{family}.{length}"
    for family in ("m5", "c5", "r5", "m6i", "c6i", "r6i")
    for length in ("large", "xlarge", "2xlarge", "4xlarge", "8xlarge")
)
TAINTS = dict.fromkeys(("m5.2xlarge", "c5.2xlarge", "r5.2xlarge", "m6i.4xlarge"), "batch") | dict.fromkeys(
    ("m6i.large", "c6i.large", "r6i.large"), "infra"
)
"""Pools that only pods with a toleration are for."""


def mixed(pods: int = 4500, shapes: int = 100, nodes: int = 400) -> Request:
    """Make 4,500 pods of 100 shapes, 400 nodes that are mostly full, and 30 pools in three zones.

    A fifth of the shapes spread over zones, a tenth are one to a node; 18 bear one of two taints, and 10 of those
    need the nodes that have it; daemons run everywhere.
    """
    chance = random.Random("bar/mixed")
    objects: list[Object] = []
    for number, count in enumerate(split(chance, pods, shapes)):
        name, asks = f"shape-{number:03}", size(chance)
        taint = {0: "batch", 1: "infra"}.get(number % 12)
        selector = {"dedicated": taint} if taint and number % 24 < 2 else None
        spread, apart = number % 5 == 2, number % 10 == 9
        if taint == "infra" and selector:
            asks = {"cpu": "250m", "memory": "512Mi"}  # its nodes are small
        rules = {"spread": spread, "apart": apart, "tolerates": taint, "selector": selector}
        objects += [pod(f"{name}-{i:04}", name, asks, **rules) for i in range(count)]
    daemons = daemon_sets()
    objects += standing(chance, nodes, THIRTY, daemons, full=(0.85, 1.0), taints=TAINTS)
    pools = tuple(pool(kind.replace(".", "-"), (kind,), taint=TAINTS.get(kind)) for kind in THIRTY)
    return Request(objects=tuple(objects), daemon_sets=daemons, catalogue=Catalogue(pools=pools))


def two_shapes(small: int = 50_000, large: int = 1_000) -> Request:
    """Make the pods and the pool of Cluster Autoscaler's benchmark, at an invented price."""
    asks = {"cpu": "50m", "memory": "100Mi"}, {"cpu": "95m", "memory": "190Mi"}
    objects: list[Object] = [
        template_node(
            "oldnode", labels={ZONE: "zone-jupiter"}, capacity=_room(100, 100, 10), allocatable=_room(100, 100, 10)
        )
    ]
    objects += [pod(f"estimatee-{i:05}", "estimatee", asks[0]) for i in range(small)]
    objects += [pod(f"estimatee-large-{i:04}", "estimatee", asks[1]) for i in range(large)]
    room = _room(1000, 5000, 100)
    node = template_node("template", labels={ZONE: "zone-mars"}, capacity=room, allocatable=room)
    offering = Offering(pool="all", instance_type="one-cpu", zone="zone-mars", price=50_000_000, node=node)
    limit = nodes_limit("pool all", 3000, current=0)
    only = NodePool(name="all", offerings=(offering,), limits=(limit,), maximum=3000)
    return Request(objects=tuple(objects), catalogue=Catalogue(pools=(only,)))


def _room(cpu: int, memory: int, pods: int) -> dict[str, str]:
    return {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": str(pods)}


def diverse_line(pods: int = 10_000, types: int = 400, seed: int = 42) -> str:
    """The line that Karpenter's oracle reads."""
    command = [sys.executable, str(GENERATOR), "bench", "--pods", str(pods), "--types", str(types), "--seed", str(seed)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def diverse(line: str) -> Request:
    """The same as a request."""
    from tutti.conformance.karpenter_cases import read_karpenter_case

    nothing = {
        "claims": [], "onExisting": {}, "unscheduled": {}, "nodes": 0, "costPerHour": 0.0, "runs": 1, "same": "all",
        "costPerHourMin": 0.0, "costPerHourMax": 0.0, "costPerHourMean": 0.0, "nodesMin": 0, "nodesMax": 0,
    }  # fmt: skip
    text = json.dumps(json.loads(line) | {"expect": nothing})
    return read_karpenter_case("bench", 1, text.encode()).request
