"""The drawing of the plan: a box for each node that takes pods, by pool and zone.

Contract: pure. A page has about `BOXES` boxes at most: a pool and zone with more boxes shows the first and the number
of the rest. The filter needs scripts; without scripts the page shows all boxes.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.market.price_book import ON_DEMAND
from tutti.present.recommendation_text import monthly_text
from tutti.present.report.amounts import amount_text, resource_text
from tutti.present.report.drawing_data import OTHERS, DrawingData, NodeBox, PoolZone
from tutti.present.report.markup import Markup, el, joined
from tutti.present.report.node_resources import node_resources
from tutti.present.tables import counted

BOXES = 240
_FEW = 10
"""Up to this number of boxes, boxes are drawn larger."""
_MAX_SEARCHABLE = 50
"""Number of node names per box that the filter can find."""


def plan_drawing(drawing: DrawingData) -> Markup:
    """Return the legend, the filter, and all boxes: new nodes first, then existing nodes."""
    quota = _quota([len(place.boxes) for place in drawing.places])
    shown = list(zip(drawing.places, quota, strict=True))
    parts: list[Markup] = []
    for new, title in ((True, "New nodes"), (False, "Existing nodes that take some of the pods")):
        places = [_pool_zone(place, drawing, most=most) for place, most in shown if place.boxes[0].new == new]
        if places:
            parts += (el("h3", title), el("div", *places, class_="places"))
    kind = "plan few" if sum(quota) <= _FEW else "plan"
    return el("div", _legend(drawing), _filter(), *parts, class_=kind, id="plan-boxes")


def _quota(wanted: Sequence[int]) -> list[int]:
    """Return how many boxes each pool and zone may show."""
    total = sum(wanted)
    return list(wanted) if total <= BOXES else [max(1, number * BOXES // total) for number in wanted]


def _legend(drawing: DrawingData) -> Markup:
    shown = [each for each in drawing.workloads if each.colour < OTHERS or len(drawing.workloads) == OTHERS + 1]
    rest = drawing.workloads[len(shown) :]
    items = [_legend_item(each.colour, each.name, counted(each.pods, "pod")) for each in shown]
    if rest:
        name = f"{len(rest):,} other workloads"
        items.append(_legend_item(OTHERS, name, counted(sum(each.pods for each in rest), "pod")))
    plain = el("li", el("span", class_="swatch before"), "runs there already, or comes with the node")
    return el("ul", *items, plain, class_="legend")


def _legend_item(colour: int, name: str, pods: str) -> Markup:
    inner = (el("span", class_=f"swatch c{colour}"), el("span", name, class_="name"), el("small", pods))
    return el("li", el("button", *inner, type="button", data_colour=colour, aria_pressed="false"))


def _filter() -> Markup:
    """Return the filter; it is hidden until the page's script runs."""
    box = el("input", type="search", id="filter", placeholder="node, pod, workload, zone or type", autocomplete="off")
    return el("p", el("label", "Show ", box), " ", el("output", id="shown"), class_="controls", hidden=True)


# Pools, zones and boxes -----------------------------------------------------------------------------------------------


def _pool_zone(place: PoolZone, drawing: DrawingData, *, most: int) -> Markup:
    boxes = place.boxes[:most]
    rest = place.nodes - sum(len(box.names) for box in boxes)
    head = el(
        "h4",
        el("span", place.pool or "without a pool", class_="pool"),
        el("span", place.zone, class_="zone") if place.zone else None,
        el("small", counted(place.nodes, "node")),
    )
    more = el("p", f"and {counted(rest, 'node')} more here, filled in other ways", class_="more") if rest else None
    figures = [_box(box, place, drawing=drawing) for box in boxes]
    return el("div", head, el("div", *figures, class_="boxes"), more, class_="place")


def _box(box: NodeBox, place: PoolZone, *, drawing: DrawingData) -> Markup:
    name = box.names[0]
    shown = name.removeprefix(f"{place.pool}-{place.zone}-".lower()) if box.new else name
    count = el("span", f"× {len(box.names):,}", class_="like") if len(box.names) > 1 else None
    kind = box.instance_type or "no type"
    kind += f" · {box.capacity_type}" if box.capacity_type != ON_DEMAND else ""
    facts = [counted(len(box.loads), "pod" if box.new else "new pod")]
    facts += [f"{monthly_text(box.price)}/month"] if box.new and box.price is not None else []
    resources = [each for each in drawing.resources if box.room.get(each)]
    words = {drawing.workloads[load.workload].name for load in box.loads}
    searchable = " ".join(
        (*box.names[:_MAX_SEARCHABLE], place.pool, place.zone, box.instance_type, *sorted(words))
    ).lower()
    return el(
        "figure",
        el("div", el("b", shown, title=name), count, class_="title"),
        el("small", kind),
        el("small", " · ".join(facts)),
        node_resources(box, resources, drawing.workloads),
        el("figcaption", *(_gauge(box, each) for each in resources)),
        class_="node new" if box.new else "node there",
        data_nodes=len(box.names),
        data_find=searchable,
    )


def _gauge(box: NodeBox, resource: str) -> Markup:
    used = box.before.get(resource, 0) + sum(load.requests.get(resource, 0) for load in box.loads)
    room = box.room[resource]
    amounts = f"{amount_text(resource, used)} of {amount_text(resource, room)}"
    return el("span", f"{resource_text(resource)} ", el("b", f"{100 * used / room:.0f} %"), title=amounts)


def plan_section(drawing: DrawingData) -> Markup:
    """Return the drawing with an explanation, and the number of nodes that take no pod."""
    if not drawing.places:
        return el("p", "No pod gets a node, so there is nothing to draw.", class_="quiet")
    count = counted(drawing.untouched, "other node") + (" takes" if drawing.untouched == 1 else " take")
    others = el("p", f"{count} none of these pods.", class_="quiet") if drawing.untouched else None
    lead = el(
        "p", "Each box is a node, each tank is an allocatable resource of the node, each tile is a pod.", class_="quiet"
    )
    return joined((lead, plan_drawing(drawing), others))
