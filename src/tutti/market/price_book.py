"""The price book: what an instance type is, and what it costs where.

Contract: pure but for the packaged book, which is read once, when it is first asked. Prices are nano-dollars an hour;
what nobody knows is None. Rows of the user's (`recommend.price_table`) come before the packaged ones, and of those the
ones that name a zone before those that name a region. The packaged book is AWS EC2's, four regions; its spot prices are
medians over a region's zones.
"""

from __future__ import annotations

import csv
import gzip
import re
from collections.abc import Iterable
from functools import lru_cache
from importlib import resources

import msgspec

from tutti.exceptions import InputError
from tutti.kube.objects import Quantities
from tutti.market.money import nano_dollars

ON_DEMAND = "on-demand"
SPOT = "spot"
_GIB = 2**30
_PODS = 110
"""Of a type whose network cards nobody counted; what Karpenter and kubelet take."""
_ZONE = re.compile(r"([a-z]+(?:-[a-z]+)+-?\d+)(?:[a-z]|-[a-z])|([a-z]+\d*)-\d")
"""Of AWS (eu-west-1a), Google (europe-west1-d), Azure (westeurope-1)."""


class InstanceShape(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What an instance type has."""

    vcpus: int
    memory: int
    """In bytes, as the cloud advertises it."""
    gpus: int = 0
    """What nvidia.com/gpu counts."""
    gpu_name: str = ""
    max_pods: int = _PODS
    arch: str = "amd64"
    zones: int = 0
    """In how many zones of the region it is offered; 0 when nobody knows."""


class PriceRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A price of the user's; an empty region or zone stands for all."""

    instance_type: str
    price: int | None = None
    capacity_type: str = ON_DEMAND
    region: str = ""
    zone: str = ""
    allocatable: Quantities | None = None
    """What a node of the type has for pods, if the table says so."""


class _Listed(msgspec.Struct, frozen=True, gc=False):
    """A row of the packaged book."""

    shape: InstanceShape
    on_demand: int | None
    spot: int | None


class PriceBook:
    """See the module's contract."""

    def __init__(self, rows: Iterable[PriceRow] = ()) -> None:
        self.rows = tuple(rows)
        self._prices: dict[tuple[str, str, str, str], int] = {}
        self._allocatable: dict[str, Quantities] = {}
        for row in self.rows:
            if row.price is not None:
                self._prices[row.instance_type, row.region, row.capacity_type, row.zone] = row.price
            if row.allocatable:
                self._allocatable[row.instance_type] = row.allocatable

    def price(
        self, instance_type: str, region: str = "", *, capacity_type: str = ON_DEMAND, zone: str | None = None
    ) -> int | None:
        """What an hour of a type costs."""
        place = region or (region_of(zone) if zone else "")
        for where in ((place, zone or ""), ("", zone or ""), (place, ""), ("", "")):
            found = self._prices.get((instance_type, where[0], capacity_type, where[1]))
            if found is not None:
                return found
        listed = _packaged().get(place, {}).get(instance_type)
        if listed is None or capacity_type not in (ON_DEMAND, SPOT):
            return None
        return listed.spot if capacity_type == SPOT else listed.on_demand

    def shape(self, instance_type: str, region: str = "") -> InstanceShape | None:
        """What a type has; sizes are the same in every region, so without one any will do."""
        books = _packaged()
        for place in (region, *books):
            if (listed := books.get(place, {}).get(instance_type)) is not None:
                return listed.shape
        return None

    def allocatable(self, instance_type: str) -> Quantities | None:
        """What a node of a type has for pods, if the user's table says so."""
        return self._allocatable.get(instance_type)

    def types(self, region: str) -> list[str]:
        """The packaged types of a region, by name."""
        return sorted(_packaged().get(region, ()))

    @property
    def regions(self) -> list[str]:
        """The regions of the packaged book."""
        return sorted(_packaged())

    def has_region(self, region: str) -> bool:
        """Whether any price holds in a region: a packaged one, or one of the user's, which may hold everywhere."""
        if region in _packaged():
            return True
        priced = (row for row in self.rows if row.price is not None)
        return any(region == (row.region or (region_of(row.zone) if row.zone else region)) for row in priced)


def check_region(region: str, book: PriceBook, *, there: Iterable[str] = (), called: str = "region") -> None:
    """Refuse a region that a user names and for which the book has no price; one where nodes are `there` is taken."""
    if not region or book.has_region(region) or region in there:
        return
    known = ", ".join(book.regions)
    raise InputError(
        f'no price is known in region "{region}" (known: {known}; others with a price table)', field=called
    )


def region_of(zone: str) -> str:
    """The region that a zone is in, by its name; empty when that does not tell."""
    parts = _ZONE.fullmatch(zone)
    return (parts[1] or parts[2]) if parts is not None else ""


@lru_cache(maxsize=1)
def _packaged() -> dict[str, dict[str, _Listed]]:
    """The packaged book by region and type."""
    data = gzip.decompress((resources.files("tutti.market") / "data" / "aws.csv.gz").read_bytes())
    books: dict[str, dict[str, _Listed]] = {}
    for row in csv.DictReader(data.decode().splitlines()):
        shape = InstanceShape(
            vcpus=int(float(row["vcpus"])),
            memory=int(float(row["memory_gib"]) * _GIB),
            gpus=int(row["gpus"] or 0),
            gpu_name=row["gpu_name"],
            max_pods=int(row["max_pods"] or _PODS),
            arch=row["arch"],
            zones=int(row["zones"] or 0),
        )
        listed = _Listed(shape, _nano(row["on_demand"]), _nano(row["spot"]))
        books.setdefault(row["region"], {})[row["instance_type"]] = listed
    return books


def _nano(text: str) -> int | None:
    return nano_dollars(text) if text else None
