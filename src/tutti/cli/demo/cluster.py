"""The example cluster of `tutti demo`: 480 nodes in three zones, about 5,000 running pods, and pending pods.

Contract: deterministic, the same bytes at every run. Objects are Kubernetes JSON as an API server would store them. The
engine chooses the nodes of the running pods, so that a real scheduler could have made the same cluster. `workloads`
lists the pods.
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter
from typing import Any, NamedTuple

import msgspec

from tutti.cli.demo.workloads import POOLS, PRIORITIES, ZONES, DemoPool, DemoWorkload, workloads

Object = dict[str, Any]

_CREATED = "2026-11-02T08:00:00Z"
_STARTED = "2026-11-02T08:01:00Z"
_RACK = 4
"""Number of nodes in a rack."""
_GROUP = "scheduling.x-k8s.io/pod-group"


class DemoCluster(NamedTuple):
    """The example cluster, and how fast the engine placed its running pods."""

    cluster: Object
    """A List of objects as `kubectl get -o json` would print them."""
    placed: int
    """Number of running pods that the engine placed."""
    seconds: float


def build_cluster() -> DemoCluster:
    """Build the cluster."""
    all_workloads = list(workloads())
    nodes = [_node(pool, number) for pool in POOLS for number in range(pool.nodes)]
    daemons = [_daemon(name, node["metadata"]["name"]) for node in nodes for name in ("cni", "node-exporter", "logs")]
    owners = [owner for each in all_workloads for owner in _owners(each)]
    pods = [_pod(each, number) for each in all_workloads for number in range(each.pods)]
    others = [*_namespaces(), *_priority_classes(), *_budgets(), *owners]
    running = [pod for pod in pods if pod["status"]["phase"] == "Running"]
    seconds = _place_running_pods([*others, *nodes, *daemons], running)
    placed = [pod for pod in running if pod["spec"].get("nodeName")]
    waiting = [pod for pod in pods if pod["status"]["phase"] == "Pending"]
    groups = [_group(each) for each in all_workloads if each.gang]
    items = [*others, *groups, *nodes, *daemons, *placed, *waiting]
    return DemoCluster({"apiVersion": "v1", "kind": "List", "items": items}, len(placed), seconds)


def _place_running_pods(others: list[Object], pods: list[Object]) -> float:
    """Let the engine place the running pods, and set their nodes; return the seconds for the placement."""
    from tutti.cluster.cluster import Cluster
    from tutti.engine.placement.engine import Engine
    from tutti.kube.objects import KINDS

    objects = [msgspec.convert(obj, KINDS[obj["kind"]]) for obj in (*others, *pods)]
    engine = Engine(Cluster(objects))
    keys = [f"{pod['metadata']['namespace']}/{pod['metadata']['name']}" for pod in pods]
    started = perf_counter()
    decisions = engine.place(keys)
    seconds = perf_counter() - started
    for pod, decision in zip(pods, decisions, strict=True):
        if decision.node is not None:
            pod["spec"]["nodeName"] = decision.node
    return seconds


# Objects --------------------------------------------------------------------------------------------------------------


def _metadata(
    name: str, namespace: str = "", labels: dict[str, str] | None = None, owner: Object | None = None
) -> Object:
    metadata: Object = {"name": name, "uid": f"uid-{namespace}-{name}", "creationTimestamp": _CREATED}
    optional = {"namespace": namespace, "labels": labels, "ownerReferences": [owner] if owner else None}
    return metadata | {key: value for key, value in optional.items() if value}


def _object(kind: str, metadata: Object, **fields: Any) -> Object:
    from tutti.kube.objects import KINDS

    return {"apiVersion": KINDS[kind].API_VERSION, "kind": kind, "metadata": metadata, **fields}


def _node(pool: DemoPool, number: int) -> Object:
    name = f"{pool.name}-{number:03}"
    labels = {
        "kubernetes.io/hostname": name,
        "topology.kubernetes.io/zone": ZONES[number % len(ZONES)],
        "pool": pool.name,
    }
    if pool.name == "hpc":
        labels["rack"] = f"rack-{number // _RACK}"
    offered: Object = {"cpu": f"{pool.cpu * 1000 - 120}m", "memory": f"{pool.memory * 1000}Mi", "pods": "110"}
    if pool.gpus:
        offered["nvidia.com/gpu"] = str(pool.gpus)
    spec: Object = {"taints": [{"key": pool.taint, "effect": "NoSchedule"}]} if pool.taint else {}
    return _object("Node", _metadata(name, labels=labels), spec=spec, status={"allocatable": offered})


def _daemon(name: str, node: str) -> Object:
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": name, "uid": f"uid-ds-{name}", "controller": True}
    spec = {
        "nodeName": node,
        "priority": 2000001000,
        "schedulerName": "default-scheduler",
        "tolerations": [{"operator": "Exists"}],
        "containers": [_container(name, "50m", "100Mi", 0)],
    }
    metadata = _metadata(f"{name}-{node}", "kube-system", {"app": name}, owner)
    return _object("Pod", metadata, spec=spec, status={"phase": "Running", "startTime": _STARTED})


def _container(name: str, cpu: str, memory: str, gpus: int) -> Object:
    requests: Object = {"cpu": cpu, "memory": memory}
    resources: Object = {"requests": requests}
    if gpus:
        requests["nvidia.com/gpu"] = str(gpus)
        resources["limits"] = {"nvidia.com/gpu": str(gpus)}
    return {"name": "main", "image": f"registry.example/{name}:v1", "resources": resources}


def _pod(each: DemoWorkload, number: int) -> Object:
    owner_name = f"{each.name}-7d9c5b" if each.kind == "ReplicaSet" else each.name
    owner = {
        "apiVersion": "batch/v1" if each.kind == "Job" else "apps/v1",
        "kind": each.kind,
        "name": owner_name,
        "uid": f"uid-{each.namespace}-{owner_name}",
        "controller": True,
    }
    waits = number >= each.pods - each.pending
    spec: Object = {
        "priority": PRIORITIES[each.priority],
        "priorityClassName": each.priority,
        "schedulerName": each.scheduler,
        "nodeSelector": {"pool": each.pool},
        "containers": [_container(each.name, each.cpu, each.memory, each.gpus)],
    }
    taint = next(pool.taint for pool in POOLS if pool.name == each.pool)
    if taint:
        spec["tolerations"] = [{"key": taint, "operator": "Exists"}]
    if each.spread:
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": each.name}},
            }
        ]
    if each.gate:
        spec["schedulingGates"] = [{"name": each.gate}]
    labels = {"app": each.name, _GROUP: each.name} if each.gang else {"app": each.name}
    metadata = _metadata(f"{owner_name}-{number}", each.namespace, labels, owner)
    status = {"phase": "Pending"} if waits else {"phase": "Running", "startTime": _STARTED}
    return _object("Pod", metadata, spec=spec, status=status)


def _owners(each: DemoWorkload) -> Iterator[Object]:
    """Yield the service and the owner of a workload, with the fields that the scheduler reads."""
    if each.kind not in ("ReplicaSet", "StatefulSet"):
        return
    labels = {"app": each.name}
    selector = {"matchLabels": labels}
    template = {"metadata": {"labels": labels}, "spec": _pod(each, 0)["spec"]}
    spec = {"replicas": each.pods, "selector": selector, "template": template}
    yield _object("Service", _metadata(each.name, each.namespace, labels), spec={"selector": labels})
    if each.kind == "StatefulSet":
        yield _object("StatefulSet", _metadata(each.name, each.namespace, labels), spec=spec)
        return
    deployment = _object("Deployment", _metadata(each.name, each.namespace, labels), spec=spec)
    yield deployment
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": each.name, "controller": True}
    owner["uid"] = deployment["metadata"]["uid"]
    yield _object("ReplicaSet", _metadata(f"{each.name}-7d9c5b", each.namespace, labels, owner), spec=spec)


def _group(each: DemoWorkload) -> Object:
    """Return the PodGroup of a gang for the coscheduling plugin; the annotation for racks is Tutti's addition."""
    metadata = _metadata(each.name, each.namespace) | {"annotations": {"tutti.dev/topology-required": "rack"}}
    return {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "PodGroup",
        "metadata": metadata,
        "spec": {"minMember": each.pods},
    }


def _namespaces() -> Iterator[Object]:
    for name in ("kube-system", "web", "data", "ml", "hpc"):
        yield _object("Namespace", _metadata(name, labels={"kubernetes.io/metadata.name": name}))


def _priority_classes() -> Iterator[Object]:
    for name, value in PRIORITIES.items():
        yield _object("PriorityClass", _metadata(name), value=value)


def _budgets() -> Iterator[Object]:
    for number in range(0, 16, 2):
        name = f"sweep-{number:02}"
        selector = {"matchLabels": {"app": name}}
        budget = _object("PodDisruptionBudget", _metadata(name, "ml"), spec={"selector": selector, "maxUnavailable": 1})
        yield budget | {"status": {"disruptionsAllowed": 1}}
