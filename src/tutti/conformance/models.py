"""The models of other autoscalers on recorded lines: how often does a model do what the real program did?

Contract: `check_line` runs the model of the program that a line is of and gives one `ModelCheck` for each thing that
can be compared, apart: what Karpenter bought, and which pods share a node; of Cluster Autoscaler the estimate for one
group, each option of the first loop, the expander's choice given the recorded options, the whole purchase, and of a
scale-down each part. A check is exact if the model gives the recorded answer; it agrees if it gives one that the real
program gave in some run, for both draw lots or shuffle. What a model raises is a check that disagrees. A line that is
of no autoscaler, or that cannot be read, is an `InputError`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from tutti.exceptions import InputError

if TYPE_CHECKING:
    from tutti.conformance.scale_down_cases import RemovalCase

KARPENTER, CLUSTER_AUTOSCALER = "karpenter", "cluster-autoscaler"
PURCHASE, FAILED = "purchase", "failed"


class ModelCheck(NamedTuple):
    """One thing that a model said, beside what the real program said."""

    model: str
    what: str
    family: str
    case: str
    exact: bool = False
    agrees: bool = False
    expander: str = ""
    """Which expander chose, if that mattered."""
    place: str = ""
    """Which one of its kind in the case: a group, or the number of a loop."""
    recorded: Any = None
    """What was recorded, if the model says otherwise."""
    ours: Any = None


class _Head(msgspec.Struct, rename="camel"):
    name: str = ""
    family: str = "?"
    kind: str = ""
    node_groups: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    node_pools: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    instance_types: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def check_line(path: str, number: int, line: bytes) -> tuple[ModelCheck, ...]:
    """Run the model of the program that a line is of."""
    try:
        head = msgspec.json.decode(line, type=_Head)
    except msgspec.DecodeError as error:
        raise InputError(f"not a JSON object: {error}", file=path, obj=f"line {number}") from None
    model, checks = _checks(path, number, line, head)
    return tuple(_safely(checks, ModelCheck(model, FAILED, head.family, head.name or f"line {number}")))


def _checks(path: str, number: int, line: bytes, head: _Head) -> tuple[str, Callable[[], Iterable[ModelCheck]]]:
    """The model of a line, and what runs it once the line has been read."""
    if head.node_groups is not msgspec.UNSET:
        from tutti.conformance.model_scale_up import read_scale_up
        from tutti.conformance.scale_down_cases import read_removal

        if head.kind == "scale-down":
            case = read_removal(path, number, line)
            return CLUSTER_AUTOSCALER, lambda: _removal(case)
        return CLUSTER_AUTOSCALER, read_scale_up(path, number, line).checks
    if msgspec.UNSET not in (head.node_pools, head.instance_types):
        from tutti.conformance.model_karpenter import read_bought

        return KARPENTER, read_bought(path, number, line).checks
    raise InputError("there is no model of the program that this line is of", file=path, obj=f"line {number}")


def _safely(checks: Callable[[], Iterable[ModelCheck]], failed: ModelCheck) -> Iterator[ModelCheck]:
    try:
        yield from checks()
    except Exception as error:  # a fault in one case is to be seen beside the others
        yield failed._replace(ours=f"{type(error).__name__}: {error}")


def _removal(case: RemovalCase) -> Iterator[ModelCheck]:
    from tutti.conformance.scale_down_parts import removal_parts

    for what, part in removal_parts(case, case.run()).items():
        yield ModelCheck(
            CLUSTER_AUTOSCALER,
            what,
            case.family,
            case.name,
            exact=part.exact,
            agrees=part.agrees,
            recorded=part.recorded,
            ours=part.ours,
        )
