"""A squarified treemap: divides a rectangle into tiles that are as close to squares as possible.

Contract: pure. Areas are proportional to the weights, in the same order; a weight of 0 gets no area.
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
        """Width times height."""
        return self.width * self.height


def tile_rectangles(room: Rect, weights: Sequence[float]) -> list[Rect]:
    """Return a rectangle for each weight; large weights should come first."""
    total = sum(weights)
    if total <= 0 or room.area <= 0:
        return [Rect(room.x, room.y, 0.0, 0.0) for _ in weights]
    areas = [weight * room.area / total for weight in weights]
    tiles: list[Rect] = []
    while len(tiles) < len(areas):
        row = _row(areas[len(tiles) :], min(room.width, room.height))
        placed, room = _place_row(room, row)
        tiles += placed
    return tiles


def _row(areas: Sequence[float], side: float) -> list[float]:
    """Return the first areas for a row along a side: as many as do not make the thinnest tile thinner."""
    row: list[float] = []
    worst = float("inf")
    for area in areas:
        aspect = _worst_aspect([*row, area], side)
        if row and aspect > worst:
            break
        row.append(area)
        worst = aspect
    return row


def _worst_aspect(row: Sequence[float], side: float) -> float:
    """Return the largest aspect ratio of the tiles in a row."""
    total, least, most = sum(row), min(row), max(row)
    if not least or not side:
        return float("inf")
    return max(side * side * most / (total * total), total * total / (side * side * least))


def _place_row(room: Rect, row: Sequence[float]) -> tuple[list[Rect], Rect]:
    """Return the rectangles of a row along the shorter side, and the rest of the rectangle."""
    total, tiles = sum(row), []
    if room.width >= room.height:
        width, y = (total / room.height if room.height else 0.0), room.y
        for area in row:
            height = area / width if width else 0.0
            tiles.append(Rect(room.x, y, width, height))
            y += height
        return tiles, Rect(room.x + width, room.y, max(room.width - width, 0.0), room.height)
    height, x = (total / room.width if room.width else 0.0), room.x
    for area in row:
        width = area / height if height else 0.0
        tiles.append(Rect(x, room.y, width, height))
        x += width
    return tiles, Rect(room.x, room.y + height, room.width, max(room.height - height, 0.0))
