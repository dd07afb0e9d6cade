"""The live scheduler on a real control plane, beside kube-scheduler: rates, latencies, start, memory.

Needs `make control-plane`, except for `--only client`. Both schedulers have a service account's token; kube-scheduler's
own rate limit is raised. Runs alternate, and rates count from a scheduler's start to the last binding (and to the last
event).
usage: live.py [--only NAME ...] [--quick] [--rounds N] [--churn-pods N]
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from live_bars.bench_cluster import bench_cluster
from live_bars.binding_client import bindings
from live_bars.churn import CHURN_FLAGS, churn
from live_bars.latency import arrivals, idle_gangs
from live_bars.startup import large_cluster
from live_bars.throughput import gangs, plain_pods

BARS = ("pods", "gangs", "arrivals", "idle", "start", "churn", "client")


async def measure(only: list[str], *, quick: bool, rounds: int, churn_pods: int | None) -> None:
    """Measure the chosen bars."""
    size = 10 if quick else 1
    if "client" in only:
        await bindings(count=2_000 // size, rounds=rounds)
    if "gangs" in only:
        async with bench_cluster(1_000 // size, audit=True) as cluster:
            await gangs(cluster, count=500 // size, size=8, rounds=rounds)
    if {"pods", "arrivals", "idle"} & set(only):
        async with bench_cluster(1_000 // size) as cluster:
            if "pods" in only:
                await plain_pods(cluster, pods=5_000 // size, rounds=rounds)
            if "idle" in only:
                await idle_gangs(cluster, count=200 // size, size=8)
            if "arrivals" in only:
                for rate in (100, 300):
                    await arrivals(cluster, rate=rate, seconds=60 // size)
    if "start" in only:
        nodes, pods = 5_000 // size, 50_000 // size
        async with bench_cluster(nodes) as cluster:
            await large_cluster(cluster, nodes=nodes, pods=pods)
    if "churn" in only:
        async with bench_cluster(1_000 // size, **CHURN_FLAGS) as cluster:
            await churn(cluster, pods=churn_pods or 100_000 // size)


def main() -> None:
    """Parse the options and measure."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", choices=BARS, default=list(BARS))
    parser.add_argument("--quick", action="store_true", help="a tenth of the size")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--churn-pods", type=int, help="how many pods come and go (100,000)")
    options = parser.parse_args()
    asyncio.run(measure(options.only, quick=options.quick, rounds=options.rounds, churn_pods=options.churn_pods))


if __name__ == "__main__":
    main()
