"""A real server in a process of its own, started as a user would, and a client for it."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

Tree = dict[str, Any]
START = Callable[..., "Server"]
_PROGRAM = str(Path(sys.executable).parent / "tutti")
PATIENCE = 120.0
"""Seconds that only something that hangs takes; a loaded machine needs many for a worker's imports."""


class Server:
    """A running `tutti recommender`."""

    def __init__(self, *arguments: str, environment: dict[str, str] | None = None, verify: Any = True) -> None:
        self.process = subprocess.Popen(
            [_PROGRAM, "recommender", "--port", "0", *arguments],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **(environment or {})},
            text=True,
        )
        assert self.process.stderr is not None
        self.lines = [self.process.stderr.readline()]
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()
        self.url = self.lines[0].rpartition(" ")[2].strip()
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE, verify=verify, trust_env=False)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)

    @property
    def log(self) -> str:
        return "".join(self.lines)

    def post(self, body: Any, path: str = "/v1/recommendations", **others: Any) -> httpx.Response:
        """Post a tree or bytes."""
        given = {"content": body} if isinstance(body, bytes) else {"json": body}
        return self.client.post(path, **given, **others)

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        text = self.client.get("/metrics").text
        found = re.findall(rf"^{re.escape(name)}(?:{{.*}})? (\S+)$", text, re.MULTILINE)
        return sum(map(float, found))

    def workers(self) -> list[int]:
        return children(self.process.pid)

    def wait_ready(self) -> None:
        wait_until(lambda: self.client.get("/readyz").status_code == 200)

    def wait_running(self, count: int = 1) -> None:
        """Until so many plans are being made."""
        wait_until(lambda: self.metric("tutti_plans_running") == count)

    def hold(self) -> list[int]:
        """Stop all workers where they are, and give them: whatever they are asked takes until `release`.

        For a server that has just become ready: a worker that has answered may not have said yet that it is idle.
        """
        return _signalled(self.workers(), signal.SIGSTOP)

    def release(self) -> None:
        """Let workers go on that were held."""
        _signalled(self.workers(), signal.SIGCONT)

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and give the exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self) -> int:
        """Wait for the end, and give the exit code."""
        code = self.process.wait(PATIENCE)
        self._reading.join(PATIENCE)
        return code

    def close(self) -> None:
        self.client.close()
        self.release()
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()
        self.process.wait()
        self._reading.join(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()


def _signalled(processes: list[int], number: int) -> list[int]:
    for each in processes:
        os.kill(each, number)
    return processes


def wait_until(is_so: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not is_so():
        assert time.monotonic() < end, "it did not come to that"
        time.sleep(0.02)


def children(parent: int) -> list[int]:
    """The processes that a process has started and that run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = stat.read_text().rpartition(")")[2].split()
            if int(fields[1]) == parent and fields[0] != "Z":
                found.append(int(stat.parent.name))
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture(scope="package")
def server() -> Iterator[Server]:
    """One server for all tests that leave it as it was."""
    started = Server("--workers", "2")
    started.wait_ready()
    yield started
    started.close()


@pytest.fixture
def start() -> Iterator[START]:
    """Servers of a test's own; all are gone after it."""
    started: list[Server] = []

    def begin(*arguments: str, ready: bool = True, **others: Any) -> Server:
        started.append(Server(*arguments, **others))
        if ready:
            started[-1].wait_ready()
        return started[-1]

    yield begin
    for each in started:
        each.close()


def case(pods: int = 3, *, shapes: int = 1) -> Tree:
    """A scenario by hand; many shapes make for a long search."""
    return {
        "nodePools": [
            {"name": "small", "zones": ["eu-west-1a"], "max": 2000, "current": 0, "instanceType": "m5.large"},
            {"name": "large", "zones": ["eu-west-1a"], "max": 2000, "current": 0, "instanceType": "m5.4xlarge"},
        ],
        "pods": [
            {
                "namePrefix": f"shape-{number}-",
                "requests": {"cpu": f"{100 + 37 * number}m", "memory": f"{200 + 53 * number}Mi"},
                "count": pods // shapes,
            }
            for number in range(shapes)
        ],
    }


SLOW = case(6000, shapes=60)
"""What keeps a worker busy for many seconds."""
