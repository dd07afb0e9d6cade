"""The table of a plan without gangs: a line for each pod, and a summary.

Contract: lines are in the order of the queue, placed pods first, evicted pods below the pod that takes their room. The
summary counts pods that were not considered; `wide` lists them too, and adds priorities, requests and scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tutti.present.plan_rows import (
    ROOM_HELD,
    Row,
    eviction_status,
    eviction_summary,
    namespaced_table,
    not_considered_line,
    not_considered_status,
    pod_requests,
    requests_text,
    split_key,
)
from tutti.present.tables import NONE, counted

if TYPE_CHECKING:
    from tutti.cluster.cluster import Cluster
    from tutti.engine.session.plan import Eviction, Plan

_HEADERS = ("NAMESPACE", "NAME", "STATUS", "PRIORITY", "REQUESTS", "SCORE", "NODE", "MESSAGE")
_WIDE_COLUMNS = ("PRIORITY", "REQUESTS", "SCORE")


def pod_plan_table(plan: Plan, cluster: Cluster, *, wide: bool, namespaced: bool | None) -> str:
    """Return the table, or an empty text if there are no lines; `namespaced` as in `plan_text`."""
    return namespaced_table(
        _HEADERS, list(_rows(plan, cluster, wide=wide)), () if wide else _WIDE_COLUMNS, namespaced=namespaced
    )


def pod_plan_summary(plan: Plan) -> str:
    """Return the numbers of placed, refused and evicted pods, in one line or two."""
    counts = plan.counts
    parts = [f"{counts['binds']:,} placed", f"{counts['unschedulable']:,} cannot be placed"]
    if plan.nominated:
        parts.append(f"{len(plan.nominated):,} waiting for room that is held")
    moved = sum(each.to is not None for each in plan.evictions)
    evicted = len(plan.evictions) - moved
    if evicted:
        parts.append(f"{counted(evicted, 'pod')} evicted")
    if moved:
        parts.append(f"{counted(moved, 'pod')} moved")
    return "\n".join((f"{counted(counts['pending'], 'pending pod')}: {', '.join(parts)}", *not_considered_line(plan)))


def _rows(plan: Plan, cluster: Cluster, *, wide: bool) -> Iterator[Row]:
    victims: dict[str, list[Eviction]] = {}
    for eviction in plan.evictions:
        victims.setdefault(eviction.by, []).append(eviction)
    for bound in plan.binds:
        score = "" if bound.score is None else bound.score
        requests = pod_requests(cluster, bound.pod) if wide else ""
        evicted = victims.get(bound.pod, ())
        message = eviction_summary(evicted, bound.budgets_broken)
        yield (*split_key(bound.pod), "Placed", bound.priority, requests, score, bound.node, message)
        yield from map(_victim_row, evicted)
    for held in plan.nominated:
        requests = pod_requests(cluster, held.pod) if wide else ""
        yield (*split_key(held.pod), "Waiting", held.priority, requests, "", held.node, ROOM_HELD)
        yield from map(_victim_row, victims.get(held.pod, ()))
    for left in plan.unschedulable:
        requests = pod_requests(cluster, left.pod) if wide else ""
        yield (*split_key(left.pod), "Pending", left.priority, requests, "", NONE, left.message)
    for other in plan.not_considered if wide else ():
        pod = cluster.pod(other.pod)
        status, requests = not_considered_status(other), requests_text(pod)
        yield (*split_key(other.pod), status, pod.spec.priority or 0, requests, "", NONE, other.message)


def _victim_row(eviction: Eviction) -> Row:
    status, message = eviction_status(eviction, eviction.by)
    return (*split_key(eviction.pod), status, eviction.priority, "", "", eviction.node, message)
