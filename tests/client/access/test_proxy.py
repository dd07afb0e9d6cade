"""The proxy of the environment: the rules of Go's httpproxy, which kubectl uses."""

from __future__ import annotations

import asyncio
import random
import shutil
import ssl
import time
from pathlib import Path

import pytest

from tests.support.certificates import certificate
from tutti.client.access.cluster_access import ClusterAccess
from tutti.client.access.proxy import environment_proxy
from tutti.client.api_client import ApiClient
from tutti.exceptions import InputError

PROXY = "http://proxy.internal:3128"


@pytest.mark.parametrize(
    ("no_proxy", "server", "is_direct"),
    [
        ("", "https://10.1.2.3:6443", False),
        ("", "https://localhost:6443", True),
        ("", "https://127.0.0.1:6443", True),
        ("", "https://127.8.9.10", True),
        ("", "https://[::1]:6443", True),
        ("*", "https://api.example.com", True),
        ("10.0.0.0/8", "https://10.1.2.3:6443", True),
        ("10.0.0.0/8", "https://11.1.2.3:6443", False),
        ("10.0.0.0/8", "https://10.example.com", False),
        ("fd00::/8", "https://[fd00::1]:6443", True),
        ("x, 10.1.2.3 ,y", "https://10.1.2.3:6443", True),
        ("10.1.2.3:6443", "https://10.1.2.3:6443", True),
        ("10.1.2.3:443", "https://10.1.2.3:6443", False),
        ("10.1.2.3:443", "https://10.1.2.3", True),
        ("[fd00::1]:6443", "https://[fd00::1]:6443", True),
        ("fd00::1", "https://[fd00::1]:6443", True),
        ("example.com", "https://example.com", True),
        ("example.com", "https://api.example.com", True),
        ("Example.COM", "https://API.example.com", True),
        ("example.com", "https://myexample.com", False),
        ("example.com:6443", "https://api.example.com", False),
        ("example.com:6443", "https://api.example.com:6443", True),
        (".example.com", "https://api.example.com", True),
        (".example.com", "https://example.com", False),
        ("*.example.com", "https://api.example.com", True),
        ("*.example.com", "https://example.com", False),
        (":6443,/,10.0.0.0/99", "https://api.example.com:6443", False),
    ],
)
def test_which_servers_are_reached_directly(no_proxy: str, server: str, is_direct: bool) -> None:
    found = environment_proxy(server, {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy})
    assert found == ("" if is_direct else PROXY)


@pytest.mark.parametrize(
    ("environment", "server", "proxy"),
    [
        ({}, "https://api.internal", ""),
        ({"https_proxy": PROXY}, "https://api.internal", PROXY),
        ({"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, "https://api.internal", PROXY),
        ({"HTTP_PROXY": PROXY}, "https://api.internal", ""),
        ({"HTTP_PROXY": PROXY}, "http://api.internal", PROXY),
        ({"HTTPS_PROXY": "proxy.internal:3128"}, "https://api.internal", PROXY),
        ({"HTTPS_PROXY": PROXY, "no_proxy": "api.internal"}, "https://api.internal", ""),
    ],
)
def test_which_variable_counts(environment: dict[str, str], server: str, proxy: str) -> None:
    assert environment_proxy(server, environment) == proxy


def test_a_proxy_of_another_kind() -> None:
    with pytest.raises(InputError, match="HTTPS_PROXY: only http:// and https:// proxies are supported"):
        environment_proxy("https://api.internal", {"HTTPS_PROXY": "socks5://proxy.internal"})


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is needed to make certificates")
def test_a_request_through_a_proxy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy gets a CONNECT; the client checks the certificate of the server behind it."""
    own, key = certificate(tmp_path, "server")
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello")
        await writer.drain()
        writer.close()

    async def run() -> bytes:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(own, key)
        server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context)
        proxy = await asyncio.start_server(
            lambda *streams: forward(*streams, server.sockets[0].getsockname()[1], asked), "127.0.0.1", 0
        )
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}")
        monkeypatch.delenv("NO_PROXY", raising=False)
        monkeypatch.delenv("no_proxy", raising=False)
        access = ClusterAccess(server="https://api.internal:6443", authority_file=own)
        client = ApiClient(access, user_agent="test", monotonic=time.monotonic, wall=lambda: 0, draw=random.Random(1))
        try:
            return await client.request("GET", "/version")
        finally:
            await client.close()
            server.close()
            proxy.close()

    assert asyncio.run(run()) == b"hello"
    assert asked == [b"CONNECT api.internal:6443 HTTP/1.1"]


async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, port: int, asked: list[bytes]) -> None:
    """Be a proxy that leads every CONNECT to one port."""
    asked.append((await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")[0])
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    back, out = await asyncio.open_connection("127.0.0.1", port)
    await asyncio.gather(copy(reader, out), copy(back, writer))


async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass  # the other end has gone
    finally:
        writer.close()
