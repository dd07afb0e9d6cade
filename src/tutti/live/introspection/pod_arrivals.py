"""When pods of this scheduler arrived, and how often each was tried: what the metrics of latency are made from.

Contract: belongs to the event loop; a reported change costs a dictionary access. A pod is forgotten when it is bound or
removed. Pods that were pending before this process started count from their first report, as in kube-scheduler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tutti.client.reflector import Change
from tutti.cluster.edits import Put, Remove
from tutti.engine.session.plan import Plan, WaitsFor
from tutti.kube.objects import Pod


class Arrival:
    """A pod that waits to be bound; times are monotonic seconds."""

    __slots__ = ("attempts", "seen_at", "tried_at", "uid", "waits_for")

    def __init__(self, uid: str | None, seen_at: float) -> None:
        self.uid, self.seen_at = uid, seen_at
        self.attempts = 0
        self.tried_at = seen_at
        """When the session began that last tried the pod."""
        self.waits_for: WaitsFor | None = None
        """What the pod waited for after that session."""


class PodArrivals:
    """See the module's docstring; `monotonic` returns seconds."""

    def __init__(self, scheduler_name: str, monotonic: Callable[[], float]) -> None:
        self._scheduler_name, self._monotonic = scheduler_name, monotonic
        self._arrivals: dict[str, Arrival] = {}

    def __len__(self) -> int:
        return len(self._arrivals)

    def observe(self, changes: Iterable[Change]) -> None:
        """Note what a watch reports."""
        now = self._monotonic()
        for change in changes:
            if isinstance(change, Put):
                pod = change.obj
                if isinstance(pod, Pod) and not pod.spec.node_name and pod.spec.scheduler_name == self._scheduler_name:
                    self._note(pod, now)
            elif isinstance(change, Remove) and change.kind == Pod.KIND:
                self._arrivals.pop(change.key, None)

    def _note(self, pod: Pod, now: float) -> None:
        known = self._arrivals.get(pod.key)
        if known is None or known.uid != pod.metadata.uid:
            self._arrivals[pod.key] = Arrival(pod.metadata.uid, now)

    def note_session(self, plan: Plan, started: float) -> None:
        """Note the pods that a session has tried; those that wait for members of their gang were not tried."""
        not_tried = {each.pod for each in plan.unschedulable if each.waits_for == "members"}
        for turn in plan.turns:
            if turn.surplus:
                continue  # the pods of a gang count once
            for pod in turn.pods:
                arrival = self._arrivals.get(pod)
                if arrival is not None and pod not in not_tried:
                    arrival.attempts += 1
                    arrival.tried_at = started
        for waiting in plan.unschedulable:
            self._note_waiting(waiting.pod, waiting.waits_for)
        for nominated in plan.nominated:
            self._note_waiting(nominated.pod, "victims")

    def _note_waiting(self, pod: str, waits_for: WaitsFor) -> None:
        arrival = self._arrivals.get(pod)
        if arrival is not None:
            arrival.waits_for = waits_for

    def waits_for(self, pod: str) -> WaitsFor | None:
        """Return what a pod waited for after it was last tried; None if that is not known."""
        arrival = self._arrivals.get(pod)
        return arrival.waits_for if arrival is not None else None

    def take(self, pod: str, uid: str | None) -> Arrival | None:
        """Return and forget a pod that is bound; None if it was not seen to arrive."""
        known = self._arrivals.get(pod)
        return self._arrivals.pop(pod) if known is not None and known.uid == uid else None
