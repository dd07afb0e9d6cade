"""The main loop of a worker process: take a job, plan, answer, free memory, one job at a time.

Contract: the worker reads jobs from standard input and writes answers to standard output (`messages`). The end of the
input ends the worker at once, also in the middle of a plan: the server stops a worker this way, and the worker notices
this way that its server was killed. The worker ignores SIGINT and SIGTERM, which the server handles. Output of
libraries goes to standard error.
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

from tutti.process_memory import resident_memory
from tutti.serve.workers.messages import Idle, PlanJob, Ready, WorkerSetup, read, write
from tutti.serve.workers.planning import Planner

_PR_SET_PDEATHSIG = 1


def main() -> None:
    """Run the worker of one server."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    _end_with_server()
    answers = _answers_output()
    jobs: queue.SimpleQueue[tuple[PlanJob, bytes]] = queue.SimpleQueue()
    setup, _ = read(sys.stdin.buffer)
    assert isinstance(setup, WorkerSetup)
    threading.Thread(target=_listen, args=(sys.stdin.buffer, jobs), daemon=True).start()
    planner = Planner(setup)
    planner.warm_up()
    gc.collect()
    gc.freeze()
    write(answers, Ready(resident_memory()))
    while True:
        job, body = jobs.get()
        reply, text = planner.answer(job, body)
        del body
        write(answers, reply, text)
        del text
        _free_memory()
        write(answers, Idle(resident_memory()))


def _listen(source: BinaryIO, jobs: queue.SimpleQueue[tuple[PlanJob, bytes]]) -> None:
    """Read jobs; end the process when the input ends, also in the middle of a plan."""
    with contextlib.suppress(EOFError, OSError):
        while True:
            message, body = read(source)
            assert isinstance(message, PlanJob)
            jobs.put((message, body))
            del body
    os._exit(0)


def _answers_output() -> BinaryIO:
    """Return standard output for answers only; redirect all other output to standard error."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _end_with_server() -> None:
    """On Linux: end when the server ends, even inside a long call; be killed before the server if memory runs out."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        with contextlib.suppress(OSError):
            Path("/proc/self/oom_score_adj").write_text("500", "ascii")


def _free_memory() -> None:
    """Return memory to the system: the worker must not keep the memory of a large request."""
    gc.collect()
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # glibc has it, musl does not
            ctypes.CDLL(None).malloc_trim(0)


if __name__ == "__main__":
    main()
