"""Counters of the server in Prometheus' text format.

Contract: plain numbers that only the server's event loop changes. Labels come from fixed sets, so no client can make
the page grow: a path that is no route counts as ``other``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping

from tutti import __version__
from tutti.present.prometheus_text import HistogramCounts, family, histogram
from tutti.process_memory import resident_memory

ROUTES = ("/recommend", "/v1/recommendations", "/v1/plans", "/healthz", "/readyz", "/metrics", "/openapi.json")
_METHODS = ("GET", "HEAD", "POST")
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self._started = time.time()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._times: dict[str, HistogramCounts] = {}
        self._bytes: Counter[str] = Counter()
        self._starts: Counter[str] = Counter()

    def request(self, path: str, method: str, *, status: int, seconds: float) -> None:
        """Count an answered request."""
        route = route_label(path)
        self._requests[route, method if method in _METHODS else "other", status] += 1
        if route not in self._times:
            self._times[route] = HistogramCounts(_BOUNDS)
        self._times[route].observe(seconds)

    def body(self, path: str, size: int) -> None:
        """Count the bytes of a body."""
        self._bytes[route_label(path)] += size

    def workers_started(self, why: str) -> None:
        """Count a worker start; `why` is how the worker before it ended."""
        self._starts[why] += 1

    def text(self, *, gauges: Mapping[str, float], workers: Mapping[int, int]) -> str:
        """Return the page; `gauges` are current values, `workers` the memory of each worker by slot."""
        return "".join(f"{line}\n" for line in self._lines(gauges, workers))

    def _lines(self, gauges: Mapping[str, float], workers: Mapping[int, int]) -> Iterator[str]:
        requests = (
            ({"route": route, "method": method, "code": str(status)}, count)
            for (route, method, status), count in sorted(self._requests.items())
        )
        yield from family("tutti_http_requests_total", "counter", "Requests by route, method and status.", requests)
        times = (({"route": route}, seen) for route, seen in sorted(self._times.items()))
        yield from histogram("tutti_http_request_seconds", "Time from request to answer.", times)
        sizes = (({"route": route}, count) for route, count in sorted(self._bytes.items()))
        about = "Bytes of request bodies, as received."
        yield from family("tutti_http_request_body_bytes_total", "counter", about, sizes)
        starts = (({"after": why}, count) for why, count in sorted(self._starts.items()))
        about = "Workers started, by how the previous worker ended."
        yield from family("tutti_worker_starts_total", "counter", about, starts)
        for name, number in sorted(gauges.items()):
            yield from family(name, "gauge", _GAUGES[name], [({}, number)])
        memory = (({"worker": str(slot)}, size) for slot, size in sorted(workers.items()))
        about = "Memory of each worker after its last plan."
        yield from family("tutti_worker_resident_memory_bytes", "gauge", about, memory)
        about = "Memory of the server process."
        yield from family("process_resident_memory_bytes", "gauge", about, [({}, resident_memory())])
        yield from family("process_start_time_seconds", "gauge", "When the server started.", [({}, self._started)])
        yield from family("tutti_build_info", "gauge", "The version.", [({"version": __version__}, 1)])


_GAUGES = {
    "tutti_plans_running": "Plans being made now.",
    "tutti_plans_waiting": "Requests that wait for a worker.",
    "tutti_uploads": "Requests whose body the server is receiving.",
    "tutti_upload_bytes": "Bytes received of these bodies.",
    "tutti_workers_ready": "Workers that can plan.",
}


def route_label(path: str) -> str:
    """Return the route of a path, or ``other``."""
    route = path.rstrip("/") or "/"
    return route if route in ROUTES else "other"
