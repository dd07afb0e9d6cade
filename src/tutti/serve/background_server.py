"""A server in a background thread of another program: it listens on a free port until the end of a `with` block."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tutti.serve.server import RecommenderServer
from tutti.serve.settings import ServerSettings


@contextmanager
def running_server(settings: ServerSettings | None = None) -> Iterator[str]:
    """Run a server in a thread, and yield its address.

    Planning runs in worker processes, as in `tutti recommender`. The server accepts requests at once; requests wait
    until a worker is ready. At the end of the block running requests have the grace period to finish; then the server
    and its workers end.
    """
    listening: queue.SimpleQueue[str | BaseException] = queue.SimpleQueue()
    server = RecommenderServer(settings or ServerSettings(), listening.put)

    def serve() -> None:
        try:
            server.run()
        except BaseException as error:
            listening.put(error)

    thread = threading.Thread(target=serve, name="tutti-recommender")
    thread.start()
    try:
        address = listening.get()
        if isinstance(address, BaseException):
            raise address
        yield address
    finally:
        server.stop()
        thread.join()
