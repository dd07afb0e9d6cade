"""Policies from files: fields in camelCase, durations, and errors that name the field."""

from __future__ import annotations

import pytest

from tutti.engine.session.policy import Patience, Policy
from tutti.exceptions import InputError
from tutti.kube.reading.sources import Source
from tutti.wire.session_policy import policy_of


def read(text: str, name: str = "policy.yaml") -> Policy:
    return policy_of(Source(name, text.encode()))


def test_fields_of_a_policy() -> None:
    assert read("preemption: false\nbudget: 5\npatience: {starvingAfter: 90s, retryAfter: 7}") == Policy(
        preemption=False, budget=5, patience=Patience(starving_after=90_000_000, retry_after=7)
    )
    assert read('{"victims": "vanish", "patience": null}', "p.json") == Policy(victims="vanish", patience=None)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- a", "expected a mapping, got list"),
        ("premption: true", "premption: a policy has no such field (want one of preemption, "),
        ("starving_after: 1s", "starving_after: a policy has no such field"),
        ("preemption: 'yes'", "preemption: expected bool, got str"),
        ("victims: flee", "victims: invalid enum value 'flee'"),
        ("patience: 5", "patience: expected a mapping, got int"),
        ("patience: {hurry: 1}", "patience.hurry: a policy has no such field (want one of firstBackoff, "),
        ("patience: {firstBackoff: soon}", 'patience.firstBackoff: "soon" is not a duration'),
        ("patience: {firstBackoff: 1.5}", "patience.firstBackoff: expected int, got float"),
        ("passes: 1\npasses: 2", '"passes" is there twice in one mapping (line 2)'),
    ],
)
def test_errors_name_file_and_field(text: str, line: str) -> None:
    with pytest.raises(InputError) as caught:
        read(text)
    assert str(caught.value).startswith(f"policy.yaml: {line}")
