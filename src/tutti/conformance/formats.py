"""Recorded cases of any format, run one after the other.

Contract: each line of a file is one case, and its shape tells its format; a line that no format knows is an
`InputError`, and so is one that its format cannot read. Lines do not depend on each other, so they can be run in any
order or process. A further format is one more `CaseFormat` in `FORMATS`. A family that Tutti does not support yet is
counted, not run. Running a case never raises: what goes wrong in it is a difference. A case is either about decisions,
which are exact or not, or about a purchase, which is better or worse than the peer's.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from tutti.conformance.case_files import read_case
from tutti.conformance.gang_cases import outcome, read_gang_case
from tutti.conformance.purchase_run import DEFAULT, PurchaseOutcome, PurchaseSettings, run_purchase
from tutti.conformance.scheduler_cases import answers, differences
from tutti.exceptions import InputError

UNSUPPORTED = frozenset(("dra",))
"""Families whose answers need what is not there yet."""


class Difference(NamedTuple):
    """A decision that came out otherwise."""

    case: str
    place: int
    """Which decision of the case, from 0."""
    pod: str
    fields: dict[str, tuple[Any, Any]]
    """What was recorded and what Tutti says, for the fields that differ."""


class CaseOutcome(NamedTuple):
    """How one case went."""

    family: str
    decisions: int
    supported: bool = True
    different: tuple[Difference, ...] = ()


class CaseFormat(NamedTuple):
    """A kind of recorded case: how to know it, and how to run it."""

    name: str
    recognises: Callable[[frozenset[str]], bool]
    """Whether a line with these fields is of this format."""
    run: Callable[[str, int, bytes, PurchaseSettings], CaseOutcome | PurchaseOutcome]
    """Run the case of a file, a line number and the line."""
    purchase: bool = False
    """Whether its cases are purchases, which take seconds each."""


def run_line(
    path: str, number: int, line: bytes, settings: PurchaseSettings = DEFAULT
) -> CaseOutcome | PurchaseOutcome:
    """Run the case in one line of a file; the settings are for purchases."""
    return format_of(path, number, line).run(path, number, line, settings)


def format_of(path: str, number: int, line: bytes) -> CaseFormat:
    """The format of one line of a file."""
    try:
        fields = frozenset(msgspec.json.decode(line, type=dict[str, msgspec.Raw]))
    except msgspec.DecodeError as error:
        raise InputError(f"not a JSON object: {error}", file=path, obj=f"line {number}") from None
    known = next((each for each in FORMATS if each.recognises(fields)), None)
    if known is None:
        names = ", ".join(each.name for each in FORMATS)
        raise InputError(f"not a recorded case of a form known here ({names})", file=path, obj=f"line {number}")
    return known


def _run_kube_scheduler(path: str, number: int, line: bytes, _: PurchaseSettings) -> CaseOutcome:
    head = msgspec.json.decode(line, type=_Head)
    if head.family in UNSUPPORTED:
        return CaseOutcome(head.family, len(head.expect), supported=False)
    case = read_case(path, number, line)
    different = []
    got: list[dict[str, Any]] = []
    failed: str | None = None
    try:
        got.extend(answers(case))
    except Exception as error:  # a fault in one case is to be seen beside the others
        failed = f"{type(error).__name__}: {error}"
    for place, (expected, answer) in enumerate(zip_longest(case.expect, got)):
        pod = str((expected or answer or {}).get("pod", ""))
        if expected is None or answer is None:
            different.append(Difference(case.name, place, pod, {"answer": (expected, failed or answer)}))
        elif names := differences(expected, answer):
            found = {name: (expected.get(name), answer.get(name)) for name in names}
            different.append(Difference(case.name, place, pod, found))
    return CaseOutcome(case.family, len(case.expect), different=tuple(different))


class _Head(msgspec.Struct):
    family: str = "?"
    expect: list[msgspec.Raw] = []


def _run_gangs(path: str, number: int, line: bytes, _: PurchaseSettings) -> CaseOutcome:
    case = read_gang_case(path, number, line)
    name = case.name or f"line {number}"
    try:
        found = outcome(case)
    except Exception as error:  # a fault in one case is to be seen beside the others
        found = {"outcome": (None, f"{type(error).__name__}: {error}")}
    return CaseOutcome(case.behavior, 1, different=(Difference(name, 0, "", found),) if found else ())


def _run_karpenter(path: str, number: int, line: bytes, settings: PurchaseSettings) -> PurchaseOutcome:
    from tutti.conformance.karpenter_cases import read_karpenter_case

    return run_purchase(read_karpenter_case(path, number, line), settings)


def _run_cluster_autoscaler(path: str, number: int, line: bytes, settings: PurchaseSettings) -> PurchaseOutcome:
    from tutti.conformance.cluster_autoscaler_cases import read_cluster_autoscaler_case

    case = read_cluster_autoscaler_case(path, number, line)
    if case is None:
        family = msgspec.json.decode(line, type=_Family).family
        return PurchaseOutcome("cluster-autoscaler", family, supported=False)
    return run_purchase(case, settings)


class _Family(msgspec.Struct):
    family: str = "?"


FORMATS = (
    CaseFormat(
        "karpenter", lambda fields: {"nodePools", "instanceTypes", "pods"} <= fields, _run_karpenter, purchase=True
    ),
    CaseFormat("cluster-autoscaler", lambda fields: "nodeGroups" in fields, _run_cluster_autoscaler, purchase=True),
    CaseFormat("gangs", lambda fields: {"nodes", "pods", "podGroups", "expect"} <= fields, _run_gangs),
    CaseFormat("kube-scheduler", lambda fields: {"nodes", "expect"} <= fields, _run_kube_scheduler),
)
