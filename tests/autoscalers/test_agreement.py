"""What is said about how often models agree is measured again."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.support.paths import VECTORS
from tutti.autoscalers.shared.agreement import AGREEMENTS, agreement_of
from tutti.conformance.case_files import read_lines
from tutti.conformance.models import PURCHASE, check_line

RECORDED = VECTORS / "purchases"


@pytest.fixture(scope="module")
def measured() -> dict[tuple[str, str], tuple[int, int, int]]:
    cases: Counter[tuple[str, str]] = Counter()
    exact: Counter[tuple[str, str]] = Counter()
    agree: Counter[tuple[str, str]] = Counter()
    for path in sorted(RECORDED.glob("*.jsonl.gz")):
        for number, line in read_lines(str(path)):
            for check in check_line(str(path), number, line):
                who = [check.model]
                if check.what == PURCHASE and check.expander:
                    who.append(f"{check.model}/{check.expander}")
                for key in ((each, check.what) for each in who):
                    cases[key] += 1
                    exact[key] += check.exact
                    agree[key] += check.agrees
    return {key: (cases[key], exact[key], agree[key]) for key in cases}


def test_every_number_is_true(measured: dict[tuple[str, str], tuple[int, int, int]]) -> None:
    assert {(each.who, each.what): each[2:] for each in AGREEMENTS} == measured


def test_the_bars() -> None:
    for who, what, share in (
        ("karpenter", "purchase", 0.95),
        ("cluster-autoscaler", "purchase", 0.95),
        ("cluster-autoscaler", "removable", 0.98),
        ("cluster-autoscaler", "reasons", 0.98),
    ):
        found = agreement_of(who, what)
        assert found is not None
        assert found.share >= share
    assert str(agreement_of("cluster-autoscaler/price")) == "15 of 15"
    assert agreement_of("original-recommender") is None
