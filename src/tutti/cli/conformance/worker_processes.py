"""Runs a function on items in several processes, with the results in order.

Contract: `results_in_order` yields the result of the function for each item, in the order of the items, and raises the
errors of the function. An interrupt, or closing the generator, ends all processes at once. The processes share no
threads and no locks, so that a process never waits for one that has ended.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection, wait
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def results_in_order(work: Callable[[Item], Result], items: Iterable[Item], jobs: int) -> Iterator[Result]:
    """Yield the result of `work` for every item, computed in `jobs` processes."""
    remaining = enumerate(items)
    results: dict[int, Result] = {}
    busy: dict[Connection, int] = {}
    workers: list[Process] = []
    next_index = 0
    try:
        with _deferred_interrupts():
            for _ in range(jobs):
                mine, theirs = Pipe()
                workers.append(Process(target=_run_worker, args=(work, theirs), daemon=True))
                workers[-1].start()
                theirs.close()
                _send_next(mine, remaining, busy)
        while busy:
            for ready in wait(list(busy)):
                assert isinstance(ready, Connection)
                result, error = ready.recv()
                if error is not None:
                    raise error
                results[busy.pop(ready)] = result
                _send_next(ready, remaining, busy)
            while next_index in results:
                yield results.pop(next_index)
                next_index += 1
    finally:
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.join()


@contextmanager
def _deferred_interrupts() -> Iterator[None]:
    """Raise an interrupt only at the end of the block: an interrupt while a process starts would leave it running."""
    signals: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: signals.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if signals:
        raise KeyboardInterrupt


def _send_next(to: Connection, remaining: Iterator[tuple[int, Item]], busy: dict[Connection, int]) -> None:
    """Send the next item to a process, or close its connection if there is none."""
    for index, item in remaining:
        to.send(item)
        busy[to] = index
        return
    to.close()


def _run_worker(work: Callable[[Item], Result], items: Connection) -> None:
    """Answer each item with its result, until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            item = items.recv()
        except (EOFError, OSError):
            return
        try:
            items.send((work(item), None))
        except Exception as error:  # the parent process raises it
            items.send((None, error))
