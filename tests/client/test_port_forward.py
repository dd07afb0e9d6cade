"""The port-forward, against a WebSocket that speaks v4.channel.k8s.io as kubelets do."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import WSMsgType, web

from tests.support.scripted_api_server import ScriptedApiServer, Step, refuse
from tutti.client.access.cluster_access import ClusterAccess, UserAccess
from tutti.client.api_client import ApiClient
from tutti.client.port_forward import PROTOCOL, PortForward

PORT = (10271).to_bytes(2, "little")


def forwarded(*steps: Step, ask: Callable[[PortForward], Awaitable[Any]]) -> tuple[Any, ScriptedApiServer]:
    async def run() -> tuple[Any, ScriptedApiServer]:
        async with ScriptedApiServer(*steps) as server:
            access = ClusterAccess(server=server.url, user=UserAccess(token="t"))
            draw = random.Random(1)
            client = ApiClient(access, user_agent="test", monotonic=time.monotonic, wall=lambda: 0, draw=draw)
            try:
                async with PortForward(client, "kube-system/tutti-0", 10271) as forward:
                    return await ask(forward), server
            finally:
                await client.close()

    return asyncio.run(run())


async def kubelet(request: web.Request) -> web.StreamResponse:
    """Send the port on both channels, then echo data in capital letters."""
    socket = web.WebSocketResponse(protocols=(PROTOCOL,))
    await socket.prepare(request)
    await socket.send_bytes(b"\x00" + PORT)
    await socket.send_bytes(b"\x01" + PORT)
    async for message in socket:
        if message.type is WSMsgType.BINARY:
            assert message.data[0] == 0
            await socket.send_bytes(b"\x00" + message.data[1:].upper())
    return socket


async def no_listener(request: web.Request) -> web.StreamResponse:
    socket = web.WebSocketResponse(protocols=(PROTOCOL,))
    await socket.prepare(request)
    for message in (b"\x00" + PORT, b"\x01" + PORT, b"\x01connect: connection refused"):
        await socket.send_bytes(message)
    await socket.close()
    return socket


async def old_kubelet(request: web.Request) -> web.StreamResponse:
    socket = web.WebSocketResponse()
    await socket.prepare(request)
    await socket.close()
    return socket


async def talk(forward: PortForward) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", forward.local_port)
    writer.write(b"hello")
    answer = await reader.read(100)
    writer.close()
    return answer


def test_bytes_go_to_the_pod_and_back() -> None:
    async def ask(forward: PortForward) -> list[bytes]:
        return list(await asyncio.gather(talk(forward), talk(forward)))

    answers, server = forwarded(kubelet, kubelet, ask=ask)
    assert answers == [b"HELLO", b"HELLO"]
    assert server.requests[0]["path"] == "/api/v1/namespaces/kube-system/pods/tutti-0/portforward"
    assert server.requests[0]["ports"] == "10271"


def test_an_error_of_the_kubelet_ends_the_connection() -> None:
    async def ask(forward: PortForward) -> tuple[bytes, str]:
        return await talk(forward), forward.problem

    answer, _ = forwarded(no_listener, ask=ask)
    assert answer == (b"", "connect: connection refused")


def test_a_refusal_of_the_api_server_names_the_rights() -> None:
    async def ask(forward: PortForward) -> tuple[bytes, str]:
        return await talk(forward), forward.problem

    (data, problem), _ = forwarded(refuse(403), ask=ask)
    assert data == b""
    assert "refused with status 403: this needs the rights to get and create pods/portforward" in problem


def test_a_server_that_speaks_another_protocol() -> None:
    async def ask(forward: PortForward) -> tuple[bytes, str]:
        return await talk(forward), forward.problem

    (data, problem), _ = forwarded(old_kubelet, ask=ask)
    assert data == b""
    assert "does not speak v4.channel.k8s.io" in problem
