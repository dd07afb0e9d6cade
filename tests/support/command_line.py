"""A run of the command line inside the test, and Kubernetes objects to run it on."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

Object = dict[str, Any]


class Run(NamedTuple):
    """How a run ended, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def node(name: str, *, cpu: str = "4", memory: str = "16Gi", labels: Object | None = None, **spec: Any) -> Object:
    """A node with 110 pods' worth of room."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}},
        "spec": spec,
        "status": {"allocatable": {"cpu": cpu, "memory": memory, "pods": "110"}},
    }


def pod(
    name: str,
    *,
    cpu: str = "1",
    on: str | None = None,
    namespace: str = "default",
    labels: Object | None = None,
    owner: tuple[str, str] | None = None,
    metadata: Object | None = None,
    **spec: Any,
) -> Object:
    """A pod as an API server has stored it: running on a node, or pending."""
    about: Object = {"name": name, "namespace": namespace, "uid": f"{namespace}/{name}", "labels": labels or {}}
    if owner is not None:
        about["ownerReferences"] = [{"kind": owner[0], "name": owner[1], "uid": owner[1], "controller": True}]
    containers = [{"name": "main", "image": "example/main:v1", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {**about, **(metadata or {})},
        "spec": {"containers": containers, "schedulerName": "default-scheduler", "nodeName": on, **spec},
        "status": {"phase": "Running" if on else "Pending"},
    }
