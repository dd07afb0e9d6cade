"""Objects of the soak's workload as JSON: nodes, priorities, kinds of a dialect, gangs.

Contract: pure functions. A gang is a group object and a ReplicaSet of the same name in the namespace `default`.
"""

from __future__ import annotations

from typing import Any

from tests.support.builders import COSCHEDULING_LABEL

Document = dict[str, Any]

PRIORITIES = {"low": 100, "middle": 200, "high": 300}
_NATIVE, _COSCHEDULING = "native", "coscheduling"
DIALECTS = {
    _NATIVE: "scheduling.k8s.io/v1beta1",
    _COSCHEDULING: "scheduling.x-k8s.io/v1alpha1",
}
"""The API version of each dialect's PodGroup."""

_PLURALS = {
    "Node": "nodes",
    "PriorityClass": "priorityclasses",
    "PodGroup": "podgroups",
    "ReplicaSet": "replicasets",
    "CustomResourceDefinition": "customresourcedefinitions",
}


def setup_objects(dialect: str) -> list[Document]:
    """Return what must exist before the first gang."""
    documents: list[Document] = [
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": name},
            "value": priority,
            "description": "priority of a gang in the soak run",
        }
        for name, priority in PRIORITIES.items()
    ]
    if dialect == _COSCHEDULING:
        documents.append(_coscheduling_definition())
    return documents


def node(name: str, cpu: int) -> Document:
    """Return a node for kwok, which keeps its resources and makes it ready."""
    room = {"cpu": f"{cpu}m", "memory": "64Gi", "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"capacity": room, "allocatable": room},
    }


def is_ready_node(document: Document) -> bool:
    """Return whether a node is ready and has no taints."""
    conditions = {each["type"]: each["status"] for each in document["status"].get("conditions") or ()}
    return conditions.get("Ready") == "True" and not document["spec"].get("taints")


def gang(name: str, *, size: int, cpu: int, priority: str, dialect: str, scheduler_name: str) -> list[Document]:
    """Return the group object and the ReplicaSet of a gang."""
    labels = {"gang": name}
    spec: Document = {
        "schedulerName": scheduler_name,
        "priorityClassName": priority,
        "terminationGracePeriodSeconds": 1,
        "containers": [
            {"name": "worker", "image": "worker", "resources": {"requests": {"cpu": f"{cpu}m", "memory": "64Mi"}}}
        ],
    }
    if dialect == _NATIVE:
        spec["schedulingGroup"] = {"podGroupName": name}
        group: Document = {
            "schedulingPolicy": {"gang": {"minCount": size}},
            "disruptionMode": {"all": {}},
            "priorityClassName": priority,
        }
    else:
        labels[COSCHEDULING_LABEL] = name
        group = {"minMember": size}
    return [
        {"apiVersion": DIALECTS[dialect], "kind": "PodGroup", "metadata": {"name": name}, "spec": group},
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": name},
            "spec": {
                "replicas": size,
                "selector": {"matchLabels": {"gang": name}},
                "template": {"metadata": {"labels": labels}, "spec": spec},
            },
        },
    ]


def gang_paths(name: str, dialect: str) -> list[str]:
    """Return the paths of a gang's objects, the ReplicaSet first."""
    return [
        f"/apis/apps/v1/namespaces/default/replicasets/{name}",
        f"/apis/{DIALECTS[dialect]}/namespaces/default/podgroups/{name}",
    ]


def collection(document: Document) -> str:
    """Return the path to which an object is posted."""
    version, kind = document["apiVersion"], document["kind"]
    base = f"/apis/{version}" if "/" in version else f"/api/{version}"
    namespace = "/namespaces/default" if kind in ("PodGroup", "ReplicaSet") else ""
    return f"{base}{namespace}/{_PLURALS[kind]}"


def _coscheduling_definition() -> Document:
    """Return the CRD of coscheduling's PodGroup, with any fields."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": "podgroups.scheduling.x-k8s.io",
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins"},
        },
        "spec": {
            "group": "scheduling.x-k8s.io",
            "scope": "Namespaced",
            "names": {"kind": "PodGroup", "plural": "podgroups", "singular": "podgroup", "listKind": "PodGroupList"},
            "versions": [
                {
                    "name": "v1alpha1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }
