"""Answers of HTTP/1.1: a status, headers and a body, from the pieces in which they come.

Contract: one parser for each connection; `feed` returns an answer as soon as it is complete, and the parser is ready
for the next one. Bodies have a length, come in chunks, or last until the connection ends (`end`). Sizes are limited.
Informational answers (1xx) are skipped. Bytes that no answer can have raise `ConnectionError`.
"""

from __future__ import annotations

from typing import NamedTuple

_MAX_HEAD = 64 << 10
_MAX_BODY = 64 << 20
_NO_BODY = frozenset((204, 304))


class HttpAnswer(NamedTuple):
    """A complete answer; the names of headers are in lower case."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes
    keeps_alive: bool
    """Whether another request may follow on the connection."""


class _Head(NamedTuple):
    status: int
    headers: dict[bytes, bytes]
    keeps_alive: bool
    length: int | None
    """Bytes of the body; None: until the connection ends."""
    is_chunked: bool


class AnswerParser:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._buffer = b""
        self._head: _Head | None = None
        self._chunks: list[bytes] = []
        self._size = 0
        self._ends_chunks = False

    def feed(self, data: bytes) -> HttpAnswer | None:
        """Take bytes; return the answer if they complete it."""
        self._buffer = self._buffer + data if self._buffer else data
        while self._head is None:
            end = self._buffer.find(b"\r\n\r\n")
            if end < 0:
                if len(self._buffer) > _MAX_HEAD:
                    raise ConnectionError("the headers of the answer are too long")
                return None
            head = _parse_head(self._buffer[:end])
            self._buffer = self._buffer[end + 4 :]
            if head.status >= 200:
                self._head = head
        head = self._head
        if head.is_chunked:
            return self._answer(b"".join(self._chunks)) if self._read_chunks() else None
        if head.length is None:
            if len(self._buffer) > _MAX_BODY:
                raise ConnectionError("the answer is too long")
            return None
        if len(self._buffer) < head.length:
            return None
        body, self._buffer = self._buffer[: head.length], self._buffer[head.length :]
        return self._answer(body)

    def end(self) -> HttpAnswer | None:
        """Return the answer that the end of the connection completes: an error is known even if its body is cut off."""
        head = self._head
        if head is None or (head.status < 300 and (head.is_chunked or head.length is not None)):
            return None
        body, self._buffer = b"".join((*self._chunks, self._buffer)), b""
        return self._answer(body)._replace(keeps_alive=False)

    def _answer(self, body: bytes) -> HttpAnswer:
        head, self._head = self._head, None
        assert head is not None
        self._chunks, self._size, self._ends_chunks = [], 0, False
        if self._buffer:
            raise ConnectionError("bytes follow the answer")
        return HttpAnswer(head.status, head.headers, body, head.keeps_alive)

    def _read_chunks(self) -> bool:
        """Read complete chunks; return whether the last one and the trailers were read."""
        while True:
            end = self._buffer.find(b"\r\n")
            if end < 0:
                if len(self._buffer) > _MAX_HEAD:
                    raise ConnectionError("a line of the answer is too long")
                return False
            if self._ends_chunks:  # trailers, up to an empty line
                self._buffer = self._buffer[end + 2 :]
                if end == 0:
                    return True
                continue
            size = _chunk_size(self._buffer[:end])
            self._size += size
            if self._size > _MAX_BODY:
                raise ConnectionError("the answer is too long")
            if size == 0:
                self._buffer, self._ends_chunks = self._buffer[end + 2 :], True
                continue
            after = end + 2 + size
            if len(self._buffer) < after + 2:
                self._size -= size
                return False
            if self._buffer[after : after + 2] != b"\r\n":
                raise ConnectionError("a chunk of the answer has another length")
            self._chunks.append(self._buffer[end + 2 : after])
            self._buffer = self._buffer[after + 2 :]


def _parse_head(head: bytes) -> _Head:
    first, *lines = head.split(b"\r\n")
    version, _, rest = first.partition(b" ")
    code = rest[:3]
    if not version.startswith(b"HTTP/1.") or not code.isdigit() or len(code) != 3 or rest[3:4] not in (b"", b" "):
        raise ConnectionError("the server does not answer in HTTP/1.1")
    headers: dict[bytes, bytes] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not name or name[-1:].isspace() or name[:1].isspace():
            raise ConnectionError("a header of the answer is malformed")
        headers[name.lower()] = value.strip()
    status, connection = int(code), headers.get(b"connection", b"").lower()
    keeps_alive = connection != b"close" if version == b"HTTP/1.1" else connection == b"keep-alive"
    coding, length = headers.get(b"transfer-encoding"), headers.get(b"content-length")
    if status < 200 or status in _NO_BODY:
        return _Head(status, headers, keeps_alive, 0, False)
    if coding is not None:
        if coding.lower() != b"chunked":
            raise ConnectionError(f"the transfer encoding of the answer is {coding.decode('latin-1')}")
        return _Head(status, headers, keeps_alive, None, True)
    if length is None:
        return _Head(status, headers, False, None, False)
    if not length.isdigit() or int(length) > _MAX_BODY:
        raise ConnectionError("the length of the answer is malformed")
    return _Head(status, headers, keeps_alive, int(length), False)


def _chunk_size(line: bytes) -> int:
    digits = line.partition(b";")[0].strip()
    if not digits or len(digits) > 8 or digits.strip(b"0123456789abcdefABCDEF"):
        raise ConnectionError("the length of a chunk is malformed")
    return int(digits, 16)
