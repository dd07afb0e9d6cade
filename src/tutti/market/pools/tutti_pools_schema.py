"""The schema of Tutti's own pools: its fields and their validation.

Contract: `parse_pools` returns the records of one YAML or JSON tree, or raises `InputError` with object and field: for
an unknown field, a wrong type, a duplicate name, a number below 0, a minimum above the maximum, an unreadable quantity,
a template without cpu or memory, or with more allocatable than capacity.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from tutti.exceptions import InputError, PoolError
from tutti.kube.durations import parse_duration
from tutti.kube.objects import Quantities, Taint
from tutti.kube.quantity import parse_nano
from tutti.kube.reading.convert import decode_error
from tutti.kube.reading.pod_validation import EFFECTS
from tutti.kube.reading.sources import Source
from tutti.market.money import nano_dollars
from tutti.market.offerings import DownRules
from tutti.market.price_book import ON_DEMAND, SPOT

_Size = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Amount = int | float | str
Prices = _Amount | dict[str, _Amount]
"""Dollars an hour, for all types or by type."""


class _Text(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the text."""


class TaintText(_Text, frozen=True):
    """A taint of a pool's nodes."""

    key: str
    value: str | None = None
    effect: str = "NoSchedule"


class TemplateText(_Text, frozen=True):
    """A node of a pool, instead of the node that a known instance type gives."""

    capacity: Quantities
    allocatable: Quantities | None = None
    labels: dict[str, str] = {}
    taints: list[TaintText] = []


class ScaleDownText(_Text, frozen=True):
    """The scale-down rules of a pool, instead of the options."""

    threshold: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    unneeded: str | None = None
    """A duration: 10m."""
    empty_only: bool = False
    disabled: bool = False


class PoolText(_Text, frozen=True):
    """A pool."""

    name: str
    instance_type: str | None = None
    instance_types: list[str] = []
    zones: list[str] = []
    capacity_types: tuple[str, ...] = (ON_DEMAND,)
    min: _Size = 0
    max: _Size | None = None
    max_per_zone: _Size | None = None
    current: _Size | None = None
    """The number of existing nodes, if their labels do not tell."""
    labels: dict[str, str] = {}
    taints: list[TaintText] = []
    reserved: Quantities | None = None
    disk: str | int | None = None
    limits: Quantities = {}
    template: TemplateText | None = None
    price: Prices | None = None
    spot_price: Prices | None = None
    scale_down: ScaleDownText | None = None

    @property
    def types(self) -> list[str]:
        """The instance types; empty if only a template describes the node."""
        return self.instance_types or ([self.instance_type] if self.instance_type else [])


class PoolsText(_Text, frozen=True):
    """The whole text."""

    pools: list[dict[str, Any]]
    limits: Quantities = {}
    region: str = ""


def parse_pools(tree: Any, source: Source) -> tuple[PoolsText, list[PoolText]]:
    """Return the text, and its pools one by one."""
    try:
        whole = msgspec.convert(tree, PoolsText)
    except msgspec.ValidationError as error:
        raise _fault(error, source, called="", tree=tree) from None
    _quantities(whole.limits, file=source.name, obj="", field="limits")
    pools: list[PoolText] = []
    for place, each in enumerate(whole.pools):
        name = each.get("name")
        called = f"pool {name}" if isinstance(name, str) and name else f"pool {place + 1}"
        try:
            pool = msgspec.convert(each, PoolText)
        except msgspec.ValidationError as error:
            raise _fault(error, source, called=called, tree=each) from None
        _check(pool, file=source.name, called=called)
        if any(other.name == pool.name for other in pools):
            raise InputError("there is another pool of this name", file=source.name, obj=called, field="name")
        pools.append(pool)
    if not pools:
        raise InputError("there is no pool in it", file=source.name, field="pools")
    return whole, pools


def price_of(prices: Prices | None, instance_type: str) -> int | None:
    """Return the price of a type in the text, in nano-dollars an hour; None if the text has none."""
    if isinstance(prices, dict):
        prices = prices.get(instance_type)
    return nano_dollars(prices) if prices is not None else None


def down_rules_of(text: ScaleDownText | None, *, file: str, who: str) -> DownRules:
    """Return the scale-down rules of a pool."""
    if text is None:
        return DownRules()
    try:
        unneeded = parse_duration(text.unneeded) // 1_000_000 if text.unneeded is not None else None
    except InputError as error:
        raise InputError(error.problem, file=file, obj=who, field="scaleDown.unneeded") from None
    return DownRules(threshold=text.threshold, unneeded=unneeded, empty_only=text.empty_only, disabled=text.disabled)


def _fault(error: msgspec.ValidationError, source: Source, *, called: str, tree: Any) -> InputError:
    found = decode_error(error, source, called=called, tree=tree)
    for start, problem in (("object contains unknown field ", "no such field"), ("object missing required field ", "")):
        if found.problem.startswith(start):
            field = ".".join(part for part in (found.field, found.problem.removeprefix(start)) if part)
            return InputError(problem or "it is required", file=source.name, obj=called, field=field)
    return found


def _check(pool: PoolText, *, file: str, called: str) -> None:
    def refuse(problem: str, field: str) -> InputError:
        return InputError(problem, file=file, obj=called, field=field)

    if not pool.name:
        raise refuse("a name is required", "name")
    if pool.instance_type and pool.instance_types:
        raise refuse("give instanceType or instanceTypes, not both", "instanceTypes")
    if not pool.types and pool.template is None:
        raise refuse("instance types or a template are required", "instanceTypes")
    for field, listed in (("instanceTypes", pool.types), ("zones", pool.zones), ("capacityTypes", pool.capacity_types)):
        for text in listed:
            if not text or listed.count(text) > 1:
                raise refuse(f'"{text}" is there twice' if text else "an empty name", field)
    for text in pool.capacity_types:
        if text not in (ON_DEMAND, SPOT, "reserved"):
            raise refuse(f'"{text}" is not a capacity type (want on-demand, spot or reserved)', "capacityTypes")
    if not pool.capacity_types:
        raise refuse("at least one is required", "capacityTypes")
    if pool.max is not None and pool.min > pool.max:
        problem = f"the minimum {pool.min} is above the maximum {pool.max}"
        raise PoolError(problem, file=file, obj=called, field="min")
    template = pool.template or TemplateText(capacity={})
    disk: Quantities = {"disk": pool.disk} if pool.disk is not None else {}
    for field, amounts in (
        ("reserved", pool.reserved or {}), ("limits", pool.limits), ("disk", disk),
        ("template.capacity", template.capacity), ("template.allocatable", template.allocatable or {}),
    ):  # fmt: skip
        _quantities(amounts, file=file, obj=called, field=field)
    if pool.template is not None:
        _check_template(pool.template, file=file, obj=called)
    for field, taints in (("taints", pool.taints), ("template.taints", template.taints)):
        for place, taint in enumerate(taints):
            if taint.effect not in EFFECTS:
                raise refuse(f'"{taint.effect}" is not an effect', f"{field}[{place}].effect")
    down_rules_of(pool.scale_down, file=file, who=called)
    for field, prices in (("price", pool.price), ("spotPrice", pool.spot_price)):
        _prices(prices, pool.types, file=file, obj=called, field=field)


def _quantities(quantities: Quantities, *, file: str, obj: str, field: str) -> None:
    for name, quantity in quantities.items():
        where = field if field == name else f"{field}.{name}"
        try:
            negative = parse_nano(quantity) < 0
        except InputError as error:
            raise InputError(error.problem, file=file, obj=obj, field=where) from None
        if negative:
            raise InputError(f'"{quantity}" is negative', file=file, obj=obj, field=where)


def _check_template(template: TemplateText, *, file: str, obj: str) -> None:
    """Raise `InputError` for a node without cpu or memory, or with more allocatable than capacity."""
    sizes = {"capacity": template.capacity} | ({"allocatable": template.allocatable} if template.allocatable else {})
    for field, size in sizes.items():
        for resource in ("cpu", "memory"):
            if not size.get(resource) or not parse_nano(size[resource]):
                raise InputError("it is required", file=file, obj=obj, field=f"template.{field}.{resource}")
    whole = {"pods": "110"} | template.capacity
    for resource, left in (template.allocatable or {}).items():
        most = whole.get(resource, 0)
        if parse_nano(left) > parse_nano(most):
            problem = f'"{left}" is more than the capacity "{most}"'
            raise PoolError(problem, file=file, obj=obj, field=f"template.allocatable.{resource}")


def _prices(prices: Prices | None, types: list[str], *, file: str, obj: str, field: str) -> None:
    listed = prices if isinstance(prices, dict) else {} if prices is None else {"": prices}
    for name, text in listed.items():
        where = f"{field}.{name}" if name else field
        if name and name not in types:
            raise InputError("the pool has no such instance type", file=file, obj=obj, field=where)
        try:
            nano_dollars(text)
        except ValueError:
            problem = f'"{text}" is not an amount of dollars (want for example 0.096)'
            raise InputError(problem, file=file, obj=obj, field=where) from None


def taints_of(*texts: list[TaintText]) -> list[Taint]:
    """Return the taints of these texts."""
    return [Taint(key=text.key, value=text.value, effect=text.effect) for listed in texts for text in listed]
