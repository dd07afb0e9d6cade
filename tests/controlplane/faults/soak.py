"""A soak run: a scheduler on a real control plane, behind a faulty network, killed again and again.

Starts the control plane, the proxy, the recorder, the workload and the replicas of any scheduler; disturbs until the
wanted numbers of faults, kills and changes of leader are reached; lets the cluster come to rest without faults; checks
the invariants (`checks`) and prints a table. The exit code is 1 if an invariant is broken, or a wanted number was not
reached within --longest.

    python -m tests.controlplane.faults.soak --peer --replicas 2 --faults 1000 --kills 100 --leader-changes 20
    python -m tests.controlplane.faults.soak --scheduler-command 'tutti scheduler --kubeconfig {kubeconfig}'

All records stay in the folder of `--dir`; `--check DIR` checks them again.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import time
from collections.abc import Coroutine
from contextlib import AsyncExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from tests.controlplane.component_flags import ControlPlaneOptions
from tests.controlplane.control_plane import ControlPlane
from tests.controlplane.faults.audited_writes import AuditedWrites
from tests.controlplane.faults.checks.history import (
    AuditedWrite,
    GangChange,
    History,
    Record,
    encode_record,
    history_of,
    read_records,
)
from tests.controlplane.faults.checks.invariants import pods_lost
from tests.controlplane.faults.checks.partial_gangs import partial_gangs
from tests.controlplane.faults.direct_client import DirectClient, direct_access, proxied_kubeconfig
from tests.controlplane.faults.disturbances import Disturbances
from tests.controlplane.faults.proxy_process import ProxyProcess
from tests.controlplane.faults.replicas import Replicas
from tests.controlplane.faults.soak_options import SoakOptions, parse_options
from tests.controlplane.faults.soak_report import Findings, find_violations, missed_numbers, report_lines
from tests.controlplane.faults.watch_recorder import WatchRecorder
from tests.controlplane.faults.workload import Workload

_PROGRESS_EVERY = 10.0
_CALM = 12.0
"""Seconds without a bind, a partial gang or a lost pod after which the cluster is at rest."""


class Soak:
    """One run; see the module's docstring."""

    def __init__(self, options: SoakOptions, folder: Path) -> None:
        self._options, self._folder = options, folder
        self._records: list[Record] = []
        self._log = (folder / "history.jsonl").open("wb")
        self._writes: list[AuditedWrite] = []
        self._started = self._next_line = time.monotonic()

    def record(self, record: Record) -> None:
        """Keep a record of the history."""
        self._records.append(record)
        self._log.write(encode_record(record))

    async def run(self) -> History:
        """Run all of it; everything that was started is stopped, whatever happens."""
        options, folder = self._options, self._folder
        native = options.workload.dialect == "native"
        parts = ControlPlaneOptions(controller_manager=True, kwok=True, native_gangs=native, audit=True)
        async with AsyncExitStack() as stack:
            stack.callback(self._log.close)
            plane = stack.enter_context(ControlPlane(parts, folder=folder / "control-plane"))
            self._audit = AuditedWrites(plane.audit_log)
            stack.callback(self._read_audit_log)
            proxy = ProxyProcess(
                plane.kubeconfig,
                log=folder / "proxy.jsonl",
                replicas=options.replicas,
                seed=options.seed,
                rates=options.rates,
            )
            self._proxy = proxy
            stack.callback(proxy.stop)
            client = await stack.enter_async_context(DirectClient(direct_access(plane.kubeconfig)))
            recorder = self._recorder = WatchRecorder(client, self.record)
            await recorder.start()
            stack.push_async_callback(recorder.stop)
            workload = Workload(client, recorder, options.workload, seed=options.seed, record=self.record)
            self._workload = workload
            await workload.set_up()
            files = [
                proxied_kubeconfig(folder / f"replica-{replica}.kubeconfig", port=port)
                for replica, port in enumerate(proxy.ports)
            ]
            replicas = self._replicas = Replicas(options.command, files, folder, record=self.record)
            stack.callback(replicas.stop)
            disturbances = Disturbances(
                replicas, proxy, recorder, options.disturbances, leader=self._leader, seed=options.seed
            )
            await self._while_disturbed(disturbances.run(), workload.run())
            self._say("no more faults: the cluster comes to rest")
            await self._rest()
        return history_of([*self._records, *self._writes, *read_records(folder / "proxy.jsonl")], end=time.time())

    async def _while_disturbed(self, *works: Coroutine[Any, Any, None]) -> None:
        """Run all works until the wanted numbers are reached."""
        tasks = [asyncio.create_task(work) for work in works]
        try:
            while not self._has_enough():
                for task in tasks:
                    if task.done():
                        task.result()
                self._recorder.check()
                if not self._proxy.is_alive():
                    raise RuntimeError("the fault proxy has ended")
                await self._progress()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._proxy.enable_faults(False)
            for replica in range(self._replicas.count):
                self._replicas.thaw(replica)

    def _has_enough(self) -> bool:
        options = self._options
        if time.monotonic() - self._started > options.longest:
            return True
        return (
            self._proxy.count_faults() >= options.faults
            and self._replicas.kills >= options.kills
            and (self._replicas.count == 1 or self._leader_changes() >= options.leader_changes)
        )

    async def _rest(self) -> None:
        """Wait until nothing more happens, for a limited time."""
        end = time.monotonic() + self._options.rest
        calm_since, binds = time.monotonic(), -1
        while time.monotonic() < end and time.monotonic() - calm_since < _CALM:
            self._replicas.restart_dead()
            await asyncio.sleep(1.0)
            history = history_of(self._records, end=time.time())
            is_partial = any(period.is_open for period in partial_gangs(history, [], {}))
            if is_partial or binds != self._recorder.binds or pods_lost(history):
                calm_since, binds = time.monotonic(), self._recorder.binds

    # Progress ---------------------------------------------------------------------------------------------------------

    async def _progress(self) -> None:
        self._read_audit_log()
        await asyncio.sleep(1.0)
        if time.monotonic() >= self._next_line:
            self._next_line = time.monotonic() + _PROGRESS_EVERY
            pods = self._recorder.pods.values()
            self._say(
                f"{self._proxy.count_faults()} faults, {self._replicas.kills} kills, {self._replicas.exits} exits, "
                f"{self._leader_changes()} changes of leader; gangs {self._workload.created} created, "
                f"{self._workload.deleted} deleted; pods {sum(pod.is_running for pod in pods)} running, "
                f"{sum(pod.is_pending for pod in pods)} waiting, {self._recorder.binds} binds"
            )

    def _say(self, text: str) -> None:
        sys.stderr.write(f"{time.monotonic() - self._started:5.0f} s  {text}\n")
        sys.stderr.flush()

    def _read_audit_log(self) -> None:
        self._writes += self._audit.new_writes()

    def _leader(self) -> int | None:
        return next((write.replica for write in reversed(self._writes) if write.verb == "lease"), None)

    def _leader_changes(self) -> int:
        holders = [write.holder for write in self._writes if write.verb == "lease" and write.holder]
        return sum(left != right for left, right in pairwise(holders))


async def _run(options: SoakOptions) -> History:
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, task.cancel)
    options.folder.mkdir(parents=True, exist_ok=True)
    if any(options.folder.iterdir()):
        raise SystemExit(f"soak: {options.folder} has files of an earlier run: choose another --dir")
    return await Soak(options, options.folder).run()


def saved_history(folder: Path) -> History:
    """Return the history of an earlier run."""
    audit = AuditedWrites(folder / "control-plane" / "audit.log")
    records = [*read_records(folder / "history.jsonl"), *read_records(folder / "proxy.jsonl"), *audit.new_writes()]
    return history_of(records)


def soak(options: SoakOptions) -> tuple[History, Findings]:
    """Run, or check an earlier run again."""
    history = saved_history(options.check) if options.check is not None else asyncio.run(_run(options))
    if not any(isinstance(gang, GangChange) for gang in history.gangs):
        raise SystemExit("soak: the run ended before the first gang was created")
    findings = find_violations(history, limit=options.partial_limit)
    if options.check is not None:
        return history, findings  # the numbers that were wanted are not known
    missed = missed_numbers(
        history,
        faults=options.faults,
        kills=options.kills,
        leader_changes=options.leader_changes if options.replicas > 1 else 0,
    )
    return history, replace(findings, missed=missed)


def main() -> None:
    options = parse_options()
    try:
        history, findings = soak(options)
    except asyncio.CancelledError:
        sys.stderr.write(f"soak: interrupted; --check {options.folder} checks what happened until now\n")
        sys.exit(130)
    sys.stdout.write("\n".join(report_lines(history, findings)) + "\n")
    sys.stderr.write(f"all records: {options.folder}\n")
    sys.exit(1 if findings.broken else 0)


if __name__ == "__main__":
    main()
