"""Cluster Autoscaler's expanders: which of the groups that could help is chosen.

Contract: `best` gives the options that an expander holds equal, in the order of the groups. Cluster Autoscaler then
draws lots; whoever wants one answer takes the first.
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
_PREFERRED = ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16))
"""Up to so many nodes in the cluster, nodes of so many cores are preferred; above them, of 32."""
_GPU_UNFITNESS = 1000.0


class Pricing(msgspec.Struct, frozen=True, rename="camel"):
    """What pods are worth to the price expander, in dollars an hour: the base rates of its model for Google's cloud."""

    pod_cpu_per_hour: float = 0.033174
    pod_mem_gib_per_hour: float = msgspec.field(name="podMemGiBPerHour", default=0.004446)
    pod_gpu_per_hour: float = 0.7

    def price(self, cpu: int, memory: int, gpus: int = 0) -> float:
        """The price of millicores, bytes and GPUs."""
        return (
            cpu / 1000 * self.pod_cpu_per_hour + memory / GIB * self.pod_mem_gib_per_hour + gpus * self.pod_gpu_per_hour
        )


class ExpanderInput(msgspec.Struct, frozen=True):
    """What expanders look at."""

    offerings: Sequence[Offering]
    pod_groups: Sequence[PodEquivalenceGroup]
    nodes: int
    """How many nodes the cluster has."""
    pricing: Pricing = Pricing()


Score = Callable[[ExpanderInput, Option], float | None]
"""The lower the better; None for an option that is out of the question."""


def best(expander: str, given: ExpanderInput, options: Sequence[Option]) -> list[Option]:
    """The options that an expander holds best."""
    score = EXPANDERS[expander]
    scored = [(value, option) for option in options if (value := score(given, option)) is not None]
    lowest = min((value for value, _ in scored), default=0.0)
    return [option for value, option in scored if value == lowest]


def least_waste(given: ExpanderInput, option: Option) -> float:
    """The share of cpu and of memory that stays unused, of the nodes' whole capacity."""
    offered, wasted = capacity(given.offerings[option.offering]), 0.0
    for name in ("cpu", "memory"):
        total = offered.get(name, 0) * option.nodes
        wasted += (total - _wanted(given, option, name)) / total if total else 0.0
    return wasted


def most_pods(_market: ExpanderInput, option: Option) -> float:
    """The pods that are helped."""
    return -float(sum(option.pods.values()))


def price(given: ExpanderInput, option: Option) -> float | None:
    """What is paid for what the pods are worth, times how unfit the nodes are for a cluster of this size."""
    offering, pricing = given.offerings[option.offering], given.pricing
    if offering.price is None:
        return None
    worth = pricing.price(
        _wanted(given, option, "cpu"), _wanted(given, option, "memory"), _wanted(given, option, "nvidia.com/gpu")
    )
    stabiliser = pricing.price(500, 500 << 20)
    ratio = (dollars(offering.price) * option.nodes + stabiliser) / (worth + stabiliser)
    return _unfitness(given, offering, option.nodes) * ratio


def _unfitness(given: ExpanderInput, offering: Offering, nodes: int) -> float:
    offered = capacity(offering)
    if any(is_gpu(name) and amount for name, amount in offered.items()):
        return _GPU_UNFITNESS
    preferred = next((cores for most, cores in _PREFERRED if given.nodes <= most), 32)
    share = offered.get("cpu", 0) / (1000 * preferred)
    unfitness = max(share, 1 / share) if share else 1.0
    return (unfitness - 1) * (1 - tanh((nodes - 1) / 15)) + 1  # it matters less where many nodes are bought


def _wanted(given: ExpanderInput, option: Option, resource: str) -> int:
    return sum(
        given.pod_groups[pod_group].requests.get(resource, 0) * count for pod_group, count in option.pods.items()
    )


EXPANDERS: Mapping[str, Score] = {"least-waste": least_waste, "most-pods": most_pods, "price": price}
