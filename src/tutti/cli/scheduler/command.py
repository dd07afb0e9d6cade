"""`tutti scheduler`: schedule the pods of a running cluster.

Contract: logs go to standard error, one line each. SIGTERM and Ctrl-C end the scheduler in order. A lost lease ends it
with exit code 1, and whatever keeps it from starting with 2, so that a supervisor knows that a restart helps.
"""

from __future__ import annotations

import math
import os
import re
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tutti.cli import options
from tutti.cli.options import ClusterInput
from tutti.exceptions import TuttiError

if TYPE_CHECKING:
    from random import Random

    from tutti.client.access.cluster_access import ClusterAccess
    from tutti.engine.placement.profile import Profile
    from tutti.live.options import SchedulerOptions

_INTERRUPTED = 130
_SWITCH_INTERVAL = 0.0005
"""Seconds after which a session yields to the event loop: with Python's 5 ms each request would wait for that long."""
_NAME = re.compile(r"[A-Za-z0-9](?:[-A-Za-z0-9_./]{0,251}[A-Za-z0-9])?")


class LostLeaseError(TuttiError):
    """The process led, and does so no more: a restart makes it a standby."""

    exit_code = 1


def _checked_name(context: click.Context, option: click.Parameter, text: str) -> str:
    if not _NAME.fullmatch(text):
        raise click.BadParameter(f"{text!r} is not the name of a scheduler.", context, option)
    return text


def _checked_number(context: click.Context, option: click.Parameter, number: float | None) -> float | None:
    if number is not None and not math.isfinite(number):
        raise click.BadParameter(f"{number} is not a number of bindings.", context, option)
    return number


def _checked_taint(context: click.Context, option: click.Parameter, text: str | None) -> tuple[str, str] | None:
    """Return key and value of a taint."""
    if text is None:
        return None
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE.", context, option)
    return key, value


@click.command("scheduler")
@options.context
@click.option(
    "--scheduler-name",
    default="tutti",
    show_default=True,
    metavar="NAME",
    callback=_checked_name,
    help="Schedule pods with this schedulerName.",
)
@click.option(
    "--profile",
    "profile_path",
    type=click.Path(),
    metavar="FILE",
    help="A KubeSchedulerConfiguration; without it the default profile of kube-scheduler 1.37.",
)
@click.option("--dry-run", is_flag=True, help="Write nothing: plan, explain and count only.")
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Schedule only while this process holds the Lease.",
)
@options.lease("The Lease that decides which process leads.")
@click.option(
    "--lease-duration",
    type=click.IntRange(3, 3600),
    default=15,
    show_default=True,
    metavar="SECONDS",
    help="Time without a renewal of the Lease after which a standby takes over.",
)
@click.option(
    "--max-qps",
    type=click.FloatRange(min=0, min_open=True),
    metavar="N",
    callback=_checked_number,
    help="Maximum bindings per second.",
)
@click.option("--no-preemption", is_flag=True, help="Never evict pods for others.")
@click.option("--preempt-own-only", is_flag=True, help="Evict only pods of this scheduler.")
@click.option("--preempt-daemons", is_flag=True, help="Evict pods of DaemonSets too.")
@click.option("--respect-budgets", is_flag=True, help="Evict only what PodDisruptionBudgets allow.")
@click.option(
    "--own-nodes",
    metavar="KEY=VALUE",
    callback=_checked_taint,
    help="The taint of nodes that no other scheduler uses: preemption there is not limited by lost races.",
)
@click.option("--record", type=click.Path(path_type=Path), metavar="DIR", help="Write recordings for tutti replay.")
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address on which health, metrics and state are served.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=10271,
    show_default=True,
    help="The port on that address; 0 means any free port.",
)
@click.option("--tls-cert", default="", metavar="FILE", help="Serve HTTPS with this certificate chain (PEM).")
@click.option("--tls-key", default="", metavar="FILE", help="The private key of --tls-cert (PEM).")
@click.option("-v", "--verbose", is_flag=True, help="Log every session.")
def command(
    given: ClusterInput,
    scheduler_name: str,
    profile_path: str | None,
    dry_run: bool,
    leader_elect: bool,
    lease: str,
    lease_duration: int,
    max_qps: float | None,
    no_preemption: bool,
    preempt_own_only: bool,
    preempt_daemons: bool,
    respect_budgets: bool,
    own_nodes: tuple[str, str] | None,
    record: Path | None,
    host: str,
    port: int,
    tls_cert: str,
    tls_key: str,
    verbose: bool,
) -> None:
    """Schedule the pods of a running cluster, gangs whole or not at all.

    Schedules pods with `schedulerName: tutti` beside kube-scheduler. Several processes may run: one leads.

    \b
    tutti scheduler
    tutti scheduler --kubeconfig ~/.kube/config --dry-run
    """
    import logging
    import random
    import socket

    from msgspec.structs import replace

    from tutti.cli.loading import load_profile
    from tutti.client.access.current_access import current_access
    from tutti.engine.preemption.victim_rules import VictimRules
    from tutti.live.options import HttpOptions, LeaseOptions, SchedulerOptions

    form = logging.Formatter("%(asctime)s %(levelname)s %(message)s", datefmt="%Y-%m-%dT%H:%M:%S%z")
    handler = logging.StreamHandler()
    handler.setFormatter(form)
    logging.basicConfig(handlers=[handler], level=logging.INFO if verbose or dry_run else logging.WARNING)
    namespace, _, name = lease.partition("/")
    if bool(tls_cert) != bool(tls_key):
        raise click.UsageError("--tls-cert and --tls-key go together.")
    draw = random.Random()
    settings = SchedulerOptions(
        scheduler_name=scheduler_name,
        identity=f"{socket.gethostname()}_{draw.getrandbits(48):012x}",
        dry_run=dry_run,
        lease=LeaseOptions.of_duration(namespace, name, lease_duration) if leader_elect else None,
        max_qps=max_qps,
        record=record,
        profile_name=scheduler_name if profile_path is not None else None,
        http=HttpOptions(host=host, port=port, tls_cert=tls_cert, tls_key=tls_key),
    )
    rules = VictimRules(
        mirror_pods=False,
        daemons=preempt_daemons,
        other_schedulers=not preempt_own_only,
        hard_budgets=respect_budgets,
    )
    policy = replace(
        settings.policy,
        preemption=not no_preemption,
        victims_allowed=rules,
        own_nodes=own_nodes,
    )
    settings = replace(settings, policy=policy)
    access = current_access(os.environ, kubeconfig=given.kubeconfig, context=given.context, takes_files=False)
    _run(access, settings, load_profile(profile_path, scheduler_name), draw)


def _run(access: ClusterAccess, settings: SchedulerOptions, profile: Profile, draw: Random) -> None:
    import asyncio
    import time

    from tutti.live.scheduler import LiveScheduler

    received: list[int] = []

    async def main() -> bool:
        scheduler = LiveScheduler(
            access,
            settings,
            profile=profile,
            monotonic=time.monotonic,
            wall=lambda: time.time_ns() // 1_000,
            draw=draw,
        )

        scheduler.introspection.on_listening = lambda url: click.echo(f"tutti scheduler listening on {url}", err=True)

        def stop(number: int) -> None:
            received.append(number)
            scheduler.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, stop, number)
        return await scheduler.run()

    sys.setswitchinterval(_SWITCH_INTERVAL)
    if not asyncio.run(main()):
        raise LostLeaseError("the lease was lost: another process leads, or the API server could not be reached")
    if received and received[0] == signal.SIGINT:
        sys.exit(_INTERRUPTED)
