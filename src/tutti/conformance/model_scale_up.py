"""Cluster Autoscaler's recorded scale-ups and estimates beside those of its model.

Contract: one line is one `ScaleUpChecks`. Each option of the first loop is a check: nodes and pods as recorded, or
within what repeated runs gave. The expander is given the recorded options, so that its choice is a check apart from how
they came about. The purchase is the whole course, group by group and loop by loop: the recorded one, or one of its
`ties`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from tutti.autoscalers.cluster_autoscaler.binpacking_estimator import BinpackingEstimator, Option
from tutti.autoscalers.cluster_autoscaler.expander import ExpanderInput, Pricing, best
from tutti.autoscalers.cluster_autoscaler.orchestrator import ScaleUpLoop, ScaleUpOptions, ScaleUpOrchestrator
from tutti.autoscalers.shared.autoscaler_cluster import AutoscalerCluster
from tutti.autoscalers.shared.cluster_snapshot import snapshot_of
from tutti.autoscalers.shared.limit_counter import LimitCounter
from tutti.conformance.cluster_autoscaler_cases import read_cluster_autoscaler_case
from tutti.conformance.models import CLUSTER_AUTOSCALER, PURCHASE, ModelCheck
from tutti.conformance.purchase_cases import PurchaseCase
from tutti.exceptions import InputError
from tutti.recommend.request_cluster import copy_cluster

ESTIMATE, OPTIONS, CHOICE = "estimate", "options", "choice"
_DIGITS = 4
"""How many digits number the pods of a shape."""


class _Camel(msgspec.Struct, frozen=True, rename="camel"):
    pass


class _Estimate(_Camel, frozen=True):
    nodes: int
    by_shape: dict[str, int] = {}


class _Option(_Camel, frozen=True):
    nodes: int
    pods: dict[str, int] = {}
    nodes_seen: tuple[int, ...] = ()
    pods_seen: tuple[int, ...] = ()


class _Tie(_Camel, frozen=True):
    loops: tuple[dict[str, int], ...] = ()
    nodes: int = 0
    by_shape: dict[str, int] = {}


class _Expect(_Camel, frozen=True):
    loops: tuple[dict[str, int], ...] = ()
    ties: tuple[_Tie, ...] = ()
    options: tuple[dict[str, _Option], ...] = ()
    best: tuple[tuple[str, ...], ...] = ()
    estimate: _Estimate | None = None


class _Name(_Camel, frozen=True):
    generate_name: str = ""


class _Pod(_Camel, frozen=True):
    metadata: _Name = _Name()


class _Pods(_Camel, frozen=True):
    pod: _Pod


class _Options(_Camel, frozen=True):
    balance_similar_node_groups: bool = False


class _Line(_Camel, frozen=True):
    expect: _Expect
    nodes: tuple[msgspec.Raw, ...] = ()
    pods: tuple[_Pods, ...] = ()
    expander: str = "most-pods"
    options: _Options = _Options()
    pricing: dict[str, Any] = {}


class ScaleUpChecks(NamedTuple):
    """One recorded scale-up, or the estimate of one group alone."""

    case: PurchaseCase
    line: _Line

    def scale_up(self) -> ScaleUpOrchestrator:
        """The model, ready to run."""
        options = ScaleUpOptions(
            expander=self.line.expander or "most-pods",
            balance=self.line.options.balance_similar_node_groups,
            pricing=self.pricing,
        )
        return ScaleUpOrchestrator(self._view(), self.case.request.catalogue, options)

    def _view(self) -> AutoscalerCluster:
        request = self.case.request
        return AutoscalerCluster(copy_cluster(request.cluster), request.catalogue, request.daemon_sets)

    @property
    def pricing(self) -> Pricing:
        """What a pod is worth to the price expander."""
        return msgspec.convert(self.line.pricing, Pricing)

    def checks(self) -> Iterator[ModelCheck]:
        """Run the model, and compare."""
        if self.line.expect.estimate is not None:
            yield self._estimate(self.line.expect.estimate)
            return
        run = self.scale_up()
        loops = list(run.loops())
        yield from self._options(run, loops)
        yield from self._choices(run)
        course = tuple(self._by_pool(run, loop.deltas) for loop in loops if loop.deltas)
        others = (tie.loops for tie in self.line.expect.ties)
        yield self._check(PURCHASE, self.line.expect.loops, course, agrees=course in others)

    def _estimate(self, recorded: _Estimate) -> ModelCheck:
        """What the group is estimated at, with nobody bound before."""
        view, request = self._view(), self.case.request
        waiting = {number: list(shape.pods) for number, shape in enumerate(view.pod_groups)}
        estimator, limits = (
            BinpackingEstimator(view, snapshot_of(view), None),
            LimitCounter(request.catalogue, view.offerings),
        )
        helped = estimator.schedulable(0, waiting)
        option = estimator.estimate(0, helped, waiting, most=limits.nodes_left(0))
        ours = _Estimate(option.nodes, {self._shape(view, shape): count for shape, count in option.pods.items()})
        others = (_Estimate(tie.nodes, tie.by_shape) for tie in self.line.expect.ties)
        return self._check(ESTIMATE, recorded, ours, agrees=ours in others)

    def _options(self, run: ScaleUpOrchestrator, loops: Sequence[ScaleUpLoop]) -> Iterator[ModelCheck]:
        """What each group would be bought for in the first loop."""
        if not loops or not self.line.expect.options:
            return
        mine = {run.view.offerings[option.offering].pool: option for option in loops[0].options}
        theirs = self.line.expect.options[0]
        for group in sorted({*mine, *theirs}):
            recorded, option = theirs.get(group), mine.get(group)
            ours = None if option is None else (option.nodes, sum(option.pods.values()))
            told = None if recorded is None else (recorded.nodes, sum(recorded.pods.values()))
            agrees = recorded is not None and ours is not None and _is_seen(recorded, *ours)
            yield self._check(OPTIONS, told, ours, agrees=agrees)._replace(place=group)

    def _choices(self, run: ScaleUpOrchestrator) -> Iterator[ModelCheck]:
        """Whom the expander holds best, given the recorded options."""
        numbers = {offering.pool: number for number, offering in enumerate(run.view.offerings)}
        shapes = {self._shape(run.view, number): number for number in range(len(run.view.pod_groups))}
        there = len(self.line.nodes)
        for place, (options, recorded) in enumerate(zip(self.line.expect.options, self.line.expect.best, strict=False)):
            weighed = [
                Option(numbers[group], option.nodes, {shapes[shape]: n for shape, n in option.pods.items()})
                for group, option in sorted(options.items(), key=lambda item: numbers[item[0]])
            ]
            given = ExpanderInput(
                offerings=run.view.offerings, pod_groups=run.view.pod_groups, nodes=there, pricing=self.pricing
            )
            found = best(self.line.expander, given, weighed)
            ours = tuple(run.view.offerings[option.offering].pool for option in found)
            yield self._check(CHOICE, recorded, ours)._replace(place=f"loop {place}")
            there += sum(sum(loop.values()) for loop in self.line.expect.loops[place : place + 1])

    def _check(self, what: str, recorded: object, ours: object, *, agrees: bool = False) -> ModelCheck:
        case, exact = self.case, recorded == ours
        expander = "" if what == ESTIMATE else self.line.expander
        found = ModelCheck(
            CLUSTER_AUTOSCALER, what, case.family, case.name, exact=exact, agrees=exact or agrees, expander=expander
        )
        return found if exact else found._replace(recorded=recorded, ours=ours)

    def _by_pool(self, run: ScaleUpOrchestrator, deltas: Mapping[int, int]) -> dict[str, int]:
        return {run.view.offerings[number].pool: count for number, count in deltas.items()}

    def _shape(self, view: AutoscalerCluster, number: int) -> str:
        """The recorded number of a shape of ours."""
        name = view.pod_groups[number].pods[0].split("/")[1][:-_DIGITS]
        return str([each.pod.metadata.generate_name for each in self.line.pods].index(name))


def _is_seen(recorded: _Option, nodes: int, pods: int) -> bool:
    """Whether an option is within what repeated runs gave."""
    numbers = (recorded.nodes, *recorded.nodes_seen)
    placed = (sum(recorded.pods.values()), *recorded.pods_seen)
    return min(numbers) <= nodes <= max(numbers) and min(placed) <= pods <= max(placed)


def read_scale_up(path: str, number: int, line: bytes) -> ScaleUpChecks:
    """Read one line of a file that is not about a scale-down."""
    case = read_cluster_autoscaler_case(path, number, line)
    if case is None:
        raise InputError("a scale-down is no scale-up", file=path, obj=f"line {number}")
    try:
        return ScaleUpChecks(case, msgspec.json.decode(line, type=_Line))
    except msgspec.DecodeError as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from None
