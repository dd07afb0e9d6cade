"""A live scheduler in a cluster full of faults keeps its promises: no partial gang, no double booking, nothing lost."""

from __future__ import annotations

import pytest

from tests.support.chaos_world import Chaos


@pytest.mark.parametrize("seed", range(30))
def test_a_live_scheduler_survives_chaos(seed: int) -> None:
    Chaos(seed, steps=40).run()
