"""Recordings of real clusters: what is told from their labels and groups."""

from __future__ import annotations

from typing import Any

from tests.support.wire_bodies import pods_of, prices, read

Data = dict[str, Any]


def recording(*pods: Data, groups: list[Data]) -> Data:
    spec = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]}
    return {"Scenarios": [{"UnscheduledPods": [{"Spec": spec} | each for each in pods], "NodeGroups": groups}]}


def group(zone: str, least: int, **fields: Any) -> Data:
    return {
        "Name": f"g-{zone}", "PoolName": "p", "Zone": zone, "MachineType": "m5.large", "MinSize": least, "MaxSize": 3,
        "PoolMin": 1, "PoolMax": 5,
    } | fields  # fmt: skip


def test_the_minimums_of_groups_hold_in_their_zones():
    tree = recording(groups=[group("z-a", 2), group("z-b", 0), group("z-a", 1, Name="again"), group("", 4)])
    (pool,) = read(tree, prices(m5_large=1)).catalogue.pools
    assert (pool.zone_minimums, pool.minimum) == ({"z-a": 3}, 1)


def test_who_made_a_pod_is_told_by_its_labels():
    pods = [
        {"Name": "web-7d9c-b2x4t", "Labels": {"pod-template-hash": "7d9c"}},
        {"Name": "db-0", "Labels": {"statefulset.kubernetes.io/pod-name": "db-0"}},
        {"Name": "bare", "Labels": {"app": "bare"}},
    ]
    found = pods_of(read(recording(*pods, groups=[group("z-a", 0)]), prices(m5_large=1)))
    owners = {
        key: [(each.kind, each.name) for each in made.metadata.owner_references or ()] for key, made in found.items()
    }
    assert owners == {
        "default/web-7d9c-b2x4t": [("ReplicaSet", "web-7d9c")], "default/db-0": [("StatefulSet", "db")],
        "default/bare": [],
    }  # fmt: skip
