"""Checks of Cluster Autoscaler's model against recorded scale-ups and estimates.

Contract: one line is one `ScaleUpChecks`. Each option of the first loop is a check: its nodes and pods must be as
recorded, or within the range of repeated runs. The expander gets the recorded options, so that its choice is checked
independently of the estimator. The purchase is the nodes of every group in every loop: it must be the recorded one, or
one of the `ties`.
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
"""The number of digits at the end of a pod's name."""


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
        """Return the model, ready to run."""
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
        """The value of requested resources for the price expander."""
        return msgspec.convert(self.line.pricing, Pricing)

    def checks(self) -> Iterator[ModelCheck]:
        """Run the model, and compare its scale-up with the recorded one."""
        if self.line.expect.estimate is not None:
            yield self._estimate(self.line.expect.estimate)
            return
        run = self.scale_up()
        loops = list(run.loops())
        yield from self._options(run, loops)
        yield from self._choices(run)
        purchase = tuple(self._by_pool(run, loop.deltas) for loop in loops if loop.deltas)
        ties = (tie.loops for tie in self.line.expect.ties)
        yield self._check(PURCHASE, self.line.expect.loops, purchase, agrees=purchase in ties)

    def _estimate(self, recorded: _Estimate) -> ModelCheck:
        """Compare the estimate for the only group, before any pod is bound."""
        view, request = self._view(), self.case.request
        pending = {number: list(pod_group.pods) for number, pod_group in enumerate(view.pod_groups)}
        estimator, limits = (
            BinpackingEstimator(view, snapshot_of(view), None),
            LimitCounter(request.catalogue, view.offerings),
        )
        schedulable = estimator.schedulable(0, pending)
        option = estimator.estimate(0, schedulable, pending, max_nodes=limits.max_nodes_of_all(0))
        ours = _Estimate(option.nodes, {self._entry(view, group): count for group, count in option.pods.items()})
        ties = (_Estimate(tie.nodes, tie.by_shape) for tie in self.line.expect.ties)
        return self._check(ESTIMATE, recorded, ours, agrees=ours in ties)

    def _options(self, run: ScaleUpOrchestrator, loops: Sequence[ScaleUpLoop]) -> Iterator[ModelCheck]:
        """Compare the nodes and pods of each group's option in the first loop."""
        if not loops or not self.line.expect.options:
            return
        our_options = {run.view.offerings[option.offering].pool: option for option in loops[0].options}
        recorded_options = self.line.expect.options[0]
        for group in sorted({*our_options, *recorded_options}):
            recorded, option = recorded_options.get(group), our_options.get(group)
            ours = None if option is None else (option.nodes, sum(option.pods.values()))
            theirs = None if recorded is None else (recorded.nodes, sum(recorded.pods.values()))
            agrees = recorded is not None and ours is not None and _is_within_runs(recorded, *ours)
            yield self._check(OPTIONS, theirs, ours, agrees=agrees)._replace(place=group)

    def _choices(self, run: ScaleUpOrchestrator) -> Iterator[ModelCheck]:
        """Compare the groups that the expander chooses from the recorded options of each loop."""
        numbers = {offering.pool: number for number, offering in enumerate(run.view.offerings)}
        pod_groups = {self._entry(run.view, number): number for number in range(len(run.view.pod_groups))}
        nodes = len(self.line.nodes)
        for place, (recorded_options, recorded) in enumerate(
            zip(self.line.expect.options, self.line.expect.best, strict=False)
        ):
            options = [
                Option(numbers[group], option.nodes, {pod_groups[entry]: n for entry, n in option.pods.items()})
                for group, option in sorted(recorded_options.items(), key=lambda item: numbers[item[0]])
            ]
            given = ExpanderInput(
                offerings=run.view.offerings, pod_groups=run.view.pod_groups, nodes=nodes, pricing=self.pricing
            )
            chosen = best(self.line.expander, given, options)
            ours = tuple(run.view.offerings[option.offering].pool for option in chosen)
            yield self._check(CHOICE, recorded, ours)._replace(place=f"loop {place}")
            nodes += sum(sum(loop.values()) for loop in self.line.expect.loops[place : place + 1])

    def _check(self, part: str, recorded: object, ours: object, *, agrees: bool = False) -> ModelCheck:
        case, exact = self.case, recorded == ours
        expander = "" if part == ESTIMATE else self.line.expander
        check = ModelCheck(
            CLUSTER_AUTOSCALER, part, case.family, case.name, exact=exact, agrees=exact or agrees, expander=expander
        )
        return check if exact else check._replace(recorded=recorded, ours=ours)

    def _by_pool(self, run: ScaleUpOrchestrator, deltas: Mapping[int, int]) -> dict[str, int]:
        return {run.view.offerings[number].pool: count for number, count in deltas.items()}

    def _entry(self, view: AutoscalerCluster, number: int) -> str:
        """Return the index of a pod group's entry in the line, as text."""
        name = view.pod_groups[number].pods[0].split("/")[1][:-_DIGITS]
        return str([each.pod.metadata.generate_name for each in self.line.pods].index(name))


def _is_within_runs(recorded: _Option, nodes: int, pods: int) -> bool:
    """Return whether the numbers of an option are within the range of repeated runs."""
    numbers = (recorded.nodes, *recorded.nodes_seen)
    placed = (sum(recorded.pods.values()), *recorded.pods_seen)
    return min(numbers) <= nodes <= max(numbers) and min(placed) <= pods <= max(placed)


def read_scale_up_checks(path: str, number: int, line: bytes) -> ScaleUpChecks:
    """Decode one line of a file; a scale-down is an `InputError`."""
    case = read_cluster_autoscaler_case(path, number, line)
    if case is None:
        raise InputError("a scale-down is no scale-up", file=path, obj=f"line {number}")
    try:
        return ScaleUpChecks(case, msgspec.json.decode(line, type=_Line))
    except msgspec.DecodeError as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from None
