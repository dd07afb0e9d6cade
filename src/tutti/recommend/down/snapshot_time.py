"""To which moment the ages of a scale-down count: the present, or that of a dump which is older.

Contract: pure; the present is an argument. A dump tells its moment by the latest time that it speaks of: in a running
cluster every node's kubelet has spoken within five minutes. Where that is `FAR` before the present or more, ages count
to it, and a note says so; a moment too early makes pods young and waits long, which keeps nodes. Schedules still count
to the present, when the plan is carried out. A moment that the input names itself is left alone.
"""

from __future__ import annotations

from msgspec.structs import replace

from tutti.autoscalers.cluster_autoscaler.drainability import latest_moment
from tutti.recommend.records.request import Request

FAR = 10 * 60 * 1_000_000
"""In microseconds."""
_UNITS = (("d", 86_400), ("h", 3_600), ("min", 60))


def dated(request: Request, *, present: int) -> Request:
    """The request with the moment to which its ages count; as it was if it asks for no scale-down."""
    down = request.options.down
    if down is None or down.now != present:
        return request
    moment = latest_moment(request.objects)
    if moment is None or present - moment <= FAR:
        return request
    note = f"the dump is from about {_ago(present - moment)} ago: ages count to then"
    options = replace(request.options, down=replace(down, now=moment, present=present))
    return replace(request, options=options, notes=(*request.notes, note))


def _ago(micros: int) -> str:
    """A length of time in its largest unit."""
    seconds = micros // 1_000_000
    name, size = next((name, size) for name, size in _UNITS if seconds >= size)
    return f"{round(seconds / size):,} {name}"
