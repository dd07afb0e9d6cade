"""`tutti scheduler` and other commands of `tutti` as processes.

Contract: no process outlives the test (`child_processes`). A scheduler listens on any free port of 127.0.0.1; its log
is a file in the folder. Nothing here waits for a fixed time. Start schedulers in the main thread.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from itertools import count
from pathlib import Path

import aiohttp

from tests.controlplane.child_processes import ChildProcesses
from tests.controlplane.cluster_setup import eventually
from tests.support.command_line import Run

_TUTTI = Path(sys.executable).with_name("tutti")
_ADDRESS = re.compile(r"^tutti scheduler listening on (\S+)$", re.MULTILINE)
_PATIENCE = 120.0
"""Seconds; only something that hangs takes so long."""


class SchedulerProcess:
    """One process of `tutti scheduler`."""

    def __init__(self, children: ChildProcesses, name: str) -> None:
        self._children, self.name = children, name

    @property
    def log(self) -> str:
        """What the process has logged until now."""
        return self._children.log(self.name).read_text("utf-8")

    @property
    def is_alive(self) -> bool:
        """Whether the process has not ended."""
        return self.name in self._children.pids and self.name not in self._children.dead()

    async def url(self) -> str:
        """Return the address that the process serves."""

        async def address() -> str | None:
            found = _ADDRESS.search(self.log)
            assert found or self.is_alive, self.log
            return found[1] if found else None

        return await eventually(address, f"{self.name} says where it listens")

    async def get(self, path: str) -> tuple[int, str]:
        """Return status and body of the answer to a GET."""
        url = await self.url()
        async with aiohttp.ClientSession() as session, session.get(f"{url}{path}") as answer:
            return answer.status, await answer.text()

    async def metric(self, name: str) -> float:
        """Return the value of a metric, named with its labels."""
        _, page = await self.get("/metrics")
        lines = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
        return float(lines[name])

    async def until_ready(self) -> None:
        """Return when the process has listed everything."""

        async def is_ready() -> bool:
            assert self.is_alive, self.log
            return (await self.get("/readyz"))[0] == 200

        await eventually(is_ready, f"{self.name} is ready")

    async def until_leader(self) -> None:
        """Return when the process leads."""

        async def is_leader() -> bool:
            assert self.is_alive, self.log
            return await self.metric("tutti_is_leader") == 1

        await eventually(is_leader, f"{self.name} leads")

    def end(self, number: signal.Signals) -> int:
        """Send a signal, wait for the end and return the exit code."""
        return self._children.end(self.name, number)


class SchedulerProcesses:
    """The schedulers of a test; `stop` ends all of them."""

    def __init__(self, kubeconfig: Path, folder: Path) -> None:
        self._kubeconfig = kubeconfig
        self._children = ChildProcesses(folder, patience=_PATIENCE)
        self._numbers = count(1)

    def start(self, *options: str) -> SchedulerProcess:
        """Start `tutti scheduler` with the scheduler's kubeconfig and further options."""
        name = f"tutti-scheduler-{next(self._numbers)}"
        common = ["--kubeconfig", str(self._kubeconfig), "--port", "0", "--verbose"]
        self._children.start(name, _TUTTI, "scheduler", *common, *options)
        return SchedulerProcess(self._children, name)

    def stop(self) -> None:
        """End all processes."""
        self._children.stop()


async def run_tutti(*arguments: str, kubeconfig: Path, stdin: str = "") -> Run:
    """Run a command of `tutti` to its end."""
    process = await asyncio.create_subprocess_exec(
        _TUTTI,
        *arguments,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"KUBECONFIG": str(kubeconfig), "TERM": "dumb", "COLUMNS": "200"},
    )
    try:
        out, err = await asyncio.wait_for(process.communicate(stdin.encode()), _PATIENCE)
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return Run(process.returncode, out.decode(), err.decode())
