"""kube-scheduler's recorded answers: every decision, in every part."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tests.support.paths import VECTORS
from tests.support.recorded_cases import read_cases
from tutti.conformance.case_files import Case, read_lines
from tutti.conformance.gang_cases import read_gang_case, run_gang_case
from tutti.conformance.scheduler_cases import answers, differences

FILES = ("kube-scheduler.jsonl.gz", "kube-scheduler-more.jsonl.gz")
HERE = VECTORS
FAMILIES = (
    ("resources", "taints", "node-affinity", "pod-affinity", "spread", "default-spread", "ports", "images", "volumes",
     "preemption", "mixed"),
    ("gates", "nominated", "owners", "spread-policies", "affinity-namespaces", "pod-resources", "volumes-more",
     "sequence", "large", "preempt-execute"),
)  # fmt: skip
DECISIONS = (4096, 6921 - 238)
"""How many decisions the files hold, those on devices left out."""


def cases(file: str, family: str) -> list[Case]:
    return [case for case in read_cases(str(HERE / file)) if case.family == family]


@pytest.mark.parametrize(
    ("file", "family"), [(f, name) for f, names in zip(FILES, FAMILIES, strict=True) for name in names]
)
def test_every_recorded_decision_is_ours(file: str, family: str) -> None:
    found = cases(file, family)
    assert found
    for case in found:
        got = list(answers(case))
        assert len(got) == len(case.expect), case.name
        for expected, answer in zip(case.expect, got, strict=True):
            assert not differences(expected, answer), (case.name, answer["pod"])


@pytest.mark.parametrize(("file", "families", "number"), list(zip(FILES, FAMILIES, DECISIONS, strict=True)))
def test_no_family_is_left_out(file: str, families: tuple[str, ...], number: int) -> None:
    counted = dict.fromkeys(families, 0)
    for case in read_cases(str(HERE / file)):
        if case.family != "dra":
            counted[case.family] += len(case.expect)
    assert sum(counted.values()) == number


def test_a_changed_answer_is_noticed() -> None:
    case = cases(FILES[0], "resources")[0]
    answer = next(answers(case))
    assert differences(case.expect[0], answer) == []
    assert differences(case.expect[0], {**answer, "feasible": []}) == ["feasible"]
    assert differences({**case.expect[0], "placed": "elsewhere"}, answer) == ["placed"]


def test_cases_that_once_differed_and_cases_in_which_features_meet() -> None:
    """Found by `make fuzz-oracle`: ties between victims, filters behind room; and cases of family crossed."""
    number = 0
    for case in read_cases(str(HERE / "found.jsonl.gz")):
        for expected, answer in zip(case.expect, answers(case), strict=True):
            number += 1
            assert not differences(expected, answer), (case.name, answer["pod"])
    assert number > 200


GANGS = HERE / "gang.jsonl.gz"


def gang_cases() -> list[tuple[int, bytes]]:
    return list(read_lines(str(GANGS)))


@pytest.mark.parametrize(("number", "line"), gang_cases(), ids=[str(number) for number, _ in gang_cases()])
def test_every_acceptance_case_of_gangs_comes_out_as_it_must(number: int, line: bytes) -> None:
    case = read_gang_case(GANGS.name, number, line)
    assert not run_gang_case(case), case.name


def test_no_acceptance_case_is_left_out() -> None:
    assert len(gang_cases()) == 70


def test_another_outcome_of_gangs_is_noticed() -> None:
    for number, line in gang_cases():
        case = read_gang_case(GANGS.name, number, line)
        if case.expect.bound:
            pod = next(iter(case.expect.bound))
            elsewhere = replace(case.expect, bound={**case.expect.bound, pod: "elsewhere"})
            nobody = replace(case.expect, pending=(pod,))
            assert set(run_gang_case(replace(case, expect=elsewhere))) == {"bound"}
            assert set(run_gang_case(replace(case, expect=nobody))) == {"pending"}
