"""What the server and its workers say to each other, over pipes.

Contract: a message is a frame: the lengths of its head and its body, a head in MessagePack, and a body of plain bytes
that nobody on the way looks into. `Setup` is said once, then a `Ready` comes back; after that every `Job` is answered
by one `Reply`, and by one `Idle` when the worker has tidied up.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterable
from enum import StrEnum
from typing import BinaryIO

import msgspec

from tutti.kube.reading.sources import Source
from tutti.recommend.records.request import Binder, Objective, Strategy, Weights

Chunks = Iterable[bytes]
"""A body as it came in, or in one piece."""

_LENGTHS = struct.Struct(">IQ")
_PIECE = 2**18
"""A write of more would hold up the server's loop."""


class Route(StrEnum):
    """In whose words a request is asked and answered."""

    GARDENER = "gardener"
    ADVISOR = "scaling-advisor"
    OURS = "ours"


class Asked(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What the query of a request says; None where it is silent."""

    objective: Objective | None = None
    strategy: Strategy | None = None
    binder: Binder | None = None
    weights: Weights | None = None
    time_limit: float | None = None
    down: bool | None = None


class Setup(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """What holds for all jobs of a worker."""

    prices: Source | None = None
    pools: Source | None = None
    region: str = ""
    max_body: int
    time_limit: float
    max_time_limit: float


class Job(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """A request; its body is the frame's."""

    id: str
    route: Route
    asked: Asked = Asked()
    is_gzip: bool = False


class Ready(msgspec.Struct, frozen=True, tag=True):
    """The worker has imported everything and made a small plan."""

    memory: int


class Reply(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    """The answer to a job; what the client gets is the frame's body."""

    status: int
    pods: int | None = None
    fault: str = ""
    """A traceback, for the log alone."""


class Idle(msgspec.Struct, frozen=True, tag=True):
    """The worker can take another job."""

    memory: int
    """What it holds, in bytes."""


Message = Setup | Job | Ready | Reply | Idle
_DECODER: msgspec.msgpack.Decoder[Message] = msgspec.msgpack.Decoder(Message)


def write(to: BinaryIO, message: Message, body: bytes = b"") -> None:
    """Say something."""
    head = msgspec.msgpack.encode(message)
    to.write(_LENGTHS.pack(len(head), len(body)) + head)
    to.write(body)
    to.flush()


def read(source: BinaryIO) -> tuple[Message, bytes]:
    """What the other says next; `EOFError` when it says nothing more."""
    head, body = _LENGTHS.unpack(_exactly(source, _LENGTHS.size))
    return _DECODER.decode(_exactly(source, head)), _exactly(source, body)


def _exactly(source: BinaryIO, count: int) -> bytes:
    data = source.read(count)
    if len(data) < count:
        raise EOFError
    return data


async def send(to: asyncio.StreamWriter, message: Message, body: Chunks = ()) -> None:
    """Say something without ever holding up the loop."""
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
    """What the other says next; `EOFError` when it says nothing more."""
    head, body = _LENGTHS.unpack(await source.readexactly(_LENGTHS.size))
    message = _DECODER.decode(await source.readexactly(head))
    return message, await source.readexactly(body)
