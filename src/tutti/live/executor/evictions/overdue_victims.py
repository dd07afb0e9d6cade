"""Victims that outlast their grace period: reported once, and no longer waited for.

A kubelet that is gone, or a finalizer, may keep an evicted pod for hours. After a while sessions do not wait for it any
more (`Patience.leaves_within`), and its preemptor looks for other room; users learn from an event on the victim, and
from what the preemptor is told, that the node or a finalizer needs attention.

Contract: `observe` notes which pods this scheduler evicts, by their conditions, so that a new process goes on where the
last one ended. `run` reports overdue victims while this process leads, and ends only by cancellation. `with_notes` adds
the victim to what its preemptor is told for as long as the victim stays. Belongs to the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from tutti.client.event_recorder import EventRecorder, Regarding
from tutti.client.reflector import Change
from tutti.cluster.edits import Put, Remove
from tutti.engine.reasons.visible_names import visible_pods
from tutti.engine.session.plan import Plan
from tutti.kube.objects import Pod
from tutti.kube.times import micros
from tutti.live.executor.evictions.disruption_target import preemptor_uid
from tutti.live.executor.waiting_reasons import Waiting
from tutti.live.newest_objects import NewestObjects

_LOG = logging.getLogger("tutti.live")
_LOOK_EVERY = 0.5
_FINISHED = ("Succeeded", "Failed")


class _Victim(NamedTuple):
    pod: str
    uid: str
    node: str
    preemptor_uid: str
    """The uid of a pod that needs the room; empty if the pod is evicted for another reason."""
    due: int
    """When the pod is overdue, in microseconds."""
    preemptor: str = ""
    """The pod that needs the room, once the victim is overdue; empty if that pod has gone."""


class OverdueVictims:
    """See the module's docstring; `now` returns the server's time, and `leaves_within` is in microseconds, too."""

    def __init__(
        self,
        newest: NewestObjects,
        events: EventRecorder,
        *,
        scheduler_name: str,
        leaves_within: int,
        may_write: Callable[[], bool],
        now: Callable[[], int],
    ) -> None:
        self._newest, self._events, self._may_write, self._now = newest, events, may_write, now
        self._scheduler_name, self._leaves_within = scheduler_name, leaves_within
        self._leaving: dict[str, _Victim] = {}
        """Victims that are not overdue yet, by key."""
        self._overdue: dict[str, _Victim] = {}
        self.count = 0
        """How many victims were overdue."""

    def observe(self, changes: Iterable[Change]) -> None:
        """Note what a watch reports."""
        for change in changes:
            if isinstance(change, Put):
                if isinstance(change.obj, Pod) and change.obj.metadata.deletion_timestamp is not None:
                    self._note_leaving(change.obj)
            elif isinstance(change, Remove) and change.kind == Pod.KIND:
                self._leaving.pop(change.key, None)
                self._overdue.pop(change.key, None)

    def _note_leaving(self, pod: Pod) -> None:
        if pod.status.phase in _FINISHED:  # its room is free, whatever keeps its object
            self._leaving.pop(pod.key, None)
            self._overdue.pop(pod.key, None)
            return
        uid = preemptor_uid(pod, scheduler_name=self._scheduler_name)
        known = self._overdue.get(pod.key)
        if uid is None or (known is not None and known.uid == pod.metadata.uid):
            return
        due = micros(pod.metadata.deletion_timestamp or "") + self._leaves_within
        node = pod.spec.node_name or ""
        self._leaving[pod.key] = _Victim(pod.key, pod.metadata.uid or "", node, uid, due)

    async def run(self) -> None:
        """Report overdue victims until cancelled."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            self._report_overdue()

    def _report_overdue(self) -> None:
        if self._leaving and self._may_write():
            now = self._now()
            for victim in [each for each in self._leaving.values() if each.due < now]:
                self._report(victim)

    def _report(self, victim: _Victim) -> None:
        del self._leaving[victim.pod]
        waiting = (pod.key for pod in self._newest.pods() if pod.metadata.uid == victim.preemptor_uid)
        victim = self._overdue[victim.pod] = victim._replace(preemptor=next(waiting, ""))
        self.count += 1
        namespace, _, name = victim.pod.partition("/")
        seconds = self._leaves_within // 1_000_000
        note = (
            f"evicted, but still on node {victim.node} {seconds} s after the end of its grace period: "
            "look at the node's kubelet and the pod's finalizers"
        )
        _LOG.warning("%s was %s", victim.pod, note)
        about = Regarding("Pod", namespace, name, victim.uid)
        self._events.record(about, "EvictionOverdue", note, action="Preempting", kind="Warning")

    def with_notes(self, plan: Plan, messages: Iterable[Waiting]) -> Iterator[Waiting]:
        """Yield what pods are told, with the overdue victims of each."""
        self._report_overdue()
        if not self._overdue:
            yield from messages
            return
        gang_of = {each.pod: each.gang for each in plan.unschedulable}
        gang_of |= {each.pod: each.gang for each in plan.nominated}
        victims: dict[str, list[_Victim]] = {}
        for victim in self._overdue.values():
            victims.setdefault(gang_of.get(victim.preemptor) or victim.preemptor, []).append(victim)
        for waiting in messages:
            message = waiting.message
            for victim in victims.get(gang_of.get(waiting.pod) or waiting.pod, ()):
                message = f"{message.removesuffix('.')}. {_note(victim, waiting.pod)}"
            yield waiting._replace(message=message, is_repeated=waiting.is_repeated and message == waiting.message)


def _note(victim: _Victim, preemptor: str) -> str:
    pod = visible_pods((victim.pod,), reader=preemptor)
    return f"Looks for other room because {pod} was evicted and has not left node {victim.node}."
