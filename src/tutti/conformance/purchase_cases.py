"""Recorded purchases of peers (Karpenter and Cluster Autoscaler): a request, and what the peer bought for it.

Contract: frozen records; `karpenter_cases` and `cluster_autoscaler_cases` read them. Where a peer's runs vary, its best
run counts.
"""

from __future__ import annotations

import msgspec

from tutti.market.offerings import Offering
from tutti.recommend.records.request import Request

ROUNDING = 1_000
"""In nano-dollars: recorded costs are rounded to a millionth of a dollar, so smaller differences are ignored."""


class PeerPurchase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The peer's result for a case."""

    name: str
    """``karpenter`` or ``cluster-autoscaler``."""
    placed: int
    """The number of pending pods that get a node, existing nodes included."""
    cost: int
    """The price of the bought nodes in nano-dollars an hour, in the cheapest run that places this number of pods."""
    nodes: int
    bought: tuple[tuple[Offering, int], ...] = ()
    """The offerings and numbers of nodes that the recorded run bought; empty if they are not recorded in full."""


class PurchaseCase(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One recorded instance."""

    name: str
    family: str
    request: Request
    peer: PeerPurchase
