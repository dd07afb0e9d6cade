"""A port-forward: connections to a local port go to a port of a pod, through the API server and the kubelet.

Each connection is a WebSocket of the pod's `portforward` subresource with the protocol v4.channel.k8s.io. API servers
pass it on to kubelets, and these to container runtimes (k8s.io/cri-streaming); SPDY/3.1+portforward.k8s.io, which
kubectl uses, would need SPDY frames inside of a WebSocket. The first byte of a message is its channel: 0 is data, 1 an
error; the first message of each channel is the port.

Contract: listens on a free loopback port between `__aenter__` and `__aexit__`. The protocol cannot say that a peer has
closed its half of a connection, so both ends must know the length of what they read, as HTTP does. `problem` says why
the last connection failed. The user needs the rights to get and create pods/portforward.
"""

from __future__ import annotations

import asyncio
import contextlib

import aiohttp

from tutti.client.api_client import ApiClient
from tutti.client.resources import PODS
from tutti.exceptions import ApiError

PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERROR = 0, 1
_PIECE = 1 << 15


class PortForward:
    """See the module's docstring; the pod is named by key, namespace/name."""

    def __init__(self, client: ApiClient, pod: str, port: int) -> None:
        self._client, self._pod, self._port = client, pod, port
        self._connections: set[asyncio.Task[None]] = set()
        self.local_port = 0
        self.problem = ""

    async def __aenter__(self) -> PortForward:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.local_port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_error: object) -> None:
        self._server.close()
        for task in list(self._connections):
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        try:
            await self._forward(reader, writer)
        except ApiError as error:
            rights = ": this needs the rights to get and create pods/portforward" if error.status == 403 else ""
            self.problem = f"{error}{rights}"
        except asyncio.CancelledError:
            pass  # the port-forward ends
        finally:
            writer.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        namespace, _, name = self._pod.partition("/")
        path, query = PODS.path(namespace, name, "portforward"), {"ports": str(self._port)}
        async with self._client.websocket(path, query=query, protocol=PROTOCOL) as socket:
            ways = {asyncio.create_task(_send(reader, socket)), asyncio.create_task(self._receive(socket, writer))}
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for way in ways:
                    way.cancel()
                await asyncio.gather(*ways, return_exceptions=True)

    async def _receive(self, socket: aiohttp.ClientWebSocketResponse, writer: asyncio.StreamWriter) -> None:
        seen: set[int] = set()
        """Channels whose first message, the port, has come."""
        async for message in socket:
            if message.type is not aiohttp.WSMsgType.BINARY or not message.data:
                continue
            channel, data = message.data[0], message.data[1:]
            if channel not in seen:
                seen.add(channel)
            elif channel == _ERROR:
                self.problem = data.decode("utf-8", "replace").strip()
                return
            elif channel == _DATA:
                writer.write(data)
                with contextlib.suppress(ConnectionError):
                    await writer.drain()


async def _send(reader: asyncio.StreamReader, socket: aiohttp.ClientWebSocketResponse) -> None:
    while data := await reader.read(_PIECE):
        await socket.send_bytes(bytes((_DATA,)) + data)
