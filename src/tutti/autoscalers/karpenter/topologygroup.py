"""A topology group: the number of selected pods in each domain of a node label, and the domains for the next pod.

Contract: hosts are counted by number (existing nodes first, then claims); sets of domains of all other labels are bits
(`topologydomaingroup`). A spread allows one domain, the domain with the fewest pods, and among equals the first by
name; a spread over hosts assumes a smallest count of 0, because a new node is always possible. While no pod matches a
pod affinity term, a pod that matches the term itself may start in any domain: the model takes the first by name where
Karpenter chooses at random.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from tutti.autoscalers.karpenter.label_rows import HOSTNAME
from tutti.autoscalers.karpenter.topologynodefilter import TopologyNodeFilter
from tutti.cluster.counters.pod_terms import PodTerm, Scope
from tutti.kube.selectors import Selector


class TopologyType(Enum):
    """The kind of rule that a group belongs to."""

    SPREAD = "topology spread"
    POD_AFFINITY = "pod affinity"
    POD_ANTI_AFFINITY = "pod anti-affinity"


class TopologyGroupKey(NamedTuple):
    """The identity of a group; Karpenter hashes the same fields."""

    type: TopologyType
    label: str
    scope: Scope
    selector: Selector
    max_skew: int = 0
    min_domains: int = 1
    node_filter: TopologyNodeFilter = TopologyNodeFilter()


def key_of_term(kind: TopologyType, term: PodTerm) -> TopologyGroupKey:
    """Return the key of the group of an affinity or anti-affinity term."""
    return TopologyGroupKey(kind, term.topology_key, term.scope, term.selector)


class TopologyGroup:
    """See the module's contract."""

    def __init__(self, key: TopologyGroupKey) -> None:
        self.key, self.type, self.label = key, key.type, key.label
        self.by_host = key.label == HOSTNAME
        self.known = 0
        """The set of domains that exist or can be bought."""
        self.filled = 0
        """The set of domains with counted pods."""
        self.counts: list[int] = []
        """The number of counted pods in each domain."""
        self._hosts: dict[int, int] = {}

    def record(self, bits: int) -> None:
        """Count a pod in every domain of a set."""
        self.known |= bits
        self.filled |= bits
        while bits:
            low = bits & -bits
            self.counts[low.bit_length() - 1] += 1
            bits ^= low

    def record_host(self, host: int) -> None:
        """Count a pod on a host."""
        self._hosts[host] = self._hosts.get(host, 0) + 1

    def allows_host(self, host: int, *, self_selecting: bool) -> bool:
        """Return whether the next pod may be on a host; `self_selecting`: the group's selector matches that pod."""
        count = self._hosts.get(host, 0)
        if self.type is TopologyType.SPREAD:
            return count + self_selecting <= self.key.max_skew
        if self.type is TopologyType.POD_ANTI_AFFINITY:
            return count == 0
        return count > 0 or (self_selecting and not self._hosts)

    def get(self, pod: int, node: int, *, self_selecting: bool) -> int:
        """Return the set of domains for the next pod; 0 if no domain is allowed.

        `pod` is the set of domains that the pod's requirements allow, `node` the set that the node can still have.
        """
        if self.type is TopologyType.POD_ANTI_AFFINITY:
            return self.known & ~self.filled & pod & node
        if self.type is TopologyType.POD_AFFINITY:
            matching = self.filled & pod & node
            if matching or not self_selecting or self.filled & pod:
                return matching
            of_node, of_pod = self.known & pod & node, self.known & pod
            return (of_node & -of_node) | (of_pod & -of_pod)
        return self._next_spread_domain(pod, node, self_selecting=self_selecting)

    def _next_spread_domain(self, pod: int, node: int, *, self_selecting: bool) -> int:
        counts, eligible = self.counts, list(_domain_numbers(self.known & pod))
        least = min((counts[domain] for domain in eligible), default=0)
        if len(eligible) < self.key.min_domains:
            least = 0
        best = min(_domain_numbers(self.known & node), key=counts.__getitem__, default=None)
        if best is None or counts[best] + self_selecting - least > self.key.max_skew:
            return 0
        return 1 << best


def _domain_numbers(bits: int) -> Iterable[int]:
    """Yield the numbers of the domains in a set."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
