"""Clusters with more nodes than they need: drawn from a seed, or small ones by hand, and how to ask for a plan.

Clusters are lists of documents as kubectl prints them, with pools as a user's file has them. They go through the same
readers as a user's files.
"""

from __future__ import annotations

import json
import random
import time
from typing import Any

from tests.support import documents
from tests.support.builders import COSCHEDULING_LABEL, apart, spread
from tests.support.documents import Document
from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.cluster.work.work_budget import WorkBudget
from tutti.kube.admission.prepare import prepare
from tutti.kube.reading.decode import decode_objects
from tutti.kube.reading.parsed_file import parse_file
from tutti.kube.reading.snapshot import Snapshot, by_kind
from tutti.kube.reading.sources import Source
from tutti.recommend.build_request import build_request
from tutti.recommend.records.down_plan import DownPlan
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Binder, DownOptions, RecommendOptions, Request

ZONES = ("us-east-1a", "us-east-1b", "us-east-1c")
SIZES = {"m5.large": (1930, 7000), "m5.xlarge": (3920, 14600), "m5.2xlarge": (7910, 30000), "c5.xlarge": (3920, 6900)}
"""Allocatable millicores and MiB."""
UNOWNED = {"metadata": {"ownerReferences": []}}
"""What a pod changes in `small_cluster` to have no controller."""


def node(name: str, *, pool: str, kind: str, zone: str = ZONES[0], annotations: dict | None = None) -> Document:
    """A ready node of a pool."""
    cpu, memory = SIZES[kind]
    room = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": "58"}
    labels = {
        "node.kubernetes.io/instance-type": kind, "eks.amazonaws.com/nodegroup": pool,
        "topology.kubernetes.io/region": "us-east-1",
    }  # fmt: skip
    ready = [{"type": "Ready", "status": "True"}]
    return documents.node(
        name, zone=zone, labels=labels, annotations=annotations, capacity=room, conditions=ready, **room
    )


def pod(name: str, on: str | None, cpu: int, memory: int = 100, **how: Any) -> Document:
    """A pod of a replica set, with an app that its name starts with; the amounts are millicores and MiB."""
    known = {"app": name.partition("-")[0], "owner": ("ReplicaSet", "rs"), "created": "2026-01-01T00:00:00Z"}
    return documents.pod(name, on=on, cpu=f"{cpu}m", memory=f"{memory}Mi", **{**known, **how})


def daemon(on: str) -> Document:
    """The pod of a daemon set."""
    owner, labels = ("DaemonSet", "agent"), {"k8s-app": "agent"}
    return pod(f"agent-{on}", on, 50, 64, namespace="kube-system", owner=owner, app=None, labels=labels)


# Drawn ----------------------------------------------------------------------------------------------------------------


def random_cluster(seed: int, *, nodes: int | None = None) -> tuple[list[Document], Document]:
    """The objects of a cluster and its pools; the same seed gives the same."""
    draw = random.Random(f"shrink/{seed}")
    kinds = draw.sample(sorted(SIZES), draw.randint(1, 3))
    pools = [
        {"name": f"p{number}", "instanceTypes": sorted({kind, *draw.sample(sorted(SIZES), draw.randint(0, 1))}),
         "zones": list(ZONES[: draw.choice((1, 3))]), "min": draw.choice((0, 0, 1, 2)), "max": 20}
        for number, kind in enumerate(kinds)
    ]  # fmt: skip
    objects: list[Document] = []
    rooms: dict[str, list[int]] = {}
    for number in range(nodes or draw.randint(2, 10)):
        pool = draw.choice(pools)
        kind = draw.choice(pool["instanceTypes"])
        name = f"n{number:02d}"
        rooms[name] = list(SIZES[kind])
        zone = draw.choice(pool["zones"])
        kept = {"cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"} if draw.random() < 0.05 else None
        objects.append(node(name, pool=pool["name"], kind=kind, zone=zone, annotations=kept))
    for number in range(draw.randint(1, 2 + len(rooms))):
        objects += _workload(draw, number, rooms)
    objects += [daemon(name) for name in rooms]
    return objects, {"region": "us-east-1", "pools": pools}


def _workload(draw: random.Random, number: int, rooms: dict[str, list[int]]) -> list[Document]:
    app, made = f"app{number}", []
    cpu, memory = draw.choice((100, 250, 500, 900, 1700)), draw.choice((200, 500, 1500, 3500))
    how: dict[str, Any] = _rules(draw, app)
    gang = draw.random() < 0.2
    how |= {"app": app, "labels": {COSCHEDULING_LABEL: app} if gang else None, "owner": ("ReplicaSet", app)}
    odd = draw.random()
    if odd < 0.05:
        safe = draw.choice(("false", "true"))
        how["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": safe}
    elif odd < 0.1:
        how["volumes"] = [{"name": "scratch", "emptyDir": {}}]
    elif odd < 0.15:
        how["owner"] = None
    for copy in range(draw.randint(1, 6)):
        fits = [name for name, (c, m) in rooms.items() if c >= cpu + 200 and m >= memory + 200]
        if "affinity" in how:
            fits = [name for name in fits if all(pod["spec"]["nodeName"] != name for pod in made)]
        if not fits:
            break
        chosen = draw.choice(fits)
        rooms[chosen][0] -= cpu
        rooms[chosen][1] -= memory
        made.append(pod(f"{app}-{copy}", chosen, cpu, memory, **how))
    if made and gang:
        made.append(documents.pod_group(app, draw.choice((len(made), max(len(made) - 1, 1)))))
    if made and draw.random() < 0.4:
        made.append(_budget(draw, app))
    return made


def _rules(draw: random.Random, app: str) -> dict[str, Any]:
    draws = draw.random()
    if draws < 0.15:
        return {"affinity": apart(app)}
    if draws < 0.3:
        return {"topologySpreadConstraints": [spread(app, skew=draw.choice((1, 2)))]}
    return {}


def _budget(draw: random.Random, app: str) -> Document:
    if draw.random() < 0.5:
        return documents.disruption_budget(app, draw.choice((0, 1, 1, 2, 6)))
    spec = draw.choice(({"min_available": 1}, {"max_unavailable": 1}, {"min_available": "50%"}))
    return documents.disruption_budget(app, **spec)


# By hand --------------------------------------------------------------------------------------------------------------


def small_cluster(
    *pods: tuple[str, str, int, Document],
    nodes: tuple[str, ...] = ("m5.large", "m5.large"),
    more: tuple[Document, ...] | list[Document] = (),
    minimum: int = 0,
    **pool: Any,
) -> tuple[list[Document], Document]:
    """A pool of nodes n0, n1, ..., and pods as (name, node, millicores, changes)."""
    kinds = sorted({*nodes})
    objects = [node(f"n{number}", pool="p", kind=kind) for number, kind in enumerate(nodes)]
    for name, where, cpu, changes in pods:
        made = pod(name, where, cpu)
        made["metadata"] |= changes.get("metadata", {})
        made["spec"] |= changes.get("spec", {})
        objects.append(made)
    objects += [daemon(each["metadata"]["name"]) for each in objects if each["kind"] == "Node"]
    text = {"name": "p", "instanceTypes": kinds, "zones": [ZONES[0]], "min": minimum, "max": 20} | pool
    return [*objects, *more], {"region": "us-east-1", "pools": [text]}


# Plans ----------------------------------------------------------------------------------------------------------------


def read_request(objects: list[Document], pools: Document, options: RecommendOptions) -> Request:
    """The request to the recommender, through the readers that a user's files go through."""
    text = json.dumps({"kind": "List", "apiVersion": "v1", "items": objects}).encode()
    decoded = decode_objects(parse_file(Source("cluster.json", text)))
    found = by_kind(decoded.objects)
    snapshot = prepare(Snapshot(objects=found, present_kinds=frozenset(found)))
    return build_request(snapshot, pools=Source("pools.json", json.dumps(pools).encode()), options=options)


def scale_down(
    objects: list[Document],
    pools: Document,
    *,
    seconds: float = 1.0,
    binder: Binder = Binder.KUBE_SCHEDULER,
    **down: Any,
) -> tuple[Request, Recommendation]:
    """The request of a cluster, and the answer to it."""
    request = read_request(objects, pools, RecommendOptions(down=DownOptions(**down), binder=binder))
    return request, make_recommendation(request, WorkBudget.of_seconds(seconds, time.process_time))


def removed_nodes(plan: DownPlan) -> list[str]:
    return [each.node for each in plan.removals]


def stay_reasons(plan: DownPlan) -> dict[str, str]:
    """Why each node that stays does."""
    return {stay.node: stay.reason for stay in plan.staying_nodes}
