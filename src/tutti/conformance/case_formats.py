"""Formats of recorded cases: which format is a line, and how is its case run?

Contract: each line of a file is one case, and its fields tell its format; a line of no known format is an `InputError`,
and so is a line that its format cannot read. Lines are independent, so they can run in any order or process. To add a
format, add a `CaseFormat` to `FORMATS`. A family that Tutti does not support yet is counted and not run. Running a case
never raises: an exception becomes a difference. A case has decisions, which are equal or different, or a purchase or
an arrival, which is better or worse than the peer's.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any, NamedTuple

import msgspec

from tutti.conformance.case_files import read_case
from tutti.conformance.gang_cases import read_gang_case, run_gang_case
from tutti.conformance.native_gang_cases import NativeGangOutcome, read_native_gang_case, run_native_gang_case
from tutti.conformance.purchase_run import DEFAULT, PurchaseOutcome, PurchaseSettings, run_purchase
from tutti.conformance.scheduler_cases import answers, differences
from tutti.exceptions import InputError

UNSUPPORTED = frozenset(("dra",))
"""Families of cases that need features that Tutti does not have yet."""


class Difference(NamedTuple):
    """A decision in which Tutti differs from the recorded one."""

    case: str
    place: int
    """The index of the decision in the case."""
    pod: str
    fields: dict[str, tuple[Any, Any]]
    """By field that differs: the recorded value and Tutti's value."""


class CaseOutcome(NamedTuple):
    """The result of one case with decisions."""

    family: str
    decisions: int
    supported: bool = True
    different: tuple[Difference, ...] = ()


AnyOutcome = CaseOutcome | PurchaseOutcome | NativeGangOutcome


class CaseFormat(NamedTuple):
    """A format of recorded cases."""

    name: str
    recognises: Callable[[frozenset[str]], bool]
    """Return whether a line with these fields has this format."""
    run: Callable[[str, int, bytes, PurchaseSettings], AnyOutcome]
    """Run a case, given the file, the line number and the line."""
    purchase: bool = False
    """Whether cases are purchases, which take seconds each."""


def run_line(path: str, number: int, line: bytes, settings: PurchaseSettings = DEFAULT) -> AnyOutcome:
    """Run the case in one line of a file; `settings` apply to purchases."""
    return format_of(path, number, line).run(path, number, line, settings)


def format_of(path: str, number: int, line: bytes) -> CaseFormat:
    """Return the format of one line of a file."""
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
    except Exception as error:  # other cases must run even if one fails
        failed = f"{type(error).__name__}: {error}"
    for place, (expected, answer) in enumerate(zip_longest(case.expect, got)):
        pod = str((expected or answer or {}).get("pod", ""))
        if expected is None or answer is None:
            different.append(Difference(case.name, place, pod, {"answer": (expected, failed or answer)}))
        elif names := differences(expected, answer):
            fields = {name: (expected.get(name), answer.get(name)) for name in names}
            different.append(Difference(case.name, place, pod, fields))
    return CaseOutcome(case.family, len(case.expect), different=tuple(different))


class _Head(msgspec.Struct):
    family: str = "?"
    expect: list[msgspec.Raw] = []


def _run_gangs(path: str, number: int, line: bytes, _: PurchaseSettings) -> CaseOutcome:
    case = read_gang_case(path, number, line)
    name = case.name or f"line {number}"
    try:
        fields = run_gang_case(case)
    except Exception as error:  # other cases must run even if one fails
        fields = {"outcome": (None, f"{type(error).__name__}: {error}")}
    return CaseOutcome(case.behavior, 1, different=(Difference(name, 0, "", fields),) if fields else ())


def _run_native_gangs(path: str, number: int, line: bytes, _: PurchaseSettings) -> NativeGangOutcome:
    return run_native_gang_case(read_native_gang_case(path, number, line))


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
    CaseFormat("native-gangs", lambda fields: {"objects", "arrives", "expect"} <= fields, _run_native_gangs),
    CaseFormat("kube-scheduler", lambda fields: {"nodes", "expect"} <= fields, _run_kube_scheduler),
)
