"""Settings of the server, made by `tutti recommender` or by a program that embeds the server."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tutti.kube.reading.sources import Source

MIB = 2**20
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


class ServerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All settings. Times are in seconds, sizes in bytes."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 means any free port."""
    workers: int = 0
    """Number of worker processes, each with one plan at a time; 0 means one per core."""
    queue: int = 16
    """Number of requests that may wait for a worker; the next request gets a 503."""
    uploads: int = 64
    """Number of bodies that the server receives at once; requests that wait or run do not count."""
    time_limit: float = 5.0
    """Time limit of the search if the request has none."""
    max_time_limit: float = 60.0
    """Largest time limit of a request."""
    timeout: float = 120.0
    """Wall-clock time from the request's first byte to its answer."""
    read_timeout: float = 10.0
    """How long a client may pause within its headers or its body."""
    grace: float = 30.0
    """How long running requests go on after SIGTERM."""
    max_body: int = 64 * MIB
    """Largest body of a request, decompressed."""
    worker_memory: int = 1024 * MIB
    """A worker that holds more than this after a plan is replaced."""
    token: str = ""
    """Bearer token that clients must send; empty: no token needed."""
    tls_cert: str = ""
    tls_key: str = ""
    prices: Source | None = None
    """A price table with precedence over the packaged one."""
    pools: Source | None = None
    """Node pools for requests that have none."""
    region: str = ""

    @property
    def processes(self) -> int:
        """Number of worker processes."""
        return self.workers or cores()

    @property
    def upload_memory(self) -> int:
        """Bytes that all bodies together may take while they are received: four times the largest body."""
        return 4 * self.max_body

    @property
    def is_exposed(self) -> bool:
        """Whether other machines can reach the server."""
        return self.host not in LOOPBACK


def cores() -> int:
    """Return the number of cores that this process may use: its affinity and, in a container, its CPU quota."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    try:
        quota, period = _CPU_MAX.read_text("ascii").split()
        return max(min(count, int(quota) // int(period)), 1)
    except (OSError, ValueError):  # no cgroup, or "max"
        return count
