"""The request: everything that a recommendation is made from, as one frozen record."""

from __future__ import annotations

from enum import StrEnum
from functools import cached_property

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.kube.objects import DaemonSet, Object
from tutti.market.offerings import Catalogue
from tutti.market.planning_cluster import build_cluster


class Objective(StrEnum):
    """What the cost of a plan is. Every objective places as many pods as possible first, by falling priority."""

    COST = "cost"
    """The price of the nodes."""
    PODS = "pods"
    """The pods placed (the larger ones if not all can be), then the price."""
    NODES = "nodes"
    """The number of nodes, then the price."""


class Strategy(StrEnum):
    """The strategy that chooses the nodes."""

    OPTIMAL = "optimal"
    LEAST_COST = "least-cost"
    LEAST_WASTE = "least-waste"
    MOST_PODS = "most-pods"


class Binder(StrEnum):
    """The program that binds pods to the new nodes."""

    KUBE_SCHEDULER = "kube-scheduler"
    """kube-scheduler binds by its own scores; the plan shows where it would place the pods."""
    TUTTI = "tutti"
    """Tutti binds; pods go where the plan says."""


class ResourceWeights(msgspec.Struct, frozen=True, gc=False):
    """The weight of a unit of each resource in the scores."""

    cpu: int = 6
    """Per core."""
    memory: int = 1
    """Per GiB of memory."""
    gpu: int = 20
    """Per GPU: any resource whose name ends in ``/gpu``."""


class DownOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Options of a scale-down; the rules of a pool take precedence."""

    threshold: float = 0.5
    """A node with this utilisation or less counts as underused."""
    unneeded: int = 600
    """The number of seconds that a node must have been unneeded before it may be removed."""
    unneeded_gpu: int = 300
    """The same for nodes with GPUs, which cost most."""
    consolidate: bool = True
    """Whether expensive nodes may be replaced by cheaper ones, whatever their utilisation."""
    payback: float = 24.0
    """The number of hours within which the saving must pay for the churn."""
    least: float = 0.05
    """The least saving, as a share of the price of the removed nodes."""
    move_cost: int = 10_000_000
    """The cost of one pod move in nano-dollars: work done again, caches filled again."""
    now: int | None = None
    """The moment at which ages are measured, in microseconds; None if unknown, then every wait is a whole one."""
    present: int | None = None
    """The moment at which the plan is carried out, if it differs from `now`: schedules are evaluated at this moment."""


class RecommendOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Options of a recommendation."""

    objective: Objective = Objective.COST
    strategy: Strategy | None = None
    """None: the optimal strategy if all prices are known or the objective needs none, least-cost otherwise."""
    binder: Binder = Binder.KUBE_SCHEDULER
    weights: ResourceWeights = ResourceWeights()
    down: DownOptions | None = None
    """None: no scale-down is planned."""


class Request(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """The whole request; see the module's docstring."""

    objects: tuple[Object, ...]
    """The prepared cluster: nodes, pods with and without a node, and all other objects that a scheduler reads."""
    daemon_sets: tuple[DaemonSet, ...] = ()
    """The daemon sets whose pods a new node may run."""
    catalogue: Catalogue
    options: RecommendOptions = RecommendOptions()
    notes: tuple[str, ...] = ()
    built_cluster: Cluster | None = None
    """The cluster of the same objects, if the caller has built it before."""

    @cached_property
    def cluster(self) -> Cluster:
        """The cluster of the objects, built on first use. No caller edits it: `request_cluster` makes copies."""
        return self.built_cluster if self.built_cluster is not None else build_cluster(self.objects)
