"""One pass: everything that was found, drained from the beginning, so that nobody moves twice.

Contract: what can go was found bit by bit, and a pod that made room for one node may have gone to another that went
later. Here all nodes that go are cordoned first. If the pods then find no way in any of a few orders, or a new node
stays empty, bits are taken back: those are kept, in the order in which they were found, with which it works. The
picture is left as the plan leaves it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from tutti.cluster.trial import Trial
from tutti.recommend.bought import NewNode
from tutti.recommend.down.candidates import Candidate
from tutti.recommend.down.drainage import Drainage, Stuck
from tutti.recommend.down.plan import Step
from tutti.recommend.offerings import Offering
from tutti.recommend.picture import Picture
from tutti.recommend.settled import Offered

Order = Callable[[Candidate], tuple[object, ...]]


class Bit(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Nodes that go together, and what comes instead."""

    gone: tuple[Candidate, ...]
    nodes: tuple[NewNode, ...] = ()


class Pass(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What can go in one pass, and how."""

    bits: tuple[Bit, ...] = ()
    steps: tuple[Step, ...] = ()


def in_one_pass(picture: Picture, drainage: Drainage, offered: Offered, *, bits: Sequence[Bit]) -> Pass:
    """Drain as many bits as can be; all, if there is a way."""
    found = _tried(picture, drainage, offered, bits=bits)
    if found is not None or not bits:
        return Pass(bits=tuple(bits), steps=tuple(found or ()))
    kept: list[Bit] = []
    for bit in bits:
        with Trial(picture.cluster):
            if _tried(picture, drainage, offered, bits=[*kept, bit]) is not None:
                kept.append(bit)
    return Pass(bits=tuple(kept), steps=tuple(_tried(picture, drainage, offered, bits=kept) or ()))


def _tried(picture: Picture, drainage: Drainage, offered: Offered, *, bits: Sequence[Bit]) -> list[Step] | None:
    """The steps for all bits, in the first order that works; None if none does, and the picture is as it was."""
    gone = [each for bit in bits for each in bit.gone]
    bought = {node.name: offered.of(node) for bit in bits for node in bit.nodes}
    orders: list[list[Candidate]] = [gone, sorted(gone, key=_fullest), sorted(gone, key=_emptiest)]
    for order in orders:
        steps = _drained(picture, drainage, order, bought=bought)
        if steps is not None:
            return steps
    return None


def _fullest(each: Candidate) -> tuple[object, ...]:
    return -each.utilization, each.node


def _emptiest(each: Candidate) -> tuple[object, ...]:
    return each.utilization, each.node


def _drained(
    picture: Picture, drainage: Drainage, order: Sequence[Candidate], *, bought: Mapping[str, Offering]
) -> list[Step] | None:
    with Trial(picture.cluster) as trial:
        steps = drainage.drain([each.node for each in order], bought)
        if isinstance(steps, Stuck):
            return None
        used = {move.target for step in steps for move in step.moves}
        if not used.issuperset(bought):
            return None
        trial.keep()
    return steps
