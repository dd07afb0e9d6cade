"""Leadership: a Lease decides which of several processes schedules.

The API server does not check who sends a Binding, so time does. With the default times, counted from the last renewal:

| seconds | what |
|---|---|
| 0 | the renewal begins: the lease counts from before it was written |
| 10 | `renew_deadline`: every binding and eviction has been answered or given up, and no write is sent any more |
| 15 | `duration`: the earliest time at which another process can take over |

A binding or an eviction may take `write_timeout`: `duration` less `renew_deadline`, and never longer than until the
renew deadline, however long credentials and a connection take. What the API server has taken in, it has five more
seconds to carry out. Other writes name a uid or a version and ask only `may_write`.

The lease is renewed on a thread of its own, so that no session delays it. That thread stops renewing when the event
loop has made no progress for some seconds: a process that hangs must not lead.

Contract: until `ask` is called the lease is only looked at. `may_write` is true only while this process leads. An
error, of whatever kind, is a `problem` and not yet a loss: the lease is tried again until the renew deadline. Once
lost, the lease is not taken again, because the plans of this process are out of date: `is_lost` is set, also if the
thread ends unexpectedly, and the process should end.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from tutti.client.api_client import ApiClient
from tutti.client.lease_lock import LeaseLock
from tutti.exceptions import TuttiError
from tutti.live.options import LeaseOptions

_LOG = logging.getLogger("tutti.live")
_MAX_SILENCE = 10.0
"""Seconds without progress of the event loop after which the lease is no longer renewed."""
_RELEASE_WITHIN = 4.0
"""Seconds in which the lease is given back."""


class WritePermission(Protocol):
    """Whether this process may write now, and how many seconds a write may take."""

    @property
    def may_write(self) -> bool: ...
    @property
    def write_timeout(self) -> float: ...


class AlwaysLeads:
    """The leadership of a process without a lease."""

    write_timeout = 5.0
    may_write = True
    is_lost = False
    has_looked = True
    leads_since = float("-inf")
    note = ""


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
        self._stop = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        """The event loop of the lease thread."""
        self._asked, self._stopped = asyncio.Event(), asyncio.Event()
        """Interrupt what the lease thread waits for."""
        self._asks = self._releases = False
        self._thread: threading.Thread | None = None
        self._logged: set[str] = set()
        """Problems that were logged since the lease was last read."""
        self.leads_since = float("-inf")
        """The monotonic time since which no other process leads."""
        self.is_lost = False
        """Whether this process led and no longer does."""
        self.has_looked = False
        """Whether the lease was looked at, if it could be."""
        self.holder = ""
        """Who held the lease when it was last read."""
        self.problem: Exception | None = None
        """Why the lease could not be read or written."""

    @property
    def note(self) -> str:
        """What users should know about the lease; empty while all is well."""
        problem = self.problem
        return f"the lease {self._name} cannot be held: {_text(problem)}" if problem is not None else ""

    @property
    def _name(self) -> str:
        return f"{self._options.namespace}/{self._options.name}"

    @property
    def write_timeout(self) -> float:
        """The seconds that a binding may take if it is sent now; 0 or less if it must not be sent."""
        if not self._leads:
            return 0.0
        left = self._renewed_at + self._options.renew_deadline - self._monotonic()
        return min(self._options.write_timeout, left)

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
        self._signal(self._asked)

    def stop(self, *, releases: bool = True) -> None:
        """End; give the lease back if `releases` is set, which it must not be while a write is under way."""
        self._releases = releases
        self._stop.set()
        self._signal(self._stopped)
        if self._thread is not None:
            self._thread.join(timeout=_RELEASE_WITHIN + 2)

    def _signal(self, event: asyncio.Event) -> None:
        """Set an event of the lease thread."""
        if self._loop is not None:
            with suppress(RuntimeError):  # the thread has ended
                self._loop.call_soon_threadsafe(event.set)

    def _run(self) -> None:
        try:
            asyncio.run(self._hold())
        except Exception:
            _LOG.exception("the lease thread has failed")
        finally:
            if not self._stop.is_set() and not self.is_lost:
                self._lose("its thread has ended")

    async def _hold(self) -> None:
        """Ask for the lease and renew it until `stop` is called; then give it back."""
        self._loop = asyncio.get_running_loop()
        if self._stop.is_set():
            self._stopped.set()
        client = self._new_client()
        lock = LeaseLock(
            client,
            self._name,
            identity=self._identity,
            duration=self._options.duration,
            monotonic=self._monotonic,
            wall=self._wall,
        )
        renewing = asyncio.create_task(self._renew(lock))
        stopping = asyncio.create_task(self._stopped.wait())
        try:
            await asyncio.wait((renewing, stopping), return_when=asyncio.FIRST_COMPLETED)
            if renewing.done() and not self.is_lost:
                renewing.result()  # raises what ended it
            await stopping
            renewing.cancel()
            await asyncio.wait((renewing,))
            self._leads = False
            if self._releases:
                async with asyncio.timeout(_RELEASE_WITHIN):
                    await lock.release(timeout=2.0)
        except (TuttiError, TimeoutError) as error:
            _LOG.warning("the lease was not given back: %s", _text(error))
        finally:
            await client.close()

    async def _renew(self, lock: LeaseLock) -> None:
        """Ask for the lease and renew it until it is lost."""
        options = self._options
        while not self.is_lost:
            started = self._monotonic()
            if started - self._heartbeat() < _MAX_SILENCE:
                await self._try_to_hold(lock, started)
                self.has_looked = True
            elif self._leads:
                _LOG.error("the event loop makes no progress: the lease is not renewed")
            if self._leads and self._is_late():
                self._lose("it was not renewed in time")
            pause = options.retry_period - (self._monotonic() - started)
            with suppress(TimeoutError):
                async with asyncio.timeout(max(pause, 0.05)):
                    await self._asked.wait()
            self._asked.clear()

    async def _try_to_hold(self, lock: LeaseLock, started: float) -> None:
        timeout, holds = min(self._options.retry_period, self._options.renew_deadline / 2), False
        try:
            if self._asks:
                holds = await lock.try_to_hold(timeout)
            else:
                await lock.look(timeout)
        except Exception as error:  # the lease thread must go on
            self.problem = error
            if self.note not in self._logged:
                self._logged.add(self.note)
                _LOG.warning("%s", self.note)
            return
        self.problem, self.holder = None, lock.holder
        self._logged.clear()
        if self._leads and not holds:
            self._lose(f"{lock.holder} has taken it")
        elif self._leads and self._is_late():
            self._lose("it was not renewed in time")  # another process may have held it meanwhile
        elif holds:
            self._renewed_at = started
            if not self._leads and not self._is_late():  # a process that was stopped meanwhile asks once more
                since = lock.free_since
                self.leads_since, self._leads = self._monotonic() if since is None else since, True
                _LOG.info("%s leads", self._identity)

    def _is_late(self) -> bool:
        return self._monotonic() >= self._renewed_at + self._options.renew_deadline

    def _lose(self, why: str) -> None:
        self._leads, self.is_lost = False, True
        _LOG.error("the lease is lost: %s", why)


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__
