"""Gangs in four dialects: Kubernetes' own PodGroups, coscheduling, Volcano, and the plain annotation.

Contract: pure; each function returns new documents.
"""

from __future__ import annotations

from typing import Any

from tests.controlplane.manifests import new_pod
from tests.support.builders import COSCHEDULING_LABEL
from tests.support.documents import Document
from tutti.client.resources import Resource

NATIVE, COSCHEDULING, VOLCANO, ANNOTATION = "native", "coscheduling", "volcano", "annotation"
GROUPS = {
    NATIVE: Resource("scheduling.k8s.io", "v1beta1", "podgroups", True, "PodGroup"),
    COSCHEDULING: Resource("scheduling.x-k8s.io", "v1alpha1", "podgroups", True, "PodGroup"),
    VOLCANO: Resource("scheduling.volcano.sh", "v1beta1", "podgroups", True, "PodGroup"),
}
"""The PodGroups of each dialect that has some."""


def pod_group(dialect: str, name: str, namespace: str, *, minimum: int) -> Document:
    """Return the object of a group."""
    native = {"schedulingPolicy": {"gang": {"minCount": minimum}}}
    return {
        "apiVersion": GROUPS[dialect].api_version,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": native if dialect == NATIVE else {"minMember": minimum},
    }


def gang_pods(
    dialect: str, group: str, namespace: str, *, pods: range | int, minimum: int = 0, cpu: str = "1", **spec: Any
) -> list[Document]:
    """Return pods of a gang; without its object, their annotations have the minimum."""
    numbers = range(pods) if isinstance(pods, int) else pods
    labels, annotations = {}, {}
    if dialect == NATIVE:
        spec = {**spec, "schedulingGroup": {"podGroupName": group}}
    elif dialect == COSCHEDULING:
        labels = {COSCHEDULING_LABEL: group}
    elif dialect == VOLCANO:
        annotations = {"scheduling.k8s.io/group-name": group}
    else:
        annotations = {"pod-group": group, "tutti.dev/min-member": str(minimum or len(numbers))}
    return [
        new_pod(f"{group}-{n}", namespace, cpu=cpu, labels=labels, annotations=annotations, **spec) for n in numbers
    ]
