"""Spared victims: pods whose eviction the API server refused lately, so that the preemptor chooses others for a while.

Contract: the functions return new dicts by the name of the preemptor's turn and change none, so that the queue can
undo.
"""

from __future__ import annotations

from collections.abc import Container, Mapping

import msgspec


class SparedVictim(msgspec.Struct, frozen=True):
    """A pod that a turn does not evict until a time, in microseconds."""

    pod: str
    uid: str | None
    until: int


Spared = dict[str, tuple[SparedVictim, ...]]


def spare(spared: Mapping[str, tuple[SparedVictim, ...]], turn: str, victim: SparedVictim) -> Spared:
    """Let a turn spare a victim."""
    others = (each for each in spared.get(turn, ()) if (each.pod, each.uid) != (victim.pod, victim.uid))
    return {**spared, turn: (*others, victim)}


def forget_expired(
    spared: Mapping[str, tuple[SparedVictim, ...]], waiting: Container[str], *, now: int
) -> tuple[Spared, list[str]]:
    """Forget victims that need not be spared any more, and turns that do not wait.

    Returns what is left, and the turns that may evict a victim again.
    """
    kept, freed = {}, []
    for turn, victims in spared.items():
        if turn not in waiting:
            continue
        left = tuple(each for each in victims if each.until > now)
        if left:
            kept[turn] = left
        if len(left) < len(victims):
            freed.append(turn)
    return kept, freed
