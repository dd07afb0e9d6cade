"""Which extended resources stand for the devices of a DeviceClass.

kube-scheduler takes such a resource from a node that offers it (a device plugin); for any other node it would allocate
devices through a claim (DynamicResources), which Tutti does not do. Contract: pure; reads the cluster's DeviceClasses.
"""

from __future__ import annotations

from tutti.cluster.cluster import Cluster
from tutti.kube.objects import DeviceClass
from tutti.kube.times import micros

IMPLICIT_PREFIX = "deviceclass.resource.kubernetes.io/"
"""With the name of a DeviceClass: a resource that stands for the class without naming it in `extendedResourceName`."""


def device_class_of(cluster: Cluster, resource: str) -> str | None:
    """Return the name of the DeviceClass that a resource stands for; None if it stands for no class.

    Of several classes with the same `extendedResourceName` the newest counts, then the first by name.
    """
    objects = cluster.objects[DeviceClass.KIND]
    if resource.startswith(IMPLICIT_PREFIX):
        name = resource.removeprefix(IMPLICIT_PREFIX)
        return name if name in objects else None
    classes = [
        (-_created(each), name)
        for name, each in objects.items()
        if isinstance(each, DeviceClass) and each.spec.extended_resource_name == resource
    ]
    return min(classes)[1] if classes else None


def needs_device(device_class: str, resource: str) -> str:
    """Return the message for a node that has no such resource, where the pod would need a device of a class."""
    return (
        f"node(s) would need devices of DeviceClass {device_class} for {resource}: Tutti does not allocate devices yet"
    )


def _created(device_class: DeviceClass) -> int:
    created = device_class.metadata.creation_timestamp
    return micros(created) if created is not None else 0
