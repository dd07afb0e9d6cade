"""The fields of an object that never leave the cluster: no dump and no recording has them.

Contract: pure. The structs of `kube.objects` have only the fields that Tutti reads. Environment variables, commands and
arguments of containers, probes, lifecycle hooks and managedFields are not among them, neither in pods nor in the pod
templates of workloads; there is no struct for Secrets and ConfigMaps. So decoding drops all of these, and one kind of
private field remains: the annotations in which tools keep a copy of the applied manifest, which repeats them all.
`without_private_fields` removes these annotations. Names, labels, images, requests and all other annotations stay.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from tutti.kube.objects import Object

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which ``kubectl apply`` keeps the whole manifest."""
MANIFEST_COPIES = frozenset(
    (
        LAST_APPLIED,
        "objectset.rio.cattle.io/applied",  # Rancher, Fleet and k3s, compressed
        "kapp.k14s.io/original",
        "kapp.k14s.io/original-diff-md5",
        "banzaicloud.com/last-applied",  # operators that use banzaicloud/k8s-objectmatcher
    )
)
"""The annotations in which tools keep the whole manifest, or what tells its content."""

_Some = TypeVar("_Some", bound=Object)


def without_private_fields(obj: _Some) -> _Some:
    """Return an object without private fields; the object itself if it has none."""
    annotations = obj.metadata.annotations
    if not annotations or MANIFEST_COPIES.isdisjoint(annotations):
        return obj
    kept = {key: value for key, value in annotations.items() if key not in MANIFEST_COPIES}
    return replace(obj, metadata=replace(obj.metadata, annotations=kept or None))
