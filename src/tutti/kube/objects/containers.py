"""Containers as data: images, resources and ports."""

from __future__ import annotations

import msgspec

from tutti.kube.objects.meta import Int32, Quantities, Wire


class ResourceRequirements(Wire, frozen=True):
    """What a container, or a whole pod, asks for."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(Wire, frozen=True):
    """A port of a container; only one with a host port matters to the scheduler."""

    container_port: Int32 | None = None
    host_port: Int32 | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class Container(Wire, frozen=True):
    """A container, or an init container."""

    name: str = ""
    image: str | None = None
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None
