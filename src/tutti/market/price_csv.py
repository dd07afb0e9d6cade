"""The user's own prices: a CSV table.

Contract: `read_price_table` returns the rows of a file. The first line names the columns, in any order and case:
``instance_type``; the price, one of ``usd_hour``, ``usd_month`` (730 hours) or ``on_demand_usd_h``; optionally
``capacity_type`` (on-demand), ``region``, ``zone`` (all); optionally the amounts for pods of a node: ``cpu``,
``memory`` or ``memory_ki``, ``pods``, and any extended resource by its name (``nvidia.com/gpu``). Other columns are
ignored. A cell may be empty, but a row has a price or a size. Unreadable content raises `InputError` with file, line
and column, and so do contradictions: prices of one row that differ by more than 1 %, or two rows with the same key and
different prices.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from itertools import zip_longest

from tutti.exceptions import InputError
from tutti.kube.objects import Quantities
from tutti.kube.quantity import parse_nano
from tutti.kube.reading.sources import Source
from tutti.kube.resource_names import is_scalar
from tutti.market.money import HOURS_A_MONTH, NANO, nano_dollars
from tutti.market.price_book import ON_DEMAND, PriceRow

TYPE = "instance_type"
_HOURS = {"usd_hour": 1, "on_demand_usd_h": 1, "usd_month": HOURS_A_MONTH}
"""Columns with a price, and the number of hours that it is for."""
_ROUNDED = 100
"""Prices of one row may differ by this fraction, because users round them."""
_CAPACITY_TYPES = {"on-demand": "on-demand", "ondemand": "on-demand", "spot": "spot", "reserved": "reserved"}
_SUFFIXES = {"memory_ki": "Ki", "memory_mib": "Mi", "memory_gib": "Gi"}


def read_price_table(source: Source) -> list[PriceRow]:
    """Return all rows of a table."""
    reader = csv.reader(io.StringIO(_text(source)))
    try:
        lines = [(reader.line_num, cells) for cells in reader if any(cell.strip() for cell in cells)]
    except csv.Error as error:
        raise InputError(f"not a CSV table ({error})", file=source.name, obj=f"line {reader.line_num}") from None
    if not lines:
        raise InputError("there is no price in it", file=source.name)
    columns = [cell.strip() if "/" in cell else cell.strip().lower() for cell in lines[0][1]]
    _check_columns(columns, source.name)
    rows = []
    for line, cells in lines[1:]:
        if len(cells) > len(columns):
            problem = f"{len(cells)} cells, but the first line names {len(columns)} columns"
            raise InputError(problem, file=source.name, obj=f"line {line}")
        row = {name: cell.strip() for name, cell in zip_longest(columns, cells, fillvalue="")}
        rows.append((line, _row(row, file=source.name, line=line)))
    column = next(name for name in columns if name in _HOURS)
    _check_duplicates(rows, file=source.name, column=column)
    return [row for _, row in rows]


def _check_duplicates(rows: Iterable[tuple[int, PriceRow]], *, file: str, column: str) -> None:
    """Raise `InputError` for two rows with the same type, place and capacity type but different prices."""
    seen: dict[tuple[str, str, str, str], tuple[int, int]] = {}
    for line, row in rows:
        if row.price is None:
            continue
        before, price = seen.setdefault((row.instance_type, row.region, row.zone, row.capacity_type), (line, row.price))
        if price != row.price:
            where = "".join(f" in {place}" for place in (row.zone or row.region,) if place)
            problem = f"line {before} has another price for {row.instance_type} {row.capacity_type}{where}"
            raise InputError(problem, file=file, obj=f"line {line}", field=column)


def _text(source: Source) -> str:
    try:
        return source.data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text", file=source.name) from None


def _check_columns(columns: list[str], file: str) -> None:
    if TYPE not in columns:
        raise InputError(f"no column {TYPE} in its first line", file=file)
    if not any(name in _HOURS for name in columns):
        raise InputError("no column usd_hour, usd_month or on_demand_usd_h in its first line", file=file)
    for name in columns:
        if name and columns.count(name) > 1:
            raise InputError(f"the column {name} is there twice", file=file)


def _row(row: Mapping[str, str], *, file: str, line: int) -> PriceRow:
    where = f"line {line}"
    if not row.get(TYPE):
        raise InputError("an instance type is required", file=file, obj=where, field=TYPE)
    text = row.get("capacity_type", "") or ON_DEMAND
    capacity_type = _CAPACITY_TYPES.get(text.lower().replace("_", "-"))
    if capacity_type is None:
        problem = f'"{text}" is not a capacity type (want on-demand, spot or reserved)'
        raise InputError(problem, file=file, obj=where, field="capacity_type")
    price = _price(row, file=file, where=where)
    if price is None and not any(cell and _resource(column) for column, cell in row.items()):
        column = next(name for name in row if name in _HOURS)
        raise InputError("a price, or cpu and memory of the type, is required", file=file, obj=where, field=column)
    return PriceRow(
        instance_type=row[TYPE],
        price=price,
        capacity_type=capacity_type,
        region=row.get("region", ""),
        zone=row.get("zone", ""),
        allocatable=_allocatable(row, file=file, where=where) or None,
    )


def _price(row: Mapping[str, str], *, file: str, where: str) -> int | None:
    found: dict[str, int] = {}
    for column, hours in _HOURS.items():
        if text := row.get(column, ""):
            try:
                found[column] = _an_hour(nano_dollars(text), hours)
            except ValueError:
                problem = f'"{text}" is not an amount of dollars (want for example 0.096)'
                raise InputError(problem, file=file, obj=where, field=column) from None
    if not found:
        return None
    (first, price), *others = found.items()
    for column, other in others:
        if abs(other - price) * _ROUNDED > max(price, other):
            problem = f'"{row[column]}" contradicts the "{row[first]}" of {first}: a month has {HOURS_A_MONTH} hours'
            raise InputError(problem, file=file, obj=where, field=column)
    return price


def _an_hour(nano: int, hours: int) -> int:
    """Return a price for some hours as a price for one hour, rounded to the nearest."""
    return (2 * nano + hours) // (2 * hours)


def _allocatable(row: Mapping[str, str], *, file: str, where: str) -> Quantities:
    found: Quantities = {}
    for column, cell in row.items():
        suffix, resource = _SUFFIXES.get(column, ""), _resource(column)
        if not cell or not resource:
            continue
        try:
            amount = parse_nano(f"{cell}{suffix}")
        except InputError:
            raise InputError(f'"{cell}" is not a quantity', file=file, obj=where, field=column) from None
        if amount < 0 or (resource != "cpu" and amount % NANO):
            problem = f'"{cell}" is not a whole number of {resource}, or is below 0'
            raise InputError(problem, file=file, obj=where, field=column)
        found[resource] = f"{cell}{suffix}"
    # A size needs cpu and memory: other columns alone do not make a template.
    return found if "cpu" in found and "memory" in found else {}


def _resource(column: str) -> str:
    """Return the resource of a column; empty for a column that is not a resource."""
    resource = "memory" if column in _SUFFIXES else column
    extended = "/" in resource and is_scalar(resource)
    return resource if extended or resource in ("cpu", "memory", "pods", "ephemeral-storage") else ""
