"""Cluster Autoscaler's expanders: which node group is chosen among the options of a loop.

Contract: pure. `best` returns all options with the best score, in the order of the groups. Cluster Autoscaler chooses
one of them at random; the model takes the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import tanh

import msgspec

from tutti.autoscalers.cluster_autoscaler.binpacking_estimator import Option
from tutti.autoscalers.shared.equivalence_groups import PodEquivalenceGroup
from tutti.autoscalers.shared.limit_counter import capacity
from tutti.kube.resource_names import is_gpu
from tutti.market.money import dollars
from tutti.market.offerings import Offering

GIB = 1 << 30
_PREFERRED_CORES = ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16))
"""Maximum number of nodes in the cluster, and the preferred cores of a node; in larger clusters 32 cores."""
_PREFERRED_CORES_ABOVE = 32
_GPU_UNFITNESS = 1000.0


class Pricing(msgspec.Struct, frozen=True, rename="camel"):
    """The price expander's value of requested resources in dollars an hour; the defaults are its rates for GCE."""

    pod_cpu_per_hour: float = 0.033174
    pod_mem_gib_per_hour: float = msgspec.field(name="podMemGiBPerHour", default=0.004446)
    pod_gpu_per_hour: float = 0.7

    def price(self, cpu: int, memory: int, gpus: int = 0) -> float:
        """Return the value of millicores, bytes and GPUs."""
        return (
            cpu / 1000 * self.pod_cpu_per_hour + memory / GIB * self.pod_mem_gib_per_hour + gpus * self.pod_gpu_per_hour
        )


class ExpanderInput(msgspec.Struct, frozen=True):
    """The offerings, pod groups, cluster size and prices that expanders use."""

    offerings: Sequence[Offering]
    pod_groups: Sequence[PodEquivalenceGroup]
    nodes: int
    """The number of nodes in the cluster."""
    pricing: Pricing = Pricing()


Score = Callable[[ExpanderInput, Option], float | None]
"""A score of an option, the lowest is the best; None excludes the option."""


def best(expander: str, given: ExpanderInput, options: Sequence[Option]) -> list[Option]:
    """Return the options with the best score of an expander."""
    score = EXPANDERS[expander]
    scored = [(value, option) for option in options if (value := score(given, option)) is not None]
    lowest = min((value for value, _ in scored), default=0.0)
    return [option for value, option in scored if value == lowest]


def least_waste(given: ExpanderInput, option: Option) -> float:
    """Return the unused share of the nodes' cpu capacity plus the unused share of their memory capacity."""
    node_capacity, wasted = capacity(given.offerings[option.offering]), 0.0
    for name in ("cpu", "memory"):
        total = node_capacity.get(name, 0) * option.nodes
        wasted += (total - _requested(given, option, name)) / total if total else 0.0
    return wasted


def most_pods(_given: ExpanderInput, option: Option) -> float:
    """Return the number of pods that fit, negated."""
    return -float(sum(option.pods.values()))


def price(given: ExpanderInput, option: Option) -> float | None:
    """Return the price of the nodes over the value of the pods, times the unfitness of the node size."""
    offering, pricing = given.offerings[option.offering], given.pricing
    if offering.price is None:
        return None
    pods_value = pricing.price(
        _requested(given, option, "cpu"),
        _requested(given, option, "memory"),
        _requested(given, option, "nvidia.com/gpu"),
    )
    stabilization = pricing.price(500, 500 << 20)
    ratio = (dollars(offering.price) * option.nodes + stabilization) / (pods_value + stabilization)
    return _unfitness(given, offering, option.nodes) * ratio


def _unfitness(given: ExpanderInput, offering: Offering, nodes: int) -> float:
    """Return how far the cores of a node are from the preferred cores of a cluster of this size; 1 is the best."""
    node_capacity = capacity(offering)
    if any(is_gpu(name) and amount for name, amount in node_capacity.items()):
        return _GPU_UNFITNESS
    preferred = next((cores for most, cores in _PREFERRED_CORES if given.nodes <= most), _PREFERRED_CORES_ABOVE)
    ratio = node_capacity.get("cpu", 0) / (1000 * preferred)
    unfitness = max(ratio, 1 / ratio) if ratio else 1.0
    return (unfitness - 1) * (1 - tanh((nodes - 1) / 15)) + 1  # node size matters less when many nodes are bought


def _requested(given: ExpanderInput, option: Option, resource: str) -> int:
    return sum(
        given.pod_groups[pod_group].requests.get(resource, 0) * count for pod_group, count in option.pods.items()
    )


EXPANDERS: Mapping[str, Score] = {"least-waste": least_waste, "most-pods": most_pods, "price": price}
