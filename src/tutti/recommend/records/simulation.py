"""A scaling simulation: the cluster at its start, its rounds, and the pods that stay pending.

Contract: frozen records; money in nano-dollars an hour. `present.scaling_simulation_text` turns them into text.
"""

from __future__ import annotations

from typing import NamedTuple

from tutti.engine.session.plan import NotConsidered, Unschedulable
from tutti.market.offerings import Offering


class JoinedNode(NamedTuple):
    """A node that joined the cluster."""

    name: str
    offering: Offering


class SimulationRound(NamedTuple):
    """One call of the recommender, and the effect of its answer."""

    number: int
    run_time: str
    """The recommender's run time, as it reports it."""
    scale_down: tuple[str, ...]
    """Nodes that the recommender would remove; they stay in the simulation."""
    joined: tuple[JoinedNode, ...]
    placed: dict[str, str]
    """Pods that got a node, with the node's name."""
    waiting: int
    """The number of pods that are pending after the round."""


class SimulationStart(NamedTuple):
    """The cluster before the first round."""

    namespaces: int
    priority_classes: int
    nodes: int
    pods: int
    bound: int
    """The number of pods that have a node in the snapshot."""
    placed: dict[str, str]
    """Pods that get a node before any node is bought, with the node's name."""
    waiting: int
    """The number of pods that wait for new nodes."""


class Simulation(NamedTuple):
    """The whole simulation."""

    start: SimulationStart
    rounds: tuple[SimulationRound, ...]
    unschedulable: tuple[Unschedulable, ...]
    """Pods that stay pending."""
    not_considered: tuple[NotConsidered, ...]
    is_cut: bool
    """Whether the allowed number of rounds ended the simulation."""

    @property
    def joined(self) -> list[JoinedNode]:
        """All nodes that joined."""
        return [node for each in self.rounds for node in each.joined]

    @property
    def cost(self) -> int | None:
        """The price of all new nodes; None when a price is not known."""
        prices = [node.offering.price for node in self.joined]
        return None if any(price is None for price in prices) else sum(price or 0 for price in prices)
