"""Gardener snapshots of any size, as clients post them: the same bytes for the same numbers and seed.

    python benchmarks/snapshots.py --nodes 5000 --pods 50000 > snapshot.json
    python benchmarks/snapshots.py --nodes 5000 --pods 50000 --time

Nodes are spread over pools and zones, most pods are bound and fit their nodes, some wait; a daemon of kube-system runs
on every node. `--time` reads the snapshot into a request instead, with the garbage collector off and on.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

import msgspec

_TYPES = {"m5.large": (2, 8), "m5.xlarge": (4, 16), "m5.2xlarge": (8, 32), "m5.4xlarge": (16, 64)}
_ZONES = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
_ZERO = "0001-01-01T00:00:00Z"
_TIME = "2024-10-15T09:30:00Z"
_KI_PER_GI = 1024 * 1024
Data = dict[str, Any]


def snapshot(*, nodes: int, pods: int, waiting: int = 500, seed: int = 1) -> Data:
    """A snapshot with so many nodes and pods, of which some wait."""
    chance = random.Random(f"{nodes}/{pods}/{waiting}/{seed}")
    pools = [(f"worker-{number}", kind) for number, kind in enumerate(_TYPES, 1)]
    placed = [(pools[number % len(pools)], _ZONES[number % len(_ZONES)]) for number in range(nodes)]
    listed = [_node(number, pool, zone) for number, (pool, zone) in enumerate(placed)]
    return {
        "ID": f"bench-{nodes}-{pods}-{seed}",
        "Number": 1,
        "SnapshotTime": _TIME,
        "AutoscalerConfig": _autoscaler(pools, placed),
        "WorkerPools": [_pool(name, kind, most=nodes) for name, kind in pools],
        "PriorityClasses": [_priority("high", 1000), _priority("low", -10)],
        "Pods": list(_pods(chance, listed, pods, waiting=min(waiting, pods))),
        "Nodes": listed,
        "Hash": _hash("all"),
    }


def _hash(text: str) -> str:
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _meta(name: str, namespace: str, row: int) -> Data:
    return {
        "RowID": row, "CreationTimestamp": _TIME, "SnapshotTimestamp": _TIME, "Name": name, "Namespace": namespace,
    }  # fmt: skip


def _sizes(kind: str) -> tuple[Data, Data]:
    cores, gib = _TYPES[kind]
    capacity = {"cpu": str(cores), "memory": f"{gib * _KI_PER_GI - 300_000}Ki", "pods": "110"}
    left = {"cpu": f"{cores * 1000 - 80}m", "memory": f"{(gib - 1) * _KI_PER_GI - 300_000}Ki", "pods": "110"}
    return capacity, left


def _pool(name: str, kind: str, *, most: int) -> Data:
    return _meta(name, "shoot--bench", 1) | {
        "MachineType": kind, "Architecture": "amd64", "Minimum": 1, "Maximum": most, "MaxSurge": 1,
        "MaxUnavailable": 0, "Zones": list(_ZONES), "DeletionTimestamp": _ZERO, "Hash": _hash(name),
    }  # fmt: skip


def _autoscaler(pools: list[tuple[str, str]], placed: list[tuple[tuple[str, str], str]]) -> Data:
    templates, groups = {}, {}
    for pool, kind in pools:
        for number, zone in enumerate(_ZONES, 1):
            name = f"shoot--bench-{pool}-z{number}"
            capacity, left = _sizes(kind)
            labels = {"worker.gardener.cloud/pool": pool, "node.kubernetes.io/role": "node"}
            templates[name] = {
                "Name": name, "InstanceType": kind, "Region": "eu-west-1", "Zone": zone, "Capacity": capacity,
                "Allocatable": left, "Labels": labels, "Taints": None, "Hash": _hash(name),
            }  # fmt: skip
            there = sum(each == ((pool, kind), zone) for each in placed)
            groups[name] = {
                "Name": name, "PoolName": pool, "Zone": zone, "TargetSize": there, "MinSize": 0,
                "MaxSize": len(placed) + 100, "Hash": _hash(name),
            }  # fmt: skip
    settings = {
        "SnapshotTimestamp": _TIME, "Expander": "least-waste", "NodeGroupsMinMax": None,
        "MaxNodeProvisionTime": 1_200_000_000_000, "ScanInterval": 10_000_000_000, "NewPodScaleUpDelay": 0,
        "MaxGracefulTerminationSeconds": 600, "MaxEmptyBulkDelete": 10, "IgnoreDaemonSetUtilization": False,
        "MaxNodesTotal": 0, "Priorities": "", "Hash": "",
    }  # fmt: skip
    return {
        "NodeTemplates": templates, "NodeGroups": groups, "ExistingNodes": None, "CASettings": settings,
        "Mode": "standalone-mode", "SuccessSignalPath": "", "ErrorSignalPath": "", "Hash": "",
    }  # fmt: skip


def _node(number: int, pool: tuple[str, str], zone: str) -> Data:
    name = f"ip-10-{number // 65536}-{number // 256 % 256}-{number % 256}.eu-west-1.ec2.internal"
    capacity, left = _sizes(pool[1])
    labels = {
        "kubernetes.io/arch": "amd64", "kubernetes.io/os": "linux", "kubernetes.io/hostname": name,
        "node.kubernetes.io/instance-type": pool[1], "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": zone, "worker.gardener.cloud/pool": pool[0],
    }  # fmt: skip
    return _meta(name, "", number + 1) | {
        "ProviderID": f"aws:///{zone}/i-{number:017x}", "AllocatableVolumes": 25, "Labels": labels, "Taints": None,
        "Allocatable": left, "Capacity": capacity, "DeletionTimestamp": _ZERO, "Hash": _hash(name),
    }  # fmt: skip


def _priority(name: str, value: int) -> Data:
    metadata = {"name": name, "uid": _hash(name), "creationTimestamp": _TIME}
    own = {"RowID": 1, "SnapshotTimestamp": _TIME, "Hash": _hash(name)}
    return own | {"metadata": metadata, "value": value, "preemptionPolicy": "PreemptLowerPriority"}


def _pods(chance: random.Random, nodes: list[Data], pods: int, *, waiting: int) -> Iterator[Data]:
    """A daemon on every node, pods that fit beside it, and pods that wait."""
    daemons = min(len(nodes), max(pods - waiting, 0))
    for number in range(daemons):
        yield _pod("kube-system", f"node-exporter-{number:05d}", "20m", "32Mi", nodes[number]["Name"], daemon=True)
    free = {node["Name"]: [_milli(node) - 20, _mib(node) - 32] for node in nodes}
    names = list(free)
    for number in range(daemons, pods):
        app = chance.randrange(200)
        cpu, memory = _ask(app)
        if number < pods - waiting:
            node = _room(chance, names, free, cpu=cpu, memory=memory)
        else:
            node, cpu, memory = "", 8 * cpu, 4 * memory  # most nodes have no room for that
        yield _pod(f"team-{app % 20}", f"app-{app}-{number:06d}", f"{cpu}m", f"{memory}Mi", node, app=app)


def _ask(app: int) -> tuple[int, int]:
    """What a pod of an application asks for."""
    return (250, 450, 550, 900, 1400)[app % 5], (512, 1024, 2048, 3072)[app % 4]


def _milli(node: Data) -> int:
    return int(node["Allocatable"]["cpu"].removesuffix("m"))


def _mib(node: Data) -> int:
    return int(node["Allocatable"]["memory"].removesuffix("Ki")) // 1024


def _room(chance: random.Random, names: list[str], free: dict[str, list[int]], *, cpu: int, memory: int) -> str:
    """A node with room for a pod, or none."""
    for _ in range(60):
        name = names[chance.randrange(len(names))] if names else ""
        left = free.get(name)
        if left is not None and left[0] >= cpu and left[1] >= memory:
            left[0] -= cpu
            left[1] -= memory
            return name
    return ""


def _pod(
    namespace: str, name: str, cpu: str, memory: str, node: str, *, app: int = 0, daemon: bool = False
) -> Data:  # fmt: skip
    requests = {"cpu": cpu, "memory": memory}
    spec: Data = {"containers": [{"name": "main", "resources": {"requests": requests}}], "priority": 0}
    if node:
        spec["nodeName"] = node
    if daemon:
        field = {"key": "metadata.name", "operator": "In", "values": [node]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        spec["tolerations"] = [{"operator": "Exists"}]
    identity = _hash(f"{namespace}/{name}")
    uid = f"{identity[:8]}-{identity[8:12]}-{identity[12:16]}-{identity[16:20]}-{identity[20:]}"
    return {
        "CreationTimestamp": _TIME, "Name": name, "Namespace": namespace, "UID": uid, "NodeName": node,
        "Labels": {"app": f"app-{app}"}, "Spec": spec, "PodScheduleStatus": 1 if node else 0,
        "PodPhase": "Running" if node else "Pending", "DeletionTimestamp": _ZERO,
    }  # fmt: skip


def _time(data: bytes) -> None:
    """Print how long it takes until a snapshot is a request."""
    from tutti.kube.reading.sources import Source
    from tutti.market.price_book import PriceBook
    from tutti.wire.request_formats import read_request

    book = PriceBook()
    book.regions  # noqa: B018 - the packaged book is read once a process, not once a request
    for collecting in (False, True, False, True):
        (gc.enable if collecting else gc.disable)()
        start = time.perf_counter()
        request = read_request(Source("snapshot.json", data), book)
        took = time.perf_counter() - start
        sys.stdout.write(
            f"{len(data) / 1e6:.1f} MB, {len(request.objects):,} objects, collector {'on' if collecting else 'off'}: "
            f"{took:.2f} s\n"
        )
        del request
        gc.collect()


def main() -> None:
    """Write a snapshot to standard output, or time the reading of one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=50000)
    parser.add_argument("--waiting", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--time", action="store_true", help="read it instead, and tell how long that takes")
    given = parser.parse_args()
    made = snapshot(nodes=given.nodes, pods=given.pods, waiting=given.waiting, seed=given.seed)
    data = msgspec.json.encode(made)
    if given.time:
        _time(data)
    else:
        sys.stdout.buffer.write(data)


if __name__ == "__main__":
    main()
