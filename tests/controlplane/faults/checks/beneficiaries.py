"""The beneficiaries of evictions: for whom was a pod evicted, and did that pod or gang start?

The victim's condition DisruptionTarget names the pod or the gang, by uid or by name. A scheduler whose conditions name
nobody nominates the beneficiary to the victim's node; without a nomination, every pod of a higher priority that waited
may be meant. A pod of a gang stands for its gang, because controllers replace pods.

Contract: pure functions of a history.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from itertools import pairwise

import msgspec

from tests.controlplane.faults.checks.history import History, PodChange

NOTICE = 1.0
"""Seconds in which the recorder sees the effect of a write."""
_LATE = 10.0
"""Seconds by which faults may delay the last eviction for a gang."""
_NOMINATION_WINDOW = 5.0
"""Seconds around an eviction in which a nomination to the victim's node names the beneficiary."""
_WORD = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_./-]*[A-Za-z0-9])?")


class Beneficiary(msgspec.Struct, frozen=True):
    """A gang or single pod; `name` is empty if several may be meant."""

    name: str
    pods: frozenset[str]
    """The uids of the pods that had a benefit if one of them starts."""


class Beneficiaries:
    """See the module's docstring."""

    def __init__(self, history: History) -> None:
        self.lives: dict[str, list[PodChange]] = defaultdict(list)
        """All changes of each pod, by uid."""
        self._gangs: dict[str, set[str]] = defaultdict(set)
        self._uids: dict[str, str] = {}
        for pod in history.pods:
            self.lives[pod.uid].append(pod)
            self._uids[pod.name] = pod.uid
            if pod.gang:
                self._gangs[pod.gang].add(pod.uid)
        self._ends = {gang.name: gang.time for gang in history.gangs if gang.ended}
        self._removed = {write.uid for write in history.writes if write.verb in ("evict", "delete")}

    def life(self, uid: str, name: str) -> list[PodChange]:
        """Return the changes of a pod, by its uid or else its name."""
        return self.lives.get(uid or self._uids.get(name, ""), [])

    def of(self, victim: PodChange, time: float) -> Beneficiary:
        """Return for whom a pod was preempted at a time; without pods if nobody of a higher priority waited."""
        named = self.named(victim.disruption_message)
        if named is not None:
            return msgspec.structs.replace(named, pods=self._waiting(named.pods, victim, time))
        waiting = self._waiting(self.lives, victim, time)
        nominated = {uid for uid in waiting if self._is_nominated(uid, victim.node, time)}
        owners = {self._owner(uid).name: self._owner(uid) for uid in nominated}
        if len(owners) == 1:
            (owner,) = owners.values()
            return msgspec.structs.replace(owner, pods=self._waiting(owner.pods, victim, time))
        return Beneficiary("", frozenset(nominated or waiting))

    def named(self, message: str) -> Beneficiary | None:
        """Return whom a condition names: by uid, or by namespace/name."""
        for word in _WORD.findall(message):
            if word in self.lives:
                return self._owner(word)
            namespace, _, name = word.rpartition("/")
            if namespace and name in self._gangs:
                return Beneficiary(name, frozenset(self._gangs[name]))
            if namespace and name in self._uids:
                return self._owner(self._uids[name])
        return None

    def gang(self, name: str, *, without: str) -> Beneficiary:
        """Return a gang without one of its pods."""
        return Beneficiary(name, frozenset(self._gangs[name] - {without}))

    def is_served(self, beneficiary: Beneficiary, time: float) -> bool:
        """Return whether a beneficiary has started, ended by its user's wish, or says why it waits since a time."""
        return self._has_ended(beneficiary.name, time) or any(self._is_served(uid, time) for uid in beneficiary.pods)

    def starts(self, beneficiary: Beneficiary) -> list[float]:
        """Return when the pods of a beneficiary were bound."""
        bound = (self._bound_at(uid) for uid in self._gangs.get(beneficiary.name, beneficiary.pods))
        return sorted(time for time in bound if time is not None)

    def _owner(self, uid: str) -> Beneficiary:
        pod = self.lives[uid][0]
        return Beneficiary(pod.gang or pod.name, frozenset(self._gangs[pod.gang] if pod.gang else {uid}))

    def _waiting(self, uids: Iterable[str], victim: PodChange, time: float) -> frozenset[str]:
        """Return the pods of a higher priority that waited at a time or shortly before: evictions may be late."""
        lives = ((uid, self.lives[uid]) for uid in uids)
        return frozenset(
            uid
            for uid, life in lives
            if life[0].priority > victim.priority
            and any(state.is_pending for state in _states(life, time - _LATE, time))
        )

    def _is_nominated(self, uid: str, node: str, time: float) -> bool:
        states = _states(self.lives[uid], time - _NOMINATION_WINDOW, time + _NOMINATION_WINDOW)
        return any(pod.nominated == node for pod in states)

    def _has_ended(self, gang: str, time: float) -> bool:
        return gang in self._ends and self._ends[gang] >= time - _LATE

    def _bound_at(self, uid: str) -> float | None:
        return next((pod.time for pod in self.lives[uid] if pod.node), None)

    def _is_served(self, uid: str, time: float) -> bool:
        life, bound_at = self.lives[uid], self._bound_at(uid)
        last = life[-1]
        if bound_at is not None:
            return bound_at >= time - _LATE
        if last.gone or last.deleting:
            by_user = self._has_ended(last.gang, time) if last.gang else uid not in self._removed
            return by_user and last.time >= time - _LATE
        return _was_told(life, time - NOTICE)


def _states(life: list[PodChange], since: float, until: float) -> list[PodChange]:
    """Return how a pod was in a period."""
    first = bisect_right(life, since, key=lambda pod: pod.time)
    return [pod for pod in life[max(first - 1, 0) :] if pod.time <= until]


def _was_told(life: list[PodChange], since: float) -> bool:
    """Return whether a reason to wait was written after a time."""
    first = life[0]
    if first.message and first.time > since:
        return True
    return any(now.message and now.message != before.message and now.time > since for before, now in pairwise(life))
