"""Files, directories and standard input as named bytes: the one place of this package that reads from outside.

Contract: `read_sources` gives every file once, in the order of the paths; a directory gives all its .json, .yaml and
.yml files (also gzipped), sorted by path, those of its folders included; ``-`` is standard input. What cannot be read
raises `InputError` with the path in it. Text in UTF-16, as PowerShell's ``>`` writes it, is given as UTF-8.
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
    """One file's content and the name to call it by."""

    name: str
    data: bytes

    @property
    def is_json(self) -> bool:
        """Whether the name promises JSON, so that a fault is one of JSON and YAML need not be tried."""
        return self.name.removesuffix(".gz").endswith(".json")


def read_sources(paths: Sequence[str]) -> Iterator[Source]:
    """Every file that the paths name."""
    for path in paths:
        if path == "-":
            yield Source("stdin", _text(sys.stdin.buffer.read(), "stdin"))
        else:
            for file in _files(Path(path)):
                yield Source(str(file), _text(_read(file), str(file)))


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


def _text(data: bytes, name: str) -> bytes:
    data = _unpacked(data, name)
    if not data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        try:
            codecs.utf_8_decode(data)  # half a second for a gigabyte: decoders tell only a part's place
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 text: byte {error.start + 1} is 0x{data[error.start]:02x}"
            raise InputError(problem, file=name) from None
        return data
    try:
        return data.decode("utf-16").encode()
    except UnicodeError:
        raise InputError("not whole UTF-16 text: save it as UTF-8", file=name) from None


def _unpacked(data: bytes, name: str) -> bytes:
    if not data.startswith(_GZIP_MAGIC):
        return data
    try:
        return gzip.decompress(data)
    except EOFError:
        raise InputError("not a whole gzip file (it ends too early)", file=name) from None
    except (OSError, zlib.error) as error:
        raise InputError(f"not a whole gzip file ({error})", file=name) from None
