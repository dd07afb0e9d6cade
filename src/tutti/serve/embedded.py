"""The server inside another program: started on a free port, and gone when the block ends."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tutti.serve.server import Running
from tutti.serve.settings import Settings


@contextmanager
def running(settings: Settings | None = None) -> Iterator[str]:
    """Run a server in a thread of its own, and give its address.

    Planning is done by worker processes as always. Requests are taken at once and wait until a worker is ready. At the
    end of the block what still runs has the time of grace; then server and workers are gone.
    """
    told: queue.SimpleQueue[str | BaseException] = queue.SimpleQueue()
    server = Running(settings or Settings(), told.put)

    def serve() -> None:
        try:
            server.run()
        except BaseException as error:
            told.put(error)

    thread = threading.Thread(target=serve, name="tutti-recommender")
    thread.start()
    try:
        found = told.get()
        if isinstance(found, BaseException):
            raise found
        yield found
    finally:
        server.stop()
        thread.join()
