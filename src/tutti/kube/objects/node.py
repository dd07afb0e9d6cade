"""Nodes as data: taints, capacity, images, conditions."""

from __future__ import annotations

import msgspec

from tutti.kube.objects.meta import Object, Quantities, Wire
from tutti.kube.objects.pod import Condition


class Taint(Wire, frozen=True):
    """What keeps pods off a node."""

    key: str = ""
    value: str | None = None
    effect: str = ""


class NodeSpec(Wire, frozen=True):
    """What is set on a node."""

    unschedulable: bool | None = None
    taints: list[Taint] | None = None
    provider_id: str | None = msgspec.field(default=None, name="providerID")


class NodeImage(Wire, frozen=True):
    """An image that a node has."""

    names: list[str] | None = None
    size_bytes: int | None = None


class NodeStatus(Wire, frozen=True):
    """What a node offers."""

    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] | None = None
    images: list[NodeImage] | None = None


class Node(Object, frozen=True):
    """A node."""

    KIND = "Node"
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()
