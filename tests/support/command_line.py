"""Runs of the command line: what one inside a test printed, and Ctrl-C at a known moment of a process.

The process says when it has reached the moment, so that no test depends on the speed of the machine.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

STARTED = b"started\n"
INPUT = "input"
"""The moment at which standard input is read, which never ends."""
PATIENCE = 120
"""Seconds; only something that hangs takes so long."""
_PROGRAM = """
import importlib, io, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # where tests run in the background, it is ignored
from tutti.cli.main import main
{hook}
main()
"""
_AT_INPUT = """
class Endless(io.RawIOBase):
    def readable(self):
        return True
    def readinto(self, room):
        os.write(1, b"started\\n")
        return len(os.read(0, 1))
sys.stdin = io.TextIOWrapper(io.BufferedReader(Endless()))
"""
_AT_FUNCTION = """
module = importlib.import_module({module!r})
real = getattr(module, {name!r})
def telling(*arguments, **options):
    os.write(1, b"started\\n")
    return real(*arguments, **options)
setattr(module, {name!r}, telling)
"""


class Run(NamedTuple):
    """Exit code and output of a run."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Ended(NamedTuple):
    """How a command ended, and what it printed after it was interrupted."""

    code: int
    out: bytes
    err: bytes


def interrupted(*arguments: str, at: str) -> Ended:
    """Run `tutti`, and interrupt it when it reads its `INPUT`, or calls the function ``module:name``."""
    module, _, name = at.partition(":")
    hook = _AT_INPUT if at == INPUT else _AT_FUNCTION.format(module=module, name=name)
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM.format(hook=hook), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"TERM": "dumb"},
        cwd=Path(__file__).parent,
    ) as run:
        assert run.stdout is not None
        for line in run.stdout:
            if line == STARTED:
                break
        run.send_signal(signal.SIGINT)
        try:
            out, err = _rest(run)
        finally:
            run.kill()
    return Ended(run.returncode, out, err)


def _rest(run: subprocess.Popen[bytes]) -> tuple[bytes, bytes]:
    """What is still printed; standard input stays open, because its end would end the command, too."""
    assert run.stdout is not None
    assert run.stderr is not None
    run.wait(PATIENCE)
    return run.stdout.read(), run.stderr.read()
