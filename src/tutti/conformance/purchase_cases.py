"""Recorded purchases of other autoscalers, beside what Tutti would buy for the same input.

Contract: a case is a request and what the peer bought for it; readers of the peers' formats are in modules of their
own. Where a peer's runs vary, its best run counts.
"""

from __future__ import annotations

import msgspec

from tutti.market.offerings import Offering
from tutti.recommend.records.request import Request


class PeerPurchase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the peer made of a case."""

    name: str
    """``karpenter`` or ``cluster-autoscaler``."""
    placed: int
    """How many of the pending pods have a node at the end, those on existing nodes included."""
    cost: int
    """What it bought, in nano-dollars an hour: its cheapest run that places so many."""
    nodes: int
    bought: tuple[tuple[Offering, int], ...] = ()
    """The nodes that its recorded run bought; empty when that is not recorded in full."""


class PurchaseCase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One recorded instance."""

    name: str
    family: str
    request: Request
    peer: PeerPurchase
