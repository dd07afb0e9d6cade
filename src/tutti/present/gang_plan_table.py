"""The table of a plan with gangs: a line for each gang and for each single pod.

Contract: lines are in the order of the queue. Evicted and moved pods stand below the pod or gang that takes their room;
a gang that is evicted as a whole has one line. READY is the number of members that run after the plan, out of all
members (or out of the minimum, if the gang has fewer members). `wide` also lists the members below their gang,
including those that ran before, and at the end the pods that were not considered.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tutti.engine.gangs.cluster_gangs import Gangs
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
    from tutti.engine.session.plan import Bound, Eviction, GangPlan, Nominated, Plan, Turn, Unschedulable

_HEADERS = ("NAMESPACE", "NAME", "READY", "MIN", "STATUS", "PRIORITY", "REQUESTS", "SCORE", "NODE", "MESSAGE")
_WIDE_COLUMNS = ("MIN", "PRIORITY", "REQUESTS", "SCORE")


def has_gangs(plan: Plan) -> bool:
    """Return whether a plan places, refuses or evicts a gang."""
    return bool(plan.gangs) or any(eviction.gang is not None for eviction in plan.evictions)


def status_of(gang: GangPlan) -> str:
    """Return the STATUS of a gang after the plan."""
    if gang.message and not gang.nominated:
        return "Pending"
    if gang.placed:
        return "Placed"
    return "Waiting" if gang.missing else "Running"


class _GangEviction(NamedTuple):
    """The evicted pods of one gang that make room for the same pod or gang."""

    gang: str
    pods: list[Eviction]
    left: int
    """Number of members that still run afterwards."""


class GangTable:
    """Formats a plan; `cluster` is in the state after the plan."""

    def __init__(self, plan: Plan, cluster: Cluster) -> None:
        self._plan, self._cluster, self._wide = plan, cluster, False
        self._gangs = {gang.gang: gang for gang in plan.gangs}
        self._running = Gangs(cluster)
        self._binds = {each.pod: each for each in plan.binds}
        self._held = {each.pod: each for each in plan.nominated}
        self._left = {each.pod: each for each in plan.unschedulable}
        self._victims: dict[tuple[str, bool], list[Eviction]] = {}
        by_gangs = {(gang.gang, victim) for gang in plan.gangs for victim in gang.evicts}
        for eviction in plan.evictions:  # a pod and a gang may have the same name
            key = (eviction.by, (eviction.by, eviction.pod) in by_gangs)
            self._victims.setdefault(key, []).append(eviction)
        self._gang_evictions = self._group_by_gang(plan.evictions)

    def _group_by_gang(self, evictions: Sequence[Eviction]) -> dict[tuple[str, str], _GangEviction]:
        """Return the evictions of gang members by the pod or gang that takes their room, and by their gang.

        The loop runs from the last eviction to the first, because the cluster is in the state after all evictions.
        """
        groups: dict[tuple[str, str], _GangEviction] = {}
        left: dict[str, int] = {}
        for eviction in reversed([each for each in evictions if each.gang is not None and each.to is None]):
            gang = eviction.gang or ""
            if gang not in left:
                left[gang] = sum(pod not in self._binds for pod, _ in self._members(gang))
            group = groups.setdefault((eviction.by, gang), _GangEviction(gang, [], left[gang]))
            group.pods.append(eviction)
            left[gang] += 1
        return groups

    def _members(self, gang: str) -> list[tuple[str, str]]:
        """Return the members that have a node and are not terminating, with their nodes."""
        pods = self._cluster.pods
        rows = [row for row in self._running.rows(gang) if pods.node[row] >= 0 and not pods.terminating[row]]
        return [(pods.keys[row], pods.node_names[row] or "") for row in rows]

    def text(self, queue: Iterable[Turn], *, wide: bool, namespaced: bool | None) -> str:
        """Return the table with its lines in the order of `queue`, or an empty text if there are no lines."""
        self._wide = wide
        return namespaced_table(_HEADERS, list(self._rows(queue)), () if wide else _WIDE_COLUMNS, namespaced=namespaced)

    def summary(self) -> str:
        """Return the numbers of placed, refused and evicted gangs and pods, in one line or two."""
        plan = self._plan
        started = {gang.gang for gang in plan.gangs if status_of(gang) in ("Placed", "Running")}
        evicted = [each for each in plan.evictions if each.to is None]
        whole = {each.gang for each in self._gang_evictions.values() if not each.left}
        counts = [f"{_amount(plan.binds)} placed", f"{_amount(plan.unschedulable, partial=started)} cannot be placed"]
        if plan.nominated:
            counts.append(f"{_amount(plan.nominated, partial=started)} waiting for room that is held")
        if evicted:
            counts.append(f"{_amount(evicted, partial={each.gang for each in evicted} - whole, noun='pod')} evicted")
        if len(plan.evictions) > len(evicted):
            counts.append(f"{counted(len(plan.evictions) - len(evicted), 'pod')} moved")
        pending = _amount((*plan.binds, *plan.unschedulable, *plan.nominated))
        return "\n".join((f"{pending} pending: {', '.join(counts)}", *not_considered_line(plan)))

    def _rows(self, queue: Iterable[Turn]) -> Iterator[Row]:
        for turn in queue:
            if turn.gang is None:
                yield from self._pod(turn.key, "")
            elif turn.gang in self._gangs and not turn.surplus:
                yield from self._gang(self._gangs[turn.gang], turn.pods)
        for other in self._plan.not_considered if self._wide else ():
            pod = self._cluster.pod(other.pod)
            status, priority = not_considered_status(other), pod.spec.priority or 0
            yield (*split_key(other.pod), "", "", status, priority, requests_text(pod), "", NONE, other.message)

    # Pods -------------------------------------------------------------------------------------------------------------

    def _pod(self, key: str, indent: str) -> Iterator[Row]:
        """Yield the row of a pending pod; for a single pod also the rows of its victims."""
        namespace, name = split_key(key)
        bound, held, left = self._binds.get(key), self._held.get(key), self._left.get(key)
        entry: Bound | Nominated | Unschedulable | None = bound or held or left
        if entry is None:
            return
        victims = self._victims.get((key, False), ()) if entry.gang is None else ()
        requests = pod_requests(self._cluster, key) if self._wide else ""
        score: object = ""
        if bound is not None:
            score = "" if bound.score is None else bound.score
            status, node, message = "Placed", bound.node, ""
            if bound.gang is None:
                message = eviction_summary(victims, bound.budgets_broken, _of_gang(victims, namespace))
        elif held is not None:
            status, node, message = "Waiting", held.node, "" if held.gang else ROOM_HELD
        else:
            status, node, message = "Pending", NONE, "" if left is None or left.gang else left.message
        yield (namespace, f"{indent}{name}", "", "", status, entry.priority, requests, score, node, message)
        if entry.gang is None:
            yield from self._evicted(key, gang=False)

    # Gangs ------------------------------------------------------------------------------------------------------------

    def _gang(self, gang: GangPlan, pods: Sequence[str]) -> Iterator[Row]:
        namespace, name = split_key(gang.gang)
        victims = self._victims.get((gang.gang, True), ())
        summary = eviction_summary(victims, gang.budgets_broken, _of_gang(victims, namespace))
        ready = f"{gang.running + gang.placed}/{max(gang.pods, gang.minimum)}"
        message = "; ".join(filter(None, (summary, self._why(gang, pods))))
        yield (
            namespace, f"gang/{name}", ready, gang.minimum, status_of(gang), gang.priority, "", "",
            self._where(gang, pods), message,
        )  # fmt: skip
        if self._wide:
            for pod, node in self._members(gang.gang):
                if pod not in self._binds:
                    member = self._cluster.pod(pod)
                    priority, requests = member.spec.priority or 0, requests_text(member)
                    yield (namespace, f"  {split_key(pod)[1]}", "", "", "Running", priority, requests, "", node, "")
            for pod in pods:
                yield from self._pod(pod, "  ")
        yield from self._evicted(gang.gang, gang=True)

    def _why(self, gang: GangPlan, pods: Sequence[str]) -> str:
        """Return why the gang waits, or why pods above its minimum wait."""
        if status_of(gang) in ("Pending", "Waiting"):
            return gang.message
        above = [self._left[pod] for pod in pods if pod in self._left]
        if above:
            return f"{len(above)} above the minimum: {above[0].message}"
        return f"{gang.nominated} above the minimum: {gang.message}" if gang.nominated else ""

    def _where(self, gang: GangPlan, pods: Sequence[str]) -> str:
        """Return the domain that the members share, else their only node, else the number of their nodes."""
        nodes = {node for _, node in self._members(gang.gang)}
        nodes |= {self._held[pod].node for pod in pods if pod in self._held}
        if not nodes:
            return NONE
        if gang.domain:
            return ",".join(f"{key}={value}" for key, value in gang.domain.items())
        return nodes.pop() if len(nodes) == 1 else counted(len(nodes), "node")

    # Victims ----------------------------------------------------------------------------------------------------------

    def _evicted(self, by: str, *, gang: bool) -> Iterator[Row]:
        """Yield the rows of the victims of a pod or a gang; a gang that is evicted as a whole has one row."""
        listed = set()
        for eviction in self._victims.get((by, gang), ()):
            preemptor = _gang_name(by, eviction.pod) if gang else by
            group = self._gang_evictions.get((by, eviction.gang or "")) if eviction.to is None else None
            if group is None or group.left:
                status, message = eviction_status(eviction, preemptor)
                if group is not None:
                    message += f"; {_gang_name(group.gang, eviction.pod)} has {counted(group.left, 'pod')} left"
                yield (*split_key(eviction.pod), "", "", status, eviction.priority, "", "", eviction.node, message)
            elif group.gang not in listed:
                listed.add(group.gang)
                yield _whole_gang_row(group, preemptor)


def _whole_gang_row(evicted: _GangEviction, preemptor: str) -> Row:
    namespace, name = split_key(evicted.gang)
    pods = evicted.pods
    nodes = {eviction.node for eviction in pods}
    where = nodes.pop() if len(nodes) == 1 else counted(len(nodes), "node")
    message = f"its {counted(len(pods), 'pod')} make{'s' if len(pods) == 1 else ''} room for {preemptor}"
    priority = max(eviction.priority for eviction in pods)
    return (namespace, f"gang/{name}", f"0/{len(pods)}", "", "Evicted", priority, "", "", where, message)


def _gang_name(gang: str, pod: str) -> str:
    """Return the name of a gang in the line of a pod, with the gang's namespace if it is not the pod's."""
    namespace, name = split_key(gang)
    return f"gang/{name}" if namespace == split_key(pod)[0] else f"gang/{name} in {namespace}"


def _of_gang(victims: Sequence[Eviction], namespace: str) -> str:
    """Return `` of gang/NAME`` if all victims belong to one gang, else an empty text."""
    gangs = {eviction.gang for eviction in victims}
    only = gangs.pop() if len(gangs) == 1 else None
    return f" of {_gang_name(only, f'{namespace}/')}" if only else ""


def _amount(
    entries: Iterable[Bound | Eviction | Nominated | Unschedulable],
    *,
    partial: Container[str | None] = (),
    noun: str = "surplus pod",
) -> str:
    """Return the numbers of gangs (with their pods) and of single pods.

    Gangs in `partial` are not affected as a whole: their pods are counted as single pods, under `noun`.
    """
    gangs: set[str] = set()
    members, others = 0, {"pod": 0, "surplus pod": 0}
    for entry in entries:
        if entry.gang is not None and entry.gang not in partial:
            gangs.add(entry.gang)
            members += 1
        else:
            others["pod" if entry.gang is None else noun] += 1
    counts = [f"{counted(len(gangs), 'gang')} ({counted(members, 'pod')})"] if gangs else []
    counts += [counted(number, name) for name, number in others.items() if number]
    return " and ".join(filter(None, (", ".join(counts[:-1]), *counts[-1:]))) or "0"
