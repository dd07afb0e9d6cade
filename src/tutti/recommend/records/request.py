"""The simulation request: everything a recommendation is made from, as one frozen record."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.kube.objects import DaemonSet, Object
from tutti.market.offerings import Catalogue
from tutti.market.planning_cluster import build_cluster


class Objective(StrEnum):
    """What the cheapest plan is measured by. As many pods as possible are placed first, the important ones before."""

    COST = "cost"
    """The price of the nodes."""
    PODS = "pods"
    """The pods placed, the larger ones if not all can be, then the price."""
    NODES = "nodes"
    """The number of nodes, then the price."""


class Strategy(StrEnum):
    """How the nodes are chosen."""

    OPTIMAL = "optimal"
    LEAST_COST = "least-cost"
    LEAST_WASTE = "least-waste"
    MOST_PODS = "most-pods"


class Binder(StrEnum):
    """Who puts the pods on the new nodes."""

    KUBE_SCHEDULER = "kube-scheduler"
    """kube-scheduler, by its own scores: the plan is what it would make of the purchase."""
    TUTTI = "tutti"
    """Tutti: pods go where the plan says."""


class ResourceWeights(msgspec.Struct, frozen=True, gc=False):
    """What a unit of each resource is worth to the scores."""

    cpu: int = 6
    """A core."""
    memory: int = 1
    """A GiB of memory."""
    gpu: int = 20
    """A GPU: any resource whose name ends in ``/gpu``."""


class DownOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How to look for nodes that can go; what a pool says of itself comes before."""

    threshold: float = 0.5
    """A node may go for being underused at this utilisation or below."""
    unneeded: int = 600
    """For how many seconds a node must have been unneeded before it may go."""
    unneeded_gpu: int = 300
    """The same for nodes with GPUs, which cost most."""
    consolidate: bool = True
    """Whether dearer nodes may be replaced by cheaper ones, whatever their utilisation."""
    payback: float = 24.0
    """Within how many hours a consolidation must have paid for its churn."""
    least: float = 0.05
    """What share of the price of the nodes that it replaces a consolidation must save at least."""
    move_cost: int = 10_000_000
    """What it costs that a pod moves, in nano-dollars: work done again, caches filled again."""
    now: int | None = None
    """The moment to which ages count, in microseconds; None when nobody knows it, and every wait is a whole one."""
    present: int | None = None
    """The moment at which the plan is carried out, where that is another one: schedules count to it."""


class RecommendOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How to choose."""

    objective: Objective = Objective.COST
    strategy: Strategy | None = None
    """None stands for the optimal one when all prices are known or the objective needs none, least-cost otherwise."""
    binder: Binder = Binder.KUBE_SCHEDULER
    weights: ResourceWeights = ResourceWeights()
    down: DownOptions | None = None
    """None stands for: nothing is given back."""


class Request(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """See the module's line."""

    objects: tuple[Object, ...]
    """The cluster, prepared: nodes, pods with and without a node, and whatever else a scheduler looks at."""
    daemon_sets: tuple[DaemonSet, ...] = ()
    """Those whose pods a new node gets."""
    catalogue: Catalogue
    options: RecommendOptions = RecommendOptions()
    notes: tuple[str, ...] = ()

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster of the objects, built on first use. Nobody edits it: `request_cluster` gives copies."""
        return build_cluster(self.objects)
