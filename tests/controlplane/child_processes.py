"""Child processes that never outlive this process: the parts of a control plane.

Contract: each process has a log file and a session of its own, so that Ctrl-C in a terminal reaches this process only,
which then stops its children in order. `stop` ends them by process id, the last started first. If this process dies
without calling `stop`, even by SIGKILL, the kernel kills the children (`launch_child`, Linux only). Start children in
the main thread: the kernel acts when the starting thread ends.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
import sys
from pathlib import Path

_LAUNCHER = Path(__file__).with_name("launch_child.py")
_TAIL = 2_000
"""Bytes of a log that an error message shows."""


class ChildProcesses:
    """See the module's docstring; logs go to `folder`, one file for each name."""

    def __init__(self, folder: Path, *, patience: float = 10.0) -> None:
        self._folder, self._patience = folder, patience
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._commands: dict[str, list[str]] = {}

    @property
    def pids(self) -> dict[str, int]:
        """The process ids of all children that were started and not stopped, by name."""
        return {name: process.pid for name, process in self._running.items()}

    def start(self, name: str, program: Path, *flags: str) -> None:
        """Start a program."""
        self._commands[name] = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), str(program), *flags]
        self.log(name).unlink(missing_ok=True)
        self.start_again(name)

    def start_again(self, name: str) -> None:
        """Start a program that was stopped, with the same flags; its log goes on."""
        atexit.unregister(self.stop)
        atexit.register(self.stop)
        with self.log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                self._commands[name],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def dead(self) -> list[str]:
        """Return the names of children that have ended."""
        return [name for name, process in self._running.items() if process.poll() is not None]

    def log(self, name: str) -> Path:
        """Return the path of a child's log."""
        return self._folder / f"{name}.log"

    def log_tail(self, name: str) -> str:
        """Return the last lines of a child's log."""
        try:
            data = self.log(name).read_bytes()
        except FileNotFoundError:
            return ""
        return data[-_TAIL:].decode(errors="replace")

    def end(self, name: str, number: signal.Signals) -> int:
        """Send a signal to a child, wait for its end and return its exit code; kill it if it does not end in time."""
        process = self._running.pop(name)
        process.send_signal(number)
        try:
            return process.wait(self._patience)
        except subprocess.TimeoutExpired:
            process.kill()
            return process.wait()

    def stop_one(self, name: str, *, kill: bool = False) -> None:
        """End a child, by SIGKILL or politely, and wait for it."""
        self.end(name, signal.SIGKILL if kill else signal.SIGTERM)

    def stop(self) -> None:
        """End all children, in the reverse order of their first start: clients before their server."""
        for name in reversed(self._commands):
            if name in self._running:
                self.stop_one(name)
        atexit.unregister(self.stop)
