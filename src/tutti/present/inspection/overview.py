"""The first page of `tutti inspect`: who leads, what is known of the cluster, what waits, and what is wrong."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tutti.present.inspection.state_tables import gangs_table, queue_table, reservation_line
from tutti.present.tables import counted, printable
from tutti.wire.scheduler_state import SchedulerState

_SHOWN = 10
"""How many entries of the queue and gangs are on the page."""
_QUEUES = ("active", "backoff", "unschedulable", "gated")
_PHASES = {"whole": "running", "waiting": "waiting", "partial": "partial", "problem": "refused"}


def overview_text(state: SchedulerState, *, wide: bool) -> str:
    """Return the page."""
    parts = ["\n".join(map(printable, _summary(state)))]
    gangs = tuple(gang for gang in state.gangs if gang.phase != "whole")
    if gangs:
        more = len(gangs) - _SHOWN
        text = gangs_table(replace(state, gangs=gangs[:_SHOWN], left_out={}), wide=wide)
        parts.append(text + (f"\n{more:,} more: tutti inspect gangs" if more > 0 else ""))
    if state.queue:
        more = len(state.queue) + state.left_out.get("queue", 0) - _SHOWN
        text = queue_table(replace(state, queue=state.queue[:_SHOWN], left_out={}), wide=wide)
        parts.append(text + (f"\n{more:,} more: tutti inspect queue" if more > 0 else ""))
    return "\n\n".join(parts)


def _summary(state: SchedulerState) -> Iterator[str]:
    counts = state.counts
    role = "leads" if state.leads else f"stands by for {state.holder}" if state.holder else "stands by"
    is_ready = "ready" if state.ready else "not ready"
    yield f"Scheduler:    {state.scheduler_name} {state.version}, {state.identity}"
    yield f"State:        {role}, {is_ready}{', dry run: nothing is written' if state.dry_run else ''}"
    cluster = [counted(counts.get("nodes", 0), "node"), counted(counts.get("pods", 0), "pod") + " on nodes"]
    if counts.get("inbox"):
        cluster.append(f"{counted(counts['inbox'], 'change')} for the next session")
    yield f"Cluster:      {', '.join(cluster)}"
    bindings = [f"{counts.get('assumed', 0):,} not confirmed", f"{counts.get('inFlight', 0):,} in flight"]
    if counts.get("bindingsWaiting"):
        bindings.append(f"{counts['bindingsWaiting']:,} to be sent")
    yield f"Bindings:     {', '.join(bindings)}"
    gangs = ", ".join(f"{counts.get(phase + 'Gangs', 0):,} {word}" for phase, word in _PHASES.items())
    yield f"Gangs:        {gangs}"
    if state.leads:  # others keep no queue
        pending = ", ".join(f"{counts.get(name + 'Pods', 0):,} {name}" for name in _QUEUES)
        yield f"Pending pods: {pending}"
        yield f"Holds:        {counts.get('holds', 0):,}"
        yield from reservation_line(state)
    for note in state.notes:
        yield f"Note:         {note}"
