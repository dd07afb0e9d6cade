"""The published agreement of the models with the real programs equals a new measurement."""

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
                models = [check.model]
                if check.part == PURCHASE and check.expander:
                    models.append(f"{check.model}/{check.expander}")
                for key in ((each, check.part) for each in models):
                    cases[key] += 1
                    exact[key] += check.exact
                    agree[key] += check.agrees
    return {key: (cases[key], exact[key], agree[key]) for key in cases}


def test_published_numbers_equal_the_measurement(measured: dict[tuple[str, str], tuple[int, int, int]]) -> None:
    assert {(each.model, each.part): each[2:] for each in AGREEMENTS} == measured


def test_agreement_is_high_enough() -> None:
    for model, part, share in (
        ("karpenter", "purchase", 0.95),
        ("cluster-autoscaler", "purchase", 0.95),
        ("cluster-autoscaler", "removable", 0.98),
        ("cluster-autoscaler", "reasons", 0.98),
    ):
        agreement = agreement_of(model, part)
        assert agreement is not None
        assert agreement.share >= share
    assert str(agreement_of("cluster-autoscaler/price")) == "15 of 15"
    assert agreement_of("original-recommender") is None
