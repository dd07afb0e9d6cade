"""Objects as users write them, complete enough for a real API server: nodes, pods, budgets, Jobs, CRDs.

Contract: pure; each function returns a new document. Keywords of `new_pod` and `job` are fields of the pod's spec.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.documents import Document

HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
OPEN_OBJECT: Document = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def ready_node(
    name: str,
    *,
    cpu: str = "32",
    memory: str = "128Gi",
    pods: int = 110,
    zone: str = "",
    labels: dict[str, str] | None = None,
    taints: Sequence[Document] = (),
    **resources: str,
) -> Document:
    """Return a node whose kubelet is ready; further resources are amounts by name."""
    amounts = {"cpu": cpu, "memory": memory, "pods": str(pods), **resources}
    about = {HOSTNAME: name, **({ZONE: zone} if zone else {}), **(labels or {})}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "ready"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": about},
        "spec": {"taints": list(taints)} if taints else {},
        "status": {"capacity": amounts, "allocatable": amounts, "conditions": [ready]},
    }


def new_pod(
    name: str,
    namespace: str = "default",
    *,
    cpu: str = "100m",
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    scheduler: str = "tutti",
    **spec: Any,
) -> Document:
    """Return a pod that waits for a scheduler; kube-scheduler ignores it unless `scheduler` is its name."""
    metadata = {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": annotations or {}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": pod_spec(cpu, scheduler, **spec)}


def pod_spec(cpu: str = "100m", scheduler: str = "tutti", **spec: Any) -> Document:
    """Return the spec of a pod with one container."""
    container = {"name": "main", "image": "example.invalid/main", "resources": {"requests": {"cpu": cpu}}}
    return {"schedulerName": scheduler, "containers": [container], **spec}


def job(name: str, namespace: str, *, pods: int, **spec: Any) -> Document:
    """Return a Job that runs all its pods at once."""
    template = {"spec": pod_spec(**{"restartPolicy": "Never", **spec})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"parallelism": pods, "completions": pods, "template": template},
    }


def disruption_budget(name: str, namespace: str, *, app: str, min_available: int) -> Document:
    """Return a budget for the pods with a label `app`."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"minAvailable": min_available, "selector": {"matchLabels": {"app": app}}},
    }


def custom_resource(
    group: str, version: str, kind: str, plural: str, *, spec: Document | None = None, short: Sequence[str] = ()
) -> Document:
    """Return a CRD of a namespaced kind with a status subresource; fields that the schema does not name are kept."""
    schema = {"type": "object", "properties": {"spec": spec or OPEN_OBJECT, "status": OPEN_OBJECT}}
    served = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
    }
    names = {"kind": kind, "listKind": f"{kind}List", "plural": plural, "singular": kind.lower()}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {**names, "shortNames": list(short)},
            "versions": [served],
        },
    }


def _pod_group_spec(**fields: Document) -> Document:
    minimum = {"type": "integer", "format": "int32", "minimum": 1}
    return {**OPEN_OBJECT, "properties": {"minMember": minimum, **fields}}


def coscheduling_pod_group_crd() -> Document:
    """Return the CRD of scheduler-plugins' PodGroup."""
    spec = _pod_group_spec(scheduleTimeoutSeconds={"type": "integer", "format": "int32"})
    return custom_resource("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "podgroups", spec=spec, short=("pg",))


def volcano_pod_group_crd() -> Document:
    """Return the CRD of Volcano's PodGroup."""
    tasks = {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}}
    spec = _pod_group_spec(minTaskMember=tasks, queue={"type": "string"}, priorityClassName={"type": "string"})
    return custom_resource("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups", spec=spec)
