"""The table of a plan without gangs: a line for each pod, and a summary.

Contract: lines are in the order of the queue, placed pods first, evicted ones below the pod they make room for. Pods
that were not considered are counted in the summary; `wide` lists them too, and adds priorities, requests and scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tutti.present.plan_rows import (
    HELD,
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
_WIDE = ("PRIORITY", "REQUESTS", "SCORE")


def pod_plan_table(plan: Plan, cluster: Cluster, *, wide: bool, namespaced: bool | None) -> str:
    """The table of a plan, empty if it has no lines; namespaces have a column if asked for, or if several came up."""
    return namespaced_table(
        _HEADERS, list(_rows(plan, cluster, wide=wide)), () if wide else _WIDE, namespaced=namespaced
    )


def pod_plan_summary(plan: Plan) -> str:
    """What the plan comes to, in one line or two."""
    counts = plan.counts
    said = [f"{counts['binds']:,} placed", f"{counts['unschedulable']:,} cannot be placed"]
    if plan.nominated:
        said.append(f"{len(plan.nominated):,} waiting for room that is held")
    moved = sum(each.to is not None for each in plan.evictions)
    evicted = len(plan.evictions) - moved
    if evicted:
        said.append(f"{counted(evicted, 'pod')} evicted")
    if moved:
        said.append(f"{counted(moved, 'pod')} moved")
    return "\n".join((f"{counted(counts['pending'], 'pending pod')}: {', '.join(said)}", *not_considered_line(plan)))


def _rows(plan: Plan, cluster: Cluster, *, wide: bool) -> Iterator[Row]:
    victims: dict[str, list[Eviction]] = {}
    for gone in plan.evictions:
        victims.setdefault(gone.by, []).append(gone)
    for bound in plan.binds:
        score = "" if bound.score is None else bound.score
        asked = pod_requests(cluster, bound.pod) if wide else ""
        whom = victims.get(bound.pod, ())
        message = eviction_summary(whom, bound.budgets_broken)
        yield (*split_key(bound.pod), "Placed", bound.priority, asked, score, bound.node, message)
        yield from map(_victim, whom)
    for held in plan.nominated:
        asked = pod_requests(cluster, held.pod) if wide else ""
        yield (*split_key(held.pod), "Waiting", held.priority, asked, "", held.node, HELD)
        yield from map(_victim, victims.get(held.pod, ()))
    for left in plan.unschedulable:
        asked = pod_requests(cluster, left.pod) if wide else ""
        yield (*split_key(left.pod), "Pending", left.priority, asked, "", NONE, left.message)
    for other in plan.not_considered if wide else ():
        pod = cluster.pod(other.pod)
        status, asked = not_considered_status(other), requests_text(pod)
        yield (*split_key(other.pod), status, pod.spec.priority or 0, asked, "", NONE, other.message)


def _victim(gone: Eviction) -> Row:
    status, message = eviction_status(gone, gone.by)
    return (*split_key(gone.pod), status, gone.priority, "", "", gone.node, message)
