"""Bindings in a bare loop, with or without an event after each: what the API server takes at most."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from tests.controlplane.cluster_setup import open_client, send

from live_bars.bench_cluster import BenchCluster
from tutti.client.event_recorder import micro_time
from tutti.client.resources import EVENTS, PODS


async def bind_all(cluster: BenchCluster, pods: Sequence[str], *, width: int, events: bool) -> float:
    """Bind pods round robin; return the seconds."""
    started, names = time.monotonic(), iter(enumerate(pods))
    async with open_client(cluster.scheduler_kubeconfig) as client:

        async def work() -> None:
            for number, name in names:
                target = {"apiVersion": "v1", "kind": "Node", "name": f"node-{number % 1000:05}"}
                body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
                await send(client, "POST", PODS.path("default", name, "binding"), body)
                if events:
                    await send(client, "POST", EVENTS.path("default"), _event(name, number))

        await asyncio.gather(*(work() for _ in range(width)))
    return time.monotonic() - started


def _event(name: str, number: int) -> dict[str, object]:
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.{number:x}", "namespace": "default"},
        "eventTime": micro_time(time.time_ns() // 1_000),
        "reportingController": "bench",
        "reportingInstance": "bench-0",
        "action": "Binding",
        "reason": "Scheduled",
        "type": "Normal",
        "regarding": {"apiVersion": "v1", "kind": "Pod", "namespace": "default", "name": name},
        "note": f"Successfully assigned default/{name}",
    }
