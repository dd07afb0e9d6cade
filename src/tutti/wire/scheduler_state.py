"""The answer of a live scheduler to GET /debug/state: what it has in mind, as data.

Contract: frozen records with camelCase names on the wire; times are RFC 3339. Lists are cut off at a limit, and
`left_out` says how many entries of each list are missing. For a user who may see one namespace only, the lists contain
that namespace, and other namespaces appear as numbers.
"""

from __future__ import annotations

from typing import Literal

import msgspec


class _Record(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    pass


class QueuedTurn(_Record, frozen=True, kw_only=True):
    """Pods that are tried together and wait: a single pod, the minimum of a gang, or its surplus."""

    namespace: str
    name: str
    kind: Literal["pod", "gang", "surplus"]
    position: int
    """Its place among all turns that wait, from 1."""
    priority: int = 0
    pods: int = 1
    state: Literal["due", "backoff", "waiting"] = "waiting"
    """`due`: the next session tries it. `backoff`: tried when `next_try` has come. `waiting`: tried when one of
    `cures` happens, and at the latest at `next_try`."""
    since: str | None = None
    """When it was first tried; None if that is still to come."""
    tried: str | None = None
    attempts: int = 0
    waits_for: str = ""
    """room, members, victims, budgets or correction; empty if that is not known."""
    message: str = ""
    next_try: str | None = None
    cures: tuple[str, ...] = ()
    """The kinds of changes after which it is tried again."""


class PodState(_Record, frozen=True, kw_only=True):
    """What the scheduler knows of one pod; only in answers about a pod or a gang."""

    pod: str
    state: Literal["bound", "assumed", "waiting", "not considered"]
    node: str = ""
    gang: str = ""
    priority: int = 0
    terminating: bool = False
    message: str = ""


class RoomHold(_Record, frozen=True, kw_only=True):
    """Room that is held on a node."""

    owner: str
    node: str
    priority: int = 0
    until: str | None = None
    amounts: dict[str, str] = {}
    reserved: bool = False
    """Whether the hold belongs to the reservation of a starving turn."""


class AssumedBinding(_Record, frozen=True, kw_only=True):
    """A pod that is on a node in memory, and not yet in the reports of the API server."""

    pod: str
    node: str
    gang: str = ""
    in_flight: bool = False
    """Whether its Binding has been sent and not been answered."""


class ReservedRoom(_Record, frozen=True, kw_only=True):
    """The reservation: room that is kept free for a starving turn."""

    turn: str
    """Empty if it belongs to another namespace than the user may see."""
    since: str
    until: str | None = None
    """When the turn will be able to start; None if that is not known."""
    nodes: tuple[str, ...] = ()
    holds: int = 0


class GangSummary(_Record, frozen=True, kw_only=True):
    """A gang that has pods."""

    namespace: str
    name: str
    dialect: str
    phase: str
    """problem, waiting, partial or whole."""
    minimum: int = 0
    running: int = 0
    waiting: int = 0
    priority: int = 0
    nodes: int = 0
    message: str = ""
    """Why it waits, or what is wrong with its declaration."""


class EvictionSummary(_Record, frozen=True, kw_only=True):
    """An eviction of a plan."""

    pod: str
    node: str
    by: str
    """The pod or the gang that takes the room."""
    reason: str = ""


class PlanSummary(_Record, frozen=True, kw_only=True):
    """A session that decided something."""

    time: str
    milliseconds: float
    binds: int = 0
    nominated: int = 0
    evicted: int = 0
    evictions: tuple[EvictionSummary, ...] = ()
    """The first of them."""
    waiting: dict[str, int] = {}
    """How many of the tried pods wait, by what they wait for."""
    gangs_started: int = 0


class WatchState(_Record, frozen=True, kw_only=True):
    """The watch of one kind."""

    kind: str
    resource: str
    synced: bool
    objects: int = 0
    lists: int = 0
    heard_seconds_ago: float | None = None
    problem: str = ""


class SchedulerState(_Record, frozen=True, kw_only=True):
    """See the module's docstring."""

    time: str
    version: str
    scheduler_name: str
    identity: str
    leads: bool
    holder: str = ""
    """Who held the lease when it was last read."""
    ready: bool = False
    dry_run: bool = False
    namespace: str = ""
    """The namespace to which the lists are limited; empty for all."""
    counts: dict[str, int] = {}
    """Numbers of all namespaces: nodes, pods, assumed, inFlight, inbox, holds, and pending pods by queue."""
    queue: tuple[QueuedTurn, ...] = ()
    pods: tuple[PodState, ...] = ()
    holds: tuple[RoomHold, ...] = ()
    assumed: tuple[AssumedBinding, ...] = ()
    reservation: ReservedRoom | None = None
    gangs: tuple[GangSummary, ...] = ()
    plans: tuple[PlanSummary, ...] = ()
    """The newest first."""
    watches: tuple[WatchState, ...] = ()
    notes: tuple[str, ...] = ()
    left_out: dict[str, int] = {}
    """How many entries of a list are missing."""
