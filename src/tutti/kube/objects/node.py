"""Nodes as data: taints, capacity, images, conditions."""

from __future__ import annotations

import msgspec

from tutti.kube.objects.meta import KubeStruct, Object, Quantities
from tutti.kube.objects.pod import Condition


class Taint(KubeStruct, frozen=True):
    """A taint: keeps pods without a matching toleration off a node."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(KubeStruct, frozen=True):
    """Taints, the unschedulable flag and the provider id of a node."""

    unschedulable: bool | None = None
    taints: list[Taint] | None = None
    provider_id: str | None = msgspec.field(default=None, name="providerID")


class NodeImage(KubeStruct, frozen=True):
    """A container image on a node."""

    names: list[str] | None = None
    size_bytes: int | None = None


class NodeStatus(KubeStruct, frozen=True):
    """Capacity, allocatable resources, conditions, images and declared features of a node."""

    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None
    images: list[NodeImage] | None = None
    declared_features: list[str] | None = None


class Node(Object, frozen=True):
    """A node."""

    KIND = "Node"
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
