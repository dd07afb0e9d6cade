"""The executor of plans: turns a plan into requests.

Contract: `carry_out` never waits. Evictions are sent before bindings; conditions, nominations and events follow when
the server has time. What is refused comes back through the inbox, as docs/engine.md asks for. Belongs to the event
loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tutti.client.event_recorder import EventRecorder, Regarding
from tutti.engine.reasons.visible_names import visible_preemptor
from tutti.engine.session.plan import Bound, Eviction, Plan
from tutti.live.executor.binder import PodBinder
from tutti.live.executor.evictions.overdue_victims import OverdueVictims
from tutti.live.executor.evictions.preemptors import preemptors
from tutti.live.executor.evictions.refused_evictions import RefusedEvictions
from tutti.live.executor.evictions.victim_requests import VictimRequests
from tutti.live.executor.groups.coscheduling_status import CoschedulingStatusWriter
from tutti.live.executor.groups.native_status import NativeStatusWriter
from tutti.live.executor.pinned_claims import PinnedClaims
from tutti.live.executor.status_writer import StatusWriter
from tutti.live.executor.waiting_reasons import REFUSED, Waiting
from tutti.live.newest_objects import NewestObjects


class PlanExecutor:
    """See the module's docstring."""

    def __init__(
        self,
        binder: PodBinder,
        victims: VictimRequests,
        *,
        statuses: StatusWriter,
        groups: Sequence[NativeStatusWriter | CoschedulingStatusWriter],
        refused_evictions: RefusedEvictions,
        overdue: OverdueVictims,
        tell: Callable[[Waiting], None],
        events: EventRecorder,
        newest: NewestObjects,
    ) -> None:
        self._binder, self._victims, self._statuses = binder, victims, statuses
        self._groups, self._refused_evictions, self._tell = groups, refused_evictions, tell
        self._overdue, self._events, self._newest = overdue, events, newest
        self._pinned_claims = PinnedClaims(newest)

    def carry_out(self, plan: Plan) -> None:
        """Send the requests of a plan."""
        self._victims.submit(plan.evictions, preemptors(plan, self._newest))
        for group in self._groups:
            group.expect(plan)
        self._binder.submit(plan.binds)
        for pod in plan.released:
            self._statuses.nominate(pod, None)
        for nominated in plan.nominated:
            self._statuses.nominate(nominated.pod, nominated.node)
        messages = self._overdue.with_notes(plan, self._refused_evictions.messages(plan))
        for waiting in self._pinned_claims.with_notes(plan, messages):
            self._tell(waiting)
        for partial in plan.partial_gangs:
            for key in partial.left:
                note = f"{partial.running} of {partial.minimum} pods of gang {partial.gang} run, and it never ran whole"
                about = regarding(self._newest, key)
                self._events.record(about, "PartialGang", note, action="Scheduling", kind="Warning")


def regarding(newest: NewestObjects, key: str, uid: str | None = None) -> Regarding:
    """Return what an event about a pod refers to."""
    namespace, _, name = key.partition("/")
    pod = newest.pod(key) if uid is None else None
    return Regarding("Pod", namespace, name, uid or (pod.metadata.uid if pod is not None else None) or "")


def record_bound(events: EventRecorder, newest: NewestObjects, bound: Bound) -> None:
    """Record the event of a bound pod."""
    note = f"Successfully assigned {bound.pod} to {bound.node}"
    events.record(regarding(newest, bound.pod, bound.uid), "Scheduled", note, action="Binding", repeats=False)


def tell_waiting(statuses: StatusWriter, events: EventRecorder, newest: NewestObjects) -> Callable[[Waiting], None]:
    """Return a function that tells a pod why it waits, by its condition and an event, if that is new."""

    def tell(waiting: Waiting) -> None:
        if statuses.tell(waiting):
            about = regarding(newest, waiting.pod)
            events.record(about, "FailedScheduling", waiting.message, action="Scheduling", kind="Warning")

    return tell


def refused_binding(bound: Bound, problem: str) -> Waiting:
    """Return what a pod is told that the server does not let us bind."""
    return Waiting(bound.pod, REFUSED, f"the binding failed: {problem}")


def record_evicted(events: EventRecorder, newest: NewestObjects, eviction: Eviction) -> None:
    """Record the event of an evicted pod."""
    preemptor = visible_preemptor(eviction.by, reader=eviction.pod)
    note = eviction.reason or f"Preempted by {preemptor} on node {eviction.node}"
    events.record(regarding(newest, eviction.pod, eviction.uid), "Preempted", note, action="Preempting")
