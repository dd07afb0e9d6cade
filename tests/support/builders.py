"""Nodes, pods and what else a cluster consists of, as typed objects with defaults that make short tests.

A node has 4 cores, 16 GiB, room for 110 pods and the label of its hostname. A pod requests one core, is in the
namespace `default`, and runs if it has a node. Names serve as uids. Further keywords are fields of the spec, by their
names in Python or on the wire; their values may be typed or as JSON has them. A field that is not known is an error.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from tutti.kube import objects as k
from tutti.market.offerings import NodePool, Offering

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
GPU = "nvidia.com/gpu"
COSCHEDULING_LABEL = "scheduling.x-k8s.io/pod-group"
DEFAULT_TOLERATIONS = tuple(
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for key in ("not-ready", "unreachable")
)
"""The tolerations that the API server gives to every pod."""
Labels = dict[str, str]
Record = TypeVar("Record", bound=k.KubeStruct)


def node(
    name: str,
    cpu: k.Quantity = "4",
    *,
    memory: k.Quantity = "16Gi",
    pods: k.Quantity = "110",
    gpu: int = 0,
    zone: str = "",
    labels: Labels | None = None,
    annotations: Labels | None = None,
    taint: str | None = None,
    capacity: k.Quantities | None = None,
    conditions: list[Any] | None = None,
    **spec: Any,
) -> k.Node:
    """A node; `taint` is the key of a NoSchedule taint with the value ``yes``."""
    about = {HOSTNAME: name} | ({ZONE: zone} if zone else {}) | (labels or {})
    if taint:
        spec["taints"] = [k.Taint(key=taint, value="yes", effect="NoSchedule")]
    status = {"allocatable": amounts(cpu, memory, pods=pods, gpu=gpu), "capacity": capacity, "conditions": conditions}
    return k.Node(
        metadata=k.ObjectMeta(name=name, uid=name, labels=about, annotations=annotations),
        spec=fields(k.NodeSpec, spec),
        status=fields(k.NodeStatus, status),
    )


def pod(
    name: str,
    cpu: k.Quantity | None = "1",
    *,
    memory: k.Quantity | None = None,
    gpu: int = 0,
    on: str | None = None,
    namespace: str = "default",
    uid: str | None = None,
    app: str | None = None,
    labels: Labels | None = None,
    annotations: Labels | None = None,
    gang: str | None = None,
    owner: tuple[str, str] | k.OwnerReference | None = None,
    created: str | None = None,
    deleted: str | None = None,
    phase: str | None = None,
    started: str | None = None,
    tolerates: str | None = None,
    host_port: int | None = None,
    **spec: Any,
) -> k.Pod:
    """A pod as an API server stores it.

    `app` is the label of that name, `gang` the annotation ``pod-group``, `owner` its controller, by kind and name,
    `tolerates` the key of a taint.
    """
    if isinstance(owner, tuple):
        owner = owner_reference(*owner)
    about = ({"app": app} if app else {}) | (labels or {})
    notes = ({"pod-group": gang} if gang else {}) | (annotations or {})
    ports = [k.ContainerPort(container_port=80, host_port=host_port)] if host_port else None
    requests = k.ResourceRequirements(requests=amounts(cpu, memory, gpu=gpu))
    spec.setdefault("containers", [k.Container(name="main", resources=requests, ports=ports)])
    if tolerates:
        spec["tolerations"] = [k.Toleration(key=tolerates, operator="Exists")]
    return k.Pod(
        metadata=k.ObjectMeta(
            name=name, namespace=namespace, uid=uid or name, labels=about or None, annotations=notes or None,
            creation_timestamp=created, deletion_timestamp=deleted,
            owner_references=[owner] if owner else None,
        ),
        spec=fields(k.PodSpec, {"node_name": on, **spec}),
        status=k.PodStatus(phase=phase or ("Running" if on else "Pending"), start_time=started),
    )  # fmt: skip


def new_pod(
    name: str = "p",
    *,
    namespace: str | None = None,
    labels: Labels | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> k.Pod:
    """A pod as a user writes it: without a uid, and without requests unless `containers` has them."""
    return k.Pod(
        metadata=k.ObjectMeta(name=name, namespace=namespace, labels=labels),
        spec=fields(k.PodSpec, {"containers": [k.Container(name="main")], **spec}),
        status=fields(k.PodStatus, status or {}),
    )


def members(gang: str, count: int, *, first: int = 0, **how: Any) -> list[k.Pod]:
    """Pods ``gang-0``, ``gang-1``, ... of a gang that they name in their annotations."""
    return [pod(f"{gang}-{number}", gang=gang, **how) for number in range(first, first + count)]


def pod_group(name: str, minimum: int, annotations: Labels | None = None) -> k.CoschedulingPodGroup:
    """The group of pods with the label `COSCHEDULING_LABEL`."""
    metadata = k.ObjectMeta(name=name, namespace="default", annotations=annotations)
    return k.CoschedulingPodGroup(metadata=metadata, spec=k.CoschedulingSpec(min_member=minimum))


def owner_reference(kind: str, name: str, *, uid: str | None = None) -> k.OwnerReference:
    """The reference to a controller."""
    uid = name if uid is None else uid
    return k.OwnerReference(api_version="apps/v1", kind=kind, name=name, uid=uid, controller=True)


def daemon_set(template: k.Pod, namespace: str = "default") -> k.DaemonSet:
    """The daemon set that runs such a pod on every node; it has the pod's name and selects its labels."""
    name, labels = template.metadata.name, template.metadata.labels
    return k.DaemonSet(
        metadata=k.ObjectMeta(name=name, namespace=namespace, uid=f"daemon-{name}"),
        spec=k.WorkloadSpec(
            template=k.PodTemplate(metadata=k.ObjectMeta(labels=labels), spec=template.spec),
            selector=k.LabelSelector(match_labels=labels),
        ),
    )


def disruption_budget(
    app: str | None, allowed: int | None = None, *, name: str | None = None, namespace: str = "default", **spec: Any
) -> k.PodDisruptionBudget:
    """A budget for the pods with a label `app`, or for the whole namespace; `allowed` is what its status says."""
    return k.PodDisruptionBudget(
        metadata=k.ObjectMeta(name=name or app or "all", namespace=namespace),
        spec=fields(k.BudgetSpec, {"selector": selects(app) if app else k.LabelSelector(), **spec}),
        status=k.BudgetStatus(disruptions_allowed=allowed),
    )


# Rules between pods ---------------------------------------------------------------------------------------------------


def selects(app: str) -> k.LabelSelector:
    return k.LabelSelector(match_labels={"app": app})


def near(app: str, key: str = ZONE) -> k.Affinity:
    """Affinity to the pods of an app."""
    return k.Affinity(pod_affinity=k.PodAffinity(required=[_term(app, key)]))


def apart(app: str, key: str = HOSTNAME) -> k.Affinity:
    """Anti-affinity to the pods of an app."""
    return k.Affinity(pod_anti_affinity=k.PodAffinity(required=[_term(app, key)]))


def spread(app: str, key: str = ZONE, *, skew: int = 1, min_domains: int | None = None) -> k.TopologySpreadConstraint:
    """A spread of the pods of an app that must hold."""
    return k.TopologySpreadConstraint(
        max_skew=skew, topology_key=key, label_selector=selects(app), min_domains=min_domains
    )


def _term(app: str, key: str) -> k.PodAffinityTerm:
    return k.PodAffinityTerm(label_selector=selects(app), topology_key=key)


# What can be bought ---------------------------------------------------------------------------------------------------


def offering(pool: str, price: int | None = None, *, kind: str = "m", zone: str = "a", **how: Any) -> Offering:
    """A node of a pool that can be bought at a price in nano-dollars an hour; its capacity is what it offers pods."""
    made = node(f"template-{pool}", zone=zone, **how)
    made = replace(made, status=replace(made.status, capacity=made.status.allocatable))
    return Offering(pool=pool, instance_type=kind, zone=zone, price=price, node=made)


def pool(*offerings: Offering, **rules: Any) -> NodePool:
    """The pool of these offerings."""
    return NodePool(name=offerings[0].pool, offerings=offerings, **rules)


# Parts ----------------------------------------------------------------------------------------------------------------


def amounts(cpu: k.Quantity | None, memory: k.Quantity | None, *, pods: Any = None, gpu: int = 0) -> k.Quantities:
    """What is offered or asked for, without what is None."""
    listed = {"cpu": cpu, "memory": memory, "pods": pods, GPU: str(gpu) if gpu else None}
    return {name: amount for name, amount in listed.items() if amount is not None}


def fields(record: type[Record], given: dict[str, Any]) -> Record:
    """A record from fields by their names in Python or on the wire, typed or as JSON has them."""
    names = _names(record)
    unknown = given.keys() - names.keys() - {*names.values()}
    if unknown:
        raise TypeError(f"{record.__name__} has no field {min(unknown)}")
    return msgspec.convert({names.get(name, name): value for name, value in given.items()}, record)


@cache
def _names(record: type[k.KubeStruct]) -> dict[str, str]:
    """The names on the wire of a record's fields."""
    return {field.name: field.encode_name for field in msgspec.structs.fields(record)}
