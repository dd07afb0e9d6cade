"""One pass: everything that was found, drained from the beginning, so that nobody moves twice.

Contract: what can go was found bit by bit, and a pod that made room for one node may have gone to another that went
later. Here all nodes that go are cordoned first, and then drained bit by bit, in the order in which they were found. A
bit that finds no way any more, does not pay any more, or whose pool would fall below its minimum is taken back: its
nodes stay. The picture is left as the plan leaves it. It takes about as long as finding the bits took.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tutti.cluster.edits import Put
from tutti.cluster.node_edits import node_of
from tutti.cluster.trial import Trial
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.after_purchase import OfferingIndex
from tutti.recommend.down.bill import change
from tutti.recommend.down.candidates import RemovalCandidate
from tutti.recommend.down.drain import DrainBlocked, Drainer
from tutti.recommend.down.pool_sizes import PoolSizes
from tutti.recommend.records.down_plan import ScaleDownStep
from tutti.recommend.records.new_nodes import NewNode
from tutti.recommend.records.request import DownOptions


class RemovalGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Nodes that go together, and what comes instead."""

    gone: tuple[RemovalCandidate, ...]
    nodes: tuple[NewNode, ...] = ()

    @property
    def names(self) -> list[str]:
        """The nodes that go."""
        return [each.node for each in self.gone]


class OnePass(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What can go in one pass, and how."""

    bits: tuple[RemovalGroup, ...] = ()
    steps: tuple[ScaleDownStep, ...] = ()


def in_one_pass(
    planning: PlanningCluster,
    drainage: Drainer,
    offered: OfferingIndex,
    *,
    bits: Sequence[RemovalGroup],
    sizes: PoolSizes,
    down: DownOptions,
) -> OnePass:
    """Drain as many bits as can be; `sizes` are those of the pools before."""
    cluster, sizes = planning.cluster, sizes.copy()
    before = {name: node_of(cluster, name) for bit in bits for name in bit.names}
    drainage.cordon(before)
    kept: list[RemovalGroup] = []
    steps: list[ScaleDownStep] = []
    for bit in bits:
        found = None
        if sizes.refusal(bit.gone, bit.nodes) is None:
            found = _drained(planning, drainage, offered, bit=bit, down=down)
        if found is None:
            for name in bit.names:
                cluster.apply(Put(before[name]))
            continue
        sizes.change(bit.gone, bit.nodes)
        kept.append(bit)
        steps += found
    return OnePass(bits=tuple(kept), steps=tuple(_joined(steps)))


def _drained(
    planning: PlanningCluster, drainage: Drainer, offered: OfferingIndex, *, bit: RemovalGroup, down: DownOptions
) -> list[ScaleDownStep] | None:
    """The steps for one bit; None, and the picture is as it was, if it cannot go or is not worth it."""
    with Trial(planning.cluster) as trial:
        steps = drainage.drain(bit.names, {node.name: offered.of(node) for node in bit.nodes})
        if isinstance(steps, DrainBlocked):
            return None
        moves = [move for step in steps for move in step.moves]
        if not {move.target for move in moves}.issuperset(node.name for node in bit.nodes):
            return None
        prices = [each.price for each in bit.gone]
        if moves and all(prices):
            worth = change(removed=prices, bought=[node.price or 0 for node in bit.nodes], moves=len(moves), down=down)
            if not worth.is_worth(down):
                return None
        trial.keep()
    return steps


def _joined(steps: Iterable[ScaleDownStep]) -> list[ScaleDownStep]:
    """ScaleDownDecision of empty nodes that follow each other are one step."""
    joined: list[ScaleDownStep] = []
    for step in steps:
        last = joined[-1] if joined else None
        if last is not None and not (last.adds or last.moves or step.adds or step.moves):
            joined[-1] = ScaleDownStep(removes=last.removes + step.removes)
        else:
            joined.append(step)
    return joined
