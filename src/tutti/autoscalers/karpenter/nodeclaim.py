"""Node claims: nodes to be bought, without an instance type until the end, and the order in which they are tried.

Contract: a claim holds every offering of its template that could still take all of its pods; it only ever shrinks.
Karpenter tries the claim with the fewest pods first. `NodeClaims` keeps equals in an order of its own, which costs next
to nothing to keep. `NodeClaimsAsInGo` sorts before every pod as Karpenter does, with a sort that moves equals about
(`go_sort`): exactly Karpenter's nodes, at several times the cost. Searches use the first, comparisons the second.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from tutti.autoscalers.karpenter.hostportusage import Port, ports_conflict
from tutti.autoscalers.karpenter.nodeclaimtemplate import NodeClaimTemplate
from tutti.autoscalers.karpenter.poddata import PodData
from tutti.autoscalers.shared.go_sort import go_sort
from tutti.cluster.columns import Bools, Ints, Rows


class NodeClaim:
    """A node to be bought."""

    __slots__ = ("bits", "free", "host", "most_free", "number", "pods", "ports", "rows", "template")

    def __init__(self, number: int, *, host: int, template: int, rows: Rows, free: Ints) -> None:
        self.number, self.host, self.template = number, host, template
        self.rows, self.free = rows, free
        self.most_free: list[int] = free.max(axis=1).tolist()
        self.bits: dict[str, int] = {}
        """The values that its labels may have, where that is narrower than the values of its template."""
        self.ports: list[Port] = []
        self.pods: list[int] = []

    def with_room_for(self, data: PodData, template: NodeClaimTemplate) -> Bools | None:
        """Which of its offerings could take one more pod; None if there is none."""
        most_free = self.most_free
        for resource, amount in data.pod_class.requests:
            if amount > most_free[resource]:
                return None
        if data.pod_class.ports and ports_conflict(data.pod_class.ports, self.ports):
            return None
        fits = data.template_mask(self.template, template)[self.rows]
        for resource, amount in data.pod_class.requests:
            fits &= self.free[resource] >= amount
        return fits if fits.any() else None

    def add(self, pod: int, data: PodData, fits: Bools) -> None:
        """Add a pod, which leaves these of its offerings."""
        if fits.all():
            self.free = self.free - data.pod_class.column
        else:
            self.rows, self.free = self.rows[fits], self.free[:, fits] - data.pod_class.column
        self.most_free = self.free.max(axis=1).tolist()
        self.ports += data.pod_class.ports
        self.pods.append(pod)


class NodeClaims:
    """The claims of one pass, in the order in which they are tried; see the module's contract."""

    def __init__(self) -> None:
        self._claims: list[NodeClaim] = []
        self._sizes: list[int] = []

    def __len__(self) -> int:
        return len(self._claims)

    def __iter__(self) -> Iterator[NodeClaim]:
        """The claims in the order in which they are tried."""
        return iter(self._claims)

    def add(self, claim: NodeClaim) -> None:
        """Add a claim with its first pod."""
        place = bisect_right(self._sizes, 1)
        self._claims.insert(place, claim)
        self._sizes.insert(place, 1)

    def grew(self, place: int) -> None:
        """Move a claim that has got one more pod: before all others of its new size."""
        claim, size = self._claims.pop(place), self._sizes.pop(place) + 1
        place = bisect_left(self._sizes, size, lo=place)
        self._claims.insert(place, claim)
        self._sizes.insert(place, size)


class NodeClaimsAsInGo(NodeClaims):
    """See the module's contract."""

    def __iter__(self) -> Iterator[NodeClaim]:
        """The claims in the order in which they are tried; the next order is made from this one."""
        self._claims = go_sort(self._claims, lambda claim: len(claim.pods))
        return iter(self._claims)

    def add(self, claim: NodeClaim) -> None:
        """Add a claim at the end."""
        self._claims.append(claim)

    def grew(self, place: int) -> None:
        """Do nothing: the next sort sees the new size."""
