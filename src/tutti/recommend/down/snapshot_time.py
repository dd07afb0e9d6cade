"""The moment at which a scale-down measures ages: the present, or the time of an older dump.

Contract: pure; the present is an argument. The time of a dump is the latest time in it: in a running cluster every
kubelet has reported within five minutes. If that is more than `FAR` before the present, ages are measured at the time
of the dump, and a note says so; a moment too early makes pods young and waits long, which keeps nodes. Schedules are
still evaluated at the present, when the plan is carried out. A moment that the input itself names is kept.
"""

from __future__ import annotations

from msgspec.structs import replace

from tutti.autoscalers.cluster_autoscaler.drainability import latest_moment
from tutti.recommend.records.request import Request

FAR = 10 * 60 * 1_000_000
"""In microseconds."""
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def set_snapshot_time(request: Request, *, present: int) -> Request:
    """Return the request with the moment at which ages are measured; unchanged if it asks for no scale-down."""
    down = request.options.down
    if down is None or down.now != present:
        return request
    moment = latest_moment(request.objects)
    if moment is None or present - moment <= FAR:
        return request
    note = f"the dump is from about {_duration_text(present - moment)} ago: ages are measured at that time"
    options = replace(request.options, down=replace(down, now=moment, present=present))
    return replace(request, options=options, notes=(*request.notes, note))


def _duration_text(micros: int) -> str:
    """Return a duration in its largest unit."""
    seconds = micros // 1_000_000
    name, size = next((name, size) for name, size in _UNITS if seconds >= size)
    return f"{round(seconds / size):,} {name}"
