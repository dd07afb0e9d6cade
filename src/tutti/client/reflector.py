"""A reflector: follows all objects of one kind by a list and a watch, and reports what changes.

The list is the beginning of a watch that starts with the current objects (`sendInitialEvents`) if the server has that,
or a list in pages. A watch goes on from the version of the last event or bookmark. When the server no longer has that
version (status 410, as an answer or inside the stream), the reflector lists again and reports only what differs from
what it knows.

Contract: changes are `Put`, `Remove` and `Unreadable`, in the order in which they happened. Nothing is reported twice;
an object that was created again under its name is removed first; no `Put` follows a `Remove` of the same uid. `run`
ends only by cancellation. Errors of the server and of the network, watches that end at once, and versions that are too
old again and again lead to another attempt after a growing, random wait; it is short again after an event of a watch,
or when a stream has lasted for some seconds.
"""

from __future__ import annotations

import asyncio
import random
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

import msgspec

from tutti.client.api_client import ApiClient
from tutti.client.backoff import Backoff
from tutti.client.resources import Resource
from tutti.client.watch_events import WatchEvent, decode_metadata, decode_page, split_events
from tutti.cluster.edits import Put, Remove
from tutti.exceptions import ApiError, InputError
from tutti.kube.objects import Object
from tutti.kube.reading.decode import decode_object
from tutti.kube.reading.sources import Source

PAGE_SIZE = 500
_WATCH_SECONDS = (240, 300)
"""The shortest and longest time after which the server ends a watch."""
_LIST_SILENCE = 75
"""Seconds for which a list that is not complete may be silent."""
_GRACE = 15
"""Seconds that a watch may last longer than the server was asked for."""
_SHORT = 1.0
"""Seconds within which a server does not end a watch as long as all is well."""
_SETTLED = 5.0
"""Seconds after which a stream counts as a success, whatever ends it."""
_EXPIRED_AGAIN = 60.0
"""Seconds within which a second version that is too old is no accident."""
_MAX_REMOVED = 10_000
"""How many removed uids are remembered."""


class Unreadable(msgspec.Struct, frozen=True):
    """An object that the server has and Tutti cannot read."""

    kind: str
    key: str
    uid: str | None
    problem: str


Change = Put | Remove | Unreadable


class _Known(NamedTuple):
    uid: str
    version: str


class Reflector:
    """See the module's docstring; `report` gets the changes of each piece of a stream, in the event loop."""

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        report: Callable[[list[Change]], None],
        *,
        monotonic: Callable[[], float],
        draw: random.Random,
        streams_lists: bool = True,
        backoff: Backoff | None = None,
    ) -> None:
        self.resource, self._client, self._report = resource, client, report
        self._monotonic, self._draw, self._streams_lists = monotonic, draw, streams_lists
        self._source = Source(resource.name, b"")
        self._known: dict[str, _Known] = {}
        self._removed: OrderedDict[str, None] = OrderedDict()
        self._version = ""
        """The version from which the watch goes on; empty if a list is needed."""
        self._backoff = backoff or Backoff(draw)
        self._began = float("-inf")
        self._opened_at = float("inf")
        """When the server began to answer with a stream, in this attempt."""
        self._expired_at = float("-inf")
        """When a version was last too old."""
        self.synced = asyncio.Event()
        """Whether all objects have been reported once."""
        self.heard_at = float("-inf")
        """The monotonic time of the last byte from the server."""
        self.problem: ApiError | None = None
        """Why the last attempt failed; None while all is well."""
        self.lists = 0
        """How many lists were completed."""
        self.list_began = float("-inf")
        """The monotonic time at which the last complete list began: changes from before it were reported."""

    def known_uids(self) -> list[tuple[str, str | None]]:
        """Return the keys and uids of all objects that were reported and not removed."""
        return [(key, known.uid or None) for key, known in self._known.items()]

    @property
    def known_count(self) -> int:
        """How many objects were reported and not removed."""
        return len(self._known)

    def relist(self) -> None:
        """Begin with a list when `run` is called again."""
        self._version = ""

    async def run(self) -> None:
        """Follow the kind until cancelled."""
        while True:
            self._opened_at = float("inf")
            try:
                await self._follow()
                if self._stream_age() >= _SHORT:
                    continue
                problem = ApiError(f"{self.resource.name}: the server ended the watch at once")
            except ApiError as error:
                problem = error
            self.problem = problem
            if self._stream_age() >= _SETTLED:
                self._backoff.reset()
            if not self._is_first_expiry(problem):
                await asyncio.sleep(self._backoff.next(problem.retry_after))

    def _stream_age(self) -> float:
        return self._monotonic() - self._opened_at

    def _is_first_expiry(self, problem: ApiError) -> bool:
        """Return whether the version was too old, for the first time in a while; then list at once."""
        if problem.status != 410 and problem.reason != "Expired":
            return False
        self._version = ""
        last, self._expired_at = self._expired_at, self._monotonic()
        return self._expired_at - last > _EXPIRED_AGAIN

    async def _follow(self) -> None:
        """Go on from the known version, or list everything."""
        if not self._version:
            self._began = self._monotonic()
            if self._streams_lists:
                try:
                    await self._watch(lists=True)
                    return
                except ApiError as error:
                    if error.status not in (400, 422):
                        raise
                    self._streams_lists = False  # this server has no lists as streams
            await self._page_list()
        await self._watch(lists=False)

    # Lists ------------------------------------------------------------------------------------------------------------

    async def _page_list(self) -> None:
        """Read the current objects in pages."""
        seen: dict[str, _Known] = {}
        token, limit = "", PAGE_SIZE
        while True:
            query = {"limit": str(limit)} if limit else {}
            if token:
                query["continue"] = token
            try:
                page = decode_page(await self._client.read(self.resource.path(), query=query), self.resource.name)
            except ApiError as error:
                if error.status != 410 or not token:
                    raise
                token, limit, seen = "", 0, {}  # the pages took too long: read all at once
                continue
            self.heard_at, self.problem = self._monotonic(), None
            changes: list[Change] = []
            try:
                for item in page.items or ():
                    self._put(item, changes, seen)
            finally:
                self._send(changes)
            token = page.metadata.continue_token
            if not token:
                self._end_list(seen, page.metadata.resource_version)
                return

    def _end_list(self, seen: dict[str, _Known], version: str) -> None:
        """Report objects that are gone, and go on from the version of the list."""
        changes: list[Change] = []
        for key in [key for key in self._known if key not in seen]:
            self._forget(key, changes)
        self._version = version
        self.lists, self.list_began = self.lists + 1, self._began
        self._send(changes)
        self.synced.set()

    # Watches ----------------------------------------------------------------------------------------------------------

    async def _watch(self, *, lists: bool) -> None:
        """Follow the kind until the server ends the watch; `lists` says whether it begins with the current objects."""
        seconds = self._draw.randint(*_WATCH_SECONDS)
        query = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
        if lists:
            query |= {"sendInitialEvents": "true", "resourceVersionMatch": "NotOlderThan"}
        else:
            query["resourceVersion"] = self._version
        seen: dict[str, _Known] | None = {} if lists else None
        """What the list has reported; None when the list is complete."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(_LIST_SILENCE if lists else None) as limit:
                async for events in self._events(query, timeout=seconds + _GRACE):
                    was_listed = seen is None
                    seen = self._report_events(events, seen)
                    if not was_listed:
                        self.problem = None
                        limit.reschedule(None if seen is None else loop.time() + _LIST_SILENCE)
                    elif events:
                        self.problem = None
                        self._backoff.reset()
        except TimeoutError:
            raise ApiError(f"{self.resource.name}: the list was silent for {_LIST_SILENCE} s") from None
        if seen is not None:
            if self._stream_age() >= seconds:
                self._streams_lists = False  # a stream does not last long enough; pages go on where they were
            raise ApiError(f"{self.resource.name}: the list ended before it was complete")

    def _report_events(self, events: list[WatchEvent], seen: dict[str, _Known] | None) -> dict[str, _Known] | None:
        """Report some events of a watch; return what its list has reported, None when that is complete."""
        changes: list[Change] = []
        try:
            for event in events:
                if event.type == "BOOKMARK":
                    metadata = decode_metadata(event.object)
                    version = metadata.resource_version
                    if seen is not None and metadata.ends_list:
                        self._send(changes)
                        self._end_list(seen, version)
                        seen, changes = None, []
                elif event.type == "DELETED":
                    if seen is not None:
                        seen.pop(_identity(event.object)[0], None)
                    version = self._delete(event.object, changes)
                else:
                    version = self._put(event.object, changes, seen)
                if seen is None:
                    self._version = version or self._version
        finally:
            self._send(changes)  # what is known was reported, also if a later event cannot be read
        return seen

    async def _events(self, query: dict[str, str], *, timeout: float) -> AsyncIterator[list[WatchEvent]]:
        """Yield the events of a watch; raise `ApiError` for an error event."""
        path = self.resource.path()
        async with self._client.stream(path, query=query, timeout=timeout, silence=timeout) as pieces:
            self.heard_at = self._opened_at = self._monotonic()
            if self._version:
                self.problem = None  # a list has to bring something first
            async for events in split_events(pieces, self.resource.name):
                self.heard_at = self._monotonic()
                yield events

    # Objects ----------------------------------------------------------------------------------------------------------

    def _put(self, raw: msgspec.Raw, changes: list[Change], seen: dict[str, _Known] | None = None) -> str:
        """Report an object as it is now, if that is new; return its version."""
        obj: Object | None = None
        problem = ""
        try:
            obj = decode_object(raw, self.resource.kind, source=self._source)
            metadata = obj.metadata
            key, found = obj.key, _Known(metadata.uid or "", metadata.resource_version or "")
        except InputError as error:
            problem = str(error)
            key, found = _identity(raw)
        if seen is not None:
            seen[key] = found
        known = self._known.get(key)
        if known == found or found.uid in self._removed:
            return found.version
        if known is not None and known.uid != found.uid:
            self._forget(key, changes)
        self._known[key] = found
        kind = self.resource.kind
        changes.append(Put(obj) if obj is not None else Unreadable(kind, key, found.uid or None, problem))
        return found.version

    def _delete(self, raw: msgspec.Raw, changes: list[Change]) -> str:
        """Report that an object is gone, unless it was created again meanwhile; return the version."""
        key, found = _identity(raw)
        known = self._known.get(key)
        if known is not None and known.uid == found.uid:
            self._forget(key, changes)
        return found.version

    def _forget(self, key: str, changes: list[Change]) -> None:
        known = self._known.pop(key)
        if known.uid:
            self._removed[known.uid] = None
            if len(self._removed) > _MAX_REMOVED:
                self._removed.popitem(last=False)
        changes.append(Remove(self.resource.kind, key, known.uid or None))

    def _send(self, changes: list[Change]) -> None:
        if changes:
            self._report(changes)


def _identity(raw: msgspec.Raw) -> tuple[str, _Known]:
    metadata = decode_metadata(raw)
    return metadata.key, _Known(metadata.uid, metadata.resource_version)
