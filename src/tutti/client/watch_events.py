"""The events of a watch, as far as they concern every kind: lines of a stream, each with one object as JSON.

Contract: only the byte 0x0A ends a line. Text methods would also split at characters such as U+0085, which may be part
of an annotation. A line that has not ended when the stream ends is dropped: the stream was cut in the middle of it.
What cannot be decoded raises `ApiError`: the server, or a proxy before it, has answered something else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec

from tutti.client.api_errors import Status, api_error
from tutti.exceptions import ApiError

_MAX_LINE = 64 << 20
"""Bytes of a line; etcd's objects have at most a few megabytes."""
_INITIAL_END = "k8s.io/initial-events-end"


class WatchEvent(msgspec.Struct, frozen=True):
    """One line of a watch."""

    type: str
    object: msgspec.Raw


class WireMetadata(msgspec.Struct, rename="camel", frozen=True):
    """The metadata of an object, of a bookmark or of a list."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None
    continue_token: str = msgspec.field(default="", name="continue")

    @property
    def key(self) -> str:
        """Namespace and name."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @property
    def ends_list(self) -> bool:
        """Whether a bookmark says that all current objects have been sent."""
        return (self.annotations or {}).get(_INITIAL_END) == "true"


class _Header(msgspec.Struct, frozen=True):
    metadata: WireMetadata = WireMetadata()


class ListPage(msgspec.Struct, frozen=True):
    """A page of a list."""

    metadata: WireMetadata = WireMetadata()
    items: list[msgspec.Raw] | None = None


_EVENT, _HEADER = msgspec.json.Decoder(WatchEvent), msgspec.json.Decoder(_Header)
_PAGE, _STATUS = msgspec.json.Decoder(ListPage), msgspec.json.Decoder(Status)


async def split_events(pieces: AsyncIterator[bytes], where: str) -> AsyncIterator[list[WatchEvent]]:
    """Yield the events that each piece completes; raise `ApiError` for an error event, after those before it."""
    async for lines in split_lines(pieces):
        try:
            events = [_EVENT.decode(line) for line in lines]
        except msgspec.DecodeError as error:
            raise ApiError(f"{where}: not a watch event: {error}") from None
        end = next((place for place, event in enumerate(events) if event.type == "ERROR"), None)
        if end is None:
            yield events
            continue
        yield events[:end]
        status = _decode_status(events[end].object)
        raise api_error(status, status.code, f"watch of {where}")


def decode_page(data: bytes, where: str) -> ListPage:
    """Return a page of a list."""
    try:
        return _PAGE.decode(data)
    except msgspec.DecodeError as error:
        raise ApiError(f"{where}: not a list: {error}") from None


def decode_metadata(raw: msgspec.Raw) -> WireMetadata:
    """Return the metadata of an object of any kind."""
    try:
        return _HEADER.decode(raw).metadata
    except msgspec.DecodeError as error:
        raise ApiError(f"not an object of the API: {error}") from None


def _decode_status(raw: msgspec.Raw) -> Status:
    try:
        return _STATUS.decode(raw)
    except msgspec.DecodeError:
        return Status(message="an error that cannot be read")


async def split_lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[list[bytes]]:
    """Yield the lines that each piece completes, without line ends and empty lines."""
    begun: list[bytes] = []
    size = 0
    async for piece in pieces:
        first, *rest = piece.split(b"\n")
        begun.append(first)
        size += len(first)
        if size > _MAX_LINE:
            raise ApiError("a line of the stream is too long")
        if not rest:
            continue
        complete = [b"".join(begun), *rest[:-1]]
        begun, size = [rest[-1]], len(rest[-1])
        lines = [line for line in complete if line.strip()]
        if lines:
            yield lines
