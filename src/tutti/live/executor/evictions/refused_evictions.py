"""What preemptors are told when the server refuses to evict their victims.

The next plans choose other victims for a while, and then perhaps the same again, because the cluster in memory cannot
know why the server refuses. The pods of a preemptor keep the server's words until the server lets that victim go, or a
plan finds other victims or other room.

Contract: `messages` returns what the pods of a plan are told now. `note_refused` and `note_evicted` tell the pods of
the preemptor, a pod or a gang. Nobody is told of an eviction that undoes a gang. Belongs to the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from tutti.engine.reasons.visible_names import is_visible
from tutti.engine.session.plan import Eviction, Plan
from tutti.exceptions import ApiError
from tutti.live.executor.waiting_reasons import BUDGET, REFUSED, Waiting, waiting_pods
from tutti.live.newest_objects import NewestObjects

_KEEPS_REFUSAL = ("victims", "correction")
"""What pods wait for whose victims were refused: these victims are chosen again, or spared for a while."""
_LOG = logging.getLogger("tutti.live")


class RefusedEvictions:
    """See the module's docstring; `tell` writes what a pod is told, if that is new."""

    def __init__(self, newest: NewestObjects, tell: Callable[[Waiting], None]) -> None:
        self._newest, self._tell = newest, tell
        self._messages: dict[str, dict[str, Waiting]] = {}
        """What the last plan tells the pods of each preemptor that evicts others, by preemptor and pod."""
        self._refused: dict[str, str] = {}
        """The uid of the victim that was refused, by preemptor."""

    def messages(self, plan: Plan) -> Iterator[Waiting]:
        """Yield what the pods that a plan leaves waiting are told, but for those whose victims were refused before."""
        victims: dict[str, set[str]] = {}
        for eviction in plan.evictions:
            victims.setdefault(eviction.by, set()).add(eviction.uid or "")
        preemptor_of = _preemptors(plan)
        self._forget_preemptors(plan, victims)
        for waiting in waiting_pods(plan):
            preemptor = preemptor_of.get(waiting.pod)
            if preemptor is not None and (preemptor in victims or preemptor in self._refused):
                self._messages.setdefault(preemptor, {})[waiting.pod] = waiting
            if preemptor not in self._refused:
                yield waiting

    def note_refused(self, eviction: Eviction, error: ApiError) -> None:
        """Tell the preemptor that the server does not let a victim go."""
        pods, uid = self._messages.get(eviction.by, {}), eviction.uid or ""
        if self._refused.get(eviction.by) != uid:
            _LOG.warning("%s cannot be evicted for %s: %s", eviction.pod, eviction.by, error)
        if pods:
            self._refused[eviction.by] = uid
        reason = BUDGET if "DisruptionBudget" in error.causes else REFUSED
        for pod in pods:
            self._tell(Waiting(pod, reason, _refusal(eviction, error, reader=pod)))

    def note_evicted(self, eviction: Eviction) -> None:
        """Tell the preemptor that it waits for its victims, if the server had refused this one before."""
        if self._refused.get(eviction.by) == (eviction.uid or ""):
            del self._refused[eviction.by]
            for waiting in self._messages.get(eviction.by, {}).values():
                self._tell(waiting)

    def _forget_preemptors(self, plan: Plan, victims: dict[str, set[str]]) -> None:
        """Forget preemptors that are bound or gone; forget refusals where a plan chooses other victims, or none."""
        if not self._messages:
            return
        without = {each.gang or each.pod for each in plan.unschedulable if each.waits_for not in _KEEPS_REFUSAL}
        for preemptor, pods in list(self._messages.items()):
            known = map(self._newest.pod, pods)
            is_done = all(pod is None or pod.spec.node_name for pod in known)
            if is_done or preemptor in without:
                del self._messages[preemptor]
            refused = self._refused.get(preemptor, "")
            if preemptor not in self._messages or refused not in victims.get(preemptor, {refused}):
                self._refused.pop(preemptor, None)


def _preemptors(plan: Plan) -> dict[str, str]:
    """Return the preemptor of each pod that waits for victims, or may not evict them: its gang, or the pod itself."""
    preemptors = {each.pod: each.gang or each.pod for each in plan.nominated}
    waiting = (each for each in plan.unschedulable if each.waits_for in _KEEPS_REFUSAL)
    return preemptors | {each.pod: each.gang or each.pod for each in waiting}


def _refusal(eviction: Eviction, error: ApiError, *, reader: str) -> str:
    """Return what a pod is told; the server's words may name objects of the victim's namespace."""
    if is_visible(eviction.pod, reader=reader):
        return f"{eviction.pod} cannot be evicted: {error}"
    if "DisruptionBudget" in error.causes:
        return "a pod of another namespace cannot be evicted: its disruption budget does not allow that"
    return f"a pod of another namespace cannot be evicted: the API server answers {error.status}"
