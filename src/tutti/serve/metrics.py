"""Counters of the server in Prometheus' text format.

Contract: plain numbers that only the server's event loop changes. Labels come from fixed sets, so no client can make
the page grow: a path that is no route counts as ``other``.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping

from tutti import __version__
from tutti.serve.workers.memory import resident_memory

CONTENT_TYPE = "text/plain; version=0.0.4"
"""Litestar adds the charset."""
ROUTES = ("/recommend", "/v1/recommendations", "/v1/plans", "/healthz", "/readyz", "/metrics", "/openapi.json")
_METHODS = ("GET", "HEAD", "POST")
_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)


class Metrics:
    """The counters of one server."""

    def __init__(self) -> None:
        self._started = time.time()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._nanos: dict[str, int] = {}
        self._bytes: Counter[str] = Counter()
        self._starts: Counter[str] = Counter()

    def request(self, path: str, method: str, *, status: int, seconds: float) -> None:
        """Count an answered request."""
        route = route_label(path)
        self._requests[route, method if method in _METHODS else "other", status] += 1
        self._buckets.setdefault(route, [0] * (len(_BOUNDS) + 1))[bisect_left(_BOUNDS, seconds)] += 1
        self._nanos[route] = self._nanos.get(route, 0) + round(seconds * 1e9)

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
        yield from _head("tutti_http_requests_total", "counter", "Requests by route, method and status.")
        for (route, method, status), count in sorted(self._requests.items()):
            yield f'tutti_http_requests_total{{route="{route}",method="{method}",code="{status}"}} {count}'
        yield from _head("tutti_http_request_seconds", "histogram", "Time from request to answer.")
        for route, counts in sorted(self._buckets.items()):
            yield from self._histogram(route, counts)
        yield from _head("tutti_http_request_body_bytes_total", "counter", "Bytes of request bodies, as received.")
        for route, count in sorted(self._bytes.items()):
            yield f'tutti_http_request_body_bytes_total{{route="{route}"}} {count}'
        yield from _head("tutti_worker_starts_total", "counter", "Workers started, by how the previous worker ended.")
        for why, count in sorted(self._starts.items()):
            yield f'tutti_worker_starts_total{{after="{why}"}} {count}'
        for name, number in sorted(gauges.items()):
            yield from _head(name, "gauge", _GAUGES[name])
            yield f"{name} {number:g}"
        yield from _head("tutti_worker_resident_memory_bytes", "gauge", "Memory of each worker after its last plan.")
        for slot, size in sorted(workers.items()):
            yield f'tutti_worker_resident_memory_bytes{{worker="{slot}"}} {size}'
        yield from _head("process_resident_memory_bytes", "gauge", "Memory of the server process.")
        yield f"process_resident_memory_bytes {resident_memory()}"
        yield from _head("process_start_time_seconds", "gauge", "When the server started.")
        yield f"process_start_time_seconds {self._started:.3f}"
        yield from _head("tutti_build_info", "gauge", "The version.")
        yield f'tutti_build_info{{version="{__version__}"}} 1'

    def _histogram(self, route: str, counts: list[int]) -> Iterator[str]:
        total = 0
        for bound, count in zip((*_BOUNDS, "+Inf"), counts, strict=True):
            total += count
            yield f'tutti_http_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
        yield f'tutti_http_request_seconds_sum{{route="{route}"}} {self._nanos[route] / 1e9:.6f}'
        yield f'tutti_http_request_seconds_count{{route="{route}"}} {total}'


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


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
