"""The price book: what an instance type has, and what it costs where.

Contract: pure except for the packaged book, which is read once, on first use. Prices are nano-dollars an hour; unknown
prices are None. The user's rows (`market.price_csv`) take precedence over packaged rows, and of these, rows with a zone
over rows with a region. The packaged book has AWS EC2 prices of four regions; its spot prices are medians over the
zones of a region.
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
"""The default number of pods of a node, as in Karpenter and kubelet."""
_ZONE = re.compile(r"([a-z]+(?:-[a-z]+)+-?\d+)(?:[a-z]|-[a-z])|([a-z]+\d*)-\d")
"""Zone names of AWS (eu-west-1a), Google (europe-west1-d), Azure (westeurope-1)."""


class InstanceShape(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The size of an instance type."""

    vcpus: int
    memory: int
    """In bytes, as the cloud advertises it."""
    gpus: int = 0
    """The amount of nvidia.com/gpu."""
    gpu_name: str = ""
    max_pods: int = _PODS
    arch: str = "amd64"
    zones: int = 0
    """The number of zones of the region that offer the type; 0 if unknown."""


class PriceRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A row of the user's price table; an empty region or zone stands for all."""

    instance_type: str
    price: int | None = None
    capacity_type: str = ON_DEMAND
    region: str = ""
    zone: str = ""
    allocatable: Quantities | None = None
    """Amounts for pods of a node of the type, if the table has them."""


class _PackagedRow(msgspec.Struct, frozen=True, gc=False):
    """A row of the packaged book."""

    shape: InstanceShape
    on_demand: int | None
    spot: int | None


class PriceBook:
    """Prices and sizes of instance types; see the module's contract."""

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
        """Return the price of an hour of a type; None if unknown."""
        region_name = region or (region_of(zone) if zone else "")
        for where in ((region_name, zone or ""), ("", zone or ""), (region_name, ""), ("", "")):
            found = self._prices.get((instance_type, where[0], capacity_type, where[1]))
            if found is not None:
                return found
        row = _packaged().get(region_name, {}).get(instance_type)
        if row is None or capacity_type not in (ON_DEMAND, SPOT):
            return None
        return row.spot if capacity_type == SPOT else row.on_demand

    def shape(self, instance_type: str, region: str = "") -> InstanceShape | None:
        """Return the size of a type; sizes are equal in all regions, so any region will do."""
        books = _packaged()
        for region_name in (region, *books):
            if (row := books.get(region_name, {}).get(instance_type)) is not None:
                return row.shape
        return None

    def allocatable(self, instance_type: str) -> Quantities | None:
        """Return the amounts for pods of a node of a type, if the user's table has them."""
        return self._allocatable.get(instance_type)

    def types(self, region: str) -> list[str]:
        """Return the packaged types of a region, by name."""
        return sorted(_packaged().get(region, ()))

    @property
    def regions(self) -> list[str]:
        """The regions of the packaged book."""
        return sorted(_packaged())

    def has_region(self, region: str) -> bool:
        """Return whether the book has a price for a region: packaged, or of the user's table."""
        if region in _packaged():
            return True
        priced = (row for row in self.rows if row.price is not None)
        return any(region == (row.region or (region_of(row.zone) if row.zone else region)) for row in priced)


def check_region(region: str, book: PriceBook, *, there: Iterable[str] = (), called: str = "region") -> None:
    """Raise `InputError` if the book has no price for a region that a user names, unless nodes are `there`."""
    if not region or book.has_region(region) or region in there:
        return
    known = ", ".join(book.regions)
    raise InputError(
        f'no price is known in region "{region}" (known: {known}; others with a price table)', field=called
    )


def region_of(zone: str) -> str:
    """Return the region of a zone by its name; empty if the name does not tell."""
    parts = _ZONE.fullmatch(zone)
    return (parts[1] or parts[2]) if parts is not None else ""


@lru_cache(maxsize=1)
def _packaged() -> dict[str, dict[str, _PackagedRow]]:
    """Return the packaged book by region and type."""
    data = gzip.decompress((resources.files("tutti.market") / "data" / "aws.csv.gz").read_bytes())
    books: dict[str, dict[str, _PackagedRow]] = {}
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
        packaged = _PackagedRow(shape, _nano(row["on_demand"]), _nano(row["spot"]))
        books.setdefault(row["region"], {})[row["instance_type"]] = packaged
    return books


def _nano(text: str) -> int | None:
    return nano_dollars(text) if text else None
