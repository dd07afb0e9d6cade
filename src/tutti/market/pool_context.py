"""What pools are read against: the price book, the region, and the nodes that are there.

Contract: pure. The region is the one that is given, else that of most nodes. The size of an instance type comes from,
in this order: the user's table (allocatable as it stands), the packaged book, a node of that type in the cluster.
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
    """What a node of an instance type has."""

    capacity: Quantities
    allocatable: Quantities
    labels: dict[str, str] = {}
    """Those that come with the machine: its architecture and operating system."""


class PoolContext:
    """See the module's contract."""

    def __init__(self, book: PriceBook, *, region: str = "", nodes: Iterable[Node] = ()) -> None:
        self.book = book
        self.nodes: Sequence[Node] = [node for node in nodes if not is_control_plane(node)]
        places = Counter(place for node in self.nodes if (place := region_of_node(node)))
        self.region = region or (min(places, key=lambda place: (-places[place], place)) if places else "")
        self._seen: dict[str, Node] = {}
        for node in self.nodes:
            if name := label_of(node, INSTANCE_TYPE):
                self._seen.setdefault(name, node)

    @property
    def zones(self) -> list[str]:
        """The zones in which there are nodes."""
        return sorted({zone for node in self.nodes if (zone := label_of(node, ZONE))})

    @property
    def types(self) -> list[str]:
        """The instance types that there are nodes of."""
        return sorted(self._seen)

    def price(self, instance_type: str, *, zone: str, capacity_type: str, region: str = "") -> int | None:
        """What an hour of a type costs."""
        place = region or (region_of(zone) if zone else "") or self.region
        return self.book.price(instance_type, place, capacity_type=capacity_type, zone=zone or None)

    def machine(
        self,
        instance_type: str,
        *,
        reserved: Mapping[str, str | float] | None = None,
        disk: str | float | None = None,
    ) -> MachineCapacity | None:
        """A machine of a type; `reserved` is kept of it instead of what EKS keeps. None for a type nobody knows."""
        shape = self.book.shape(instance_type, self.region)
        labels = {ARCH: shape.arch if shape is not None else "amd64", OS: "linux"}
        if (allocatable := self.book.allocatable(instance_type)) is not None:
            full = {"pods": "110", STORAGE: disk or DISK} | allocatable
            return MachineCapacity(capacity=full, allocatable=full, labels=labels)
        if shape is not None:
            capacity = capacity_of(shape, disk=disk or DISK)
            kept = reserved if reserved is not None else reserve_of(shape, capacity)
            return MachineCapacity(capacity=capacity, allocatable=subtract(capacity, kept), labels=labels)
        seen = self._seen.get(instance_type)
        if seen is None:
            return None
        machine = MachineCapacity(
            capacity=seen.status.capacity or seen.status.allocatable or {},
            allocatable=seen.status.allocatable or {},
            labels={key: label_of(seen, key) or labels[key] for key in (ARCH, OS)},
        )
        return machine if reserved is None else replace(machine, allocatable=subtract(machine.capacity, reserved))


def is_control_plane(node: Node) -> bool:
    """Whether a node runs the control plane: nobody buys such nodes for pods."""
    return any(key in (node.metadata.labels or {}) for key in _CONTROL_PLANE)


def label_of(node: Node, key: str) -> str:
    """A node's label by today's name, or else by its old one; empty when it has neither."""
    labels = node.metadata.labels or {}
    return labels.get(key) or labels.get(_OLD.get(key, ""), "")


def region_of_node(node: Node) -> str:
    """The region that a node is in; empty when it does not say."""
    return label_of(node, REGION) or region_of(label_of(node, ZONE))


def region_hint(region: str, regions: Sequence[str]) -> str:
    """What to do where the region is not one of these, whose prices are packaged; empty where it is."""
    return "" if region in regions else f"name the region with --region (packaged prices: {', '.join(regions)})"


def unpriced_note(types: Iterable[str], *, region: str, regions: Sequence[str] = ()) -> list[str]:
    """A line about instance types without a price, if there are any; `regions` are those with packaged prices."""
    names = sorted(set(types))
    if not names:
        return []
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    where = f" in {region}" if region else ""
    hint = region_hint(region, regions) if regions else ""
    return [f"no price is known for {shown}{where}: give some with --prices{', or ' if hint else ''}{hint}"]
