"""Writes the report page completely or not at all.

Contract: writes the text to a temporary file in the target's directory, and then renames this file to the target. An
error before that, including Ctrl-C, leaves the target unchanged and no other file. A target that cannot be written
raises an `InputError`.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from tutti.cli.loading import print_note, spinner
from tutti.exceptions import InputError
from tutti.present.report.page import Report, page


def check_report_path(path: str) -> None:
    """Refuse a path that cannot be written, before the search starts."""
    if path == "-":
        raise InputError("--report wants the name of a file: the page is not written to standard output")
    target = Path(path).resolve()
    folder = target.parent
    if target.is_dir():
        raise InputError("is a directory: want the name of a file", file=path)
    if target.exists() and not target.is_file():  # a device would be replaced by a file
        raise InputError("is not a file that can be replaced", file=path)
    if not folder.is_dir():
        raise InputError(f"there is no directory {folder}", file=path)
    if not os.access(folder, os.W_OK) or (target.exists() and not os.access(target, os.W_OK)):
        raise InputError("cannot be written: permission denied", file=path)


def write_report(path: str, report: Report) -> None:
    """Draw and write the page; print a note with its path."""
    with spinner("drawing"):
        write_page(path, page(report))
    print_note(f"the report is in {path}")


def write_page(path: str, text: str) -> None:
    """Write the page; if the path is a symbolic link, write to its target."""
    target = Path(path).resolve()
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name[:60]}.", suffix=".part", dir=target.parent)
        try:
            with open(handle, "w", encoding="utf-8", newline="\n") as file:
                file.write(text)
            Path(name).chmod(_mode(target))
            Path(name).replace(target)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(name).unlink()
            raise
    except OSError as error:
        raise InputError(f"cannot be written: {(error.strerror or str(error)).lower()}", file=path) from None


def _mode(target: Path) -> int:
    """Return the mode of the file that is replaced, else the mode of a new file."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask
