"""A large cluster: the time from a scheduler's start to its first binding, and its memory."""

from __future__ import annotations

import time

from tests.controlplane.cluster_setup import make_pods
from tests.controlplane.manifests import new_pod

from live_bars.bench_cluster import BenchCluster
from live_bars.schedulers import NAMES, running


async def large_cluster(cluster: BenchCluster, *, nodes: int, pods: int) -> None:
    """Fill nodes with pods, and start each scheduler with one pod that waits."""
    for start in range(0, pods, 10_000):
        batch = [
            new_pod(f"run-{n:06}", nodeName=f"node-{n % nodes:05}") for n in range(start, min(start + 10_000, pods))
        ]
        await make_pods(cluster.client, batch, width=64)
        print(f"  {start + len(batch):,} pods run", flush=True)
    for name, scheduler_name in NAMES.items():
        (waiting,) = await cluster.make_plain_pods(1, scheduler_name)
        with running(name, cluster) as process:
            bound = await cluster.until(cluster.bound, [waiting], patience=120)
            usage = process.usage()
        seconds = (bound if bound is not None else time.monotonic()) - process.started
        print(
            f"  {name}: first binding after {seconds:.1f} s, {usage.peak_mb} MB, {usage.cpu_seconds:.1f} CPU s",
            flush=True,
        )
