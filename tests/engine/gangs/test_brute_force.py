"""Gangs in small clusters get what trying everything says: whether they fit, and whom they evict."""

from __future__ import annotations

import pytest

from tests.support.brute_force.gang_instances import instances
from tests.support.brute_force.gang_verdicts import verdict_of

SEEDS, COUNT = 12, 300


@pytest.mark.parametrize("seed", range(SEEDS))
def test_tutti_does_what_trying_everything_finds(seed: int) -> None:
    verdicts = {made.name: verdict_of(made) for made in instances(seed, COUNT)}
    wrong = {name: verdict for name, verdict in verdicts.items() if verdict.wrong}
    assert wrong == {}
    worse = {name: verdict for name, verdict in verdicts.items() if verdict.worse}
    # At most one in a hundred of those who have to evict somebody, a third of all.
    assert len(worse) <= COUNT // 300, worse
