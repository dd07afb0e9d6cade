"""A network between client and server that a test can cut: a relay of TCP connections.

Contract: bytes pass unchanged, so TLS is end to end; connect to `url` instead of the server's. `cut` resets all
connections now; `cut_after` resets the connection that is the first to carry so many further bytes to the client.
`hold` cuts, and resets every new connection until `release`.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from urllib.parse import urlsplit

_PIECE = 1 << 14


class TcpRelay:
    """See the module's docstring; `async with TcpRelay(server_url)` starts and stops it."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._scheme, self._target = parts.scheme, (parts.hostname, parts.port)
        self._open: set[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._bytes_left: int | None = None
        self._is_held = False
        self.connections = 0
        """How many connections clients have made."""
        self.cuts = 0
        """How many connections were reset on purpose."""
        self.url = ""

    async def __aenter__(self) -> TcpRelay:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"{self._scheme}://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()
        self.hold()
        await asyncio.gather(*self._tasks)

    def cut(self) -> None:
        """Reset all connections."""
        for pair in list(self._open):
            self._reset(pair)

    def hold(self) -> None:
        """Cut, and let no new connection through."""
        self._is_held = True
        self.cut()

    def release(self) -> None:
        """Let new connections through again."""
        self._is_held = False

    def cut_after(self, size: int) -> None:
        """Reset the connection on which the last of `size` further bytes to the client passes."""
        self._bytes_left = size

    def _reset(self, pair: tuple[asyncio.StreamWriter, asyncio.StreamWriter]) -> None:
        if pair in self._open:
            self._open.discard(pair)
            self.cuts += 1
            for writer in pair:
                writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        writers = [writer]
        try:
            with suppress(OSError):
                server_reader, server_writer = await asyncio.open_connection(*self._target)
                writers.append(server_writer)
                if not self._is_held:
                    await self._pass_on(reader, writer, server_reader, server_writer)
        finally:
            for each in writers:
                each.transport.abort()
                with suppress(OSError):
                    await each.wait_closed()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        server_reader: asyncio.StreamReader,
        server_writer: asyncio.StreamWriter,
    ) -> None:
        pair = writer, server_writer
        self._open.add(pair)
        try:
            await asyncio.gather(self._copy(reader, server_writer), self._copy(server_reader, writer, pair))
        finally:
            self._open.discard(pair)

    async def _copy(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        counted: tuple[asyncio.StreamWriter, asyncio.StreamWriter] | None = None,
    ) -> None:
        while piece := await reader.read(_PIECE):
            is_last = False
            if counted is not None and self._bytes_left is not None:
                piece = piece[: self._bytes_left]
                self._bytes_left -= len(piece)
                is_last = self._bytes_left == 0
            writer.write(piece)
            await writer.drain()
            if is_last and counted is not None:
                self._bytes_left = None
                await asyncio.sleep(0.1)  # a reset discards what is still on its way
                self._reset(counted)
                return
        with suppress(OSError):
            writer.write_eof()
