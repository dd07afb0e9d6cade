"""Who made a pod, told from what controllers leave on their pods; for formats that do not say.

Contract: pure. A pod that is bound to its node by an affinity on the node's name is a daemon's. Every other one is told
by the labels that Kubernetes' own controllers set: a StatefulSet its pod's name, or a revision and an ordinal; a Job
its own name; a ReplicaSet the hash of its template. A pod with none of these has no controller.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tutti.kube.objects import OwnerReference, PodSpec
from tutti.kube.selectors import NODE_NAME_FIELD

_POD_NAME = "statefulset.kubernetes.io/pod-name"
_REVISION = "controller-revision-hash"
_TEMPLATE = "pod-template-hash"
_JOB_NAMES = ("batch.kubernetes.io/job-name", "job-name")
_ORDINAL = re.compile(r"-(?:0|[1-9][0-9]*)")


def controllers_of(name: str, labels: Mapping[str, str] | None, spec: PodSpec) -> list[OwnerReference] | None:
    """The reference to a pod's controller, as its metadata would have it; None where there is none."""
    if _is_daemon(spec):
        return [_owner("apps/v1", "DaemonSet", _stem(name))]
    if not labels:
        return None
    if labels.get(_POD_NAME) or (labels.get(_REVISION) and _ORDINAL.fullmatch(name.removeprefix(_stem(name)))):
        return [_owner("apps/v1", "StatefulSet", _stem(name))]
    if job := next((labels[key] for key in _JOB_NAMES if labels.get(key)), ""):
        return [_owner("batch/v1", "Job", job)]
    return [_owner("apps/v1", "ReplicaSet", _stem(name))] if labels.get(_TEMPLATE) else None


def _stem(name: str) -> str:
    """A pod's name without what its controller put at the end."""
    return name.rpartition("-")[0] or name


def _owner(api_version: str, kind: str, name: str) -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid="", controller=True)


def _is_daemon(spec: PodSpec) -> bool:
    """Whether a pod's affinity names its node, as that of every daemon pod does."""
    if spec.affinity is None or spec.affinity.node_affinity is None or spec.affinity.node_affinity.required is None:
        return False
    return any(
        field.key == NODE_NAME_FIELD
        for term in spec.affinity.node_affinity.required.node_selector_terms or ()
        for field in term.match_fields or ()
    )
