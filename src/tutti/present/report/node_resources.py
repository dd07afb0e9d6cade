"""The resources of a node as tanks: one tank for each allocatable resource, filled with tiles for pods.

Contract: pure. The height of a tank is the allocatable amount. Running pods are one tile at the bottom; above it each
new pod has a tile, coloured by workload, whose area is proportional to its request; the rest of the tank is free. Every
tile has a title with the pod and its requests. Pods of a workload share a tile if their tiles would be too small to
point at.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tutti.present.report.amounts import amount_text, resource_text
from tutti.present.report.drawing_data import Amounts, DrawnPod, DrawnWorkload, NodeBox
from tutti.present.report.markup import Markup, el
from tutti.present.report.treemap import Rect, tile_rectangles
from tutti.present.tables import counted

_WIDTH, _HEIGHT, _GAP = 180.0, 116.0, 8.0
_SMALLEST = 30.0
"""Tiles with a smaller area are merged."""
_LETTER, _LINE = 5.4, 12.0
"""Width of a letter, and height of a line."""


def node_resources(box: NodeBox, resources: Sequence[str], workloads: Sequence[DrawnWorkload]) -> Markup:
    """Return a tank for each resource, side by side."""
    width = (_WIDTH - _GAP * (len(resources) - 1)) / max(len(resources), 1)
    parts: list[Markup] = []
    for index, resource in enumerate(resources):
        tank = Rect(index * (width + _GAP), 0.0, width, _HEIGHT)
        parts.append(_rect(tank, "tank"))
        parts += _tiles(box, resource, tank=tank, workloads=workloads)
    label = f"{box.names[0]}: {counted(len(box.loads), 'pod')}"
    return el("svg", *parts, viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}", role="img", aria_label=label)


def _tiles(box: NodeBox, resource: str, *, tank: Rect, workloads: Sequence[DrawnWorkload]) -> Iterator[Markup]:
    """Yield the tiles of a tank, from the bottom up."""
    room = box.room[resource]
    before = min(box.before.get(resource, 0) / room, 1.0) * tank.height
    bottom = tank.y + tank.height
    if before > 0:
        kind = "coming with the node" if box.new else "running there already"
        title = f"{counted(box.running, 'pod')} {kind}\n{_requests_text({resource: box.before[resource]})}"
        yield _rect(Rect(tank.x, bottom - before, tank.width, before), "t before", title)
    wanted = sum(load.requests.get(resource, 0) for load in box.loads)
    height = min(wanted / room * tank.height, tank.height - before)
    filled = Rect(tank.x, bottom - before - height, tank.width, height)
    groups: dict[int, list[DrawnPod]] = {}
    for load in box.loads:
        if load.requests.get(resource):
            groups.setdefault(load.workload, []).append(load)
    ordered = sorted(groups.items(), key=lambda item: (-_total(item[1], resource), item[0]))
    parts = tile_rectangles(filled, [_total(loads, resource) for _, loads in ordered])
    for (number, loads), part in zip(ordered, parts, strict=True):
        yield from _workload_tiles(workloads[number], loads, part=part, resource=resource)


def _workload_tiles(
    workload: DrawnWorkload, loads: Sequence[DrawnPod], *, part: Rect, resource: str
) -> Iterator[Markup]:
    """Yield the tiles of a workload's pods on one node."""
    colour = f"t c{workload.colour}"
    if part.area / len(loads) < _SMALLEST and len(loads) > 1:
        title = f"{counted(len(loads), 'pod')} of {workload.name}\n{_requests_text(_sum_requests(loads))} together"
        yield _rect(part, colour, title)
        yield from _label(f"{len(loads)} × {_workload_name(workload.name)}", part)
        return
    ordered = sorted(loads, key=lambda load: (-load.requests[resource], load.key))
    for load, tile in zip(ordered, tile_rectangles(part, [load.requests[resource] for load in ordered]), strict=True):
        yield _rect(tile, colour, f"{load.key}\n{_requests_text(load.requests)}")
        yield from _label(_workload_name(workload.name), tile)


def _rect(rect: Rect, kind: str, title: str | None = None) -> Markup:
    """Return a rectangle with a narrow gap around it."""
    inset = 0.4 if kind != "tank" and min(rect.width, rect.height) > 2 else 0.0
    return el(
        "rect", el("title", title) if title else None,
        x=rect.x + inset, y=rect.y + inset, width=rect.width - 2 * inset, height=rect.height - 2 * inset, class_=kind,
    )  # fmt: skip


def _label(text: str, tile: Rect) -> Iterator[Markup]:
    """Yield a name on a tile, if the tile is large enough."""
    letters = int((tile.width - 6) / _LETTER)
    if letters < 3 or tile.height < _LINE:
        return
    shown = text if len(text) <= letters else f"{text[: letters - 1]}…"
    yield el("text", shown, x=tile.x + 4, y=tile.y + tile.height / 2 + 3)


def _workload_name(workload: str) -> str:
    return workload.partition("/")[2]


def _requests_text(requests: Amounts) -> str:
    amounts = [f"{amount_text(name, amount)} {resource_text(name)}" for name, amount in requests.items() if amount]
    return ", ".join(amounts) or "no requests"


def _sum_requests(loads: Sequence[DrawnPod]) -> Amounts:
    total: dict[str, int] = {}
    for load in loads:
        for name, amount in load.requests.items():
            total[name] = total.get(name, 0) + amount
    return total


def _total(loads: Sequence[DrawnPod], resource: str) -> int:
    return sum(load.requests.get(resource, 0) for load in loads)
