"""Devices as data: the classes of devices that pods can request."""

from __future__ import annotations

from tutti.kube.objects.meta import KubeStruct, Object


class DeviceClassSpec(KubeStruct, frozen=True):
    """The extended resource by which a pod can request a device of the class."""

    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True):
    """A class of devices that drivers allocate (dynamic resource allocation)."""

    KIND = "DeviceClass"
    API_VERSION = "resource.k8s.io/v1"
    spec: DeviceClassSpec = DeviceClassSpec()
