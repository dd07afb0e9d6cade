"""The catalogue after a purchase: its limits allow less."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tutti.market.offerings import Catalogue, Offering, PoolLimit, takes


def catalogue_after_purchase(catalogue: Catalogue, bought: Iterable[Offering]) -> Catalogue:
    """Return the catalogue with the limits reduced by the bought nodes."""
    offerings = list(bought)
    if not offerings:
        return catalogue
    pools = tuple(
        replace(pool, limits=_reduce_limits(pool.limits, [each for each in offerings if each.pool == pool.name]))
        for pool in catalogue.pools
    )
    return replace(catalogue, pools=pools, limits=_reduce_limits(catalogue.limits, offerings))


def _reduce_limits(limits: Sequence[PoolLimit], bought: Sequence[Offering]) -> tuple[PoolLimit, ...]:
    return tuple(
        replace(limit, left=max(limit.left - sum(takes(limit, each) for each in bought), 0)) for limit in limits
    )
