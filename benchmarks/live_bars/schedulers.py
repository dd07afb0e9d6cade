"""The schedulers that are measured, as processes with a service account's token."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.controlplane.control_plane import binaries_folder

from live_bars.bench_cluster import BenchCluster

NAMES = {"tutti": "tutti", "kube-scheduler": "default-scheduler"}
"""The schedulerName of each scheduler's pods."""
_GATES = "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true"


class Usage(NamedTuple):
    """What a process has used."""

    cpu_seconds: float
    peak_mb: int
    resident_mb: float
    """The resident memory now."""


class Process:
    """A running scheduler."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.started = time.monotonic()
        self.log = log
        # With bytecode, as an installed package has it.
        environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
        with log.open("wb") as file:
            self._child = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment)

    def usage(self) -> Usage:
        """Return what the process has used so far."""
        fields = Path(f"/proc/{self._child.pid}/stat").read_text().rsplit(")", 1)[1].split()
        status = Path(f"/proc/{self._child.pid}/status").read_text().splitlines()
        memory = {line.split(":")[0]: int(line.split()[1]) for line in status if line.startswith(("VmHWM", "VmRSS"))}
        cpu_seconds = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        return Usage(cpu_seconds, memory["VmHWM"] // 1000, memory["VmRSS"] / 1000)

    def stop(self) -> None:
        """End the process."""
        self._child.terminate()
        try:
            self._child.wait(20)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()


@contextmanager
def running(name: str, cluster: BenchCluster) -> Iterator[Process]:
    """Run a scheduler: tutti, or kube-scheduler."""
    folder = cluster.plane.folder
    process = Process(_command(name, cluster), folder / f"{name}.log")
    try:
        yield process
    finally:
        process.stop()


def _command(name: str, cluster: BenchCluster) -> list[str]:
    kubeconfig = cluster.scheduler_kubeconfig
    if name == "tutti":
        main = "import sys; from tutti.cli.main import main; sys.exit(main())"
        options = ["--kubeconfig", str(kubeconfig), "--no-leader-elect", "--port", "0", "-v"]
        return [sys.executable, "-c", main, "scheduler", *options]
    config = cluster.plane.folder / "peer.json"
    config.write_text(
        json.dumps(
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
                "leaderElection": {"leaderElect": False},
                "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 5000, "burst": 5000},
            }
        )
    )
    return [str(binaries_folder() / "kube-scheduler"), f"--config={config}", "--secure-port=0", _GATES]
