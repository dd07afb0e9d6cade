"""`tutti recommend` builds one cluster from objects, with any options; all other code uses a copy."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import Run
from tests.support.paths import EXAMPLES
from tutti.cluster.cluster import Cluster

OVERGROWN = ("overgrown.json", "overgrown-pools.yaml")
PENDING = ("cluster.json", "pools.yaml")


@pytest.mark.parametrize(
    ("files", "more"),
    [
        (PENDING, ()),
        (PENDING, ("--binder", "tutti")),
        (PENDING, ("--apply",)),
        (PENDING, ("--compare",)),
        (PENDING, ("--report", "page.html")),
        (PENDING, ("--down", "--compare")),
        (OVERGROWN, ("--down",)),
        (OVERGROWN, ("--down", "--compare")),
    ],
)
def test_one_cluster_is_built(
    tutti: Callable[..., Run],
    built: list[Cluster],
    files: tuple[str, str],
    more: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    objects, pools = (str(EXAMPLES / "recommend" / name) for name in files)
    monkeypatch.chdir(tmp_path)
    run = tutti("recommend", "-f", objects, "--pools", pools, "--time-limit", "1s", *more)
    assert run.code == 0, run.err
    assert len(built) == 1
