"""A purchase: nodes to buy, and the pods that each node is bought for."""

from __future__ import annotations

import msgspec

from tutti.market.offerings import Offering


class Purchase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The nodes that an autoscaler would buy, and the pods that it would leave pending."""

    nodes: tuple[tuple[Offering, tuple[str, ...]], ...] = ()
    """Every new node, with the keys of the pods that it is bought for."""
    on_existing: tuple[tuple[str, str], ...] = ()
    """Pods that fit on existing nodes: the pod's key and the node's name."""
    left: tuple[str, ...] = ()
    """The keys of the pods that get no node."""

    @property
    def cost(self) -> int:
        """The price of all nodes in nano-dollars an hour; a node without a known price counts 0."""
        return sum(offering.price or 0 for offering, _ in self.nodes)

    @property
    def placed(self) -> int:
        """The number of pods that get a node."""
        return len(self.on_existing) + sum(len(pods) for _, pods in self.nodes)
