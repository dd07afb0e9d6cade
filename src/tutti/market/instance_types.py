"""Instance types as a cloud offers them, and the nodes that they would become.

Contract: frozen records and pure functions. Amounts are counted as `kube.resources` counts them (cpu in millicores,
everything else in whole units), with the number of pods and every other resource that a node names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from tutti.kube.generated_names import made_uid
from tutti.kube.objects import Node, NodeSpec, NodeStatus, ObjectMeta, Quantities, Taint
from tutti.kube.quantity import format_quantity, milli, value

ARCH = "kubernetes.io/arch"
OS = "kubernetes.io/os"
HOSTNAME = "kubernetes.io/hostname"
INSTANCE_TYPE = "node.kubernetes.io/instance-type"
REGION = "topology.kubernetes.io/region"
ZONE = "topology.kubernetes.io/zone"
OLD_KEYS = {
    "beta.kubernetes.io/arch": ARCH,
    "beta.kubernetes.io/os": OS,
    "beta.kubernetes.io/instance-type": INSTANCE_TYPE,
    "failure-domain.beta.kubernetes.io/region": REGION,
    "failure-domain.beta.kubernetes.io/zone": ZONE,
}
"""Labels that older clusters use, and what they are called today."""


class InstanceOffer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Where an instance type can be had, and for how much."""

    zone: str
    capacity_type: str = "on-demand"
    price: int | None = None
    """In nano-dollars an hour."""


class InstanceType(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One kind of machine."""

    name: str
    capacity: Quantities
    overhead: Quantities = {}
    """What kubelet and the system keep for themselves."""
    allocatable: Quantities | None = None
    """What is left for pods; None stands for the capacity less the overhead."""
    labels: dict[str, str] = {}
    """Those of every node of it; not its own name, its zone or its capacity type."""
    offers: tuple[InstanceOffer, ...] = ()

    def node_allocatable(self) -> Quantities:
        """What a node of it has allocatable."""
        return self.allocatable if self.allocatable is not None else subtract(self.capacity, self.overhead)


def amounts(quantities: Mapping[str, str | float] | None) -> dict[str, int]:
    """Quantities as numbers."""
    return {name: amount_of(name, quantity) for name, quantity in (quantities or {}).items()}


def amount_of(resource: str, quantity: str | float) -> int:
    """One quantity as a number."""
    return milli(quantity) if resource == "cpu" else value(quantity)


def quantities(numbers: Mapping[str, int]) -> Quantities:
    """Numbers as a node's status has them."""
    return {name: format_quantity(name, number) for name, number in numbers.items()}


def subtract(capacity: Quantities, taken: Mapping[str, str | float]) -> Quantities:
    """A capacity without what is taken off it, never below nothing."""
    off = amounts(taken)
    return quantities({name: max(number - off.get(name, 0), 0) for name, number in amounts(capacity).items()})


def template_node(
    name: str,
    *,
    labels: Mapping[str, str],
    taints: Iterable[Taint] = (),
    capacity: Quantities,
    allocatable: Quantities,
) -> Node:
    """A node that could be bought, called by the name of its template."""
    metadata = ObjectMeta(name=name, uid=made_uid(f"Node/{name}"), labels={**labels, HOSTNAME: name})
    spec = NodeSpec(taints=list(taints) or None)
    return Node(metadata=metadata, spec=spec, status=NodeStatus(capacity=capacity, allocatable=allocatable))


def template_name(pool: str, instance_type: str, *, zone: str = "", capacity_type: str = "", more: str = "") -> str:
    """What a template is called: whatever tells it from the others of its cluster."""
    marked = capacity_type if capacity_type != "on-demand" else ""
    return "-".join(part for part in (pool, instance_type, zone, marked, more) if part)


def in_zone(node: Node, zone: str) -> Node:
    """The node as it would be in another zone of its region."""
    labels = dict(node.metadata.labels or {})
    old = labels.get(ZONE) or labels.get("failure-domain.beta.kubernetes.io/zone", "")
    for key, there in labels.items():
        if there == old and key.endswith("/zone"):
            labels[key] = zone
    return replace(node, metadata=replace(node.metadata, labels=labels))
