"""Preemptors: the pods and gangs for which a plan evicts others, and whether they still wait for that.

Contract: pure. A preemptor is known by the uids of the pods that the plan nominates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tutti.engine.session.plan import Plan
from tutti.kube.objects import Pod
from tutti.live.newest_objects import NewestObjects


class Preemptor(NamedTuple):
    """A pod or a gang for which others are evicted."""

    uids: dict[str, str]
    """The pods for which room is held, by key."""

    @property
    def uid(self) -> str:
        """The uid of its first pod, by which it is known after a restart."""
        return next(iter(self.uids.values()), "")

    def still_waits(self, newest: NewestObjects) -> bool:
        """Return whether a pod of the preemptor still waits for the room."""
        return any(not newest.is_group_deleted(pod) for pod in self._waiting_pods(newest))

    def _waiting_pods(self, newest: NewestObjects) -> Iterator[Pod]:
        for key, uid in self.uids.items():
            pod = newest.pod(key)
            if pod is None or pod.metadata.uid != uid or pod.spec.node_name:
                continue
            if pod.metadata.deletion_timestamp is None:
                yield pod


def preemptors(plan: Plan, newest: NewestObjects) -> dict[str, Preemptor]:
    """Return the preemptors of a plan by key, that of the gang or of the pod."""
    found: dict[str, Preemptor] = {}
    for nominated in plan.nominated if plan.evictions else ():
        pod = newest.pod(nominated.pod)
        preemptor = found.setdefault(nominated.gang or nominated.pod, Preemptor({}))
        if pod is not None:
            preemptor.uids[nominated.pod] = pod.metadata.uid or ""
    return found
