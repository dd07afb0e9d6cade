"""A purchase: nodes to buy with the pods that they are meant for."""

from __future__ import annotations

import msgspec

from tutti.market.offerings import Offering


class Purchase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a peer would buy, and whom it would leave."""

    nodes: tuple[tuple[Offering, tuple[str, ...]], ...] = ()
    """Every new node, with the keys of the pods that it is bought for."""
    on_existing: tuple[tuple[str, str], ...] = ()
    """Pods that go to a node that is there: the pod's key and the node's name."""
    left: tuple[str, ...] = ()
    """The keys of the pods that stay without a node."""

    @property
    def cost(self) -> int:
        """What the nodes cost an hour, in nano-dollars, as far as prices are known."""
        return sum(offering.price or 0 for offering, _ in self.nodes)

    @property
    def placed(self) -> int:
        """How many pods get a node."""
        return len(self.on_existing) + sum(len(pods) for _, pods in self.nodes)
