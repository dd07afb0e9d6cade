"""Pods that arrive one by one, and gangs on an idle cluster: the time from create to binding, by the client's clock."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from tests.controlplane.cluster_setup import create
from tests.controlplane.manifests import new_pod

from live_bars.bench_cluster import BenchCluster
from live_bars.schedulers import NAMES, running
from tutti.client.resources import PODS


async def arrivals(cluster: BenchCluster, *, rate: int, seconds: int) -> None:
    """Compare on pods that arrive at a rate."""
    for name, scheduler_name in NAMES.items():
        with running(name, cluster):
            await _warm_up(cluster, scheduler_name)
            sent: dict[str, float] = {}
            tasks = []
            started = time.monotonic()
            for number in range(rate * seconds):
                await asyncio.sleep(max(0.0, started + number / rate - time.monotonic()))
                pod = new_pod(f"a{rate}-{name[0]}-{number:05}", scheduler=scheduler_name)
                sent[pod["metadata"]["name"]] = time.monotonic()
                tasks.append(asyncio.create_task(create(cluster.client, PODS, pod)))
            await asyncio.gather(*tasks)
            await cluster.until(cluster.bound, sent, patience=60)
            waits = [cluster.bound[pod] - at for pod, at in sent.items() if pod in cluster.bound]
        lost = len(sent) - len(waits)
        print(f"  {rate}/s, {name}: {_percentiles(waits)}{f', {lost} not bound' if lost else ''}", flush=True)
        await cluster.clear()


async def idle_gangs(cluster: BenchCluster, *, count: int, size: int) -> None:
    """Measure from the last pod created to the last one bound, one gang at a time."""
    for name, scheduler_name in NAMES.items():
        waits = []
        with running(name, cluster):
            await _warm_up(cluster, scheduler_name)
            for _ in range(count):
                pods = await cluster.make_gangs(1, size, scheduler_name)
                created = time.monotonic()
                last = await cluster.until(cluster.bound, pods, patience=30)
                waits.append((last or float("inf")) - created)
        print(f"  gangs of {size} on an idle cluster, {name}: {_percentiles(waits)}", flush=True)
        await cluster.clear()


async def _warm_up(cluster: BenchCluster, scheduler_name: str) -> None:
    """Wait until a scheduler works."""
    await cluster.until(cluster.bound, await cluster.make_plain_pods(20, scheduler_name), patience=60)


def _percentiles(waits: Sequence[float]) -> str:
    ordered = sorted(waits)
    points = ((name, ordered[min(int(len(ordered) * part), len(ordered) - 1)]) for name, part in _POINTS)
    return ", ".join(f"{name} {value * 1000:.1f} ms" for name, value in points)


_POINTS = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))
