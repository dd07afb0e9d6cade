"""The fields of an object that never leave the cluster: no dump and no recording has them.

Contract: pure. The structs of `kube.objects` have only the fields that Tutti reads. Environment variables, commands and
arguments of containers, probes, lifecycle hooks and managedFields are not among them, neither in pods nor in the pod
templates of workloads; there is no struct for Secrets and ConfigMaps. So decoding drops all of these, and one private
field remains: kubectl's copy of the applied manifest, an annotation that repeats them all. `without_private_fields`
removes this annotation. Names, labels, images, requests and all other annotations stay.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from tutti.kube.objects import Object

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation in which ``kubectl apply`` keeps the whole manifest."""

_Some = TypeVar("_Some", bound=Object)


def without_private_fields(obj: _Some) -> _Some:
    """Return an object without private fields; the object itself if it has none."""
    annotations = obj.metadata.annotations
    if not annotations or LAST_APPLIED not in annotations:
        return obj
    kept = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    return replace(obj, metadata=replace(obj.metadata, annotations=kept or None))
