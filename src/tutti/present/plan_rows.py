"""Words and columns that all tables of plans share: requests, evictions, and pods that were not considered."""

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

HELD = "room is held until other pods have left"
Row = tuple[object, ...]
_STATUS = {"gated": "Gated"}


def namespaced_table(
    headers: Sequence[str], rows: Sequence[Row], drop: Sequence[str], *, namespaced: bool | None
) -> str:
    """Rows as a table without some columns; the first one, the namespace, is shown if asked for or if there are two."""
    if namespaced is None:
        namespaced = len({row[0] for row in rows}) > 1
    return without_columns(headers, rows, (*drop, *(() if namespaced else headers[:1]))) if rows else ""


def not_considered_line(plan: Plan) -> Iterator[str]:
    """How many pods were not considered, and why; nothing when all were."""
    if plan.not_considered:
        causes = ", ".join(f"{number:,} {cause}" for cause, number in plan.causes.most_common())
        yield f"{len(plan.not_considered):,} not considered: {causes}"


def eviction_summary(victims: Sequence[Eviction], budgets_broken: int, of: str = "") -> str:
    """The pods that a placement evicts and moves, and the budgets it breaks: ``evicts 2 pods``."""
    moved = sum(gone.to is not None for gone in victims)
    said = []
    if len(victims) > moved:
        said.append(f"evicts {counted(len(victims) - moved, 'pod')}{of}")
    if moved:
        said.append(f"moves {counted(moved, 'pod')}{of}")
    if budgets_broken:
        said.append(f"breaking {counted(budgets_broken, 'disruption budget')}")
    return ", ".join(said)


def eviction_status(gone: Eviction, whom: str) -> tuple[str, str]:
    """The status of a pod that is evicted or moved, and its message."""
    if gone.to is None:
        return "Evicted", f"makes room for {whom}"
    return "Moved", f"moved to {gone.to}, makes room for {whom}"


def not_considered_status(other: NotConsidered) -> str:
    """The status of a pod that was not considered."""
    return _STATUS.get(other.cause, "Skipped")


def pod_requests(cluster: Cluster, key: str) -> str:
    """What a pod requests; empty for one that the plan placed and then evicted, which the cluster no longer has."""
    return requests_text(cluster.pod(key)) if key in cluster.pods.row_of else ""


def requests_text(pod: Pod) -> str:
    """What a pod requests: ``cpu=2,memory=4Gi``."""
    asked = incoming_requests(pod)
    return ",".join(f"{name}={format_quantity(name, amount)}" for name, amount in asked.items() if amount) or NONE


def split_key(key: str) -> tuple[str, str]:
    """The namespace and the name of a key."""
    namespace, _, name = key.partition("/")
    return namespace, name
