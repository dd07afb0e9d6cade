"""A topology group: how many pods of a selector are in each domain of a node label.

Contract: a group counts the pods that it selects in each domain that is decided; it says in which domains the next pod
may be. Hosts are counted by number (existing nodes first, then claims); values of every other label are bits
(`topologydomaingroup`). A spread names the one domain with the fewest pods, the first by name among equals; a spread
over hosts takes the smallest count as 0, because a new node can always be had. While no pod meets a pod affinity, its
own pods may begin anywhere; there, too, the model takes the first name where Karpenter takes any.
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
    """What a group asks of its pods."""

    SPREAD = "topology spread"
    POD_AFFINITY = "pod affinity"
    POD_ANTI_AFFINITY = "pod anti-affinity"


class TopologyGroupKey(NamedTuple):
    """What tells one group from another; the original hashes it."""

    type: TopologyType
    label: str
    scope: Scope
    selector: Selector
    max_skew: int = 0
    min_domains: int = 1
    node_filter: TopologyNodeFilter = TopologyNodeFilter()


def key_of_term(kind: TopologyType, term: PodTerm) -> TopologyGroupKey:
    """The key of the group of an affinity or anti-affinity term."""
    return TopologyGroupKey(kind, term.topology_key, term.scope, term.selector)


class TopologyGroup:
    """See the module's contract."""

    def __init__(self, key: TopologyGroupKey) -> None:
        self.key, self.type, self.label = key, key.type, key.label
        self.by_host = key.label == HOSTNAME
        self.known = 0
        """The set of domains that exist or could be bought."""
        self.filled = 0
        """The set of domains with pods."""
        self.counts: list[int] = []
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
        """Whether the next pod may be on a host; `self_selecting` says whether the group counts that pod."""
        count = self._hosts.get(host, 0)
        if self.type is TopologyType.SPREAD:
            return count + self_selecting <= self.key.max_skew
        if self.type is TopologyType.POD_ANTI_AFFINITY:
            return count == 0
        return count > 0 or (self_selecting and not self._hosts)

    def get(self, pod: int, node: int, *, self_selecting: bool) -> int:
        """The domains for the next pod, of those that the pod and the node allow; 0 if there is none."""
        if self.type is TopologyType.POD_ANTI_AFFINITY:
            return self.known & ~self.filled & pod & node
        if self.type is TopologyType.POD_AFFINITY:
            met = self.filled & pod & node
            if met or not self_selecting or self.filled & pod:
                return met
            begin, anywhere = self.known & pod & node, self.known & pod
            return (begin & -begin) | (anywhere & -anywhere)
        return self._next_spread_domain(pod, node, self_selecting=self_selecting)

    def _next_spread_domain(self, pod: int, node: int, *, self_selecting: bool) -> int:
        counts, places = self.counts, list(_places(self.known & pod))
        least = min((counts[place] for place in places), default=0)
        if len(places) < self.key.min_domains:
            least = 0
        best = min(_places(self.known & node), key=counts.__getitem__, default=None)
        if best is None or counts[best] + self_selecting - least > self.key.max_skew:
            return 0
        return 1 << best


def _places(bits: int) -> Iterable[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
