"""A plan as people read it: a line for each pod, and what it comes to.

Contract: lines are in the order of the queue, placed pods first, evicted ones below the pod they make room for. Pods
that were not considered are counted in the summary; `wide` lists them too, and adds priorities, requests and scores.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tutti.cli.tables import NONE, counted, without_columns
from tutti.kube.objects import Pod
from tutti.kube.quantity import format_quantity
from tutti.kube.resources import incoming_requests

if TYPE_CHECKING:
    from tutti.cluster import Cluster
    from tutti.engine.plan import Plan

_HEADERS = ("NAMESPACE", "NAME", "STATUS", "PRIORITY", "REQUESTS", "SCORE", "NODE", "MESSAGE")
_WIDE = ("PRIORITY", "REQUESTS", "SCORE")
_STATUS = {"gated": "Gated"}
_Row = tuple[object, ...]


def plan_table(plan: Plan, cluster: Cluster, *, wide: bool, namespaced: bool | None) -> str:
    """The table of a plan, empty if it has no lines; namespaces have a column if asked for, or if several came up."""
    rows = list(_rows(plan, cluster, wide=wide))
    if namespaced is None:
        namespaced = len({row[0] for row in rows}) > 1
    drop = (*(() if wide else _WIDE), *(() if namespaced else ("NAMESPACE",)))
    return without_columns(_HEADERS, rows, drop) if rows else ""


def names(plan: Plan) -> str:
    """A line for each pod: its name, and the name of its node if it gets one."""
    lines = [f"pod/{_name(each.pod)} node/{each.node}" for each in plan.binds]
    lines += [f"pod/{_name(each.pod)}" for each in plan.unschedulable]
    return "\n".join(lines)


def summary(plan: Plan) -> str:
    """What the plan comes to, in one line or two."""
    counts = plan.counts
    said = [f"{counts['binds']:,} placed", f"{counts['unschedulable']:,} cannot be placed"]
    if counts["evictions"]:
        said.append(f"{counted(counts['evictions'], 'pod')} evicted")
    lines = [f"{counted(counts['pending'], 'pending pod')}: {', '.join(said)}"]
    if counts["notConsidered"]:
        causes = ", ".join(f"{number:,} {cause}" for cause, number in plan.causes.most_common())
        lines.append(f"{counts['notConsidered']:,} not considered: {causes}")
    return "\n".join(lines)


def _rows(plan: Plan, cluster: Cluster, *, wide: bool) -> Iterator[_Row]:
    victims: dict[str, list[_Row]] = {}
    for gone in plan.evictions:
        line = (*_split(gone.pod), "Evicted", gone.priority, "", "", gone.node, f"makes room for {gone.by}")
        victims.setdefault(gone.by, []).append(line)
    for bound in plan.binds:
        score = "" if bound.score is None else bound.score
        asked = requests(cluster.pod(bound.pod)) if wide else ""
        message = f"evicts {counted(len(bound.evicts), 'pod')}" if bound.evicts else ""
        if bound.budgets_broken:
            message += f", breaking {counted(bound.budgets_broken, 'disruption budget')}"
        yield (*_split(bound.pod), "Placed", bound.priority, asked, score, bound.node, message)
        yield from victims.get(bound.pod, ())
    for left in plan.unschedulable:
        asked = requests(cluster.pod(left.pod)) if wide else ""
        yield (*_split(left.pod), "Pending", left.priority, asked, "", NONE, left.message)
    for other in plan.not_considered if wide else ():
        pod = cluster.pod(other.pod)
        status = _STATUS.get(other.cause, "Skipped")
        yield (*_split(other.pod), status, pod.spec.priority or 0, requests(pod), "", NONE, other.message)


def requests(pod: Pod) -> str:
    """What a pod asks for: ``cpu=2,memory=4Gi``."""
    asked = incoming_requests(pod)
    return ",".join(f"{name}={format_quantity(name, amount)}" for name, amount in asked.items() if amount) or NONE


def _split(key: str) -> tuple[str, str]:
    namespace, _, name = key.partition("/")
    return namespace, name


def _name(key: str) -> str:
    return key.partition("/")[2]
