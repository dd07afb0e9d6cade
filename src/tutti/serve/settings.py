"""How the server runs: one frozen record, made by the command line or by a program that embeds the server."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tutti.kube.reading.sources import Source

MIB = 2**20
LOOPBACK = ("127.0.0.1", "::1", "localhost")
_CPU_MAX = Path("/sys/fs/cgroup/cpu.max")


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """See the module's line. Times are in seconds, sizes in bytes."""

    host: str = "127.0.0.1"
    port: int = 0
    """0 stands for any free one."""
    workers: int = 0
    """Processes that plan, each one plan at a time; 0 stands for one to each core."""
    queue: int = 16
    """How many requests may wait for a worker; the next one is answered 503."""
    uploads: int = 64
    """How many bodies may come in at once, beside the requests that are planned or wait."""
    time_limit: float = 5.0
    """The search's budget, unless the request says otherwise."""
    max_time_limit: float = 60.0
    """The most that a request may ask for."""
    timeout: float = 120.0
    """From the request's first byte to the answer, by the clock on the wall."""
    read_timeout: float = 10.0
    """How long a client may pause within its headers or its body."""
    grace: float = 30.0
    """How long running requests may go on after SIGTERM."""
    max_body: int = 64 * MIB
    """Of a request, unpacked."""
    worker_memory: int = 1024 * MIB
    """A worker that holds more than this after a plan is replaced."""
    token: str = ""
    """What a client must bear; empty: nothing."""
    tls_cert: str = ""
    tls_key: str = ""
    prices: Source | None = None
    """A price table that comes before the packaged one."""
    pools: Source | None = None
    """What can be bought for requests that do not say it."""
    region: str = ""

    @property
    def processes(self) -> int:
        """How many workers there are."""
        return self.workers or cores()

    @property
    def upload_memory(self) -> int:
        """The bytes that all bodies on their way in may hold together: a few of the largest."""
        return 4 * self.max_body

    @property
    def is_exposed(self) -> bool:
        """Whether others than this machine's users can reach the server."""
        return self.host not in LOOPBACK


def cores() -> int:
    """The cores that this process may use: its affinity and, in a container, its share of CPU time."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on macOS
    count = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    try:
        quota, period = _CPU_MAX.read_text("ascii").split()
        return max(min(count, int(quota) // int(period)), 1)
    except (OSError, ValueError):  # no cgroup, or "max"
        return count
