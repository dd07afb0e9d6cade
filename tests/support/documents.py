"""Kubernetes objects as JSON has them: as an API server has stored them, and as users write them.

`node` and `pod` take what those of `builders` take, with the fields of the spec by their names on the wire.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tests.support import builders
from tutti.kube import objects as k

Document = dict[str, Any]


def node(name: str, **how: Any) -> Document:
    """A node as an API server has stored it."""
    return document(builders.node(name, **how))


def pod(name: str, *, metadata: Document | None = None, **how: Any) -> Document:
    """A pod as an API server has stored it, with further metadata: running on a node, or pending."""
    made = document(builders.pod(name, **{"schedulerName": "default-scheduler", **how}))
    made["metadata"] |= metadata or {}
    return made


def new_pod(
    name: str = "p",
    *,
    namespace: str | None = None,
    cpu: str | None = None,
    metadata: Document | None = None,
    **spec: Any,
) -> Document:
    """A pod as a user writes it: no uid, no status, nothing that an API server adds."""
    container = {"name": "main"} | ({"resources": {"requests": {"cpu": cpu}}} if cpu else {})
    place = {"namespace": namespace} if namespace else {}
    return manifest("Pod", name, **place, **(metadata or {})) | {"spec": {"containers": [container], **spec}}


def manifest(kind: str, name: str, **metadata: Any) -> Document:
    """An object of Kubernetes' core group as a user writes it, without a spec; nothing is checked."""
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, **metadata}}


def disruption_budget(app: str, allowed: int | None = None, **how: Any) -> Document:
    """A budget for the pods with a label `app`."""
    return document(builders.disruption_budget(app, allowed, **how))


def pod_group(name: str, minimum: int, *, namespace: str = "default", **metadata: Any) -> Document:
    """A group of the coscheduling plugin."""
    return {
        "apiVersion": k.CoschedulingPodGroup.API_VERSION,
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": namespace, **metadata},
        "spec": {"minMember": minimum},
    }


def karpenter_pool(name: str, requirements: dict[str, list[str]], **spec: Any) -> Document:
    """Karpenter's NodePool whose nodes have one of the values of each label."""
    needs = [{"key": key, "operator": "In", "values": values} for key, values in requirements.items()]
    template = {"spec": {"requirements": needs}}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def document(obj: k.Object) -> Document:
    """An object as JSON has it."""
    return {"apiVersion": obj.API_VERSION, "kind": obj.WIRE_KIND, **msgspec.to_builtins(obj)}
