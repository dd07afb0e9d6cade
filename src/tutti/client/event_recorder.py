"""Events: what the scheduler tells users about their objects, as `kubectl describe` shows it.

Contract: `record` never waits and never fails. An event that says the same of the same object as an earlier one within
`_SERIES_FOR` only raises that event's count. Events are written in the background by a few requests at once, the oldest
first; a busy server is asked again, and an event that the server refuses for good is dropped and counted. No event is
lost while the process lives, unless more than `_MAX_WAITING` wait.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Literal

import msgspec

from tutti.client.api_client import MERGE_PATCH, ApiClient
from tutti.client.backoff import Backoff
from tutti.client.resources import EVENTS
from tutti.exceptions import ApiError
from tutti.kube.times import timestamp

_SERIES_FOR = 300 * 1_000_000
_MAX_SERIES = 20_000
_MAX_WAITING = 200_000
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


class _Series:
    """Events that say the same."""

    __slots__ = ("count", "is_waiting", "key", "last", "name", "namespace")

    def __init__(self, key: tuple[str, ...], name: str, namespace: str, *, now: int) -> None:
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
        width: int = 4,
    ) -> None:
        self._client, self._controller, self._instance = client, controller, instance
        self._now, self._draw, self._width = now, draw, width
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._waiting: deque[tuple[_Series, dict[str, Any] | None]] = deque()
        """Series with a new event, or None if only the count has changed."""
        self._wanted = asyncio.Event()
        self._in_flight = 0
        self.written = 0
        self.dropped = 0
        """Events that the server refused, or that were too many."""

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
    ) -> None:
        """Say something about an object."""
        note = note if len(note) <= _MAX_NOTE else note[: _MAX_NOTE - 3] + "..."
        now = self._now()
        key = (regarding.kind, regarding.namespace, regarding.name, regarding.uid, reason, note)
        series = self._series.get(key)
        if series is not None and now - series.last <= _SERIES_FOR:
            series.count, series.last = series.count + 1, now
            if not series.is_waiting:
                self._put(series, None)
            return
        name, namespace = f"{regarding.name}.{self._draw.getrandbits(64):016x}", regarding.namespace or "default"
        series = self._series[key] = _Series(key, name, namespace, now=now)
        self._series.move_to_end(key)
        if len(self._series) > _MAX_SERIES:
            self._series.popitem(last=False)
        body: dict[str, Any] = {
            "apiVersion": EVENTS.api_version,
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": micro_time(now),
            "reportingController": self._controller,
            "reportingInstance": self._instance,
            "action": action,
            "reason": reason,
            "regarding": {
                "kind": regarding.kind,
                "namespace": regarding.namespace,
                "name": regarding.name,
                "uid": regarding.uid,
                "apiVersion": regarding.api_version,
            },
            "note": note,
            "type": kind,
        }
        self._put(series, body)

    def _put(self, series: _Series, body: dict[str, Any] | None) -> None:
        series.is_waiting = True
        if len(self._waiting) >= _MAX_WAITING:
            self._drop(series)
            return
        self._waiting.append((series, body))
        self._wanted.set()

    def _drop(self, series: _Series) -> None:
        """Give up an event; a repetition is a new event."""
        self.dropped += 1
        if self._series.get(series.key) is series:
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
            series, body = self._waiting.popleft()
            self._in_flight += 1
            try:
                await self._write(series, body)
            finally:
                self._in_flight -= 1

    async def _write(self, series: _Series, body: dict[str, Any] | None) -> None:
        """Write an event, or the new count of one, however long that takes."""
        backoff = Backoff(self._draw, longest=10.0)
        while True:
            count = 1 if body is not None else series.count
            try:
                await self._send(series, body)
            except ApiError as error:
                if error.status in _AGAIN:
                    await asyncio.sleep(backoff.next(error.retry_after))
                    continue
                if error.reason != "AlreadyExists":  # then an earlier attempt was carried out
                    self._drop(series)
                    return
            self.written += 1
            series.is_waiting = False
            if series.count > count:  # it was repeated meanwhile
                self._put(series, None)
            return

    async def _send(self, series: _Series, body: dict[str, Any] | None) -> None:
        if body is not None:
            await self._client.request("POST", EVENTS.path(series.namespace), msgspec.json.encode(body))
            return
        change = {"series": {"count": series.count, "lastObservedTime": micro_time(series.last)}}
        path = EVENTS.path(series.namespace, series.name)
        await self._client.request("PATCH", path, msgspec.json.encode(change), content_type=MERGE_PATCH)


def micro_time(microseconds: int) -> str:
    """Return a time as the API's MicroTime, which always has six digits of a fraction."""
    text = timestamp(microseconds).removesuffix("Z")
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.ljust(6, '0')[:6]}Z"
