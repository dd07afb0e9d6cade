"""The options of a soak run, and the command line that gives them.

Contract: `--peer` runs kube-scheduler with its native gangs; any other scheduler is a command with `{kubeconfig}`, and
`{replica}` or `{lease}` if it needs the number of the replica or the duration of its lease.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import msgspec

from tests.controlplane.control_plane import binaries_folder
from tests.controlplane.faults.disturbances import DisturbanceSettings
from tests.controlplane.faults.fault_plan import CLASSES, FaultRates
from tests.controlplane.faults.gang_objects import DIALECTS
from tests.controlplane.faults.workload import WorkloadSettings

_OURS = "tutti scheduler --kubeconfig {kubeconfig} --port 0 --lease-duration {lease}"
_PEER_FLAGS = (
    "--kubeconfig={kubeconfig} --secure-port=0 --kube-api-qps=5000 --kube-api-burst=5000 "
    "--feature-gates=GenericWorkload=true,TopologyAwareWorkloadScheduling=true "
    "--leader-elect={elects} --leader-elect-lease-duration={lease}s --leader-elect-renew-deadline={renew}s "
    "--leader-elect-retry-period=1s"
)


class SoakOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to run, and how long."""

    command: str
    folder: Path
    replicas: int = 2
    faults: int = 1000
    kills: int = 100
    leader_changes: int = 20
    seed: int = 1
    longest: float = 5400.0
    """Seconds after which the run ends; a number that it has not reached by then counts as broken."""
    rest: float = 120.0
    partial_limit: float = 5.0
    rates: FaultRates = FaultRates()
    disturbances: DisturbanceSettings = DisturbanceSettings()
    workload: WorkloadSettings = WorkloadSettings()
    check: Path | None = None


def parse_options(arguments: list[str] | None = None) -> SoakOptions:
    """Return the options of a command line."""
    parser = argparse.ArgumentParser(prog="soak", description="Test a scheduler under faults on a real control plane.")
    who = parser.add_mutually_exclusive_group()
    who.add_argument(
        "--scheduler-command",
        default=_OURS,
        help=f"with {{kubeconfig}}, and {{lease}} for the seconds of --lease; default: {_OURS}",
    )
    who.add_argument("--peer", action="store_true", help="run kube-scheduler with its native gangs")
    who.add_argument("--check", type=Path, metavar="DIR", help="check the records of an earlier run again")
    parser.add_argument("--scheduler-name", help="the pods' schedulerName")
    parser.add_argument("--dialect", choices=sorted(DIALECTS), default="native")
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--faults", type=int, default=1000)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--leader-changes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--share", type=float, default=0.15, help="share of faulty requests")
    parser.add_argument("--lease", type=int, default=6, help="seconds of the scheduler's lease")
    parser.add_argument("--kill-every", type=float, default=12.0)
    parser.add_argument("--after-bind-share", type=float, default=0.5, help="share of kills that wait for a bind")
    parser.add_argument("--freeze-every", type=float, default=45.0)
    parser.add_argument("--partition-every", type=float, default=30.0)
    parser.add_argument("--watch-fault-every", type=float, default=30.0)
    parser.add_argument("--one-priority", action="store_true", help="all gangs have the same priority: no preemption")
    parser.add_argument("--longest", type=float, default=5400.0, help="seconds until faults end in any case")
    parser.add_argument("--rest", type=float, default=120.0, help="seconds in which the cluster must come to rest")
    parser.add_argument("--partial-limit", type=float, default=5.0, help="seconds")
    parser.add_argument("--dir", type=Path, help="folder of records and logs; default: a temporary one")
    given = parser.parse_args(arguments)
    command = _peer_command(given.replicas, given.lease) if given.peer else given.scheduler_command
    command = command.replace("{lease}", str(given.lease))
    return SoakOptions(
        command=command,
        folder=_folder(given),
        replicas=given.replicas,
        faults=given.faults,
        kills=given.kills,
        leader_changes=given.leader_changes,
        seed=given.seed,
        longest=given.longest,
        rest=given.rest,
        partial_limit=given.partial_limit,
        rates=FaultRates(
            shares=dict.fromkeys(CLASSES, given.share), watch_fault_every=given.watch_fault_every if given.share else 0
        ),
        disturbances=DisturbanceSettings(
            kill_every=given.kill_every,
            after_bind_share=given.after_bind_share,
            freeze_every=given.freeze_every,
            partition_every=given.partition_every,
            lease=given.lease,
        ),
        workload=WorkloadSettings(
            dialect=given.dialect,
            priorities=(("low", 1.0),) if given.one_priority else WorkloadSettings().priorities,
            scheduler_name=given.scheduler_name or ("default-scheduler" if given.peer else "tutti"),
        ),
        check=given.check,
    )


def _folder(given: argparse.Namespace) -> Path:
    chosen: Path | None = given.check or given.dir
    return (chosen or Path(tempfile.mkdtemp(prefix="tutti-soak-"))).absolute()


def _peer_command(replicas: int, lease: int) -> str:
    flags = _PEER_FLAGS.replace("{elects}", "true" if replicas > 1 else "false")
    flags = flags.replace("{renew}", str(lease * 2 // 3))
    return f"{binaries_folder() / 'kube-scheduler'} {flags}"
