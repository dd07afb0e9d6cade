"""Work in several processes, with the results in order.

Contract: `results_in_order` gives what a function makes of each item, in the order of the items; what the function
raises is raised here. An interrupt, or leaving early, ends all processes at once. The processes share no threads and no
locks, so none can wait for another that is gone.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from multiprocessing import Pipe, Process
from multiprocessing.connection import Connection, wait
from typing import TypeVar

Item = TypeVar("Item")
Made = TypeVar("Made")


def results_in_order(work: Callable[[Item], Made], items: Iterable[Item], jobs: int) -> Iterator[Made]:
    """Do the work for all items in so many processes."""
    todo = enumerate(items)
    made: dict[int, Made] = {}
    at: dict[Connection, int] = {}
    workers: list[Process] = []
    turn = 0
    try:
        with _interrupts_put_off():
            for _ in range(jobs):
                mine, theirs = Pipe()
                workers.append(Process(target=_serve, args=(work, theirs), daemon=True))
                workers[-1].start()
                theirs.close()
                _give(mine, todo, at)
        while at:
            for ready in wait(list(at)):
                assert isinstance(ready, Connection)
                result, error = ready.recv()
                if error is not None:
                    raise error
                made[at.pop(ready)] = result
                _give(ready, todo, at)
            while turn in made:
                yield made.pop(turn)
                turn += 1
    finally:
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.join()


@contextmanager
def _interrupts_put_off() -> Iterator[None]:
    """Raise an interrupt only at the end: one that came while a process starts would leave it behind."""
    came: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: came.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if came:
        raise KeyboardInterrupt


def _give(to: Connection, todo: Iterator[tuple[int, Item]], at: dict[Connection, int]) -> None:
    """Hand the next item to a process, if there is one."""
    for number, item in todo:
        to.send(item)
        at[to] = number
        return
    to.close()


def _serve(work: Callable[[Item], Made], items: Connection) -> None:
    """Do the work for what comes, until nothing does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        try:
            item = items.recv()
        except (EOFError, OSError):
            return
        try:
            items.send((work(item), None))
        except Exception as error:  # it is raised where the answer is wanted
            items.send((None, error))
