"""The binder against a server with canned answers: the CPU time of a binding, with and without refusals.

The server runs in a process of its own, so the CPU time of this process is that of the client alone: the binder, its
checks, JSON, HTTP and, as with a real server, TLS. Refusals narrow the binder's window and let it wait (Retry-After),
so that it sends few bindings a second, and a process that idles in between needs more CPU for each. Bindings without
refusals at the same rate, evenly spaced, show what idling alone costs.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from tests.support.builders import node, pod

from tutti.client.access.cluster_access import ClusterAccess, UserAccess
from tutti.client.api_client import ApiClient
from tutti.cluster.edits import Put
from tutti.engine.session.plan import Bound
from tutti.live.executor.binder import PodBinder
from tutti.live.executor.request_window import RequestWindow
from tutti.live.executor.volume_binder import VolumeBinder
from tutti.live.inbox import Inbox
from tutti.live.newest_objects import NewestObjects

_BAR = 250
"""Microseconds of CPU time for a binding."""
_WARM_UP = 200
_PATIENCE = 300.0
_NODES = 100
_SERVER = Path(__file__).with_name("canned_server.py")


class Permission:
    """A process that leads."""

    may_write = True
    write_timeout = 5.0


class Countdown:
    """Waits for a number of bindings, without a timer that would take CPU time itself."""

    def __init__(self) -> None:
        self._missing = 0
        self._done = asyncio.Event()

    def start(self, count: int) -> None:
        """Wait for so many bindings from now on."""
        self._missing = count
        self._done.clear()

    def count(self, _bound: Bound) -> None:
        """Note a binding."""
        self._missing -= 1
        if not self._missing:
            self._done.set()

    async def wait(self) -> None:
        """Wait for the last binding, or until nothing can come any more."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._done.wait(), _PATIENCE)


class BinderRun(NamedTuple):
    """What one run has used, and what became of its bindings."""

    cpu_us: float
    """CPU time for a binding."""
    rate: float
    """Bindings per second."""
    bound: int
    errors: dict[int, int]
    """Failed requests, by status."""


async def bindings(*, count: int, rounds: int) -> None:
    """Measure without and with refusals; with TLS too, if openssl can make a certificate."""
    print(f"client: {count:,} bindings against a canned server", flush=True)
    with tempfile.TemporaryDirectory(prefix="tutti-canned-") as folder:
        for certificate in (None, _certificate(Path(folder))) if shutil.which("openssl") else (None,):
            name = "plain HTTP" if certificate is None else "TLS"
            runs = [await _run(count, certificate=certificate) for _ in range(rounds)]
            _print(f"{name}, none refused", runs, count)
            runs = [await _run(count, refusals=True, certificate=certificate) for _ in range(rounds)]
            _print(f"{name}, 10 % refused", runs, count)
            rate = median(run.rate for run in runs)
            paced = [await _run(count, certificate=certificate, max_qps=rate)]
            _print(f"{name}, none refused, at the same rate", paced, count)


async def _run(
    count: int, *, refusals: bool = False, certificate: Path | None = None, max_qps: float | None = None
) -> BinderRun:
    with _server(refusals=refusals, certificate=certificate) as address:
        access = ClusterAccess(
            server=address, authority_file=certificate, user=UserAccess(token="a-token-of-a-service-account")
        )
        newest = NewestObjects()
        newest.observe(Put(node(f"node-{number:05}")) for number in range(_NODES))
        countdown = Countdown()
        window = RequestWindow(first=16, most=64, monotonic=time.monotonic, max_qps=max_qps)
        async with _binder(access, newest, window, countdown) as binder:
            await _bind_all(binder, _plan(newest, range(count, count + _WARM_UP)), countdown)
            binds, before, errors = _plan(newest, range(count)), binder.bound_count, dict(binder.errors)
            wall, cpu = time.monotonic(), time.process_time()
            await _bind_all(binder, binds, countdown)
            cpu, wall = time.process_time() - cpu, time.monotonic() - wall
            failed = {status: number - errors.get(status, 0) for status, number in sorted(binder.errors.items())}
            return BinderRun(cpu / count * 1e6, count / wall, binder.bound_count - before, failed)


def _plan(newest: NewestObjects, numbers: range) -> list[Bound]:
    """Report pods; return bindings for them."""
    pods = [pod(f"pod-{number}") for number in numbers]
    newest.observe(map(Put, pods))
    return [Bound(each.key, f"node-{n % _NODES:05}", uid=each.metadata.uid) for n, each in enumerate(pods)]


async def _bind_all(binder: PodBinder, binds: list[Bound], countdown: Countdown) -> None:
    """Send bindings and wait until all pods are bound."""
    countdown.start(len(binds))
    binder.submit(binds)
    await countdown.wait()


@asynccontextmanager
async def _binder(
    access: ClusterAccess, newest: NewestObjects, window: RequestWindow, countdown: Countdown
) -> AsyncIterator[PodBinder]:
    """Give a binder as the scheduler makes it."""
    draw, monotonic = random.Random(1), time.monotonic
    client = ApiClient(
        access, user_agent="tutti-bench", monotonic=monotonic, wall=lambda: time.time_ns() // 1_000, draw=draw
    )
    permission = Permission()
    volumes = VolumeBinder(client, newest, may_write=lambda: permission.may_write, monotonic=monotonic, draw=draw)
    binder = PodBinder(
        client,
        Inbox(),
        newest,
        permission=permission,
        window=window,
        volumes=volumes,
        settle=lambda _pod: None,
        on_bound=countdown.count,
        on_refused=lambda _bound, _problem: None,
        monotonic=monotonic,
        draw=draw,
    )
    try:
        yield binder
    finally:
        await binder.close()
        await client.close()


@contextmanager
def _server(*, refusals: bool, certificate: Path | None) -> Iterator[str]:
    """Run a canned server; give its address."""
    options = ["--refusals"] if refusals else []
    if certificate is not None:
        options += ["--certificate", str(certificate)]
    command = [sys.executable, str(_SERVER), *options]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        port = child.stdout.readline().strip()
        yield f"{'https' if certificate is not None else 'http'}://127.0.0.1:{port}"
        child.terminate()


def _certificate(folder: Path) -> Path:
    """Return a file with a new certificate for 127.0.0.1, and its key."""
    certificate, key, both = folder / "certificate.pem", folder / "key.pem", folder / "both.pem"
    subject = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"]
    files = ["-keyout", str(key), "-out", str(certificate)]
    subprocess.run(["openssl", "req", "-x509", *curve, *subject, *files], check=True, capture_output=True)
    both.write_bytes(certificate.read_bytes() + key.read_bytes())
    return both


def _print(title: str, runs: list[BinderRun], count: int) -> None:
    times = sorted(run.cpu_us for run in runs)
    lost = sum(count - run.bound for run in runs)
    errors = ", ".join(f"{number} x {status}" for status, number in runs[-1].errors.items() if number)
    print(
        f"  {title}: {median(times):.0f} us CPU a binding ({times[0]:.0f} to {times[-1]:.0f}, bar {_BAR}),"
        f" {median(run.rate for run in runs):,.0f}/s, bound {runs[-1].bound:,}, lost {lost}"
        f"{f'; {errors}' if errors else ''}",
        flush=True,
    )
