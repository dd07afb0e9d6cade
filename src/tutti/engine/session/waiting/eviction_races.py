"""Eviction races: did the pods start for which others were evicted, or was the room lost again?

Another scheduler may take the room of victims, a kubelet may reject the pod, or the API server may refuse its binding.
A race begins when a turn is bound that has evicted pods. It is won when its pods have started, and lost when one of
them ends or is pending again before. Lost races count against the preemptor: the turn of a gang, or the controller of a
single pod, whose next pod has another name. They count until a race of the preemptor is won or nodes have changed.

Contract: frozen data by preemptor; the functions change nothing. `settle` costs the open races, which are few: the
oldest are forgotten.
"""

from __future__ import annotations

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.cluster.events import Event
from tutti.engine.session.plan import Turn

_NODE_EVENTS = (
    Event.NODE_ADDED, Event.NODE_ALLOCATABLE, Event.NODE_LABELS, Event.NODE_TAINTS, Event.NODE_FEATURES,
    Event.NODE_REMOVED,
)  # fmt: skip
_MAX_OPEN = 256
_MAX_LOST = 1_024


class EvictionRace(msgspec.Struct, frozen=True):
    """A preemptor that is bound and has not started."""

    preemptor: str
    uids: dict[str, str | None]
    """Its pods, by key."""
    evictions: int
    """How often it has evicted pods, lost races before this one included."""
    evicted_at: tuple[int, ...]
    """The counters of node events at the last of these evictions."""


class LostRaces(msgspec.Struct, frozen=True):
    """How often a preemptor has evicted pods in vain, and the counters of node events at the last eviction."""

    evictions: int
    evicted_at: tuple[int, ...]


class EvictionRaces(msgspec.Struct, frozen=True):
    """See the module's docstring."""

    open: tuple[EvictionRace, ...] = ()
    lost: dict[str, LostRaces] = {}
    """By preemptor, the latest last."""


def node_events(cluster: Cluster) -> tuple[int, ...]:
    """Return the counters of node events: lost races count only as long as these stay the same."""
    return tuple(cluster.events[event] for event in _NODE_EVENTS)


def preemptor_of(turn: Turn, cluster: Cluster) -> str:
    """Return whose evictions count together with those of a turn."""
    if turn.gang is not None:
        return turn.name
    meta = cluster.pod(turn.key).metadata
    owners = (owner.uid for owner in meta.owner_references or () if owner.controller)
    return f"uid/{next(owners, None) or meta.uid or turn.key}"


def begin(races: EvictionRaces, cluster: Cluster, turn: Turn, evictions: LostRaces) -> EvictionRaces:
    """Return the races with that of a turn which was just bound, after so many evictions."""
    table = cluster.pods
    bound = [pod for pod in turn.pods if table.node_names[table.row_of[pod]] is not None]
    if not bound:
        return races
    uids = {pod: cluster.pod(pod).metadata.uid for pod in bound}
    race = EvictionRace(preemptor_of(turn, cluster), uids, evictions.evictions, evictions.evicted_at)
    return EvictionRaces((*races.open, race)[-_MAX_OPEN:], races.lost)


def settle(races: EvictionRaces, cluster: Cluster) -> EvictionRaces:
    """Return the races after those have ended that were won or lost; the same object if there are none."""
    still_open, lost = [], dict(races.lost)
    for race in races.open:
        is_won = _is_won(race, cluster)
        if is_won is None:
            still_open.append(race)
            continue
        before = lost.pop(race.preemptor, None)
        if not is_won:
            known = before.evictions if before is not None and before.evicted_at == race.evicted_at else 0
            lost[race.preemptor] = LostRaces(max(race.evictions, known), race.evicted_at)
    if len(still_open) == len(races.open):
        return races
    return EvictionRaces(tuple(still_open), dict(list(lost.items())[-_MAX_LOST:]))


def _is_won(race: EvictionRace, cluster: Cluster) -> bool | None:
    """Return whether a race was won; None if that is open."""
    is_won: bool | None = True
    for pod, uid in race.uids.items():
        row = cluster.pods.row_of.get(pod)
        if row is None:
            finished = cluster.pod_updates.finished.get(pod)
            if finished is not None and finished.uid == uid and finished.succeeded:
                continue
            return False
        obj = cluster.pod(pod)
        if obj.metadata.uid != uid or cluster.pods.node_names[row] is None:
            return False
        if obj.status.phase != "Running" and not obj.status.start_time:
            is_won = None
    return is_won
