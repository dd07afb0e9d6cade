"""Times as kubectl writes them."""

from __future__ import annotations

import pytest

from tutti.present.inspection.ages import age, human_duration, until


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-5, "0s"), (0.9, "0s"), (119, "119s"), (120, "2m"), (150, "2m30s"), (600, "10m"), (7260, "121m"),
        (3 * 3600, "3h"), (5 * 3600 + 1800, "5h30m"), (9 * 3600 + 60, "9h"), (50 * 3600, "2d2h"), (10 * 86400, "10d"),
    ],
)  # fmt: skip
def test_durations(seconds: float, text: str) -> None:
    assert human_duration(seconds) == text


def test_ages_and_times_to_come() -> None:
    now = "2027-01-15T08:00:10Z"
    assert age(now, "2027-01-15T08:00:00.5Z") == "9s"
    assert until(now, "2027-01-15T08:00:10.200Z") == "1s"
    assert until(now, "2027-01-15T08:00:05Z") == "now"
    assert age(now, None) == until(now, None) == "<none>"
