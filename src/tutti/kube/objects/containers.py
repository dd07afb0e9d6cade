"""Containers as data: images, resources, ports, restart rules and volume mounts."""

from __future__ import annotations

import msgspec

from tutti.kube.objects.meta import Int32, KubeStruct, Quantities


class ResourceRequirements(KubeStruct, frozen=True):
    """The requests and limits of a container or of a pod."""

    requests: Quantities | None = None
    limits: Quantities | None = None


class ContainerPort(KubeStruct, frozen=True):
    """A port of a container; the scheduler reads only host ports."""

    container_port: Int32 | None = None
    host_port: Int32 | None = None
    host_ip: str | None = msgspec.field(default=None, name="hostIP")
    protocol: str | None = None


class RestartRule(KubeStruct, frozen=True):
    """What happens if a container exits with certain codes; Tutti reads only the action."""

    action: str = ""


class VolumeMount(KubeStruct, frozen=True):
    """A mount of a volume; Tutti reads only the options that not every node supports."""

    bind_mount_options: list[str] | None = None


class Container(KubeStruct, frozen=True):
    """A container or an init container."""

    name: str = ""
    image: str | None = None
    resources: ResourceRequirements | None = None
    ports: list[ContainerPort] | None = None
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] | None = None
    volume_mounts: list[VolumeMount] | None = None
