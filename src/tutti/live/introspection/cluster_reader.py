"""The cluster and the queue as records and numbers.

Contract: belongs to the worker thread, between sessions: only that thread uses the cluster. `numbers` costs a few
operations for each pod; `read` the same, and a record for each entry that is shown, at most the limit of the query for
each list. Nothing here changes the cluster or the queue.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from tutti.cluster.edits import Hold
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.gangs.gang_state import GangPhase
from tutti.engine.session.policy import Patience
from tutti.kube.quantity import format_quantity
from tutti.kube.times import timestamp
from tutti.live.introspection.gang_summaries import GangNumbers, GangSummaries
from tutti.live.introspection.queue_reader import pending_pods, shown_turns, turn_count
from tutti.live.introspection.state_query import StateQuery
from tutti.live.watched_cluster import WatchedCluster
from tutti.wire.scheduler_state import AssumedBinding, GangSummary, PodState, QueuedTurn, ReservedRoom, RoomHold


class ClusterNumbers(NamedTuple):
    """What /metrics and the overview show of the cluster."""

    pending: Mapping[str, int]
    """Pending pods of this scheduler by kube-scheduler's names of queues."""
    gangs: Mapping[str, int]
    """Gangs by phase."""
    nodes: int = 0
    pods: int = 0
    """Pods that have a node."""
    assumed: int = 0
    holds: int = 0
    has_reservation: bool = False
    partial_gangs: int = 0
    """Gangs that run in part and never ran whole."""
    unreadable: int = 0
    """Objects of which the newest version cannot be read."""
    work_units: int = 0


class ClusterPart(NamedTuple):
    """The part of the state that is read from the cluster and the queue."""

    numbers: ClusterNumbers
    queue: list[tuple[QueuedTurn, str]]
    """Each turn with one of its pods."""
    pods: list[PodState]
    holds: list[RoomHold]
    assumed: list[AssumedBinding]
    reservation: ReservedRoom | None
    gangs: list[GangSummary]
    left_out: dict[str, int]


class ClusterReader:
    """See the module's docstring."""

    def __init__(self, watched: WatchedCluster) -> None:
        self._cluster, self._queue, self._engine = watched.cluster, watched.queue, watched.engine
        self._patience = watched.policy.patience or Patience()
        self._gangs: GangSummaries | None = None

    def numbers(self, now: int) -> ClusterNumbers:
        """Return the numbers of the cluster."""
        cluster, queue, gangs = self._cluster, self._queue, self._summaries()
        on_nodes = cluster.pods.node[: cluster.pods.length] >= 0
        return ClusterNumbers(
            nodes=cluster.nodes.count,
            pods=int(np.count_nonzero(on_nodes)),
            assumed=sum(1 for _ in self._assumed_rows()),
            pending=dict(pending_pods(queue, now, self._patience)),
            gangs={phase.value: gangs.phases[phase] for phase in GangPhase},
            holds=len(cluster.holds),
            has_reservation=queue.reservation is not None,
            partial_gangs=len(queue.partial.since),
            unreadable=len(cluster.set_aside),
            work_units=cluster.meter.count,
        )

    def read(self, query: StateQuery, now: int) -> ClusterPart:
        """Return the part of the state that a query asks for."""
        numbers, gang = self.numbers(now), self._gang_of(query)
        left_out: dict[str, int] = {}
        queue = shown_turns(self._queue, query, gang=gang, now=now, patience=self._patience)
        if not (query.pod or query.gang):
            left_out["queue"] = turn_count(self._queue, query) - len(queue)
        keys = set(self._pods_of(query, gang))
        rows = [row for row in self._assumed_rows() if self._is_shown(self._cluster.pods.keys[row], query, keys)]
        holds = [hold for owner, hold in self._cluster.holds.items() if self._is_shown(owner, query, keys)]
        gangs = [key for key in self._summaries().by_key if (key == gang if gang or query.pod else query.has(key))]
        for name, entries in (("holds", holds), ("assumed", rows), ("gangs", gangs), ("pods", keys)):
            left_out[name] = len(entries) - query.limit
        return ClusterPart(
            numbers=numbers,
            queue=queue,
            pods=[self._pod(key) for key in sorted(keys)[: query.limit]],
            holds=[self._hold(hold) for hold in heapq.nsmallest(query.limit, holds, key=lambda hold: hold.owner)],
            assumed=[self._assumed(row) for row in rows[: query.limit]],
            reservation=self._reservation(query),
            gangs=[self._gang(key) for key in heapq.nsmallest(query.limit, gangs, key=self._gang_place)],
            left_out={name: count for name, count in left_out.items() if count > 0},
        )

    def _summaries(self) -> GangSummaries:
        if self._gangs is None:
            self._gangs = GangSummaries(self._cluster)
        self._gangs.sync()
        return self._gangs

    # One pod or one gang ----------------------------------------------------------------------------------------------

    def _gang_of(self, query: StateQuery) -> str:
        """Return the gang that a query names, or to which its pod belongs; empty if there is none."""
        if query.gang:
            return f"{query.namespace}/{query.gang}"
        row = self._cluster.pods.row_of.get(f"{query.namespace}/{query.pod}") if query.pod else None
        return (Gangs.of(self._cluster).key_of(row) or "") if row is not None else ""

    def _pods_of(self, query: StateQuery, gang: str) -> Iterator[str]:
        """Yield the pods that a query is about; none if it is about a namespace or all."""
        pods = self._cluster.pods
        if query.pod:
            key = f"{query.namespace}/{query.pod}"
            if key in pods.row_of:
                yield key
        elif query.gang:
            yield from (pods.keys[row] for row in Gangs.of(self._cluster).rows(gang))

    def _is_shown(self, key: str, query: StateQuery, keys: set[str]) -> bool:
        return key in keys if query.pod or query.gang else query.has(key)

    def _pod(self, key: str) -> PodState:
        pods, row = self._cluster.pods, self._cluster.pods.row_of[key]
        pod, node, other = pods.objects[row], pods.node_names[row], self._queue.not_considered.get(key)
        assert pod is not None
        if node is not None:
            is_bound = bool(pod.spec.node_name)
            return PodState(
                pod=key,
                state="bound" if is_bound else "assumed",
                node=node,
                gang=Gangs.of(self._cluster).key_of(row) or "",
                priority=int(pods.priority[row]),
                terminating=bool(pods.terminating[row]),
            )
        return PodState(
            pod=key,
            state="waiting" if other is None else "not considered",
            gang=Gangs.of(self._cluster).key_of(row) or "",
            priority=int(pods.priority[row]),
            message=other.message if other is not None else "",
        )

    # Assumed pods, holds, reservation, gangs --------------------------------------------------------------------------

    def _assumed_rows(self) -> Iterator[int]:
        """Yield the rows of pods that are on nodes in memory and not in their objects."""
        pods = self._cluster.pods
        for row in np.flatnonzero(pods.node[: pods.length] >= 0).tolist():
            pod = pods.objects[row]
            if pod is not None and not pod.spec.node_name:
                yield row

    def _assumed(self, row: int) -> AssumedBinding:
        pods = self._cluster.pods
        gang = Gangs.of(self._cluster).key_of(row) or ""
        return AssumedBinding(pod=pods.keys[row], node=pods.node_names[row] or "", gang=gang)

    def _hold(self, hold: Hold) -> RoomHold:
        index, reservation = self._cluster.hold_index, self._queue.reservation
        names = self._cluster.usages.resources.names
        amounts = {
            name: format_quantity(name, amount)
            for name, amount in zip(names, index.amounts_of(hold.owner).tolist(), strict=False)
            if name and amount
        }
        return RoomHold(
            owner=hold.owner,
            node=hold.node,
            priority=index.priority_of(hold.owner),
            until=timestamp(hold.until) if hold.until is not None else None,
            amounts=amounts,
            reserved=reservation is not None and hold in reservation.holds,
        )

    def _reservation(self, query: StateQuery) -> ReservedRoom | None:
        reservation = self._queue.reservation
        if reservation is None:
            return None
        is_shown = not query.hides_others or query.has(reservation.name.removeprefix("gang/"))
        nodes = sorted({hold.node for hold in reservation.holds})[: query.limit]
        return ReservedRoom(
            turn=reservation.name if is_shown else "",
            since=timestamp(reservation.since),
            until=timestamp(reservation.until) if reservation.until is not None else None,
            nodes=tuple(nodes) if is_shown else (),
            holds=len(reservation.holds),
        )

    def _gang_place(self, key: str) -> tuple[int, str]:
        """Return the sort key of a gang: gangs that need attention first."""
        return _PLACES[self._numbers_of(key).phase], key

    def _numbers_of(self, key: str) -> GangNumbers:
        return self._summaries().by_key[key]

    def _gang(self, key: str) -> GangSummary:
        numbers, entry = self._numbers_of(key), self._queue.waiting.get(f"gang/{key}")
        namespace, _, name = key.partition("/")
        return GangSummary(
            namespace=namespace,
            name=name,
            dialect=numbers.dialect,
            phase=numbers.phase.value,
            minimum=numbers.minimum,
            running=numbers.running,
            waiting=numbers.waiting,
            priority=numbers.priority,
            nodes=numbers.nodes,
            message=numbers.problem or (entry.message if entry is not None else ""),
        )


_PLACES = {GangPhase.PARTIAL: 0, GangPhase.PROBLEM: 1, GangPhase.WAITING: 2, GangPhase.WHOLE: 3}
