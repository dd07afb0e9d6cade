"""The context in which pools are read: the price book, the region, and the existing nodes.

Contract: pure. The region is the given one, or that of most nodes. The size of an instance type comes from the first
of: the user's table (allocatable as given), the packaged book, a node of that type in the cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from tutti.kube.objects import Node, Quantities
from tutti.market.instance_types import ARCH, INSTANCE_TYPE, OLD_KEYS, OS, REGION, ZONE, subtract
from tutti.market.machine_capacity import DISK, STORAGE, capacity_of, reserve_of
from tutti.market.price_book import PriceBook, region_of

_CONTROL_PLANE = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
_OLD = {new: old for old, new in OLD_KEYS.items()}


class MachineCapacity(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Capacity, allocatable and labels of a node of an instance type."""

    capacity: Quantities
    allocatable: Quantities
    labels: dict[str, str] = {}
    """Labels of the machine: its architecture and operating system."""


class PoolContext:
    """Prices, region and existing nodes; see the module's contract."""

    def __init__(self, book: PriceBook, *, region: str = "", nodes: Iterable[Node] = ()) -> None:
        self.book = book
        self.nodes: Sequence[Node] = [node for node in nodes if not is_control_plane(node)]
        places = Counter(place for node in self.nodes if (place := region_of_node(node)))
        self.region = region or (min(places, key=lambda place: (-places[place], place)) if places else "")
        self._example_nodes: dict[str, Node] = {}
        for node in self.nodes:
            if name := label_of(node, INSTANCE_TYPE):
                self._example_nodes.setdefault(name, node)

    @property
    def zones(self) -> list[str]:
        """The zones of existing nodes."""
        return sorted({zone for node in self.nodes if (zone := label_of(node, ZONE))})

    @property
    def types(self) -> list[str]:
        """The instance types of existing nodes."""
        return sorted(self._example_nodes)

    def price(self, instance_type: str, *, zone: str, capacity_type: str, region: str = "") -> int | None:
        """Return the price of an hour of a type; None if unknown."""
        place = region or (region_of(zone) if zone else "") or self.region
        return self.book.price(instance_type, place, capacity_type=capacity_type, zone=zone or None)

    def machine(
        self,
        instance_type: str,
        *,
        reserved: Mapping[str, str | float] | None = None,
        disk: str | float | None = None,
    ) -> MachineCapacity | None:
        """Return a machine of a type; None for an unknown type.

        `reserved` replaces the amounts that EKS reserves.
        """
        shape = self.book.shape(instance_type, self.region)
        labels = {ARCH: shape.arch if shape is not None else "amd64", OS: "linux"}
        if (allocatable := self.book.allocatable(instance_type)) is not None:
            full = {"pods": "110", STORAGE: disk or DISK} | allocatable
            return MachineCapacity(capacity=full, allocatable=full, labels=labels)
        if shape is not None:
            capacity = capacity_of(shape, disk=disk or DISK)
            reserved_amounts = reserved if reserved is not None else reserve_of(shape, capacity)
            return MachineCapacity(capacity=capacity, allocatable=subtract(capacity, reserved_amounts), labels=labels)
        example = self._example_nodes.get(instance_type)
        if example is None:
            return None
        machine = MachineCapacity(
            capacity=example.status.capacity or example.status.allocatable or {},
            allocatable=example.status.allocatable or {},
            labels={key: label_of(example, key) or labels[key] for key in (ARCH, OS)},
        )
        return machine if reserved is None else replace(machine, allocatable=subtract(machine.capacity, reserved))


def is_control_plane(node: Node) -> bool:
    """Return whether a node runs the control plane; such nodes are not bought for pods."""
    return any(key in (node.metadata.labels or {}) for key in _CONTROL_PLANE)


def label_of(node: Node, key: str) -> str:
    """Return a node's label by today's key or its old key; empty if the node has neither."""
    labels = node.metadata.labels or {}
    return labels.get(key) or labels.get(_OLD.get(key, ""), "")


def region_of_node(node: Node) -> str:
    """Return the region of a node; empty if unknown."""
    return label_of(node, REGION) or region_of(label_of(node, ZONE))


def region_hint(region: str, regions: Sequence[str]) -> str:
    """Return a hint to name the region, if it is not one of the regions with packaged prices; otherwise empty."""
    return "" if region in regions else f"name the region with --region (packaged prices: {', '.join(regions)})"


def unpriced_note(types: Iterable[str], *, region: str, regions: Sequence[str] = ()) -> list[str]:
    """Return a note about instance types without a price, if there are any; `regions` have packaged prices."""
    names = sorted(set(types))
    if not names:
        return []
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    where = f" in {region}" if region else ""
    hint = region_hint(region, regions) if regions else ""
    return [f"no price is known for {shown}{where}: give some with --prices{', or ' if hint else ''}{hint}"]
