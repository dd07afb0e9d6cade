"""Replicas of the scheduler under test: started, killed, frozen and started again.

Contract: each replica has at most one process. Each change is recorded. A process that ends by itself is recorded as
`exit` and started again by `restart_dead`, which raises if processes end at once again and again. No process outlives
this one (`launch_child`).
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.controlplane import launch_child
from tests.controlplane.faults.checks.history import ProcessChange, Record

_LAUNCHER = Path(launch_child.__file__)
_SHORT_LIFE = 5.0
"""Seconds; a process that ends earlier has not worked."""
_MAX_SHORT_LIVES = 10


class Replicas:
    """See the module's docstring; `{kubeconfig}` and `{replica}` in the command are replaced."""

    def __init__(
        self, command: str, kubeconfigs: Sequence[Path], folder: Path, *, record: Callable[[Record], None]
    ) -> None:
        self._words = shlex.split(command)
        self._kubeconfigs, self._folder, self._record = kubeconfigs, folder, record
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self._frozen: set[int] = set()
        self._started: dict[int, float] = {}
        self._short_lives = 0
        self.kills = self.exits = 0

    @property
    def count(self) -> int:
        """The number of replicas."""
        return len(self._kubeconfigs)

    def log(self, replica: int) -> Path:
        """Return the log of a replica's processes."""
        return self._folder / f"scheduler-{replica}.log"

    def start(self, replica: int) -> None:
        """Start a replica that has no process."""
        values: Mapping[str, str] = {"kubeconfig": str(self._kubeconfigs[replica]), "replica": str(replica)}
        program, *arguments = [word.format_map(values) for word in self._words]
        path = shutil.which(program)
        if path is None:
            raise FileNotFoundError(f"the scheduler's program {program} does not exist")
        command = [sys.executable, "-I", "-S", str(_LAUNCHER), str(os.getpid()), path, *arguments]
        with self.log(replica).open("ab") as log:
            self._processes[replica] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self._started[replica] = time.monotonic()
        self._note(replica, "start")

    def kill(self, replica: int) -> None:
        """End a replica's process with SIGKILL."""
        process = self._processes.pop(replica, None)
        if process is not None and process.poll() is None:
            process.kill()
            self._note(replica, "kill")
            process.wait()
            self.kills += 1
        self._frozen.discard(replica)

    def freeze(self, replica: int) -> None:
        """Stop a replica's process, without ending it."""
        if self.is_alive(replica):
            self._processes[replica].send_signal(signal.SIGSTOP)
            self._frozen.add(replica)
            self._note(replica, "freeze")

    def thaw(self, replica: int) -> None:
        """Let a frozen process go on."""
        if replica in self._frozen and self.is_alive(replica):
            self._note(replica, "thaw")
            self._processes[replica].send_signal(signal.SIGCONT)
        self._frozen.discard(replica)

    def is_alive(self, replica: int) -> bool:
        """Return whether a replica has a process that has not ended."""
        process = self._processes.get(replica)
        return process is not None and process.poll() is None

    def restart_dead(self) -> None:
        """Start all replicas whose process has ended."""
        for replica in range(self.count):
            process = self._processes.get(replica)
            if process is not None and process.poll() is not None:
                self._note(replica, "exit")
                self.exits += 1
                del self._processes[replica]
                is_short = time.monotonic() - self._started[replica] < _SHORT_LIFE
                self._short_lives = self._short_lives + 1 if is_short else 0
                if self._short_lives > _MAX_SHORT_LIVES:
                    raise RuntimeError(f"the scheduler ends at once: see {self.log(replica)}")
            if replica not in self._processes:
                self.start(replica)

    def stop(self) -> None:
        """End all processes: SIGTERM first, SIGKILL after a while."""
        for replica in range(self.count):
            self.thaw(replica)
        for process in self._processes.values():
            process.terminate()
        for replica, process in self._processes.items():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            self._note(replica, "exit")
        self._processes.clear()

    def _note(self, replica: int, event: str) -> None:
        self._record(ProcessChange(time.time(), replica, event))
