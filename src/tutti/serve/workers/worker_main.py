"""A worker process: takes a job, plans, answers, tidies up; one at a time until it is told to end.

Contract: jobs come in on standard input and answers go out on standard output (`messages`). The end of the input is the
end of the worker, at once and whatever it is doing: that is how a server takes one out of service, and how workers
notice that their server was killed. Signals to the whole group are the server's to answer. What libraries print goes to
standard error.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import BinaryIO

from tutti.serve.workers.memory import memory
from tutti.serve.workers.messages import Idle, Job, Ready, Setup, read, write
from tutti.serve.workers.planning import Planner

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Serve one server."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _die_first()
    answers = _own_output()
    jobs: queue.SimpleQueue[tuple[Job, bytes]] = queue.SimpleQueue()
    setup, _ = read(sys.stdin.buffer)
    assert isinstance(setup, Setup)
    threading.Thread(target=_listen, args=(sys.stdin.buffer, jobs), daemon=True).start()
    planner = Planner(setup)
    planner.warm_up()
    gc.collect()
    gc.freeze()
    write(answers, Ready(memory()))
    while True:
        job, body = jobs.get()
        reply, text = planner.answer(job, body)
        del body
        write(answers, reply, text)
        del text
        _tidy_up()
        write(answers, Idle(memory()))


def _listen(source: BinaryIO, jobs: queue.SimpleQueue[tuple[Job, bytes]]) -> None:
    """Take in jobs; end the process when the input ends, also in the middle of a plan."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            message, body = read(source)
            assert isinstance(message, Job)
            jobs.put((message, body))
            del body
    os._exit(0)


def _own_output() -> BinaryIO:
    """Standard output for answers alone: what anything else prints to it goes to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _die_first() -> None:
    """On Linux: end with the server even inside a long call, and be the first to go when memory runs out."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("500", "ascii")


def _tidy_up() -> None:
    """Give memory back: a large request must not leave its size behind."""
    gc.collect()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # glibc has it, musl does not
            ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    main()
