"""An API server that knows only bindings and pods, with canned answers: as cheap as possible, in a process of its own.

Of every twenty pods, with refusals, the first binding of one answers 409 and of another 429; of the pods with 409 half
are bound to the planned node by then, of the answers 429 half say `Retry-After: 0` and half `Retry-After: 1`. All other
bindings are accepted. A pod's name ends with its number.

Contract: standard library only. Prints its port when it listens, and ends with its standard input.
usage: canned_server.py [--refusals] [--certificate FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import ssl
import sys
from typing import Any

_CREATED = b'{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success","code":201}'
_DATE = "Date: Wed, 18 Nov 2026 12:00:00 GMT"
_HEAD = "HTTP/1.1 {}\r\nContent-Type: application/json\r\n" + _DATE + "\r\nContent-Length: {}\r\n{}\r\n"
_PERIOD, _CONFLICT, _BUSY = 20, 3, 13
"""Of each period of pods, the number of the pod that gets each refusal."""


def _answer(status: str, body: bytes, header: str = "") -> bytes:
    return _HEAD.format(status, len(body), header).encode() + body


def _refusal(code: int, reason: str, message: str) -> bytes:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code}
    return json.dumps({**status, "reason": reason, "message": message}).encode()


_ACCEPTED = _answer("201 Created", _CREATED)
_CONFLICTED = _answer("409 Conflict", _refusal(409, "Conflict", "Operation cannot be fulfilled on pods/binding"))
_TOO_MANY = tuple(
    _answer("429 Too Many Requests", _refusal(429, "TooManyRequests", "too many"), f"Retry-After: {seconds}\r\n")
    for seconds in (0, 1)
)


class Pods:
    """What the server has answered: which pods were refused once, and where pods are."""

    def __init__(self, *, refuses: bool) -> None:
        self._refuses = refuses
        self._refused: set[str] = set()
        self._nodes: dict[str, str] = {}

    def bind(self, name: str, body: bytes) -> bytes:
        """Answer a binding."""
        number = int(name.rpartition("-")[2])
        turn, kind = divmod(number, _PERIOD)
        if not self._refuses or kind not in (_CONFLICT, _BUSY) or name in self._refused:
            return _ACCEPTED
        self._refused.add(name)
        if kind == _BUSY:
            return _TOO_MANY[turn % 2]
        if turn % 2:
            self._nodes[name] = json.loads(body)["target"]["name"]
        return _CONFLICTED

    def read(self, name: str) -> bytes:
        """Answer a GET of a pod."""
        container = {"name": "main", "image": "example.invalid/main", "resources": {"requests": {"cpu": "100m"}}}
        spec: dict[str, Any] = {"schedulerName": "tutti", "containers": [container]}
        if name in self._nodes:
            spec["nodeName"] = self._nodes[name]
        metadata = {"name": name, "namespace": "default", "uid": name, "resourceVersion": "1"}
        pod = {"kind": "Pod", "apiVersion": "v1", "metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}
        return _answer("200 OK", json.dumps(pod).encode())


class Connection(asyncio.Protocol):
    """One connection: requests one after the other, with bodies of a stated length."""

    def __init__(self, pods: Pods) -> None:
        self._pods = pods
        self._buffer = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport for the answers."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer every complete request."""
        assert self._transport is not None
        self._buffer += data
        while (end := self._buffer.find(b"\r\n\r\n")) >= 0:
            head = self._buffer[:end]
            length_at = head.lower().find(b"content-length:")
            length = int(head[length_at + 15 :].split(b"\r\n", 1)[0]) if length_at >= 0 else 0
            if len(self._buffer) < end + 4 + length:
                return
            body, self._buffer = self._buffer[end + 4 : end + 4 + length], self._buffer[end + 4 + length :]
            method, path, _ = head.split(b" ", 2)
            parts = path.decode().split("/")
            if method == b"POST" and parts[-1] == "binding":
                self._transport.write(self._pods.bind(parts[-2], body))
            elif method == b"GET" and parts[-2] == "pods":
                self._transport.write(self._pods.read(parts[-1]))
            else:
                self._transport.write(_answer("404 Not Found", b"{}"))


async def serve(*, refuses: bool, certificate: str | None) -> None:
    """Serve until standard input ends."""
    context = None
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
    pods, loop = Pods(refuses=refuses), asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(pods), "127.0.0.1", 0, ssl=context, backlog=256)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


def main() -> None:
    """Parse the options and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--refusals", action="store_true")
    parser.add_argument("--certificate", help="a file with a certificate and its key: serve TLS")
    options = parser.parse_args()
    asyncio.run(serve(refuses=options.refusals, certificate=options.certificate))


if __name__ == "__main__":
    main()
