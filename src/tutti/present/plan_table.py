"""A plan as people read it: a line for each pod, and what it comes to.

Contract: lines are in the order of the queue, placed pods first, evicted ones below the pod they make room for. Pods
that were not considered are counted in the summary; `wide` lists them too, and adds priorities, requests and scores.
Plans that gangs have a part in are printed by `gang_table`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from tutti.kube.objects import Pod
from tutti.kube.quantity import format_quantity
from tutti.kube.resources import incoming_requests
from tutti.present.tables import NONE, counted, without_columns

if TYPE_CHECKING:
    from tutti.cluster.cluster import Cluster
    from tutti.engine.session.plan import Eviction, NotConsidered, Plan

HELD = "room is held until other pods have left"
Row = tuple[object, ...]
_HEADERS = ("NAMESPACE", "NAME", "STATUS", "PRIORITY", "REQUESTS", "SCORE", "NODE", "MESSAGE")
_WIDE = ("PRIORITY", "REQUESTS", "SCORE")
_STATUS = {"gated": "Gated"}
_FOR_EXECUTORS = frozenset(("uid", "volumes", "change", "turns", "holds", "released", "budgets"))
"""Fields of a plan that are for whoever carries it out; they are not shown."""


def plan_table(plan: Plan, cluster: Cluster, *, wide: bool, namespaced: bool | None) -> str:
    """The table of a plan, empty if it has no lines; namespaces have a column if asked for, or if several came up."""
    return laid_out(_HEADERS, list(_rows(plan, cluster, wide=wide)), () if wide else _WIDE, namespaced=namespaced)


def laid_out(headers: Sequence[str], rows: Sequence[Row], drop: Sequence[str], *, namespaced: bool | None) -> str:
    """Rows as a table, without some columns; the first column is the namespace."""
    if namespaced is None:
        namespaced = len({row[0] for row in rows}) > 1
    return without_columns(headers, rows, (*drop, *(() if namespaced else headers[:1]))) if rows else ""


def names(plan: Plan) -> str:
    """A line for each pod: its name, and the name of its node if it gets one."""
    lines = [f"pod/{split(each.pod)[1]} node/{each.node}" for each in plan.binds]
    lines += [f"pod/{split(each.pod)[1]}" for each in (*plan.nominated, *plan.unschedulable)]
    return "\n".join(lines)


def plan_data(plan: Plan) -> dict[str, Any]:
    """A plan as data; what is said of gangs and moves is left out where there are none."""
    shown = replace(
        plan,
        binds=tuple(replace(each, uid=None, volumes=()) for each in plan.binds),
        evictions=tuple(replace(each, uid=None, change=None) for each in plan.evictions),
        turns=(),
        holds=(),
        released=(),
        budgets=(),
    )
    data: dict[str, Any] = msgspec.to_builtins(shown)
    for part in ("binds", "evictions", "unschedulable", "nominated"):
        for each in data[part]:
            for key in _FOR_EXECUTORS:
                each.pop(key, None)
            for key in ("gang", "to"):
                if each.get(key, "") is None:
                    del each[key]
    parts = {key: value for key, value in data.items() if key not in _FOR_EXECUTORS}
    return {key: value for key, value in parts.items() if value or key not in ("nominated", "gangs")}


def summary(plan: Plan) -> str:
    """What the plan comes to, in one line or two."""
    counts = plan.counts
    said = [f"{counts['binds']:,} placed", f"{counts['unschedulable']:,} cannot be placed"]
    if plan.nominated:
        said.append(f"{len(plan.nominated):,} waiting for room that is held")
    moved = sum(each.to is not None for each in plan.evictions)
    if counts["evictions"] > moved:
        said.append(f"{counted(counts['evictions'] - moved, 'pod')} evicted")
    if moved:
        said.append(f"{counted(moved, 'pod')} moved")
    return "\n".join((f"{counted(counts['pending'], 'pending pod')}: {', '.join(said)}", *others_line(plan)))


def others_line(plan: Plan) -> Iterator[str]:
    """How many pods were not considered, and why; nothing when all were."""
    if plan.not_considered:
        causes = ", ".join(f"{number:,} {cause}" for cause, number in plan.causes.most_common())
        yield f"{len(plan.not_considered):,} not considered: {causes}"


def _rows(plan: Plan, cluster: Cluster, *, wide: bool) -> Iterator[Row]:
    victims: dict[str, list[Eviction]] = {}
    for gone in plan.evictions:
        victims.setdefault(gone.by, []).append(gone)
    for bound in plan.binds:
        score = "" if bound.score is None else bound.score
        asked = asked_by(cluster, bound.pod) if wide else ""
        whom = victims.get(bound.pod, ())
        message = costs(whom, bound.budgets_broken)
        yield (*split(bound.pod), "Placed", bound.priority, asked, score, bound.node, message)
        yield from map(_victim, whom)
    for held in plan.nominated:
        asked = asked_by(cluster, held.pod) if wide else ""
        yield (*split(held.pod), "Waiting", held.priority, asked, "", held.node, HELD)
        yield from map(_victim, victims.get(held.pod, ()))
    for left in plan.unschedulable:
        asked = asked_by(cluster, left.pod) if wide else ""
        yield (*split(left.pod), "Pending", left.priority, asked, "", NONE, left.message)
    for other in plan.not_considered if wide else ():
        pod = cluster.pod(other.pod)
        status, asked = left_out_status(other), requests(pod)
        yield (*split(other.pod), status, pod.spec.priority or 0, asked, "", NONE, other.message)


def _victim(gone: Eviction) -> Row:
    status, message = fate(gone, gone.by)
    return (*split(gone.pod), status, gone.priority, "", "", gone.node, message)


def costs(victims: Sequence[Eviction], budgets_broken: int, of: str = "") -> str:
    """What others pay for a placement, in a few words: ``evicts 2 pods``."""
    moved = sum(gone.to is not None for gone in victims)
    said = []
    if len(victims) > moved:
        said.append(f"evicts {counted(len(victims) - moved, 'pod')}{of}")
    if moved:
        said.append(f"moves {counted(moved, 'pod')}{of}")
    if budgets_broken:
        said.append(f"breaking {counted(budgets_broken, 'disruption budget')}")
    return ", ".join(said)


def fate(gone: Eviction, whom: str) -> tuple[str, str]:
    """The status of a pod that leaves its node for somebody, and what happens to it."""
    if gone.to is None:
        return "Evicted", f"makes room for {whom}"
    return "Moved", f"moved to {gone.to}, makes room for {whom}"


def left_out_status(other: NotConsidered) -> str:
    """The status of a pod that was not considered."""
    return _STATUS.get(other.cause, "Skipped")


def asked_by(cluster: Cluster, key: str) -> str:
    """What a pending pod asks for; nothing is known of one that was placed and then had to go again."""
    return requests(cluster.pod(key)) if key in cluster.pods.row_of else ""


def requests(pod: Pod) -> str:
    """What a pod asks for: ``cpu=2,memory=4Gi``."""
    asked = incoming_requests(pod)
    return ",".join(f"{name}={format_quantity(name, amount)}" for name, amount in asked.items() if amount) or NONE


def split(key: str) -> tuple[str, str]:
    """The namespace and the name of a key."""
    namespace, _, name = key.partition("/")
    return namespace, name
