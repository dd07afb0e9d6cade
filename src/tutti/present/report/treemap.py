"""Tiles: a rectangle divided among weights, each as near to a square as it goes (a squarified treemap).

Contract: pure. The areas are proportional to the weights, in their order; a weight of nothing gets no area.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Rect(NamedTuple):
    """A rectangle; y goes down."""

    x: float
    y: float
    width: float
    height: float

    @property
    def area(self) -> float:
        """Its area."""
        return self.width * self.height


def tile_rectangles(room: Rect, weights: Sequence[float]) -> list[Rect]:
    """A rectangle for each weight; large weights should come first."""
    total = sum(weights)
    if total <= 0 or room.area <= 0:
        return [Rect(room.x, room.y, 0.0, 0.0) for _ in weights]
    areas = [weight * room.area / total for weight in weights]
    found: list[Rect] = []
    while len(found) < len(areas):
        row = _row(areas[len(found) :], min(room.width, room.height))
        placed, room = _place_row(room, row)
        found += placed
    return found


def _row(areas: Sequence[float], side: float) -> list[float]:
    """As many areas as can stand along a side before the worst of them gets thinner."""
    row: list[float] = []
    worst = float("inf")
    for area in areas:
        thinness = _worst_aspect([*row, area], side)
        if row and thinness > worst:
            break
        row.append(area)
        worst = thinness
    return row


def _worst_aspect(row: Sequence[float], side: float) -> float:
    """How much longer than wide the worst of a row is."""
    total, least, most = sum(row), min(row), max(row)
    if not least or not side:
        return float("inf")
    return max(side * side * most / (total * total), total * total / (side * side * least))


def _place_row(room: Rect, row: Sequence[float]) -> tuple[list[Rect], Rect]:
    """The rectangles of a row along the shorter side, and the room that is left."""
    total, found = sum(row), []
    if room.width >= room.height:
        width, y = (total / room.height if room.height else 0.0), room.y
        for area in row:
            height = area / width if width else 0.0
            found.append(Rect(room.x, y, width, height))
            y += height
        return found, Rect(room.x + width, room.y, max(room.width - width, 0.0), room.height)
    height, x = (total / room.width if room.width else 0.0), room.x
    for area in row:
        width = area / height if height else 0.0
        found.append(Rect(x, room.y, width, height))
        x += width
    return found, Rect(room.x, room.y + height, room.width, max(room.height - height, 0.0))
