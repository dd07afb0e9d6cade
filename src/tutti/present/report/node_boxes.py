"""The plan as a picture: a box for each node that takes pods, by pool and zone.

Contract: pure. A page has about `BOXES` boxes at most: places with more show their first ones and say how many follow.
The filter is for whom scripts run; the picture is whole without it.
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
"""Up to so many boxes are drawn larger."""
_FOUND = 50
"""So many names of like nodes can be looked for."""


def plan_picture(drawing: DrawingData) -> Markup:
    """The legend, the filter, and all places: first where nodes are bought, then where they are there."""
    quota = _quota([len(place.boxes) for place in drawing.places])
    shown = list(zip(drawing.places, quota, strict=True))
    parts: list[Markup] = []
    for new, title in ((True, "New nodes"), (False, "Nodes that are there and take some of the pods")):
        places = [_place(place, drawing, most=most) for place, most in shown if place.boxes[0].new == new]
        if places:
            parts += (el("h3", title), el("div", *places, class_="places"))
    kind = "plan few" if sum(quota) <= _FEW else "plan"
    return el("div", _legend(drawing), _filter(), *parts, class_=kind, id="plan-boxes")


def _quota(wanted: Sequence[int]) -> list[int]:
    """How many boxes each place may show."""
    total = sum(wanted)
    return list(wanted) if total <= BOXES else [max(1, number * BOXES // total) for number in wanted]


def _legend(drawing: DrawingData) -> Markup:
    shown = [each for each in drawing.workloads if each.colour < OTHERS or len(drawing.workloads) == OTHERS + 1]
    rest = drawing.workloads[len(shown) :]
    items = [_key(each.colour, each.name, counted(each.pods, "pod")) for each in shown]
    if rest:
        said = f"{len(rest):,} other workloads"
        items.append(_key(OTHERS, said, counted(sum(each.pods for each in rest), "pod")))
    plain = el("li", el("span", class_="swatch before"), "runs there already, or comes with the node")
    return el("ul", *items, plain, class_="legend")


def _key(colour: int, name: str, said: str) -> Markup:
    inner = (el("span", class_=f"swatch c{colour}"), el("span", name, class_="name"), el("small", said))
    return el("li", el("button", *inner, type="button", data_colour=colour, aria_pressed="false"))


def _filter() -> Markup:
    """Shown where scripts run; elsewhere all boxes are shown."""
    box = el("input", type="search", id="filter", placeholder="node, pod, workload, zone or type", autocomplete="off")
    return el("p", el("label", "Show ", box), " ", el("output", id="shown"), class_="controls", hidden=True)


# Places and boxes -----------------------------------------------------------------------------------------------------


def _place(place: PoolZone, drawing: DrawingData, *, most: int) -> Markup:
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
    like = el("span", f"× {len(box.names):,}", class_="like") if len(box.names) > 1 else None
    kind = box.instance_type or "no type"
    kind += f" · {box.capacity_type}" if box.capacity_type != ON_DEMAND else ""
    facts = [counted(len(box.loads), "pod" if box.new else "new pod")]
    facts += [f"{monthly_text(box.price)}/month"] if box.new and box.price is not None else []
    resources = [each for each in drawing.resources if box.room.get(each)]
    words = {drawing.workloads[load.workload].name for load in box.loads}
    found = " ".join((*box.names[:_FOUND], place.pool, place.zone, box.instance_type, *sorted(words))).lower()
    return el(
        "figure",
        el("div", el("b", shown, title=name), like, class_="title"),
        el("small", kind),
        el("small", " · ".join(facts)),
        node_resources(box, resources, drawing.workloads),
        el("figcaption", *(_gauge(box, each) for each in resources)),
        class_="node new" if box.new else "node there",
        data_nodes=len(box.names),
        data_find=found,
    )


def _gauge(box: NodeBox, resource: str) -> Markup:
    used = box.before.get(resource, 0) + sum(load.requests.get(resource, 0) for load in box.loads)
    room = box.room[resource]
    of = f"{amount_text(resource, used)} of {amount_text(resource, room)}"
    return el("span", f"{resource_text(resource)} ", el("b", f"{100 * used / room:.0f} %"), title=of)


def plan_section(drawing: DrawingData) -> Markup:
    """The picture with the lines on how to read it, and about nodes that take nobody."""
    if not drawing.places:
        return el("p", "No pod gets a node, so there is nothing to draw.", class_="quiet")
    said = counted(drawing.untouched, "other node") + (" takes" if drawing.untouched == 1 else " take")
    others = el("p", f"{said} none of these pods.", class_="quiet") if drawing.untouched else None
    lead = el("p", "A box is a node, a tank what pods can have of a resource, a tile a pod.", class_="quiet")
    return joined((lead, plan_picture(drawing), others))
