"""The catalogue of a Gardener snapshot: its worker pools, with the node templates of Cluster Autoscaler.

Contract: pure. Each zone of a pool is one offering. The first of these sources describes its node (`template_nodes`):
the template with the zone and the pool's label (or of the pool's node group in the zone), the pool's template of
another zone, an existing node of the pool, the machine type in the price book; without any, `PoolError` names the pool
and the zone. Limits are the pool's maximum, the maximum of its node group in a zone (CASettings.NodeGroupsMinMax before
the group's own, separately for minimum and maximum), and MaxNodesTotal for all pools. Minimums of node groups hold in
their zones, in addition to the minimum of the pool. Machines that are ordered and have not joined (TargetSize) count.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from tutti.exceptions import InputError, PoolError
from tutti.kube.objects import Node
from tutti.kube.reading.pod_validation import EFFECTS, check_quantities
from tutti.market.offerings import NODES, Catalogue, NodePool, Offering, PoolLimit
from tutti.market.pool_context import PoolContext, unpriced_note
from tutti.market.pool_limits import nodes_limit
from tutti.market.pool_members import members_of
from tutti.market.price_book import ON_DEMAND, PriceBook, region_of
from tutti.wire.gardener.cluster import time_of
from tutti.wire.gardener.schema import (
    AutoscalerText,
    GardenerSnapshotText,
    GardenerTemplateText,
    GroupText,
    WorkerPoolText,
)
from tutti.wire.gardener.template_nodes import from_market, from_template, like_one_of, pool_of, zone_of


class _World(NamedTuple):
    """The templates, groups, prices and existing nodes that pools are built from."""

    templates: Mapping[str, GardenerTemplateText]
    groups: Mapping[str, GroupText]
    market: PoolContext
    nodes: Mapping[str, Sequence[Node]]
    """The existing nodes of each pool."""
    file: str


def read_catalogue(text: GardenerSnapshotText, nodes: Sequence[Node], book: PriceBook, *, file: str) -> Catalogue:
    """Return the catalogue of a snapshot; `nodes` are the existing nodes."""
    autoscaler = text.autoscaler or AutoscalerText()
    mine: dict[str, list[Node]] = {}
    for node in nodes:
        if pool := pool_of(node.metadata.labels):
            mine.setdefault(pool, []).append(node)
    templates = autoscaler.node_templates or {}
    for name, template in templates.items():
        _check_template(name, template, file=file)
    world = _World(templates, _groups(autoscaler, file=file), PoolContext(book, nodes=nodes), mine, file)
    texts = text.worker_pools or _from_groups(world)
    pools: dict[str, NodePool] = {}
    for place, each in enumerate(texts):
        name = each.name or ""
        if not name or name in pools:
            problem = "there is another pool of this name" if name else "a name is required"
            raise InputError(problem, file=file, field=f"WorkerPools[{place}].Name")
        pools[name] = _pool(each, world)
    listed = tuple(pools[name] for name in sorted(pools))
    missing = (o.instance_type or o.pool for pool in listed for o in pool.offerings if o.price is None)
    notes = unpriced_note(missing, region=world.market.region)
    most = (autoscaler.settings.max_nodes_total if autoscaler.settings is not None else None) or 0
    there = max(len(nodes), sum(pool.current for pool in listed))
    limits = (nodes_limit("all pools", most, current=there),) if most else ()
    return Catalogue(pools=listed, limits=limits, notes=tuple(notes))


# Groups and templates -------------------------------------------------------------------------------------------------


def _groups(autoscaler: AutoscalerText, *, file: str) -> dict[str, GroupText]:
    """Return the node groups, with the sizes of Cluster Autoscaler's settings."""
    told = (autoscaler.settings.node_groups_min_max if autoscaler.settings is not None else None) or {}
    groups = {}
    for key, group in (autoscaler.node_groups or {}).items():
        if (sizes := told.get(key)) is not None:
            least = group.min_size if sizes.min is None else sizes.min
            group = replace(group, min_size=least, max_size=group.max_size if sizes.max is None else sizes.max)
        least, most = group.min_size or 0, group.max_size
        if most is not None and least > most:
            problem = f"the minimum {least} is above the maximum {most}"
            raise PoolError(problem, file=file, obj=f"node group {key}", field="MinSize")
        groups[key] = replace(group, name=group.name or key)
    return groups


def _check_template(name: str, template: GardenerTemplateText, *, file: str) -> None:
    try:
        for field, amounts in (("Capacity", template.capacity), ("Allocatable", template.allocatable)):
            check_quantities(amounts or {}, (field,))
        for place, taint in enumerate(template.taints or ()):
            if taint.effect not in EFFECTS:
                raise InputError(f'"{taint.effect}" is not an effect', field=f"Taints[{place}].effect")
    except InputError as error:
        raise InputError(error.problem, file=file, obj=f"node template {name}", field=error.field) from None


def _from_groups(world: _World) -> list[WorkerPoolText]:
    """Return worker pools for a snapshot that has only node groups."""
    found: dict[str, list[GroupText]] = {}
    for group in world.groups.values():
        found.setdefault(group.pool_name or group.name or "", []).append(group)
    pools = []
    for name, groups in found.items():
        types = [world.templates[key].instance_type for group in groups if (key := group.name or "") in world.templates]
        pools.append(
            WorkerPoolText(
                name=name,
                machine_type=next(filter(None, types), None),
                minimum=sum(group.min_size or 0 for group in groups),
                maximum=sum(group.max_size or 0 for group in groups),
                zones=[group.zone for group in groups if group.zone],
            )
        )
    return pools


def _template_for(pool: WorkerPoolText, zone: str, world: _World) -> GardenerTemplateText | None:
    """Return the template of a pool in a zone; None if there is no template with a size."""
    name = pool.name or ""
    labelled = [each for _, each in sorted(world.templates.items()) if pool_of(each.labels) == name]
    grouped = [
        world.templates[group.name or ""]
        for group in world.groups.values()
        if group.pool_name == name and (group.zone or "") == zone and (group.name or "") in world.templates
    ]
    for template in (*(each for each in labelled if (each.zone or "") == zone), *grouped):
        if template.capacity or template.allocatable:
            return template
    return None


# Pools ----------------------------------------------------------------------------------------------------------------


def _pool(text: WorkerPoolText, world: _World) -> NodePool:
    name = text.name or ""
    who, least, most = f"pool {name}", text.minimum or 0, text.maximum or 0
    if least > most:
        problem = f"the minimum {least} is above the maximum {most}"
        raise PoolError(problem, file=world.file, obj=who, field="Minimum")
    for place, taint in enumerate(text.taints or ()):
        if taint.effect not in EFFECTS:
            problem = f'"{taint.effect}" is not an effect'
            raise InputError(problem, file=world.file, obj=who, field=f"Taints[{place}].effect")
    mine = world.nodes.get(name, ())
    groups = [group for group in world.groups.values() if (group.pool_name or group.name) == name]
    zones = text.zones or sorted(
        {template.zone or "" for template in world.templates.values() if pool_of(template.labels) == name}
        | {zone_of(node) for node in mine}
    )
    offerings = tuple(_offering(text, zone, world) for zone in dict.fromkeys(zones or [""]))
    current = max(len(mine), sum(group.target_size or 0 for group in groups))
    return NodePool(
        name=name,
        offerings=offerings,
        limits=tuple(_limits(text, groups, mine, current=current)),
        current=current,
        minimum=max(least, sum(group.min_size or 0 for group in groups)),
        zone_minimums=_zone_minimums(groups),
        maximum=most,
        members=members_of(mine, offerings, world.market),
    )


def _zone_minimums(groups: Iterable[GroupText]) -> dict[str, int]:
    found: dict[str, int] = {}
    for group in groups:
        if group.zone and group.min_size:
            found[group.zone] = found.get(group.zone, 0) + group.min_size
    return found


def _limits(
    text: WorkerPoolText, groups: Iterable[GroupText], mine: Sequence[Node], *, current: int
) -> list[PoolLimit]:
    who = f"pool {text.name}"
    limits = []
    if time_of(text.deletion_timestamp) is not None:
        limits.append(PoolLimit(what=NODES, left=0, reason=f"{who} is being deleted"))
    limits.append(nodes_limit(who, text.maximum or 0, current=current))
    for group in groups:
        if group.max_size is not None and group.zone:
            there = max(sum(zone_of(node) == group.zone for node in mine), group.target_size or 0)
            limits.append(nodes_limit(who, group.max_size, current=there, zone=group.zone))
    return limits


def _offering(text: WorkerPoolText, zone: str, world: _World) -> Offering:
    """Return a new node of a pool in a zone."""
    name = text.name or ""
    template = _template_for(text, zone, world) or _sibling(text, world)
    kind = (template.instance_type if template is not None else None) or text.machine_type or ""
    region = (template.region if template is not None else None) or region_of(zone) or world.market.region
    if template is not None:
        node = from_template(text, template, kind=kind, zone=zone, region=region)
    elif mine := world.nodes.get(name):
        node = like_one_of(text, mine, zone=zone)
    else:
        made = from_market(text, world.market, kind=kind, zone=zone, region=region)
        if made is None:
            of = f"nobody knows what {kind} is" if kind else "it has no MachineType"
            problem = f"there is no node template for zone {zone or '(none)'}, and {of}"
            raise PoolError(problem, file=world.file, obj=f"pool {name}", field="Zones")
        node = made
    price = world.market.price(kind, zone=zone, capacity_type=ON_DEMAND, region=region) if kind else None
    return Offering(pool=name, instance_type=kind, zone=zone, price=price, node=node)


def _sibling(text: WorkerPoolText, world: _World) -> GardenerTemplateText | None:
    """Return the pool's template of another zone."""
    for zone in sorted({template.zone or "" for template in world.templates.values()}):
        if (found := _template_for(text, zone, world)) is not None:
            return found
    return None
