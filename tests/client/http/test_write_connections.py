"""Kept connections: one request after the other, and what follows when a connection ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from tutti.client.http.write_connections import Address, WriteConnections, header_line, request_target

OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}"
REQUEST = b"POST /x HTTP/1.1\r\nContent-Length: 0\r\n\r\n"
Serve = Callable[["Server", asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Counts connections, and serves each as it is told."""

    def __init__(self, serve: Serve) -> None:
        self._serve, self.connections, self.open = serve, 0, 0
        self.clock = 0.0

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections, self.open = self.connections + 1, self.open + 1
        try:
            await self._serve(self, reader, writer)
        finally:
            self.open -= 1
            writer.close()

    async def until_open(self, count: int) -> None:
        """Wait until so many connections are open."""
        async with asyncio.timeout(20):
            while self.open != count:
                await asyncio.sleep(0.001)


async def answer_all(_: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while await _request(reader):
        writer.write(OK)


async def _request(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return b""


@asynccontextmanager
async def connected(serve: Serve, *, limit: int = 8) -> AsyncIterator[tuple[WriteConnections, Server]]:
    state = Server(serve)
    server = await asyncio.start_server(state.connected, "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    connections = WriteConnections(
        Address("127.0.0.1", port, None, None), limit=limit, monotonic=lambda: time.monotonic() + state.clock
    )
    try:
        yield connections, state
    finally:
        connections.close()
        server.close()


def test_a_connection_is_used_again() -> None:
    async def run() -> int:
        async with connected(answer_all) as (connections, server):
            for _ in range(5):
                assert (await connections.send(REQUEST)).body == b"{}"
            return server.connections

    assert asyncio.run(run()) == 1


def test_an_old_idle_connection_is_not_used_again() -> None:
    async def run() -> int:
        async with connected(answer_all) as (connections, server):
            await connections.send(REQUEST)
            server.clock += 61
            await connections.send(REQUEST)
            await server.until_open(1)
            return server.connections

    assert asyncio.run(run()) == 2


def test_connections_of_a_burst_are_closed_while_others_are_used() -> None:
    async def run() -> None:
        async with connected(answer_all) as (connections, server):
            await asyncio.gather(*(connections.send(REQUEST) for _ in range(5)))
            await server.until_open(5)
            server.clock += 50
            await connections.send(REQUEST)
            server.clock += 50
            for _ in range(4):
                await connections.send(REQUEST)
            await server.until_open(1)

    asyncio.run(run())


def test_no_more_connections_than_the_limit_are_open() -> None:
    async def run() -> int:
        async with connected(answer_all, limit=3) as (connections, server):
            await asyncio.gather(*(connections.send(REQUEST) for _ in range(50)))
            return server.connections

    assert asyncio.run(run()) <= 3


def test_a_request_is_sent_once_if_its_answer_is_lost() -> None:
    requests = []

    async def lose(_: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        requests.append(await _request(reader))
        writer.write(OK[:20])
        await writer.drain()

    async def run() -> None:
        async with connected(lose) as (connections, _):
            with pytest.raises(ConnectionError):
                await connections.send(REQUEST)

    asyncio.run(run())
    assert requests == [REQUEST]


def test_a_connection_that_the_server_has_closed_is_replaced() -> None:
    async def once(_: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _request(reader)
        writer.write(OK)

    async def run() -> int:
        async with connected(once) as (connections, server):
            for _ in range(3):
                await connections.send(REQUEST)
                await server.until_open(0)
                await asyncio.sleep(0.01)  # the end has reached this side too
            return server.connections

    assert asyncio.run(run()) == 3


def test_a_cancelled_request_closes_its_connection() -> None:
    async def never(_: Server, reader: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        await _request(reader)
        await reader.read()

    async def run() -> None:
        async with connected(never, limit=1) as (connections, server):
            task = asyncio.create_task(connections.send(REQUEST))
            waiting = asyncio.create_task(connections.send(REQUEST))
            await server.until_open(1)
            waiting.cancel()
            task.cancel()
            await asyncio.gather(task, waiting, return_exceptions=True)
            await server.until_open(0)
            third = asyncio.create_task(connections.send(REQUEST))
            await server.until_open(1)  # the limit counts no request that has ended
            third.cancel()

    asyncio.run(run())


def test_bytes_that_nobody_has_asked_for_end_a_connection() -> None:
    async def twice(_: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _request(reader)
        writer.write(OK)
        await asyncio.sleep(0.01)
        writer.write(OK)
        await reader.read()

    async def run() -> int:
        async with connected(twice) as (connections, server):
            await connections.send(REQUEST)
            await server.until_open(0)
            await connections.send(REQUEST)
            return server.connections

    assert asyncio.run(run()) == 2


def test_connections_that_retire_answer_what_is_under_way() -> None:
    async def run() -> bytes:
        started, go_on = asyncio.Event(), asyncio.Event()

        async def wait(_: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await _request(reader)
            started.set()
            await go_on.wait()
            writer.write(OK)
            await reader.read()

        async with connected(wait) as (connections, server):
            task = asyncio.create_task(connections.send(REQUEST))
            await started.wait()
            connections.retire()
            go_on.set()
            body = (await task).body
            await server.until_open(0)
            return body

    assert asyncio.run(run()) == b"{}"


def test_a_server_that_is_not_there() -> None:
    async def run() -> None:
        async with connected(answer_all) as (connections, _):
            address = connections._address._replace(port=1)
            with pytest.raises(ConnectionError, match=r"Cannot connect to host 127\.0\.0\.1:1: "):
                await WriteConnections(address, limit=1, monotonic=time.monotonic).send(REQUEST)

    asyncio.run(run())


@pytest.mark.parametrize("value", ["a\r\nX: y", "a\nb", "\x00", "\x7f"])
def test_a_header_cannot_begin_another_one(value: str) -> None:
    with pytest.raises(ConnectionError):
        header_line("Authorization", value)


@pytest.mark.parametrize("path", ["/a b", "/a\r\n", "/a\x00", "/ä"])
def test_a_path_cannot_end_its_line(path: str) -> None:
    with pytest.raises(ConnectionError):
        request_target(path)
