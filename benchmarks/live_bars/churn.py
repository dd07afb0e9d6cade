"""Pods that come and go: is every pod bound exactly once, and does the scheduler's memory stay flat?

Waves of pods are created, bound, finished and deleted, several waves at a time. A quarter each are plain pods, pods of
Jobs, gangs by annotation and native gangs; names, labels and owners are never used twice. The benchmark itself does
what kubelets and controllers would do, because these would take the CPU of the scheduler.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.controlplane.cluster_setup import at_once, create_all, make_pods, send
from tests.controlplane.manifests import new_pod

from live_bars.bench_cluster import NATIVE_GROUPS, BenchCluster
from live_bars.schedulers import NAMES, Process, running
from tutti.client.api_client import MERGE_PATCH
from tutti.client.resources import PODS

CHURN_FLAGS = {
    "api_server_flags": ("--event-ttl=2m", "--etcd-compaction-interval=1m"),
    "etcd_flags": ("--quota-backend-bytes=8589934592",),
}
"""Options of the control plane: events and old versions of so many pods must not fill etcd."""
GROUP_SIZE = 10
"""How many pods a gang or a Job has."""
_LANES = 3
"""How many waves are under way at once."""
_WIDTH = 24
"""How many requests of a wave are under way at once."""
_PATIENCE = 300.0
_MEMORY_BAR = 1.2


class Wave(NamedTuple):
    """The objects of one wave."""

    number: int
    groups: list[dict[str, Any]]
    """Native PodGroups."""
    pods: list[dict[str, Any]]

    @property
    def names(self) -> list[str]:
        """The names of the pods."""
        return [pod["metadata"]["name"] for pod in self.pods]

    @property
    def selector(self) -> dict[str, str]:
        """The query that selects the objects of the wave."""
        return {"labelSelector": f"wave=w{self.number}"}


class Churn:
    """One run: which waves are done, and what was measured at each tenth."""

    def __init__(self, cluster: BenchCluster, process: Process, *, pods: int, wave_size: int) -> None:
        self._cluster, self._process = cluster, process
        self._wave_size, self._count = wave_size, -(-pods // wave_size)
        self._numbers = iter(range(self._count))
        self._done = 0
        self._sampled_at, self._sampled_waves = time.monotonic(), 0
        self.created = 0
        self.memory: list[float] = []
        """The scheduler's resident memory after each tenth, in MB."""
        self.lost: list[str] = []
        """Pods that were not bound in time."""

    async def run(self) -> None:
        """Run all waves."""
        await asyncio.gather(*(self._lane() for _ in range(_LANES)))

    async def _lane(self) -> None:
        for number in self._numbers:
            await self._live(make_wave(number, self._wave_size))
            self._done += 1
            if self._done * 10 // self._count > len(self.memory):
                self._sample()

    async def _live(self, wave: Wave) -> None:
        """Create the objects of a wave, wait until its pods are bound, finish and delete them."""
        cluster, client = self._cluster, self._cluster.client
        await create_all(client, NATIVE_GROUPS, wave.groups, width=_WIDTH)
        await make_pods(client, wave.pods, width=_WIDTH)
        self.created += len(wave.pods)
        if await cluster.until(cluster.bound, wave.names, patience=_PATIENCE) is None:
            self.lost += [name for name in wave.names if name not in cluster.bound]
        await at_once((self._finish(name) for name in wave.names), _WIDTH)
        await client.request("DELETE", PODS.path("default"), query=wave.selector, timeout=300)
        await at_once((self._release(group["metadata"]["name"]) for group in wave.groups), _WIDTH)
        await client.request("DELETE", NATIVE_GROUPS.path("default"), query=wave.selector, timeout=300)

    async def _finish(self, pod: str) -> None:
        """Report a pod as finished, as its kubelet would."""
        body = {"status": {"phase": "Succeeded"}}
        await send(self._cluster.client, "PATCH", PODS.path("default", pod, "status"), body, content_type=MERGE_PATCH)

    async def _release(self, group: str) -> None:
        """Remove the finalizers of a PodGroup, as its controller would."""
        body = {"metadata": {"finalizers": None}}
        await send(self._cluster.client, "PATCH", NATIVE_GROUPS.path("default", group), body, content_type=MERGE_PATCH)

    def _sample(self) -> None:
        now, waves = time.monotonic(), self._done - self._sampled_waves
        rate = waves * self._wave_size / (now - self._sampled_at)
        self._sampled_at, self._sampled_waves = now, self._done
        self.memory.append(self._process.usage().resident_mb)
        tenth = len(self.memory)
        print(f"  tenth {tenth}: {rate:,.0f} pods/s, {self.memory[-1]:.1f} MB", flush=True)


async def churn(cluster: BenchCluster, *, pods: int) -> None:
    """Run pods through the scheduler, and print what was lost and how the memory grew."""
    # A multiple of what one wave has at least: a group of each of the four kinds.
    wave_size = max(min(1_000, pods // 20) // (4 * GROUP_SIZE), 1) * 4 * GROUP_SIZE
    print(f"churn: {pods:,} pods in waves of {wave_size}, {_LANES} waves at a time", flush=True)
    with running("tutti", cluster) as process:
        started = time.monotonic()
        run = Churn(cluster, process, pods=pods, wave_size=wave_size)
        await run.run()
        seconds, usage = time.monotonic() - started, process.usage()
    left = len((await send(cluster.client, "GET", PODS.path("default"), query={"limit": "500"}))["items"])
    bound = run.created - len(run.lost)
    print(
        f"  {run.created:,} pods in {seconds:.0f} s, {usage.cpu_seconds:.1f} CPU s, peak {usage.peak_mb} MB", flush=True
    )
    print(
        f"  bound {bound:,}, lost {len(run.lost)}, on two nodes {len(cluster.moved)}, left over {left} (bar 0)",
        flush=True,
    )
    first, rest = run.memory[0], run.memory[1:] or run.memory
    print(
        f"  memory after the first tenth: last {rest[-1] / first:.2f}, most {max(rest) / first:.2f} of it"
        f" (bar {_MEMORY_BAR:.2f})",
        flush=True,
    )


def make_wave(number: int, size: int) -> Wave:
    """Return the objects of a wave: a quarter each of plain pods, Jobs, gangs by annotation and native gangs."""
    groups = [f"w{number}-n{each}" for each in range(size // 4 // GROUP_SIZE)]
    policy = {"schedulingPolicy": {"gang": {"minCount": GROUP_SIZE}}}
    labels = {"wave": f"w{number}"}
    native = [
        {"metadata": {"name": group, "namespace": "default", "labels": labels}, "spec": policy} for group in groups
    ]
    pods = (*_plain_pods(number, size // 4), *_grouped_pods(number, len(groups)))
    for pod in pods:
        pod["metadata"]["labels"].update(labels)
    return Wave(number, native, list(pods))


def _plain_pods(wave: int, count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield new_pod(f"w{wave}-p{number}", scheduler=NAMES["tutti"])


def _grouped_pods(wave: int, count: int) -> Iterator[dict[str, Any]]:
    """Yield the pods of Jobs, of gangs by annotation, and of native gangs, as many groups of each."""
    for group in range(count):
        for place in range(GROUP_SIZE):
            yield _job_pod(f"w{wave}-j{group}", place)
            gang = f"w{wave}-a{group}"
            annotations = {"pod-group": gang, "tutti.dev/min-member": str(GROUP_SIZE)}
            yield new_pod(f"{gang}-{place}", scheduler=NAMES["tutti"], annotations=annotations)
            native = f"w{wave}-n{group}"
            membership = {"podGroupName": native}
            yield new_pod(f"{native}-{place}", scheduler=NAMES["tutti"], schedulingGroup=membership)


def _job_pod(job: str, index: int) -> dict[str, Any]:
    """Return a pod as the controller of an indexed Job creates it; the Job itself does not exist."""
    labels = {
        "batch.kubernetes.io/job-name": job,
        "batch.kubernetes.io/controller-uid": f"uid-{job}",
        "batch.kubernetes.io/job-completion-index": str(index),
    }
    pod = new_pod(f"{job}-{index}", scheduler=NAMES["tutti"], labels=labels, restartPolicy="Never")
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": f"uid-{job}", "controller": True}
    pod["metadata"]["ownerReferences"] = [owner]
    return pod
