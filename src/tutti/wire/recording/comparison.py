"""Two plans of one session compared, pod by pod: the recorded plan, and that of a replay.

Contract: pure, frozen records. A pod has one outcome in a plan. A difference lists the pods whose outcomes differ, in
the order of the plans, and the fields of the plan that differ although no pod in them does: for example turns or holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec

from tutti.engine.session.plan import Plan
from tutti.wire.recording.struct_codec import fields_of, plain

_OF_PODS = frozenset(("counts", "binds", "evictions", "unschedulable", "notConsidered", "nominated", "gangs"))
"""Fields of a plan whose differences are those of the pods' outcomes."""


class PodOutcome(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """What a plan does with a pod."""

    status: str
    """Placed, Waiting (room is held), Evicted, Moved, Pending or Skipped."""
    node: str | None = None
    """The node that the pod gets; for Evicted the node that the pod leaves."""
    message: str = ""
    """Why the pod gets no node; for Evicted and Moved the pod or gang that needs the room."""


class PodDifference(msgspec.Struct, frozen=True, gc=False):
    """A pod with different outcomes; None: the pod is not in the plan."""

    pod: str
    recorded: PodOutcome | None
    replayed: PodOutcome | None


class PlanDifference(msgspec.Struct, frozen=True):
    """A session whose plan is not the recorded plan."""

    session: int
    """The number of the session in the recording, from 1."""
    line: int
    now: int | None
    pods: tuple[PodDifference, ...]
    fields: tuple[str, ...]
    """Other fields of the plan that differ."""


class ReplayTotals(msgspec.Struct, frozen=True, kw_only=True):
    """Sums over all sessions of a replay."""

    sessions: int
    edits: int
    first: int | None
    """The time of the first session."""
    last: int | None
    recorded: dict[str, int]
    """The numbers of decisions in the recorded plans."""
    replayed: dict[str, int]


COUNTED = ("binds", "evictions", "moves")
"""The counts of a plan that are summed; pods that wait would be counted once per attempt."""


def decision_counts(plan: Plan) -> Counter[str]:
    """Return the numbers of a plan's decisions."""
    return Counter({name: plan.counts.get(name, 0) for name in COUNTED})


def plan_difference(recorded: Plan, replayed: Plan, *, session: int, line: int, now: int | None) -> PlanDifference:
    """Compare two plans that are not equal."""
    before, after = dict(_outcomes(recorded)), dict(_outcomes(replayed))
    pods = tuple(
        PodDifference(pod, before.get(pod), after.get(pod))
        for pod in dict.fromkeys((*before, *after))
        if before.get(pod) != after.get(pod)
    )
    different = [
        field.wire_name
        for field in fields_of(Plan)
        if plain(getattr(recorded, field.name)) != plain(getattr(replayed, field.name))
    ]
    fields = tuple(name for name in different if name not in _OF_PODS or not pods)
    return PlanDifference(session, line, now, pods, fields)


def _outcomes(plan: Plan) -> Iterator[tuple[str, PodOutcome]]:
    """Yield the pods of a plan with their outcomes."""
    for skipped in plan.not_considered:
        yield skipped.pod, PodOutcome("Skipped", None, skipped.message)
    for refused in plan.unschedulable:
        yield refused.pod, PodOutcome("Pending", None, refused.message)
    for held in plan.nominated:
        yield held.pod, PodOutcome("Waiting", held.node)
    for bound in plan.binds:
        yield bound.pod, PodOutcome("Placed", bound.node)
    for eviction in plan.evictions:
        if eviction.to is not None:
            yield eviction.pod, PodOutcome("Moved", eviction.to, eviction.by)
        else:
            yield eviction.pod, PodOutcome("Evicted", eviction.node, eviction.by)
