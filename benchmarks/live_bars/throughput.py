"""Waiting pods: the time from a scheduler's start to the last binding, and to the last event."""

from __future__ import annotations

import asyncio
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.controlplane.audit_log import read_audit_log

from live_bars.bare_loop import bind_all
from live_bars.bench_cluster import BenchCluster
from live_bars.schedulers import NAMES, Usage, running

PATIENCE = 180.0
_SETTLED_AFTER = 2.0
"""Seconds after which the server has finished with the creation of the pods: they wait before a scheduler starts."""


class Run(NamedTuple):
    """One run; rates are pods per second, 0 if not all were done in time."""

    binds: float
    events: float
    usage: Usage


async def plain_pods(cluster: BenchCluster, *, pods: int, rounds: int) -> None:
    """Compare on pods without a gang."""
    runs: dict[str, list[Run]] = {name: [] for name in NAMES}
    bare: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds):
        for events, rates in bare.items():
            names = await cluster.make_plain_pods(pods, "nobody")
            await asyncio.sleep(_SETTLED_AFTER)
            rates.append(pods / await bind_all(cluster, names, width=16, events=events))
            await cluster.clear()
        for name in NAMES if number % 2 else reversed(NAMES):
            runs[name].append(await _run(cluster, name, await cluster.make_plain_pods(pods, NAMES[name])))
            await cluster.clear()
        _print(f"{pods:,} pods, round {number + 1}", {name: each[-1:] for name, each in runs.items()})
    for events, rates in bare.items():
        print(f"  bare loop{' with events' if events else ''}: {median(rates):,.0f}/s ({_range(rates)})", flush=True)
    _print(f"{pods:,} pods, medians", runs)
    both = median(run.events for run in runs["tutti"]) / median(bare[True])
    print(f"  binds and events together: {both:.2f} of the bare loop with events (bar 0.85)", flush=True)


async def gangs(cluster: BenchCluster, *, count: int, size: int, rounds: int) -> None:
    """Compare on native gangs; the control plane has an audit log, which says whether gangs were partial."""
    runs: dict[str, list[Run]] = {name: [] for name in NAMES}
    log = cluster.plane.audit_log
    for number in range(rounds):
        for name in NAMES if number % 2 else reversed(NAMES):
            offset = log.stat().st_size
            runs[name].append(await _run(cluster, name, await cluster.make_gangs(count, size, NAMES[name])))
            print(f"  {name}: {_partial_gangs(log, offset=offset, size=size)}", flush=True)
            await cluster.clear()
        _print(f"{count} gangs of {size}, round {number + 1}", {name: each[-1:] for name, each in runs.items()})
    _print(f"{count} gangs of {size}, medians", runs)


def _partial_gangs(log: Path, *, offset: int, size: int) -> str:
    """Return how many gangs were bound in part, and for how long the gangs that were bound whole took for that."""
    times: dict[str, list[float]] = {}
    for entry in read_audit_log(log, offset=offset):
        target = entry.object_ref
        if target.subresource == "binding" and entry.stage == "ResponseComplete" and entry.response_status.code < 300:
            moment = datetime.fromisoformat(entry.stage_timestamp).timestamp()
            times.setdefault(target.name.rpartition("-")[0], []).append(moment)
    partial = sum(len(bound) != size for bound in times.values())
    spans = sorted(max(bound) - min(bound) for bound in times.values())
    middle, longest = (spans[len(spans) // 2], spans[-1]) if spans else (0.0, 0.0)
    return (
        f"audit log: {len(times)} gangs bound, {partial} of them in part;"
        f" from the first to the last pod {middle * 1_000:.0f} ms (longest {longest * 1_000:.0f} ms)"
    )


async def _run(cluster: BenchCluster, name: str, pods: list[str]) -> Run:
    await asyncio.sleep(_SETTLED_AFTER)
    with running(name, cluster) as process:
        last_bind = await cluster.until(cluster.bound, pods, patience=PATIENCE)
        usage = process.usage()
        last_event = await cluster.until(cluster.told, pods, patience=60)
        started = process.started
    return Run(*(len(pods) / (last - started) if last is not None else 0.0 for last in (last_bind, last_event)), usage)


def _print(title: str, runs: dict[str, list[Run]]) -> None:
    binds = {name: median(run.binds for run in each) for name, each in runs.items()}
    print(f"{title}: tutti / kube-scheduler {binds['tutti'] / (binds['kube-scheduler'] or 1):.2f}", flush=True)
    for name, each in runs.items():
        cpu, memory = median(run.usage.cpu_seconds for run in each), max(run.usage.peak_mb for run in each)
        events = median(run.events for run in each)
        rates = [run.binds for run in each]
        print(
            f"  {name}: binds {binds[name]:,.0f}/s ({_range(rates)}), with events {events:,.0f}/s,"
            f" {cpu:.1f} CPU s, {memory} MB",
            flush=True,
        )


def _range(rates: list[float]) -> str:
    return f"{min(rates):,.0f} to {max(rates):,.0f}"
