"""Files, directories and standard input as named bytes: the only module of `kube` that reads files.

Contract: `read_sources` yields each file in the order of the paths. For a directory it yields all .json, .yaml and .yml
files (also gzipped) in the directory and its subdirectories, sorted by path; ``-`` is standard input. An unreadable
file raises `InputError` with the path. UTF-16 text, as PowerShell's ``>`` writes it, is converted to UTF-8.
"""

from __future__ import annotations

import codecs
import gzip
import sys
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tutti.exceptions import InputError

_SUFFIXES = (".json", ".yaml", ".yml")
_GZIP_MAGIC = b"\x1f\x8b"


class Source(NamedTuple):
    """The content of a file, and its name for messages."""

    name: str
    data: bytes

    @property
    def is_json(self) -> bool:
        """Whether the name ends in .json; malformed text is then a JSON error, and the YAML parser is not tried."""
        return self.name.removesuffix(".gz").endswith(".json")


def read_sources(paths: Sequence[str]) -> Iterator[Source]:
    """Read every file that the paths name, one at a time."""
    for path in paths:
        if path == "-":
            yield Source("stdin", _utf8_text(sys.stdin.buffer.read(), "stdin"))
        else:
            for file in _files(Path(path)):
                yield Source(str(file), _utf8_text(_read(file), str(file)))


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(
        file for file in path.rglob("*") if file.name.removesuffix(".gz").endswith(_SUFFIXES) and file.is_file()
    )
    if not files:
        raise InputError("no .json, .yaml or .yml file in this directory", file=str(path))
    return files


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InputError((error.strerror or str(error)).lower(), file=str(file)) from None


def _utf8_text(data: bytes, name: str) -> bytes:
    data = _decompressed(data, name)
    if not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            codecs.utf_8_decode(data)  # 0.5 s per gigabyte; JSON and YAML decoders would report a wrong position
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 text: byte {error.start + 1} is 0x{data[error.start]:02x}"
            raise InputError(problem, file=name) from None
        return data
    try:
        return data.decode("utf-16").encode()
    except UnicodeError:
        raise InputError("not whole UTF-16 text: save it as UTF-8", file=name) from None


def _decompressed(data: bytes, name: str) -> bytes:
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except EOFError:
        raise InputError("not a whole gzip file (it ends too early)", file=name) from None
    except (OSError, zlib.error) as error:
        raise InputError(f"not a whole gzip file ({error})", file=name) from None
