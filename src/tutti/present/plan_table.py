"""A plan as text, names and data: the output of `tutti schedule`.

Contract: pure. `gang_plan_table` formats plans with gangs, `pod_plan_table` all other plans. The cluster is in the
state after the plan.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from tutti.present.gang_plan_table import GangTable, has_gangs
from tutti.present.plan_rows import split_key
from tutti.present.pod_plan_table import pod_plan_summary, pod_plan_table

if TYPE_CHECKING:
    from tutti.cluster.cluster import Cluster
    from tutti.engine.session.plan import Plan, Turn

NO_PENDING_PODS = "No pending pods found."
_FOR_EXECUTORS = frozenset(("uid", "start", "volumes", "change", "turns", "holds", "released", "budgets"))
"""Fields that only the executor of a plan needs; `plan_data` leaves them out."""


def plan_text(
    plan: Plan, cluster: Cluster, queue: Iterable[Turn], *, wide: bool, namespaced: bool | None = None
) -> str:
    """Return the table and its summary; `queue` has the turns in the order in which the session took them.

    The table has a namespace column if `namespaced` is true, or if it is None and there are several namespaces.
    """
    if has_gangs(plan):
        gangs = GangTable(plan, cluster)
        lines, summary = gangs.text(queue, wide=wide, namespaced=namespaced), gangs.summary()
    else:
        lines, summary = pod_plan_table(plan, cluster, wide=wide, namespaced=namespaced), pod_plan_summary(plan)
    return f"{lines}\n\n{summary}" if lines else summary


def plan_names(plan: Plan) -> str:
    """Return a line for each pod: its name, and the name of its node if it gets one."""
    lines = [f"pod/{split_key(each.pod)[1]} node/{each.node}" for each in plan.binds]
    lines += [f"pod/{split_key(each.pod)[1]}" for each in (*plan.nominated, *plan.unschedulable)]
    return "\n".join(lines)


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return a plan as data for programs; fields about gangs and moves are left out if they are empty."""
    shown = replace(
        plan,
        binds=tuple(replace(each, uid=None, volumes=()) for each in plan.binds),
        evictions=tuple(replace(each, uid=None, change=None, volumes=()) for each in plan.evictions),
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
            for key in ("gang", "to", "reason"):
                if key in each and not each[key]:
                    del each[key]
    parts = {key: value for key, value in data.items() if key not in _FOR_EXECUTORS}
    return {key: value for key, value in parts.items() if value or key not in ("nominated", "gangs", "partialGangs")}
