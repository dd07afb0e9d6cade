"""Checks of Karpenter's model against recorded purchases.

Contract: one line is one `KarpenterChecks`. The purchase is compared by nodes, cost and pods left after the first pass;
it agrees if each number is within the range of all recorded runs. Where all runs made the same claims (possibly in
other zones), claims are compared by pool, instance type and the number of pods of each kind. Where later passes bought
more nodes, the purchase after all passes is compared as well.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import NamedTuple

import msgspec

from tutti.autoscalers.karpenter.provisioner import KarpenterOptions, karpenter
from tutti.autoscalers.shared.purchase import Purchase
from tutti.conformance.karpenter_cases import KarpenterCase, SettledPurchase, read_karpenter
from tutti.conformance.models import KARPENTER, PURCHASE, ModelCheck
from tutti.conformance.purchase_cases import ROUNDING
from tutti.exceptions import InputError
from tutti.market.money import nano_dollars

CLAIMS, SETTLED = "claims", "settled"
_COMPARABLE = ("all", "zones")


class _Camel(msgspec.Struct, frozen=True, rename="camel"):
    pass


class _Claim(_Camel, frozen=True):
    count: int
    node_pool: str
    instance_type: str
    pods: dict[str, int] = {}


class _Expect(_Camel, frozen=True):
    nodes: int
    nodes_min: int
    nodes_max: int
    cost_per_hour: float
    cost_per_hour_min: float
    cost_per_hour_max: float
    same: str = "none"
    claims: tuple[_Claim, ...] = ()
    unscheduled: dict[str, int] = {}
    settled: SettledPurchase | None = None


class _Name(_Camel, frozen=True):
    generate_name: str = ""


class _Pod(_Camel, frozen=True):
    metadata: _Name = _Name()


class _Pods(_Camel, frozen=True):
    count: int
    pod: _Pod


class _Line(_Camel, frozen=True):
    expect: _Expect
    pods: tuple[_Pods, ...] = ()


class PurchaseTotals(NamedTuple):
    """The number of nodes, the cost and the number of pods left of a purchase."""

    nodes: int
    cost: int
    """In nano-dollars an hour."""
    left: int

    def is_like(self, other: PurchaseTotals) -> bool:
        """Return whether two totals are equal, except for the rounding of costs."""
        return (self.nodes, self.left) == (other.nodes, other.left) and abs(self.cost - other.cost) <= ROUNDING


class KarpenterChecks(NamedTuple):
    """One recorded purchase."""

    karpenter: KarpenterCase
    line: _Line

    def first_pass(self) -> Purchase:
        """Return what the model buys in one pass."""
        return self._run(KarpenterOptions(order=self.karpenter.order, passes=1, as_in_go=True))

    def _run(self, options: KarpenterOptions) -> Purchase:
        request = self.karpenter.case.request
        return karpenter(request.cluster, request.catalogue, request.daemon_sets, options=options)

    def checks(self) -> Iterator[ModelCheck]:
        """Run the model, and compare its purchase with the recorded one."""
        expect, bought = self.line.expect, self.first_pass()
        left = sum(expect.unscheduled.values())
        recorded, ours = PurchaseTotals(expect.nodes, nano_dollars(expect.cost_per_hour), left), totals(bought)
        yield self._check(PURCHASE, recorded, ours, agrees=self.is_within(ours))
        if expect.same in _COMPARABLE:
            theirs, mine = self._claims(), self._nodes(bought)
            yield self._check(CLAIMS, sorted((theirs - mine).items()), sorted((mine - theirs).items()))
        if expect.settled is not None:
            last = expect.settled
            after_all = PurchaseTotals(last.nodes, nano_dollars(last.cost_per_hour), sum(last.unscheduled.values()))
            options = KarpenterOptions(order=self.karpenter.order, as_in_go=True)
            yield self._check(SETTLED, after_all, totals(self._run(options)))

    def is_within(self, ours: PurchaseTotals) -> bool:
        """Return whether a purchase is within the range of all recorded runs."""
        expect = self.line.expect
        low, high = nano_dollars(expect.cost_per_hour_min), nano_dollars(expect.cost_per_hour_max)
        return (
            expect.nodes_min <= ours.nodes <= expect.nodes_max
            and low - ROUNDING <= ours.cost <= high + ROUNDING
            and ours.left == sum(expect.unscheduled.values())
        )

    def _check(self, part: str, recorded: object, ours: object, *, agrees: bool = False) -> ModelCheck:
        case = self.karpenter.case
        exact = (
            ours.is_like(recorded)
            if isinstance(recorded, PurchaseTotals) and isinstance(ours, PurchaseTotals)
            else recorded == ours
        )
        check = ModelCheck(KARPENTER, part, case.family, case.name, exact=exact, agrees=exact or agrees)
        return check if exact else check._replace(recorded=recorded, ours=ours)

    def _claims(self) -> Counter[tuple[str, str, tuple[tuple[int, int], ...]]]:
        """Count the recorded claims by pool, instance type and pods, which are counted by entry of the line."""
        claims: Counter[tuple[str, str, tuple[tuple[int, int], ...]]] = Counter()
        for claim in self.line.expect.claims:
            pods = tuple(sorted((int(entry), number) for entry, number in claim.pods.items()))
            claims[claim.node_pool, claim.instance_type, pods] += claim.count
        return claims

    def _nodes(self, bought: Purchase) -> Counter[tuple[str, str, tuple[tuple[int, int], ...]]]:
        """Count the bought nodes by pool, instance type and pods, which are counted by entry of the line."""
        numbers = count()
        entry_of = {
            f"default/{each.pod.metadata.generate_name}{next(numbers):05}": entry
            for entry, each in enumerate(self.line.pods)
            for _ in range(each.count)
        }
        return Counter(
            (offering.pool, offering.instance_type, tuple(sorted(Counter(entry_of[pod] for pod in pods).items())))
            for offering, pods in bought.nodes
        )


def totals(bought: Purchase) -> PurchaseTotals:
    """Return the totals of a purchase."""
    return PurchaseTotals(len(bought.nodes), bought.cost, len(bought.left))


def read_karpenter_checks(path: str, number: int, line: bytes) -> KarpenterChecks:
    """Decode one line of a file."""
    case = read_karpenter(path, number, line)
    try:
        return KarpenterChecks(case, msgspec.json.decode(line, type=_Line))
    except msgspec.DecodeError as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from None
