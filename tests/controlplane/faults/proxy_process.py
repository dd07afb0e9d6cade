"""The fault proxy as a process of its own, with commands: faults off and on, cut a replica off.

The process prints its ports as a JSON list, one for each replica, and obeys commands on its standard input, one JSON
object in each line.

Contract: the process ends when its standard input ends, so also when the process dies that started it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
from pathlib import Path

import msgspec

from tests.controlplane.faults.direct_client import direct_access
from tests.controlplane.faults.fault_plan import FaultPlan, FaultRates
from tests.controlplane.faults.fault_proxy import FaultProxy

_ROOT = Path(__file__).resolve().parents[3]


class ProxyProcess:
    """See the module's docstring."""

    def __init__(self, kubeconfig: Path, *, log: Path, replicas: int, seed: int, rates: FaultRates) -> None:
        command = [sys.executable, "-m", "tests.controlplane.faults.proxy_process", "--kubeconfig", str(kubeconfig)]
        command += ["--log", str(log), "--replicas", str(replicas), "--seed", str(seed)]
        command += ["--rates", msgspec.json.encode(rates).decode()]
        self._process = subprocess.Popen(
            command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the fault proxy did not start; its error is above")
        self.ports: list[int] = json.loads(line)
        self._log, self._offset = log, 0
        self.faults = 0
        """Faults that were counted by `count_faults`."""

    def enable_faults(self, enabled: bool) -> None:
        """Switch all drawn faults on or off."""
        self._command({"enabled": enabled})

    def partition(self, replica: int, seconds: float) -> None:
        """Cut one replica off for some seconds."""
        self._command({"replica": replica, "partition": seconds})

    def count_faults(self) -> int:
        """Return the number of faults so far; faults of events do not count, because schedulers may lose events."""
        with self._log.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                self.faults += b'"type":"fault"' in line and b'"request":"event"' not in line
        return self.faults

    def is_alive(self) -> bool:
        """Return whether the process runs."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _command(self, command: dict[str, object]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command).encode() + b"\n")
        self._process.stdin.flush()


async def _run(options: argparse.Namespace) -> None:
    access = direct_access(options.kubeconfig)
    rates = msgspec.json.decode(options.rates, type=FaultRates)
    log = options.log.open("ab", buffering=0)  # open until the end: cancelled requests write to it
    proxies = [
        FaultProxy(replica, access, FaultPlan(rates, random.Random(f"{options.seed}/{replica}")), log)
        for replica in range(options.replicas)
    ]
    ports = [await proxy.start() for proxy in proxies]
    sys.stdout.write(json.dumps(ports) + "\n")
    sys.stdout.flush()
    await _obey(proxies)
    for proxy in proxies:
        await proxy.stop()


async def _obey(proxies: list[FaultProxy]) -> None:
    """Carry out the commands of standard input until it ends."""
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    partitions = set()
    async for line in lines:
        command = json.loads(line)
        if "partition" in command:
            task = asyncio.create_task(proxies[command["replica"]].partition(command["partition"]))
            partitions.add(task)
            task.add_done_callback(partitions.discard)
        else:
            for proxy in proxies:
                proxy.faults.enabled = command["enabled"]


def main() -> None:
    parser = argparse.ArgumentParser(prog="proxy_process", description="A faulty network in front of an API server.")
    parser.add_argument("--kubeconfig", type=Path, required=True)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--seed", default="0")
    parser.add_argument("--rates", default="{}", help="FaultRates as JSON")
    asyncio.run(_run(parser.parse_args()))


if __name__ == "__main__":
    main()
