"""The lines of a recording, from its bytes.

Contract: pure; the bytes come in chunks of any size. Gzip is recognised by its first bytes; several gzip files in a row
are one. `lines` yields the number and the bytes of every line. A scheduler that crashed leaves a last line without an
end, or a gzip file without an end: then `is_truncated` is true afterwards, and all lines before are complete.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from tutti.exceptions import InputError

_GZIP_MAGIC = b"\x1f\x8b"
_GZIP = 16 + zlib.MAX_WBITS


class RecordingLines:
    """See the module's docstring."""

    def __init__(self, chunks: Iterable[bytes], *, file: str) -> None:
        self._chunks, self._file = chunks, file
        self.is_truncated = False
        """Whether the recording ends in the middle of a line; known after the last line."""

    def lines(self) -> Iterator[tuple[int, bytes]]:
        """Yield the complete lines that are not empty, numbered from 1."""
        number, rest = 0, b""
        for data in self._decompressed():
            *complete, rest = (rest + data).split(b"\n")
            for line in complete:
                number += 1
                if line.strip():
                    yield number, line
        self.is_truncated |= bool(rest.strip())

    def _decompressed(self) -> Iterator[bytes]:
        start = b""
        chunks = filter(None, self._chunks)  # a compressor often returns no bytes
        for chunk in chunks:
            start += chunk
            if len(start) >= len(_GZIP_MAGIC):
                break
        if not start.startswith(_GZIP_MAGIC):
            yield start
            yield from chunks
            return
        yield from self._inflate(start, chunks)

    def _inflate(self, data: bytes, chunks: Iterator[bytes]) -> Iterator[bytes]:
        decompressor = zlib.decompressobj(_GZIP)
        while True:
            try:
                yield decompressor.decompress(data)
            except zlib.error as error:
                raise InputError(f"not a whole gzip file ({error})", file=self._file) from None
            data = decompressor.unused_data or next(chunks, b"")
            if not data:
                self.is_truncated = not decompressor.eof
                return
            if decompressor.eof:
                decompressor = zlib.decompressobj(_GZIP)
