"""In which order Karpenter tries its claims: the one with the fewest pods first, and what comes of equals.

Contract: `Claims` keeps equals in an order of its own that costs next to nothing to keep. `ClaimsAsInGo` sorts before
every pod as Karpenter does, with a sort that moves equals about (`go_sort`): the same nodes to the pod, at several
times the cost. Searches start from the first, comparisons use the second.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from tutti.autoscalers.karpenter.nodeclaim import Claim
from tutti.autoscalers.shared.go_sort import go_sort


class Claims:
    """See the module's contract."""

    def __init__(self) -> None:
        self._claims: list[Claim] = []
        self._sizes: list[int] = []

    def __len__(self) -> int:
        return len(self._claims)

    def __iter__(self) -> Iterator[Claim]:
        """In the order in which they are tried."""
        return iter(self._claims)

    def add(self, claim: Claim) -> None:
        """Add a claim with its first pod."""
        behind = bisect_right(self._sizes, 1)
        self._claims.insert(behind, claim)
        self._sizes.insert(behind, 1)

    def grew(self, place: int) -> None:
        """Put a claim that has got one more pod where it belongs: before all others of its new size."""
        claim, size = self._claims.pop(place), self._sizes.pop(place) + 1
        place = bisect_left(self._sizes, size, lo=place)
        self._claims.insert(place, claim)
        self._sizes.insert(place, size)


class ClaimsAsInGo(Claims):
    """See the module's contract."""

    def __iter__(self) -> Iterator[Claim]:
        """In the order in which they are tried, which is the one from which the next is made."""
        self._claims = go_sort(self._claims, lambda one, other: len(one.pods) < len(other.pods))
        return iter(self._claims)

    def add(self, claim: Claim) -> None:
        """Add a claim at the end."""
        self._claims.append(claim)

    def grew(self, place: int) -> None:
        """Nothing: the next sort will see."""
