"""What may still be bought after something was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tutti.market.offerings import Catalogue, Offering, PoolLimit, takes


def catalogue_after_purchase(catalogue: Catalogue, bought: Iterable[Offering]) -> Catalogue:
    """The catalogue with limits that count what was bought."""
    listed = list(bought)
    if not listed:
        return catalogue
    pools = tuple(
        replace(pool, limits=_less(pool.limits, [each for each in listed if each.pool == pool.name]))
        for pool in catalogue.pools
    )
    return replace(catalogue, pools=pools, limits=_less(catalogue.limits, listed))


def _less(limits: Sequence[PoolLimit], bought: Sequence[Offering]) -> tuple[PoolLimit, ...]:
    return tuple(
        replace(limit, left=max(limit.left - sum(takes(limit, each) for each in bought), 0)) for limit in limits
    )
