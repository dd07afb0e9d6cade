"""The request that a planner request of gardener/scaling-advisor, or a ScalingConstraint with a cluster, describes.

Contract: pure. `parse_advisor` decodes a document once: a planner request (``constraint`` and ``snapshot``), or
Kubernetes objects with one ScalingConstraint. `read_advisor` builds the request. `constraint_catalogue` returns the
catalogue of a constraint for any cluster. Each template and zone of a pool is one offering; its node has the template's
capacity less the kubelet's and the system's reservations, the labels that every node has, and the labels of the pool. A
quota is a limit, and so is the number of volumes of a template (`volume_limits`). Priorities of pools and templates are
ignored, because price decides; a note says so if they differ. Notes also name the options of a planner request that
Tutti does not follow (`planner_options`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from tutti.exceptions import InputError, PoolError
from tutti.kube.objects import Quantities
from tutti.kube.reading.pod_validation import EFFECTS, check_quantities
from tutti.kube.reading.snapshot import Snapshot
from tutti.market.instance_types import (
    ARCH,
    INSTANCE_TYPE,
    OS,
    REGION,
    ZONE,
    amount_of,
    subtract,
    template_name,
    template_node,
)
from tutti.market.offerings import Catalogue, NodePool, Offering
from tutti.market.pool_context import PoolContext, unpriced_note
from tutti.market.pool_limits import resource_limit
from tutti.market.pool_members import members_of
from tutti.market.price_book import ON_DEMAND, PriceBook, region_of
from tutti.recommend.build_request import assemble
from tutti.recommend.records.request import RecommendOptions, Request
from tutti.wire.kubernetes_objects import read_snapshot
from tutti.wire.scaling_advisor.cluster import read_cluster
from tutti.wire.scaling_advisor.planner_options import planner_options
from tutti.wire.scaling_advisor.schema import (
    ConstraintPoolText,
    ConstraintTemplateText,
    ConstraintText,
    PlannerSnapshotText,
    PlannerText,
    parse_constraint,
    parse_planner,
)
from tutti.wire.scaling_advisor.volume_limits import csi_of, drivers_of, has_limits, volume_notes
from tutti.wire.wire_document import WireDocument

POOL = "sa.gardener.cloud/node-pool-name"
TEMPLATE = "sa.gardener.cloud/node-template-name"
_DEFAULT = RecommendOptions()


def parse_advisor(document: WireDocument) -> PlannerText:
    """Return the records of a planner request; an empty one if the constraint is among Kubernetes objects."""
    return parse_planner(document) if document.constraint is None else PlannerText()


def read_advisor(
    text: PlannerText, document: WireDocument, book: PriceBook, *, options: RecommendOptions = _DEFAULT
) -> Request:
    """Return the request that a planner request, or a cluster's objects with a constraint, describes."""
    file = document.source.name
    if document.constraint is not None:
        snapshot = read_snapshot(document.kubernetes_objects())
        constraint = parse_constraint(document.constraint, document.source)
        catalogue = constraint_catalogue(constraint, snapshot, book, file=file)
        return assemble(snapshot, catalogue, options=options, notes=snapshot.notes)
    if text.constraint is None:
        raise InputError("it is required: a ScalingConstraint", file=file, field="constraint")
    options, notes = planner_options(text, options, file=file)
    snapshot = read_cluster(text.snapshot or PlannerSnapshotText(), file=file)
    catalogue = constraint_catalogue(text.constraint, snapshot, book, file=file, under="constraint.")
    return assemble(snapshot, catalogue, options=options, notes=(*snapshot.notes, *notes))


def constraint_of_request(text: object, document: WireDocument) -> ConstraintText | None:
    """Return the constraint of a decoded document of any format; None if it has no constraint."""
    if document.constraint is not None:
        return parse_constraint(document.constraint, document.source)
    return text.constraint if isinstance(text, PlannerText) else None


def constraint_catalogue(
    text: ConstraintText, snapshot: Snapshot, book: PriceBook, *, file: str, under: str = ""
) -> Catalogue:
    """Return the catalogue of a constraint for a cluster; `under` is the path of the constraint in its document."""
    market, drivers = PoolContext(book, nodes=snapshot.nodes), drivers_of(snapshot)
    counted = drivers if has_limits(text) else []
    pools: dict[str, NodePool] = {}
    for place, each in enumerate(text.spec.node_pools or ()):
        name, path = each.name or "", f"{under}spec.nodePools[{place}]"
        if not name or name in pools:
            problem = "there is another pool of this name" if name else "a name is required"
            raise InputError(problem, file=file, field=f"{path}.name")
        _check(each, path, file=file)
        pools[name] = _pool(each, market, drivers=counted, path=path, file=file)
    listed = tuple(pools[name] for name in sorted(pools))
    missing = (o.instance_type for pool in listed for o in pool.offerings if o.price is None)
    notes = unpriced_note(missing, region=market.region)
    return Catalogue(pools=listed, notes=(*notes, *_priority_note(text), *volume_notes(text, drivers)))


def _priority_note(text: ConstraintText) -> Iterator[str]:
    """Yield a note if priorities differ: scaling-advisor buys from the highest priority while that helps any pod."""
    ranks: dict[tuple[int, int], list[str]] = {}
    for pool in text.spec.node_pools or ():
        for each in pool.node_templates or ():
            called = f"{pool.name}/{each.name or each.instance_type or ''}"
            ranks.setdefault((pool.priority or 0, each.priority or 0), []).append(called)
    if len(ranks) > 1:
        first = ranks[max(ranks)]
        shown = ", ".join(first[:3]) + (f" and {len(first) - 3} more" if len(first) > 3 else "")
        yield f"priorities of pools and templates do not count, price decides; scaling-advisor would try {shown} first"


def _check(pool: ConstraintPoolText, path: str, *, file: str) -> None:
    templates = pool.node_templates or ()
    names = [template.name or template.instance_type or "" for template in templates]
    for place, name in enumerate(names):
        if name in names[:place]:
            field = f"{path}.nodeTemplates[{place}].name"
            raise InputError("there is another template of this name in the pool", file=file, field=field)
    sizes: list[tuple[str, Quantities | None]] = [("quota", pool.quota)]
    for place, each in enumerate(templates):
        at = f"nodeTemplates[{place}]"
        sizes += [(f"{at}.capacity", each.capacity), (f"{at}.kubeReservedCapacity", each.kube_reserved)]
        sizes.append((f"{at}.systemReservedCapacity", each.system_reserved))
    try:
        for field, amounts in sizes:
            check_quantities(amounts or {}, (field,))
        for place, taint in enumerate(pool.taints or ()):
            if taint.effect not in EFFECTS:
                raise InputError(f'"{taint.effect}" is not an effect', field=f"taints[{place}].effect")
    except InputError as error:
        raise InputError(error.problem, file=file, field=f"{path}.{error.field}") from None


def _pool(text: ConstraintPoolText, market: PoolContext, *, drivers: Sequence[str], path: str, file: str) -> NodePool:
    name = text.name or ""
    mine = [node for node in market.nodes if (node.metadata.labels or {}).get(POOL) == name]
    templates = text.node_templates or ()
    if not templates:
        raise PoolError("it has no node template", file=file, obj=f"pool {name}", field=f"{path}.nodeTemplates")
    offerings = []
    for place, template in enumerate(templates):
        for zone in dict.fromkeys(text.availability_zones or [""]):
            at = f"{path}.nodeTemplates[{place}]"
            made = _offering(text, template, zone=zone, market=market, path=at, file=file)
            offerings.append(replace(made, csi=csi_of(template, drivers)) if drivers else made)
    limits = [resource_limit(f"pool {name}", what, most, nodes=mine) for what, most in (text.quota or {}).items()]
    return NodePool(
        name=name,
        offerings=tuple(offerings),
        limits=tuple(limits),
        current=len(mine),
        minimum=text.min or 0,
        members=members_of(mine, offerings, market),
    )


def _offering(
    pool: ConstraintPoolText, template: ConstraintTemplateText, *, zone: str, market: PoolContext, path: str, file: str
) -> Offering:
    name, kind = pool.name or "", template.instance_type or template.name or ""
    capacity = {
        resource: amount for resource, amount in (template.capacity or {}).items() if amount_of(resource, amount)
    }
    machine = market.machine(kind) if not capacity else None
    if not capacity and machine is None:
        problem = f"it has no capacity, and nobody knows what {kind or 'it'} is"
        raise PoolError(problem, file=file, obj=f"pool {name}", field=f"{path}.capacity")
    pods: Quantities = {"pods": "110"}
    whole = machine.capacity if machine is not None else pods | capacity
    left = machine.allocatable if machine is not None else whole
    for reserved in (template.kube_reserved, template.system_reserved):
        left = subtract(left, reserved or {})
    region = pool.region or region_of(zone) or market.region
    own = {ARCH: template.architecture or "amd64", OS: "linux", INSTANCE_TYPE: kind, REGION: region, ZONE: zone}
    labels = own | (pool.labels or {}) | {POOL: name, TEMPLATE: template.name or kind}
    node = template_node(
        template_name(name, template.name or kind, zone=zone),
        labels={key: value for key, value in labels.items() if value},
        taints=pool.taints or (),
        capacity=whole,
        allocatable=left,
    )
    price = market.price(kind, zone=zone, capacity_type=ON_DEMAND, region=region)
    return Offering(pool=name, instance_type=kind, zone=zone, price=price, node=node)
