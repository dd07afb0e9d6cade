"""The queue as records: which turns wait, in which order, why, and when each is tried again.

Contract: belongs to the worker thread, between sessions. Both functions cost a few operations for each turn that waits;
records are made only for the turns that are shown.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from msgspec.structs import replace

from tutti.engine.session.plan import Turn
from tutti.engine.session.policy import Patience
from tutti.engine.session.queue import Queue
from tutti.kube.times import timestamp
from tutti.live.introspection.state_query import StateQuery
from tutti.wire.scheduler_state import QueuedTurn

GATED = "gated"


def shown_turns(
    queue: Queue, query: StateQuery, *, gang: str, now: int, patience: Patience
) -> list[tuple[QueuedTurn, str]]:
    """Return the first turns that a query asks for, each with one of its pods.

    `gang` is the gang of the pod, or the gang, that the query names.
    """
    waiting = list(_waiting_turns(queue))
    wanted = [turn for turn in waiting if query.has(turn.key)]
    if query.pod or query.gang:
        key = f"{query.namespace}/{query.pod}"
        wanted = [turn for turn in wanted if turn.gang == gang or (turn.gang is None and turn.key == key and not gang)]
    wanted = heapq.nsmallest(query.limit, wanted)
    positions = _positions(waiting, wanted)
    places = zip(wanted, positions, strict=True)
    return [(_record(queue, turn, place, now, patience), turn.pods[0]) for turn, place in places]


def turn_count(queue: Queue, query: StateQuery) -> int:
    """Return how many turns a query for a namespace asks for."""
    return sum(query.has(turn.key) for turn in _waiting_turns(queue))


def pending_pods(queue: Queue, now: int, patience: Patience) -> Counter[str]:
    """Return the number of pending pods by kube-scheduler's names of queues."""
    counts: Counter[str] = Counter(active=0, backoff=0, unschedulable=0, gated=0)
    seen: set[str] = set()
    """Gangs that are counted: both turns of a gang have the same pods."""
    for name, turn in queue.turns.items():
        entry, is_due = queue.waiting.get(name), queue.is_due(name)
        if turn.gang is not None:
            needs_nothing = entry is None and not is_due
            if turn.gang in seen or (needs_nothing and not turn.surplus):
                continue
            seen.add(turn.gang)
        if not is_due:
            where = "unschedulable"
        elif entry is not None and entry.backoff_ends(patience) > now:
            where = "backoff"
        else:
            where = "active"
        counts[where] += _pending_count(queue, turn)
    counts[GATED] = sum(other.cause == GATED for other in queue.not_considered.values())
    return counts


def _pending_count(queue: Queue, turn: Turn) -> int:
    """Return how many pods of a turn are pending: the last session may have bound some of them."""
    pods = queue.cluster.pods
    rows = map(pods.row_of.get, turn.pods)
    return sum(row is not None and pods.node_names[row] is None for row in rows)


def _waiting_turns(queue: Queue) -> Iterator[Turn]:
    """Yield the turns that wait; not those that need nothing, such as the surplus of a gang whose minimum waits."""
    waiting = queue.waiting
    for name, turn in queue.turns.items():
        if name in waiting or queue.is_due(name):
            yield turn


def _positions(waiting: list[Turn], wanted: list[Turn]) -> list[int]:
    """Return the place of each wanted turn among all turns; the wanted ones are sorted."""
    if not wanted:
        return []
    orders = [turn.order for turn in wanted]
    before, last = [0] * (len(wanted) + 1), orders[-1]
    for turn in waiting:
        if turn.order <= last:
            before[bisect_left(orders, turn.order)] += 1
    positions, total = [], 0
    for count in before[:-1]:
        total += count
        positions.append(total)
    return positions


def _record(queue: Queue, turn: Turn, position: int, now: int, patience: Patience) -> QueuedTurn:
    namespace, _, name = turn.key.partition("/")
    entry, kind = queue.waiting.get(turn.name), queue.failure_kind(turn.name)
    queued = QueuedTurn(
        namespace=namespace,
        name=name,
        kind="pod" if turn.gang is None else "surplus" if turn.surplus else "gang",
        position=position,
        priority=turn.priority,
        pods=_pending_count(queue, turn),
        state="due",
    )
    if entry is None:
        return queued
    next_try: int | None = entry.backoff_ends(patience)
    state: Literal["due", "backoff", "waiting"] = "due"
    if not queue.is_due(turn.name):
        state = "waiting"
        next_try = kind.checked_at + patience.retry_after if kind is not None and kind.checked_at is not None else None
    elif next_try is not None and next_try > now:
        state = "backoff"
    return replace(
        queued,
        state=state,
        since=timestamp(entry.since),
        tried=timestamp(entry.tried),
        attempts=entry.attempts,
        message=entry.message,
        next_try=timestamp(next_try) if next_try is not None and state != "due" else None,
        cures=tuple(event.name.lower().replace("_", " ") for event in sorted(kind.cures)) if kind is not None else (),
    )
