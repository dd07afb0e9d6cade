"""The generator of large snapshots: the same bytes every time, and what the readers make of them."""

from __future__ import annotations

import importlib.util
from types import ModuleType

import msgspec
import pytest

from tests.support.paths import ROOT
from tests.support.wire_bodies import BOOK, nodes_of, pods_of
from tutti.kube.reading.sources import Source
from tutti.wire.gardener import schema as gardener_schema
from tutti.wire.request_formats import read_request

FILE = ROOT / "benchmarks" / "snapshots.py"


@pytest.fixture(scope="module")
def snapshots() -> ModuleType:
    spec = importlib.util.spec_from_file_location("snapshots", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_same_numbers_and_seed_give_the_same_bytes(snapshots: ModuleType):
    made = [msgspec.json.encode(snapshots.snapshot(nodes=50, pods=500, waiting=20, seed=seed)) for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]


def test_most_pods_are_bound_and_fit(snapshots: ModuleType, monkeypatch: pytest.MonkeyPatch):
    data = msgspec.json.encode(snapshots.snapshot(nodes=50, pods=500, waiting=20))
    monkeypatch.setattr(gardener_schema, "_in_any_case", None)  # the usual names go the fast way
    request = read_request(Source("s.json", data), BOOK)
    pods = pods_of(request).values()
    assert (len(pods), len(nodes_of(request))) == (500, 50)
    waiting = sum(pod.spec.node_name is None for pod in pods)
    assert 20 <= waiting < 100
    assert [each.key for each in request.daemon_sets] == ["kube-system/node-exporter"]
    assert [len(pool.members) for pool in request.catalogue.pools] == [13, 13, 12, 12]
