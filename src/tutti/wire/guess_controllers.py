"""The controller of a pod, guessed from its labels and affinity; for formats without owner references.

Contract: pure. A pod with a node affinity on a node's name belongs to a DaemonSet. For other pods the labels of
Kubernetes' own controllers decide: a StatefulSet sets the pod's name, or a revision on a pod with an ordinal; a Job
sets its own name; a ReplicaSet sets the hash of its template. A pod with none of these has no controller.
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
    """Return the owner reference of a pod's controller, as a list for its metadata; None without a controller."""
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
    """Return a pod's name without the suffix that its controller appended."""
    return name.rpartition("-")[0] or name


def _owner(api_version: str, kind: str, name: str) -> OwnerReference:
    return OwnerReference(api_version=api_version, kind=kind, name=name, uid="", controller=True)


def _is_daemon(spec: PodSpec) -> bool:
    """Return whether a pod's affinity names its node, as in every DaemonSet pod."""
    if spec.affinity is None or spec.affinity.node_affinity is None or spec.affinity.node_affinity.required is None:
        return False
    return any(
        field.key == NODE_NAME_FIELD
        for term in spec.affinity.node_affinity.required.node_selector_terms or ()
        for field in term.match_fields or ()
    )
