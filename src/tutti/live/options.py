"""The options of the live scheduler."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tutti.cluster.work.meter import work_units
from tutti.engine.preemption.victim_rules import VictimRules
from tutti.engine.session.policy import SECOND, Patience, Policy


class LeaseOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which Lease decides who leads, and how long it is valid; times are seconds.

    A binding is given up after `write_timeout`, and at the latest `renew_deadline` after the last renewal, so that none
    is under way when another process takes over after `duration`.
    """

    namespace: str = "kube-system"
    name: str = "tutti-scheduler"
    duration: int = 15
    renew_deadline: float = 10.0
    retry_period: float = 2.0

    @staticmethod
    def of_duration(namespace: str, name: str, seconds: int) -> LeaseOptions:
        """Return a lease of a duration, with the other times in the proportions of the default."""
        deadline, period = seconds * 2 / 3, seconds * 2 / 15
        return LeaseOptions(
            namespace=namespace, name=name, duration=seconds, renew_deadline=deadline, retry_period=period
        )

    @property
    def write_timeout(self) -> float:
        """The longest time that a write may take."""
        return self.duration - self.renew_deadline


class HttpOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where /healthz, /readyz, /metrics and /debug/state are served."""

    host: str = "127.0.0.1"
    port: int = 10271
    """0 means any free port."""
    tls_cert: str = ""
    """The file of a certificate chain; empty for plain HTTP."""
    tls_key: str = ""


class SchedulerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """See the module's docstring; times are seconds."""

    scheduler_name: str = "tutti"
    identity: str = "tutti-scheduler"
    """The name of this process in leases and events."""
    dry_run: bool = False
    """Whether nothing is written: plans are made as if other programs carried them out."""
    lease: LeaseOptions | None = LeaseOptions()
    """None: this process always leads."""
    policy: Policy = Policy(
        budget=work_units(0.02),
        victims_allowed=VictimRules(mirror_pods=False, daemons=False),
        eviction_rounds=2,
        partial_first=True,
        patience=Patience(
            partial_for=3 * SECOND,
            undo_started_within=60 * SECOND,
            replaced_within=30 * SECOND,
            leaves_within=30 * SECOND,
        ),
    )
    gather: float = 0.002
    """The shortest time between two sessions, in which changes are gathered."""
    max_qps: float | None = None
    """The maximum number of writes per second."""
    record: Path | None = None
    """The folder for recordings."""
    profile_name: str | None = None
    """The name of the profile in recordings; None is the default profile."""
    rediscover_every: float = 30.0
    max_in_flight: int = 64
    """The maximum number of bindings at once."""
    groups_left_for: float = 5.0
    """How long a new group of scheduler-plugins is left to a controller that writes its status."""
    http: HttpOptions | None = None
    """None: this process serves nothing."""
