"""Leadership: a Lease decides which of several processes schedules.

The API server does not check who sends a Binding, so time does: a write leaves at most `renew_deadline` after the last
renewal of the lease, and takes at most `write_timeout`; another process takes over `duration` after that renewal at the
earliest. The lease is renewed on a thread of its own, so that no session delays it. That thread stops renewing when the
event loop has made no progress for some seconds: a process that hangs must not lead.

Contract: until `ask` is called the lease is only looked at. `may_write` is true only while this process leads; once
lost, the lease is not taken again, because the plans of this process are out of date: `lost` is set, and the process
should end.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable

from tutti.client.api_client import ApiClient
from tutti.client.lease_lock import LeaseLock
from tutti.exceptions import ApiError
from tutti.live.options import LeaseOptions

_LOG = logging.getLogger("tutti.live")
_MAX_SILENCE = 10.0
"""Seconds without progress of the event loop after which the lease is no longer renewed."""


class AlwaysLeads:
    """The leadership of a process without a lease."""

    write_timeout = 5.0
    may_write = True
    is_lost = False
    has_looked = True
    leads_since = float("-inf")


class Leadership:
    """See the module's docstring; `heartbeat` returns the monotonic time of the event loop's last progress."""

    def __init__(
        self,
        new_client: Callable[[], ApiClient],
        options: LeaseOptions,
        *,
        identity: str,
        heartbeat: Callable[[], float],
        monotonic: Callable[[], float],
        wall: Callable[[], int],
    ) -> None:
        self._new_client, self._options, self._identity = new_client, options, identity
        self._heartbeat, self._monotonic, self._wall = heartbeat, monotonic, wall
        self._renewed_at = float("-inf")
        self._leads = False
        self._stop, self._wake = threading.Event(), threading.Event()
        self._asks = self._releases = False
        self._thread: threading.Thread | None = None
        self.leads_since = float("-inf")
        """The monotonic time since which no other process leads."""
        self.is_lost = False
        """Whether this process led and no longer does."""
        self.has_looked = False
        """Whether the lease was looked at, if it could be."""
        self.holder = ""
        """Who held the lease when it was last read."""
        self.problem: ApiError | None = None
        """Why the lease could not be read or written."""

    @property
    def write_timeout(self) -> float:
        """The longest time that a write may take."""
        return self._options.write_timeout

    @property
    def may_write(self) -> bool:
        """Whether this process leads and may send a write now."""
        return self._leads and self._monotonic() < self._renewed_at + self._options.renew_deadline

    @property
    def is_alive(self) -> bool:
        """Whether the lease is being asked for or renewed, or that has ended as it should."""
        return self._thread is None or self._thread.is_alive() or self._stop.is_set() or self.is_lost

    def start(self) -> None:
        """Begin to look at the lease."""
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)
        self._thread.start()

    def ask(self) -> None:
        """Begin to ask for the lease; call this when everything is listed."""
        self._asks = True
        self._wake.set()

    def stop(self, *, releases: bool = True) -> None:
        """End; give the lease back if `releases` is set, which it must not be while a write is under way."""
        self._releases = releases
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        asyncio.run(self._hold())

    async def _hold(self) -> None:
        client = self._new_client()
        options = self._options
        lock = LeaseLock(
            client,
            f"{options.namespace}/{options.name}",
            identity=self._identity,
            duration=options.duration,
            monotonic=self._monotonic,
            wall=self._wall,
        )
        try:
            while not self._stop.is_set() and not self.is_lost:
                started = self._monotonic()
                if started - self._heartbeat() < _MAX_SILENCE:
                    await self._try_to_hold(lock, started)
                    self.has_looked = True
                elif self._leads:
                    _LOG.error("the event loop makes no progress: the lease is not renewed")
                if self._leads and self._monotonic() >= self._renewed_at + options.renew_deadline:
                    self._lose("it was not renewed in time")
                pause = options.retry_period - (self._monotonic() - started)
                if await asyncio.to_thread(self._wake.wait, max(pause, 0.05)):
                    self._wake.clear()
            if self._leads:
                self._leads = False
                if self._releases:
                    await lock.release(timeout=2.0)
        except ApiError as error:
            _LOG.warning("the lease was not released: %s", error)
        finally:
            await client.close()

    async def _try_to_hold(self, lock: LeaseLock, started: float) -> None:
        timeout, holds = min(self._options.retry_period, self._options.renew_deadline / 2), False
        try:
            if self._asks:
                holds = await lock.try_to_hold(timeout)
            else:
                await lock.look(timeout)
        except ApiError as error:
            self.problem = error
            return
        self.problem, self.holder = None, lock.holder
        if holds:
            self._renewed_at = started  # the lease counts from before it was written
            if not self._leads:
                since = lock.free_since
                self.leads_since, self._leads = self._monotonic() if since is None else since, True
                _LOG.info("%s leads", self._identity)
        elif self._leads:
            self._lose(f"{lock.holder} has taken it")

    def _lose(self, why: str) -> None:
        self._leads, self.is_lost = False, True
        _LOG.error("the lease is lost: %s", why)
