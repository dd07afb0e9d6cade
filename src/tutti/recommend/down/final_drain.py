"""The final drain: drain all chosen groups from the initial state, so that no pod moves twice.

Contract: groups are found one after the other, so a pod that made room for one removal may have moved to a node that is
removed later. Here all nodes to remove are cordoned first, and then drained group by group, in the order in which they
were found. A group that can no longer be drained, no longer pays, or whose pool would fall below its minimum is given
up: its nodes stay. The planning cluster ends as the plan leaves it. The cost is about that of the search for the
groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tutti.cluster.edits import Put
from tutti.cluster.node_edits import node_of
from tutti.cluster.trial import Trial
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.after_purchase import OfferingIndex
from tutti.recommend.down.bill import bill_change
from tutti.recommend.down.drain import DrainBlocked, Drainer
from tutti.recommend.down.pool_sizes import PoolSizes
from tutti.recommend.down.removal_candidates import RemovalCandidate
from tutti.recommend.records.down_plan import ScaleDownStep
from tutti.recommend.records.new_nodes import NewNode
from tutti.recommend.records.request import DownOptions


class RemovalGroup(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Nodes that are removed together, and the new nodes that replace them."""

    gone: tuple[RemovalCandidate, ...]
    nodes: tuple[NewNode, ...] = ()

    @property
    def names(self) -> list[str]:
        """The names of the removed nodes."""
        return [each.node for each in self.gone]


class DrainedGroups(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The groups that could be drained, with the steps."""

    groups: tuple[RemovalGroup, ...] = ()
    steps: tuple[ScaleDownStep, ...] = ()


def drain_groups(
    planning: PlanningCluster,
    drainer: Drainer,
    offerings: OfferingIndex,
    *,
    groups: Sequence[RemovalGroup],
    sizes: PoolSizes,
    down: DownOptions,
) -> DrainedGroups:
    """Drain as many groups as possible; `sizes` are the pool sizes before the scale-down."""
    cluster, sizes = planning.cluster, sizes.copy()
    original_nodes = {name: node_of(cluster, name) for group in groups for name in group.names}
    drainer.cordon(original_nodes)
    kept: list[RemovalGroup] = []
    steps: list[ScaleDownStep] = []
    for group in groups:
        group_steps = None
        if sizes.refusal(group.gone, group.nodes) is None:
            group_steps = _drain_group(planning, drainer, offerings, group=group, down=down)
        if group_steps is None:
            for name in group.names:
                cluster.apply(Put(original_nodes[name]))
            continue
        sizes.change(group.gone, group.nodes)
        kept.append(group)
        steps += group_steps
    return DrainedGroups(groups=tuple(kept), steps=tuple(_merge_empty_steps(steps)))


def _drain_group(
    planning: PlanningCluster, drainer: Drainer, offerings: OfferingIndex, *, group: RemovalGroup, down: DownOptions
) -> list[ScaleDownStep] | None:
    """Return the steps for one group; None if it cannot be drained or does not pay, with the cluster unchanged."""
    with Trial(planning.cluster) as trial:
        steps = drainer.drain(group.names, {node.name: offerings.find(node) for node in group.nodes})
        if isinstance(steps, DrainBlocked):
            return None
        moves = [move for step in steps for move in step.moves]
        if not {move.target for move in moves}.issuperset(node.name for node in group.nodes):
            return None
        prices = [each.price for each in group.gone]
        if moves and all(prices):
            change = bill_change(
                removed=prices, bought=[node.price or 0 for node in group.nodes], moves=len(moves), down=down
            )
            if not change.pays_off(down):
                return None
        trial.keep()
    return steps


def _merge_empty_steps(steps: Iterable[ScaleDownStep]) -> list[ScaleDownStep]:
    """Merge consecutive steps that only remove empty nodes."""
    merged: list[ScaleDownStep] = []
    for step in steps:
        last = merged[-1] if merged else None
        if last is not None and not (last.adds or last.moves or step.adds or step.moves):
            merged[-1] = ScaleDownStep(removes=last.removes + step.removes)
        else:
            merged.append(step)
    return merged
