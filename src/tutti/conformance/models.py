"""Checks of the autoscaler models on recorded lines: how often does a model answer as the real program did?

Contract: `check_line` runs the model of the program that a line was recorded from, and returns one `ModelCheck` for
each part of the answer: for Karpenter the purchase and the pods of each node; for Cluster Autoscaler the estimate for
one group, each option of the first loop, the expander's choice among the recorded options, and the whole purchase; for
a scale-down each of its parts. A check is exact if the model gives the recorded answer. It agrees if the real program
gave the model's answer in some run: both programs make random choices. An exception in a model is a check that does not
agree. A line that was not recorded from an autoscaler, or that cannot be read, is an `InputError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tutti.exceptions import InputError

if TYPE_CHECKING:
    from tutti.conformance.scale_down_cases import ScaleDownCase

KARPENTER, CLUSTER_AUTOSCALER = "karpenter", "cluster-autoscaler"
PURCHASE, FAILED = "purchase", "failed"


class ModelCheck(NamedTuple):
    """The comparison of one part of a model's answer with the real program's answer."""

    model: str
    part: str
    family: str
    case: str
    exact: bool = False
    agrees: bool = False
    expander: str = ""
    """The expander of the recorded run, if the part depends on it."""
    place: str = ""
    """The node group or the number of the loop, if a case has several checks of this part."""
    recorded: Any = None
    """The recorded answer, if the model's answer differs."""
    ours: Any = None
    """The model's answer, if it differs."""


class _Head(msgspec.Struct, rename="camel"):
    name: str = ""
    family: str = "?"
    kind: str = ""
    node_groups: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    node_pools: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    instance_types: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def check_line(path: str, number: int, line: bytes) -> tuple[ModelCheck, ...]:
    """Run the model of the program that a line was recorded from, and return its checks."""
    try:
        head = msgspec.json.decode(line, type=_Head)
    except msgspec.DecodeError as error:
        raise InputError(f"not a JSON object: {error}", file=path, obj=f"line {number}") from None
    model, checks = _checks(path, number, line, head)
    return tuple(_with_failure(checks, ModelCheck(model, FAILED, head.family, head.name or f"line {number}")))


def _checks(path: str, number: int, line: bytes, head: _Head) -> tuple[str, Callable[[], Iterable[ModelCheck]]]:
    """Read a line, and return the name of its model and a function that runs the model."""
    if head.node_groups is not msgspec.UNSET:
        from tutti.conformance.model_scale_up import read_scale_up_checks
        from tutti.conformance.scale_down_cases import read_scale_down

        if head.kind == "scale-down":
            case = read_scale_down(path, number, line)
            return CLUSTER_AUTOSCALER, lambda: _scale_down_checks(case)
        return CLUSTER_AUTOSCALER, read_scale_up_checks(path, number, line).checks
    if msgspec.UNSET not in (head.node_pools, head.instance_types):
        from tutti.conformance.model_karpenter import read_karpenter_checks

        return KARPENTER, read_karpenter_checks(path, number, line).checks
    raise InputError("there is no model of the program that this line is of", file=path, obj=f"line {number}")


def _with_failure(checks: Callable[[], Iterable[ModelCheck]], failed: ModelCheck) -> Iterator[ModelCheck]:
    try:
        yield from checks()
    except Exception as error:  # other cases must run even if one fails
        yield failed._replace(ours=f"{type(error).__name__}: {error}")


def _scale_down_checks(case: ScaleDownCase) -> Iterator[ModelCheck]:
    from tutti.conformance.scale_down_parts import compare_scale_down

    for part, compared in compare_scale_down(case, case.run()).items():
        yield ModelCheck(
            CLUSTER_AUTOSCALER,
            part,
            case.family,
            case.name,
            exact=compared.exact,
            agrees=compared.agrees,
            recorded=compared.recorded,
            ours=compared.ours,
        )
