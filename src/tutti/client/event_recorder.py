"""Events: what the scheduler tells users about their objects, as `kubectl describe` shows it.

Contract: `record` never waits and never fails. An event that says the same of the same object as an earlier one within
`_SERIES_FOR` only raises that event's count. As in client-go, an object gets `_BURST` events at once, and then one in
`_REFILL`; events that cannot repeat are exempt. Events are written in the background by a few requests at once, the
oldest first; while `is_busy` says that more important requests are under way, events wait for some seconds. A busy
server is asked again, and an event that the server refuses for good is dropped and counted. Apart from the limit, no
event is lost while the process lives, unless more than `_MAX_WAITING` wait.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from tutti.client.access.missing_rights import is_missing_right
from tutti.client.api_client import MERGE_PATCH, ApiClient
from tutti.client.backoff import Backoff
from tutti.client.resources import EVENTS
from tutti.exceptions import ApiError
from tutti.kube.times import timestamp

_Key = TypeVar("_Key")
_Value = TypeVar("_Value")
_SERIES_FOR = 300 * 1_000_000
_MAX_SERIES = 4_096
_BURST = 25
_REFILL = 300 * 1_000_000
_MAX_OBJECTS = 4_096
"""Objects whose number of events is remembered."""
_MAX_WAITING = 200_000
_POSTPONE = 0.05
"""Seconds for which events make way for more important requests."""
_POSTPONED_FOR = 15 * 1_000_000
"""Microseconds for which they do so at most."""
_RIGHTS_WITHIN = 10 * 1_000_000
"""Microseconds within which a server that has just started knows the rights of its users."""
_MAX_NOTE = 1_024
"""Characters of a note; the API refuses longer ones."""
_AGAIN = frozenset((0, 408, 429, 500, 502, 503, 504))
"""Statuses after which a write is repeated; an event that is written twice by this has the same name and is refused."""


class Regarding(msgspec.Struct, frozen=True):
    """The object that an event is about."""

    kind: str
    namespace: str
    name: str
    uid: str = ""
    api_version: str = "v1"


class _NewEvent(NamedTuple):
    """An event that waits to be written: small, because thousands may wait while the server is busy."""

    regarding: Regarding
    reason: str
    note: str
    action: str
    kind: str
    time: int


class _ObjectLimit:
    """How many events an object may still get (a token bucket)."""

    __slots__ = ("_left", "_now")

    def __init__(self, now: int) -> None:
        self._left, self._now = float(_BURST), now

    def take(self, now: int) -> bool:
        """Return whether one more event is allowed, and count it."""
        self._left = min(self._left + max(now - self._now, 0) / _REFILL, _BURST)
        self._now = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class _Series:
    """Events that say the same; the key is None if there is only one."""

    __slots__ = ("count", "is_waiting", "key", "last", "name", "namespace")

    def __init__(self, key: tuple[str, ...] | None, name: str, namespace: str, *, now: int) -> None:
        self.key, self.name, self.namespace, self.last = key, name, namespace, now
        self.count = 1
        self.is_waiting = True
        """Whether a write of the event or of its count waits or is under way."""


class EventRecorder:
    """See the module's docstring; `now` returns microseconds since 1970."""

    def __init__(
        self,
        client: ApiClient,
        *,
        controller: str,
        instance: str,
        now: Callable[[], int],
        draw: random.Random,
        width: int = 16,
        is_busy: Callable[[], bool] = lambda: False,
    ) -> None:
        self._client, self._controller, self._instance = client, controller, instance
        self._now, self._draw, self._width, self._is_busy = now, draw, width, is_busy
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._limits: OrderedDict[Regarding, _ObjectLimit] = OrderedDict()
        self._waiting: deque[tuple[_Series, _NewEvent | None]] = deque()
        """Series with a new event, or None if only the count has changed."""
        self._wanted = asyncio.Event()
        self._in_flight = 0
        self._lacks_right_since: int | None = None
        """When the right to write events was first missing, if it was so ever since."""
        self.written = 0
        self.dropped = 0
        """Events that the server refused, or that were too many for it or for their object."""

    @property
    def waiting(self) -> int:
        """How many events are not written yet."""
        return len(self._waiting) + self._in_flight

    def record(
        self,
        regarding: Regarding,
        reason: str,
        note: str,
        *,
        action: str,
        kind: Literal["Normal", "Warning"] = "Normal",
        repeats: bool = True,
    ) -> None:
        """Say something about an object; `repeats` is False for what happens to an object once at most."""
        note = note if len(note) <= _MAX_NOTE else note[: _MAX_NOTE - 3] + "..."
        now = self._now()
        key = None
        if repeats:
            key = (regarding.kind, regarding.namespace, regarding.name, regarding.uid, reason, note)
            known = self._series.get(key)
            if known is not None and now - known.last <= _SERIES_FOR:
                known.count, known.last = known.count + 1, now
                if not known.is_waiting and self._is_allowed(regarding, now):
                    self._put(known, None)
                return
            if not self._is_allowed(regarding, now):
                self.dropped += 1
                return
        name, namespace = f"{regarding.name}.{self._draw.getrandbits(64):016x}", regarding.namespace or "default"
        series = _Series(key, name, namespace, now=now)
        if key is not None:
            _remember(self._series, key, series, most=_MAX_SERIES)
        self._put(series, _NewEvent(regarding, reason, note, action, kind, now))

    def _is_allowed(self, regarding: Regarding, now: int) -> bool:
        """Return whether an object may get one more event, and count it."""
        limit = self._limits.get(regarding) or _ObjectLimit(now)
        _remember(self._limits, regarding, limit, most=_MAX_OBJECTS)
        return limit.take(now)

    def _body(self, series: _Series, new: _NewEvent) -> dict[str, Any]:
        about = new.regarding
        return {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {"name": series.name, "namespace": series.namespace},
            "eventTime": micro_time(new.time),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": new.action,
            "reason": new.reason,
            "regarding": {
                "kind": about.kind,
                "namespace": about.namespace,
                "name": about.name,
                "uid": about.uid,
                "apiVersion": about.api_version,
            },
            "note": new.note,
            "type": new.kind,
        }

    def _put(self, series: _Series, new: _NewEvent | None) -> None:
        series.is_waiting = True
        if len(self._waiting) >= _MAX_WAITING:
            self._drop(series)
            return
        self._waiting.append((series, new))
        self._wanted.set()

    def _drop(self, series: _Series) -> None:
        """Give up an event; a repetition is a new event."""
        self.dropped += 1
        if series.key is not None and self._series.get(series.key) is series:
            del self._series[series.key]

    async def run(self) -> None:
        """Write events until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(self._width):
                group.create_task(self._write_all())

    async def drain(self, timeout: float) -> bool:
        """Wait until all events are written; return whether they are."""
        try:
            async with asyncio.timeout(timeout):
                while self.waiting:
                    await asyncio.sleep(0.05)
        except TimeoutError:
            return False
        return True

    async def _write_all(self) -> None:
        while True:
            while not self._waiting:
                self._wanted.clear()
                await self._wanted.wait()
            if self._is_busy() and self._now() - self._waiting[0][0].last < _POSTPONED_FOR:
                await asyncio.sleep(_POSTPONE)
                continue
            series, new = self._waiting.popleft()
            self._in_flight += 1
            try:
                await self._write(series, new)
            finally:
                self._in_flight -= 1

    async def _write(self, series: _Series, new: _NewEvent | None) -> None:
        """Write an event, or the new count of one, however long that takes."""
        backoff = Backoff(self._draw, longest=10.0)
        while True:
            count = 1 if new is not None else series.count
            try:
                await self._send(series, new)
            except ApiError as error:
                if error.status in _AGAIN or self._may_get_right(error):
                    await asyncio.sleep(backoff.next(error.retry_after))
                    continue
                if error.reason != "AlreadyExists":  # then an earlier attempt was carried out
                    self._drop(series)
                    return
            self.written, self._lacks_right_since = self.written + 1, None
            series.is_waiting = False
            if series.count > count:  # it was repeated meanwhile
                self._put(series, None)
            return

    def _may_get_right(self, error: ApiError) -> bool:
        """Return whether a missing right may only mean that the server has just started."""
        if not is_missing_right(error):
            return False
        now = self._now()
        if self._lacks_right_since is None:
            self._lacks_right_since = now
        return now - self._lacks_right_since < _RIGHTS_WITHIN

    async def _send(self, series: _Series, new: _NewEvent | None) -> None:
        if new is not None:
            body = msgspec.json.encode(self._body(series, new))
            await self._client.request("POST", EVENTS.path(series.namespace), body)
            return
        change = {"series": {"count": series.count, "lastObservedTime": micro_time(series.last)}}
        path = EVENTS.path(series.namespace, series.name)
        await self._client.request("PATCH", path, msgspec.json.encode(change), content_type=MERGE_PATCH)


def _remember(known: OrderedDict[_Key, _Value], key: _Key, value: _Value, *, most: int) -> None:
    """Remember a value as the newest; forget the oldest if there are too many."""
    known[key] = value
    known.move_to_end(key)
    if len(known) > most:
        known.popitem(last=False)


def micro_time(microseconds: int) -> str:
    """Return a time as the API's MicroTime, which always has six digits of a fraction."""
    seconds, fraction = divmod(microseconds, 1_000_000)
    return f"{_whole_seconds(seconds)}.{fraction:06}Z"


@lru_cache(maxsize=8)
def _whole_seconds(seconds: int) -> str:
    return timestamp(seconds * 1_000_000).removesuffix("Z")
