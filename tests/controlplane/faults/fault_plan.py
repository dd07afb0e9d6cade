"""The plan of faults: which fault meets a request, drawn from a seeded generator.

Requests have classes, because a scheduler must survive other faults on a Binding than on a list. Each class has a share
of faulty requests; the kind of the fault is drawn from the kinds that make sense for the class. An open watch is met
again and again, after random times.

Contract: the same seed and the same order of requests give the same faults. Nothing here sends or waits.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import msgspec

BIND, WRITE, EVENT, READ, WATCH, LEASE = CLASSES = ("bind", "write", "event", "read", "watch", "lease")

DROP = "drop"
"""The connection is closed before the request is forwarded."""
DELAY = "delay"
"""The request waits before it is forwarded."""
SLOW_REPLY = "slow-reply"
"""The request is forwarded at once; the reply waits."""
LOST_REPLY = "lost-reply"
"""The request is forwarded and applied; the connection is closed instead of the reply."""
RESET = "reset"
"""The request is forwarded; the connection is reset in the middle of the reply."""
CUT_WATCH = "cut-watch"
"""The stream ends in the middle of a line."""
HELD_WATCH = "held-watch"
"""The stream stops for some seconds, then everything comes at once."""
PARTITION = "partition"
"""No byte passes between one replica and the API server."""
_REFUSALS = {"429": 429, "409": 409, "500": 500, "503": 503}
"""Answers of the proxy itself; nothing is forwarded."""

_WRITE_KINDS = (DROP, DELAY, SLOW_REPLY, LOST_REPLY, RESET, "429", "409", "500", "503")
KINDS: Mapping[str, tuple[str, ...]] = {
    BIND: _WRITE_KINDS,
    WRITE: _WRITE_KINDS,
    EVENT: _WRITE_KINDS,
    LEASE: _WRITE_KINDS,
    READ: (DROP, DELAY, SLOW_REPLY, RESET, "429", "500", "503"),
    WATCH: (DROP, DELAY, "429", "500", "503"),
}


class FaultRates(msgspec.Struct, frozen=True, kw_only=True):
    """How many requests are faulty, and how long faults last, in seconds."""

    shares: Mapping[str, float] = msgspec.field(default_factory=lambda: dict.fromkeys(CLASSES, 0.15))
    delay: tuple[float, float] = (0.1, 3.0)
    retry_after: int = 1
    watch_fault_every: float = 30.0
    """The mean time between faults of an open watch."""
    cut_share: float = 0.5
    """The share of cuts among the faults of open watches; the others hold the stream back."""
    hold: tuple[float, float] = (1.0, 8.0)


class PlannedFault(msgspec.Struct, frozen=True):
    """What to do with one request."""

    kind: str
    seconds: float = 0.0
    status: int = 0


def request_class(method: str, path: str, query: Mapping[str, str]) -> str:
    """Return the class of a request."""
    parts = path.strip("/").split("/")
    if "leases" in parts:
        return LEASE
    if method in ("GET", "HEAD"):
        return WATCH if query.get("watch") in ("1", "true") else READ
    if parts[-1] == "binding":
        return BIND
    return EVENT if "events" in parts else WRITE


def resource_of(path: str) -> str:
    """Return the plural of the kind that a path names."""
    parts = path.strip("/").split("/")
    parts = parts[2:] if parts[0] == "api" else parts[3:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    return parts[0] if parts else ""


class FaultPlan:
    """See the module's docstring; `enabled` switches all faults off and on."""

    def __init__(self, rates: FaultRates, draw: random.Random) -> None:
        self.rates, self.enabled, self._draw = rates, True, draw

    def for_request(self, request: str, method: str) -> PlannedFault | None:
        """Return the fault of the next request of a class, or None."""
        if not self.enabled or self._draw.random() >= self.rates.shares.get(request, 0.0):
            return None
        kind = self._draw.choice(KINDS[READ if request == LEASE and method == "GET" else request])
        seconds = self._draw.uniform(*self.rates.delay) if kind in (DELAY, SLOW_REPLY) else 0.0
        return PlannedFault(kind, seconds, _REFUSALS.get(kind, 0))

    def until_watch_fault(self) -> float:
        """Return the seconds until an open watch is met by a fault."""
        if not self.rates.watch_fault_every:
            return float("inf")
        return self._draw.expovariate(1.0 / self.rates.watch_fault_every)

    def for_open_watch(self) -> PlannedFault | None:
        """Return the fault of an open watch whose time has come."""
        if not self.enabled:
            return None
        if self._draw.random() < self.rates.cut_share:
            return PlannedFault(CUT_WATCH)
        return PlannedFault(HELD_WATCH, self._draw.uniform(*self.rates.hold))
