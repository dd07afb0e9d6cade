"""A plan that gangs have a part in, as people read it: a line for each gang and for each pod on its own.

Contract: lines are in the order of the queue; whoever is evicted or moved stands below the one it makes room for, a
gang that goes whole as one line. READY counts the members that run once the plan is carried out, of all members, or of
the minimum if there are fewer. `wide` lists the members below their gang, those that ran before included, and what was
not considered at the end.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from tutti.engine.gangs.gang_state import Gangs
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
    from tutti.engine.session.plan import Bound, Eviction, GangPlan, Nominated, Plan, Turn, Unschedulable

_HEADERS = ("NAMESPACE", "NAME", "READY", "MIN", "STATUS", "PRIORITY", "REQUESTS", "SCORE", "NODE", "MESSAGE")
_WIDE = ("MIN", "PRIORITY", "REQUESTS", "SCORE")


def has_gangs(plan: Plan) -> bool:
    """Say whether gangs have a part in a plan."""
    return bool(plan.gangs) or any(gone.gang is not None for gone in plan.evictions)


def status_of(gang: GangPlan) -> str:
    """How a gang stands once the plan is carried out."""
    if gang.message and not gang.nominated:
        return "Pending"
    if gang.placed:
        return "Placed"
    return "Waiting" if gang.running < gang.minimum else "Running"


class _Departure(NamedTuple):
    """Pods of one gang that leave for somebody."""

    gang: str
    pods: list[Eviction]
    left: int
    """How many members still run then."""


class GangTable:
    """A plan on the cluster as the plan leaves it."""

    def __init__(self, plan: Plan, cluster: Cluster) -> None:
        self._plan, self._cluster, self._wide = plan, cluster, False
        self._gangs = {gang.gang: gang for gang in plan.gangs}
        self._running = Gangs(cluster)
        self._binds = {each.pod: each for each in plan.binds}
        self._held = {each.pod: each for each in plan.nominated}
        self._left = {each.pod: each for each in plan.unschedulable}
        self._victims: dict[tuple[str, bool], list[Eviction]] = {}
        by_gangs = {(gang.gang, victim) for gang in plan.gangs for victim in gang.evicts}
        for gone in plan.evictions:  # a pod and a gang may have one name
            self._victims.setdefault((gone.by, (gone.by, gone.pod) in by_gangs), []).append(gone)
        self._departures = self._departing(plan.evictions)

    def _departing(self, evictions: Sequence[Eviction]) -> dict[tuple[str, str], _Departure]:
        """Who leaves which gang for whom; the last to leave come first, for the cluster is as they left it."""
        found: dict[tuple[str, str], _Departure] = {}
        left: dict[str, int] = {}
        for gone in reversed([gone for gone in evictions if gone.gang is not None and gone.to is None]):
            gang = gone.gang or ""
            if gang not in left:
                left[gang] = sum(pod not in self._binds for pod, _ in self._members(gang))
            departure = found.setdefault((gone.by, gang), _Departure(gang, [], left[gang]))
            departure.pods.append(gone)
            left[gang] += 1
        return found

    def _members(self, gang: str) -> list[tuple[str, str]]:
        """The members that have nodes and are not about to leave, with these."""
        pods = self._cluster.pods
        rows = [row for row in self._running.rows(gang) if pods.node[row] >= 0 and not pods.terminating[row]]
        return [(pods.keys[row], pods.node_names[row] or "") for row in rows]

    def text(self, queue: Iterable[Turn], *, wide: bool, namespaced: bool | None) -> str:
        """The table, for turns that were taken in this order; empty if it has no lines."""
        self._wide = wide
        return namespaced_table(_HEADERS, list(self._rows(queue)), () if wide else _WIDE, namespaced=namespaced)

    def summary(self) -> str:
        """What the plan comes to, in one line or two."""
        plan = self._plan
        started = {gang.gang for gang in plan.gangs if status_of(gang) in ("Placed", "Running")}
        gone = [each for each in plan.evictions if each.to is None]
        whole = {each.gang for each in self._departures.values() if not each.left}
        said = [f"{_amount(plan.binds)} placed", f"{_amount(plan.unschedulable, but=started)} cannot be placed"]
        if plan.nominated:
            said.append(f"{_amount(plan.nominated, but=started)} waiting for room that is held")
        if gone:
            said.append(f"{_amount(gone, but={each.gang for each in gone} - whole, word='pod')} evicted")
        if len(plan.evictions) > len(gone):
            said.append(f"{counted(len(plan.evictions) - len(gone), 'pod')} moved")
        every = _amount((*plan.binds, *plan.unschedulable, *plan.nominated))
        return "\n".join((f"{every} pending: {', '.join(said)}", *not_considered_line(plan)))

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
        """The rows of a pending pod on its own, or the row of one that is a member."""
        namespace, name = split_key(key)
        bound, held, left = self._binds.get(key), self._held.get(key), self._left.get(key)
        one: Bound | Nominated | Unschedulable | None = bound or held or left
        if one is None:
            return
        victims = self._victims.get((key, False), ()) if one.gang is None else ()
        asked = pod_requests(self._cluster, key) if self._wide else ""
        score: object = ""
        if bound is not None:
            score = "" if bound.score is None else bound.score
            status, node, message = "Placed", bound.node, ""
            if bound.gang is None:
                message = eviction_summary(victims, bound.budgets_broken, _of_gang(victims, namespace))
        elif held is not None:
            status, node, message = "Waiting", held.node, "" if held.gang else HELD
        else:
            status, node, message = "Pending", NONE, "" if left is None or left.gang else left.message
        yield (namespace, f"{indent}{name}", "", "", status, one.priority, asked, score, node, message)
        if one.gang is None:
            yield from self._evicted(key, gang=False)

    # Gangs ------------------------------------------------------------------------------------------------------------

    def _gang(self, gang: GangPlan, pods: Sequence[str]) -> Iterator[Row]:
        namespace, name = split_key(gang.gang)
        victims = self._victims.get((gang.gang, True), ())
        said = eviction_summary(victims, gang.budgets_broken, _of_gang(victims, namespace)), self._why(gang, pods)
        ready = f"{gang.running + gang.placed}/{max(gang.pods, gang.minimum)}"
        message = "; ".join(filter(None, said))
        yield (
            namespace, f"gang/{name}", ready, gang.minimum, status_of(gang), gang.priority, "", "",
            self._where(gang, pods), message,
        )  # fmt: skip
        if self._wide:
            for pod, node in self._members(gang.gang):
                if pod not in self._binds:
                    now = self._cluster.pod(pod)
                    priority, asked = now.spec.priority or 0, requests_text(now)
                    yield (namespace, f"  {split_key(pod)[1]}", "", "", "Running", priority, asked, "", node, "")
            for pod in pods:
                yield from self._pod(pod, "  ")
        yield from self._evicted(gang.gang, gang=True)

    def _why(self, gang: GangPlan, pods: Sequence[str]) -> str:
        """Why a gang waits, or some of its pods above the minimum."""
        if status_of(gang) in ("Pending", "Waiting"):
            return gang.message
        above = [self._left[pod] for pod in pods if pod in self._left]
        if above:
            return f"{len(above)} above the minimum: {above[0].message}"
        return f"{gang.nominated} above the minimum: {gang.message}" if gang.nominated else ""

    def _where(self, gang: GangPlan, pods: Sequence[str]) -> str:
        """The domain that the members share, or their node, or how many nodes they are on."""
        nodes = {node for _, node in self._members(gang.gang)}
        nodes |= {self._held[pod].node for pod in pods if pod in self._held}
        if not nodes:
            return NONE
        if gang.domain:
            return ",".join(f"{key}={value}" for key, value in gang.domain.items())
        return nodes.pop() if len(nodes) == 1 else counted(len(nodes), "node")

    # Victims ----------------------------------------------------------------------------------------------------------

    def _evicted(self, by: str, *, gang: bool) -> Iterator[Row]:
        """The rows of those who make room for a gang or a pod; a gang that leaves whole has one."""
        told = set()
        for gone in self._victims.get((by, gang), ()):
            whom = _gang_name(by, gone.pod) if gang else by
            departure = self._departures.get((by, gone.gang or "")) if gone.to is None else None
            if departure is None or departure.left:
                status, message = eviction_status(gone, whom)
                if departure is not None:
                    message += f"; {_gang_name(departure.gang, gone.pod)} has {counted(departure.left, 'pod')} left"
                yield (*split_key(gone.pod), "", "", status, gone.priority, "", "", gone.node, message)
            elif departure.gang not in told:
                told.add(departure.gang)
                yield _whole(departure, whom)


def _whole(departure: _Departure, whom: str) -> Row:
    namespace, name = split_key(departure.gang)
    pods = departure.pods
    nodes = {gone.node for gone in pods}
    where = nodes.pop() if len(nodes) == 1 else counted(len(nodes), "node")
    message = f"its {counted(len(pods), 'pod')} make{'s' if len(pods) == 1 else ''} room for {whom}"
    priority = max(gone.priority for gone in pods)
    return (namespace, f"gang/{name}", f"0/{len(pods)}", "", "Evicted", priority, "", "", where, message)


def _gang_name(gang: str, beside: str) -> str:
    """What a gang is called beside somebody: with its namespace if that is another one."""
    namespace, name = split_key(gang)
    return f"gang/{name}" if namespace == split_key(beside)[0] else f"gang/{name} in {namespace}"


def _of_gang(victims: Sequence[Eviction], namespace: str) -> str:
    """The gang that all victims belong to, if they do."""
    gangs = {gone.gang for gone in victims}
    only = gangs.pop() if len(gangs) == 1 else None
    return f" of {_gang_name(only, f'{namespace}/')}" if only else ""


def _amount(
    parts: Iterable[Bound | Eviction | Nominated | Unschedulable],
    *,
    but: Container[str | None] = (),
    word: str = "surplus pod",
) -> str:
    """How many gangs with how many pods, pods on their own, and pods of those gangs that do not count as such."""
    gangs: set[str] = set()
    members, others = 0, {"pod": 0, "surplus pod": 0}
    for part in parts:
        if part.gang is not None and part.gang not in but:
            gangs.add(part.gang)
            members += 1
        else:
            others["pod" if part.gang is None else word] += 1
    said = [f"{counted(len(gangs), 'gang')} ({counted(members, 'pod')})"] if gangs else []
    said += [counted(number, noun) for noun, number in others.items() if number]
    return " and ".join(filter(None, (", ".join(said[:-1]), *said[-1:]))) or "0"
