"""Documents of the wire formats that tests change, and what becomes of them."""

from __future__ import annotations

import copy
import json
import time
from typing import Any

import msgspec

from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.cluster.work.work_budget import WorkBudget
from tutti.kube.objects import Node, Pod
from tutti.kube.reading.sources import Source
from tutti.market.price_book import PriceBook
from tutti.market.price_csv import read_price_table
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import RecommendOptions, Request
from tutti.wire.request_formats import read_request

Data = dict[str, Any]
ZERO = "0001-01-01T00:00:00Z"
NOW = "2024-10-15T09:30:00Z"
BOOK = PriceBook()
DEFAULT = RecommendOptions()


def prices(**hourly: float) -> PriceBook:
    """A book with these prices alone before the packaged ones; ``_`` in a name stands for a dot."""
    rows = "".join(f"{name.replace('_', '.')},{price}\n" for name, price in hourly.items())
    return PriceBook(read_price_table(Source("p.csv", f"instance_type,usd_hour\n{rows}".encode())))


def source(tree: Any, name: str = "body.json") -> Source:
    return Source(name, json.dumps(tree).encode())


def read(tree: Any, book: PriceBook = BOOK, options: RecommendOptions = DEFAULT) -> Request:
    return read_request(source(tree), book, options=options)


def answer(request: Request, seconds: float = 5) -> Recommendation:
    return make_recommendation(request, WorkBudget.of_seconds(seconds, time.process_time))


def encoded(response: msgspec.Struct) -> Data:
    """A response as its client decodes it."""
    return msgspec.json.decode(msgspec.json.encode(response))


def pods_of(request: Request) -> dict[str, Pod]:
    return {obj.key: obj for obj in request.objects if isinstance(obj, Pod)}


def nodes_of(request: Request) -> dict[str, Node]:
    return {obj.key: obj for obj in request.objects if isinstance(obj, Node)}


def smallest() -> Data:
    """The smallest body that the original recommender takes, with pods, which it took from elsewhere."""
    template = {
        "Name": "g-a", "InstanceType": "m5.large", "Region": "eu-west-1", "Zone": "eu-west-1a",
        "Capacity": {"cpu": "2", "memory": "8Gi"},
        "Allocatable": {"cpu": "1920m", "memory": "6776184Ki", "pods": "110"},
        "Labels": {"worker.gardener.cloud/pool": "p1"},
    }  # fmt: skip
    pool = {"Name": "p1", "MachineType": "m5.large", "Maximum": 3, "Zones": ["eu-west-1a"]}
    return {
        "ID": "x", "AutoscalerConfig": {"NodeTemplates": {"g-a": template}}, "WorkerPools": [pool], "Nodes": [],
        "Pods": [pod("w-0"), pod("w-1"), pod("w-2")],
    }  # fmt: skip


def pod(name: str, cpu: str = "1", memory: str = "2Gi", **fields: Any) -> Data:
    """A pod of a snapshot."""
    spec = {"containers": [{"name": "main", "resources": {"requests": {"cpu": cpu, "memory": memory}}}]}
    return {"Name": name, "Namespace": "shop", "Spec": spec | fields.pop("spec", {})} | fields


def node(name: str, pool: str = "p1", zone: str = "eu-west-1a", **fields: Any) -> Data:
    """A node of a snapshot."""
    labels = {
        "worker.gardener.cloud/pool": pool, "topology.kubernetes.io/zone": zone,
        "node.kubernetes.io/instance-type": "m5.large", "kubernetes.io/hostname": name,
    }  # fmt: skip
    size = {"cpu": "1920m", "memory": "6776184Ki", "pods": "110"}
    return {"Name": name, "Labels": labels, "Allocatable": size, "Capacity": size} | fields


def daemon(name: str, on: str) -> Data:
    """A daemon's pod of a snapshot."""
    field = {"key": "metadata.name", "operator": "In", "values": [on]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": [field]}]}}
    spec = {"affinity": {"nodeAffinity": required}, "tolerations": [{"operator": "Exists"}]}
    return pod(name, "100m", "64Mi", Namespace="kube-system", NodeName=on, spec=spec)


def changed(tree: Data, path: str, value: Any) -> Data:
    """A copy of a tree with another value at ``WorkerPools.0.Maximum``; `...` takes it away."""
    made = copy.deepcopy(tree)
    *steps, last = path.split(".")
    place: Any = made
    for step in steps:
        place = place[int(step)] if step.isdigit() else place[step]
    key: Any = int(last) if last.isdigit() else last
    if value is ...:
        del place[key]
    else:
        place[key] = value
    return made


def planner(*pods: Data, pools: list[Data] | None = None, **snapshot: Any) -> Data:
    """A planner request of scaling-advisor."""
    constraint = {
        "apiVersion": "sa.gardener.cloud/v1alpha1", "kind": "ScalingConstraint",
        "metadata": {"name": "c", "namespace": "default"}, "spec": {"nodePools": pools or [advisor_pool("a")]},
    }  # fmt: skip
    return {
        "id": "r-1", "correlationID": "c-1", "creationTime": NOW, "constraint": constraint,
        "snapshot": {"pods": list(pods)} | snapshot,
    }  # fmt: skip


def advisor_pool(name: str, *, kind: str = "m5.large", cpu: str = "2", memory: str = "8Gi", **fields: Any) -> Data:
    template = {
        "name": kind, "instanceType": kind, "architecture": "amd64", "priority": 0,
        "capacity": {"cpu": cpu, "memory": memory, "gpu": "0"},
        "kubeReservedCapacity": {"cpu": "80m", "memory": "1Gi", "pid": "20k"},
    }  # fmt: skip
    return {
        "name": name, "region": "eu-west-1", "availabilityZones": ["eu-west-1a"], "priority": 0,
        "nodeTemplates": [template],
    } | fields  # fmt: skip


def advisor_pod(name: str, cpu: str, memory: str, **fields: Any) -> Data:
    return {"name": name, "namespace": "default", "aggregatedRequests": {"cpu": cpu, "memory": memory}} | fields
