"""Texts and columns that all plan tables share: requests, evictions, and pods that were not considered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tutti.kube.objects import Pod
from tutti.kube.quantity import format_quantity
from tutti.kube.resources import incoming_requests
from tutti.present.tables import NONE, counted, without_columns

if TYPE_CHECKING:
    from tutti.cluster.cluster import Cluster
    from tutti.engine.session.plan import Eviction, NotConsidered, Plan

ROOM_HELD = "room is held until other pods have left"
Row = tuple[object, ...]
_STATUS_OF_CAUSE = {"gated": "Gated"}


def namespaced_table(
    headers: Sequence[str], rows: Sequence[Row], drop: Sequence[str], *, namespaced: bool | None
) -> str:
    """Return rows as a table without the columns in `drop`.

    The first column is the namespace. The table has this column if `namespaced` is true, or if it is None and the rows
    have several namespaces.
    """
    if namespaced is None:
        namespaced = len({row[0] for row in rows}) > 1
    return without_columns(headers, rows, (*drop, *(() if namespaced else headers[:1]))) if rows else ""


def not_considered_line(plan: Plan) -> Iterator[str]:
    """Yield a line with the number of pods that were not considered, by cause; nothing if all were considered."""
    if plan.not_considered:
        causes = ", ".join(f"{number:,} {cause}" for cause, number in plan.causes.most_common())
        yield f"{len(plan.not_considered):,} not considered: {causes}"


def eviction_summary(victims: Sequence[Eviction], budgets_broken: int, of: str = "") -> str:
    """Return how many pods a placement evicts and moves, and how many budgets it breaks: ``evicts 2 pods``."""
    moved = sum(eviction.to is not None for eviction in victims)
    parts = []
    if len(victims) > moved:
        parts.append(f"evicts {counted(len(victims) - moved, 'pod')}{of}")
    if moved:
        parts.append(f"moves {counted(moved, 'pod')}{of}")
    if budgets_broken:
        parts.append(f"breaking {counted(budgets_broken, 'disruption budget')}")
    return ", ".join(parts)


def eviction_status(eviction: Eviction, preemptor: str) -> tuple[str, str]:
    """Return the status and the message of a pod that is evicted or moved."""
    if eviction.to is None:
        return "Evicted", f"makes room for {preemptor}"
    return "Moved", f"moved to {eviction.to}, makes room for {preemptor}"


def not_considered_status(other: NotConsidered) -> str:
    """Return the STATUS of a pod that was not considered."""
    return _STATUS_OF_CAUSE.get(other.cause, "Skipped")


def pod_requests(cluster: Cluster, key: str) -> str:
    """Return the requests of a pod; empty for a pod that the plan placed and then evicted: the cluster lost it."""
    return requests_text(cluster.pod(key)) if key in cluster.pods.row_of else ""


def requests_text(pod: Pod) -> str:
    """Return the requests of a pod: ``cpu=2,memory=4Gi``."""
    requests = incoming_requests(pod)
    return ",".join(f"{name}={format_quantity(name, amount)}" for name, amount in requests.items() if amount) or NONE


def split_key(key: str) -> tuple[str, str]:
    """Return the namespace and the name of a key."""
    namespace, _, name = key.partition("/")
    return namespace, name
