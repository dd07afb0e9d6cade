"""`tutti demo`: the tour runs, the example stays the same, and its files can be kept."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.support.command_line import Run
from tutti.cli.demo.cluster import build_cluster
from tutti.cli.demo.command import STEPS

Tutti = Callable[..., Run]


def test_the_tour_shows_every_step(tutti: Tutti, tmp_path: Path) -> None:
    run = tutti("demo", "--keep", str(tmp_path / "kept"))
    assert (run.code, run.err) == (0, "")
    for step in STEPS:
        assert f"$ {step.command}" in run.lines
    for text in (
        "0/480 nodes are available",
        "Evicted",
        "gpu-000-new-1",
        "2 gated",
        "if pending again today",
        "unsupported",
        "gang/weather",
        "no purchase costs less",
    ):
        assert text in run.out
    assert "\x1b" not in run.out
    assert sorted(path.name for path in (tmp_path / "kept").iterdir()) == [
        "cases.jsonl.gz",
        "cluster.json",
        "pools.yaml",
    ]


def test_the_example_is_of_realistic_size_and_always_the_same() -> None:
    first, second = build_cluster().cluster, build_cluster().cluster
    assert json.dumps(first) == json.dumps(second)
    kinds = Counter(item["kind"] for item in first["items"])
    assert kinds["Node"] == 480
    assert 4000 < kinds["Pod"] < 10_000
    names = [(item["kind"], item["metadata"].get("namespace"), item["metadata"]["name"]) for item in first["items"]]
    assert len(set(names)) == len(names)
