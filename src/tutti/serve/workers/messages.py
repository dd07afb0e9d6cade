"""Messages between the server and its workers, over pipes.

Contract: a message is a frame: the lengths of its head and its body, a head in MessagePack, and a body of bytes that
the frame does not interpret. The server sends `WorkerSetup` once, and the worker answers `Ready`; then the worker
answers every `PlanJob` with one `Reply`, and with one `Idle` when it has freed its memory.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable
from enum import StrEnum
from typing import BinaryIO

import msgspec

from tutti.kube.reading.sources import Source
from tutti.recommend.records.request import Binder, Objective, ResourceWeights, Strategy

Chunks = Iterable[bytes]
"""The chunks of a body."""

_LENGTHS = struct.Struct(">IQ")
_PIECE = 2**18
"""Bytes per write; a larger write would block the event loop."""


class Route(StrEnum):
    """The format of a request and its answer."""

    GARDENER = "gardener"
    ADVISOR = "scaling-advisor"
    TUTTI = "tutti"


class QueryOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The options of a query; None for an option that the query does not have."""

    objective: Objective | None = None
    strategy: Strategy | None = None
    binder: Binder | None = None
    weights: ResourceWeights | None = None
    time_limit: float | None = None
    down: bool | None = None


class WorkerSetup(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """Settings for all jobs of a worker."""

    prices: Source | None = None
    pools: Source | None = None
    region: str = ""
    max_body: int
    time_limit: float
    max_time_limit: float


class PlanJob(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A plan request; the frame has its body."""

    id: str
    route: Route
    options: QueryOptions = QueryOptions()
    is_gzip: bool = False


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker has imported everything and made a small plan."""

    memory: int
    """Resident memory in bytes."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The answer to a job; the frame has the body for the client."""

    status: int
    pods: int | None = None
    fault: str = ""
    """A traceback for the log."""


class Idle(msgspec.Struct, frozen=True, tag=True):
    """The worker can take another job."""

    memory: int
    """Resident memory in bytes."""


Message = WorkerSetup | PlanJob | Ready | Reply | Idle
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def write(to: BinaryIO, message: Message, body: bytes = b"") -> None:
    """Write a message."""
    head = msgspec.msgpack.encode(message)
    to.write(_LENGTHS.pack(len(head), len(body)) + head)
    to.write(body)
    to.flush()


def read(source: BinaryIO) -> tuple[Message, bytes]:
    """Read a message; `EOFError` at the end of the pipe."""
    head, body = _LENGTHS.unpack(_exactly(source, _LENGTHS.size))
    return _DECODER.decode(_exactly(source, head)), _exactly(source, body)


def _exactly(source: BinaryIO, count: int) -> bytes:
    data = source.read(count)
    if len(data) < count:
        raise EOFError
    return data


async def send(to: asyncio.StreamWriter, message: Message, body: Chunks = ()) -> None:
    """Write a message without blocking the event loop."""
    head = msgspec.msgpack.encode(message)
    chunks = list(body)
    to.write(_LENGTHS.pack(len(head), sum(map(len, chunks))) + head)
    for chunk in chunks:
        view = memoryview(chunk)
        for start in range(0, len(view), _PIECE):
            to.write(view[start : start + _PIECE])
            await to.drain()
    await to.drain()


async def receive(source: asyncio.StreamReader) -> tuple[Message, bytes]:
    """Read a message; `EOFError` at the end of the pipe."""
    head, body = _LENGTHS.unpack(await source.readexactly(_LENGTHS.size))
    message = _DECODER.decode(await source.readexactly(head))
    return message, await source.readexactly(body)
