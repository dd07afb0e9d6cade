"""Instance types of a cloud, and the template nodes made from them.

Contract: frozen records and pure functions. Amounts are counted as in `kube.resources` (cpu in millicores, all other
resources in whole units), including the number of pods and all other resources of a node.
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
"""Label keys of older clusters, with today's keys."""


class InstanceOffer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A zone and capacity type in which an instance type is sold, with its price."""

    zone: str
    capacity_type: str = "on-demand"
    price: int | None = None
    """In nano-dollars an hour."""


class InstanceType(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One kind of machine."""

    name: str
    capacity: Quantities
    overhead: Quantities = {}
    """Amounts that kubelet and the system reserve."""
    allocatable: Quantities | None = None
    """Amounts for pods; None: the capacity less the overhead."""
    labels: dict[str, str] = {}
    """Labels of every node of the type; without its own name, zone and capacity type."""
    offers: tuple[InstanceOffer, ...] = ()

    def node_allocatable(self) -> Quantities:
        """Return the allocatable amounts of a node of the type."""
        return self.allocatable if self.allocatable is not None else subtract(self.capacity, self.overhead)


def amounts(quantities: Mapping[str, str | float] | None) -> dict[str, int]:
    """Return quantities as numbers."""
    return {name: amount_of(name, quantity) for name, quantity in (quantities or {}).items()}


def amount_of(resource: str, quantity: str | float) -> int:
    """Return one quantity as a number."""
    return milli(quantity) if resource == "cpu" else value(quantity)


def quantities(numbers: Mapping[str, int]) -> Quantities:
    """Return numbers as quantities, as in a node's status."""
    return {name: format_quantity(name, number) for name, number in numbers.items()}


def subtract(capacity: Quantities, taken: Mapping[str, str | float]) -> Quantities:
    """Return a capacity less some amounts, never below 0."""
    taken_amounts = amounts(taken)
    return quantities({name: max(number - taken_amounts.get(name, 0), 0) for name, number in amounts(capacity).items()})


def template_node(
    name: str,
    *,
    labels: Mapping[str, str],
    taints: Iterable[Taint] = (),
    capacity: Quantities,
    allocatable: Quantities,
) -> Node:
    """Return a node that could be bought, with the name of its template."""
    metadata = ObjectMeta(name=name, uid=made_uid(f"Node/{name}"), labels={**labels, HOSTNAME: name})
    spec = NodeSpec(taints=list(taints) or None)
    return Node(metadata=metadata, spec=spec, status=NodeStatus(capacity=capacity, allocatable=allocatable))


def template_name(pool: str, instance_type: str, *, zone: str = "", capacity_type: str = "", variant: str = "") -> str:
    """Return the name of a template: every part that distinguishes it from other templates of the cluster."""
    capacity_part = capacity_type if capacity_type != "on-demand" else ""
    return "-".join(part for part in (pool, instance_type, zone, capacity_part, variant) if part)


def in_zone(node: Node, zone: str) -> Node:
    """Return the node with the labels of another zone of its region."""
    labels = dict(node.metadata.labels or {})
    old = labels.get(ZONE) or labels.get("failure-domain.beta.kubernetes.io/zone", "")
    for key, label_value in labels.items():
        if label_value == old and key.endswith("/zone"):
            labels[key] = zone
    return replace(node, metadata=replace(node.metadata, labels=labels))
