"""Node claims: nodes to be bought whose offering is chosen at the end, and the order in which claims are tried.

Contract: a claim holds every offering of its template that can still take all pods of the claim; offerings are only
removed. Karpenter tries the claim with the fewest pods first. `NodeClaims` keeps claims sorted at almost no cost, with
its own order among claims with equally many pods. `NodeClaimsAsInGo` sorts before every pod with Go's unstable sort
(`go_sort`) as Karpenter does: the same nodes as Karpenter, at several times the cost. Searches use `NodeClaims`,
comparisons with recorded purchases use `NodeClaimsAsInGo`.
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
        """By label: the set of values that the node may have, where pods have narrowed the values of the template."""
        self.ports: list[Port] = []
        self.pods: list[int] = []

    def with_room_for(self, data: PodData, template: NodeClaimTemplate) -> Bools | None:
        """Return a mask of the claim's offerings that can take one more pod; None if no offering can."""
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
        """Add a pod, and keep only the offerings of the mask `fits`."""
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
        """Iterate over the claims in the order in which they are tried."""
        return iter(self._claims)

    def add(self, claim: NodeClaim) -> None:
        """Add a claim with its first pod."""
        index = bisect_right(self._sizes, 1)
        self._claims.insert(index, claim)
        self._sizes.insert(index, 1)

    def move_grown(self, index: int) -> None:
        """Move a claim that has one more pod now before all other claims of its new size."""
        claim, size = self._claims.pop(index), self._sizes.pop(index) + 1
        index = bisect_left(self._sizes, size, lo=index)
        self._claims.insert(index, claim)
        self._sizes.insert(index, size)


class NodeClaimsAsInGo(NodeClaims):
    """The claims in the order of Go's sort; see the module's contract."""

    def __iter__(self) -> Iterator[NodeClaim]:
        """Sort the claims, starting from their last order, and iterate over them."""
        self._claims = go_sort(self._claims, lambda claim: len(claim.pods))
        return iter(self._claims)

    def add(self, claim: NodeClaim) -> None:
        """Add a claim at the end."""
        self._claims.append(claim)

    def move_grown(self, index: int) -> None:
        """Do nothing: the next sort uses the new size."""
