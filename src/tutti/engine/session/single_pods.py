"""Pods on their own: placed, and others evicted for them, exactly as kube-scheduler would have it.

Where gangs could be their victims, those go as gangs do. Pods that cannot be told apart are tried together: when one
fits nowhere, neither do the others, until the cluster changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from tutti.cluster.events import Event
from tutti.cluster.meter import POD_TRIED, PREEMPTION_NODE
from tutti.engine.gangs.gang_state import Need
from tutti.engine.placement.engine import Decision
from tutti.engine.plugins.base import controller
from tutti.engine.preemption.gang_preemption import Evictions
from tutti.engine.reasons.pod_failure import Failure, failure
from tutti.engine.session.context import Desk, Known, Refused
from tutti.engine.session.plan import Unschedulable

_GROWTH = 16
"""How much larger the next attempt with like pods is: one tells whether they fit at all."""


class Solos:
    """Attempts with pods on their own."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._engine, self._cluster = desk, desk.engine, desk.cluster
        self._failed: Known[tuple[Failure, Refused]] = Known(desk)

    def run(self, pods: Sequence[str]) -> dict[str, Refused]:
        """Try pods in this order; give those that were refused."""
        refused: dict[str, Refused] = {}
        for kind, alike in groupby(pods, self._kind):
            known = self._failed.get(kind)
            if known is None:
                refused |= self._place_alike(kind, list(alike))
            else:
                refused |= self._refuse(alike, *known)
        return refused

    def _kind(self, key: str) -> tuple[object, ...]:
        """Give what tells a pod from others."""
        pod = self._cluster.pod(key)
        looks = self._desk.looks(self._cluster.pod_row(key))
        held = key if key in self._cluster.holds else ""
        return held, looks, controller(pod), pod.spec.priority, pod.spec.preemption_policy

    def _place_alike(self, kind: tuple[object, ...], todo: list[str]) -> dict[str, Refused]:
        desk, size = self._desk, 1
        refused: dict[str, Refused] = {}
        while todo:
            decisions = self._engine.place(todo[:size])
            desk.budget.spend(POD_TRIED * len(decisions))
            desk.bind(d for d in decisions if d.node is not None)
            failed = [d for d in decisions if d.node is None]
            todo = [d.pod for d in failed] + todo[size:]
            size *= _GROWTH
            if failed:
                found = self._failure(failed[0])
                pod = todo.pop(0)
                if isinstance(found, Failure):
                    known = self._failed.put(kind, (found, self._refusal(found)))
                    return refused | self._refuse((pod, *todo), *known)
                priority = int(self._cluster.pods.priority[self._cluster.pod_row(pod)])
                if not desk.making_way.carry_out(found, by=pod, gang=None, priority=priority):
                    refused[pod] = desk.waits(found)
                size = 1
        return refused

    def _failure(self, decision: Decision) -> Failure | Evictions:
        """Look for room for a pod; gangs that would have to go for it go as gangs do."""
        cluster, options = self._cluster, self._desk.options
        row = cluster.pod_row(decision.pod)
        if not options.preemption:
            return Failure(decision)
        never = cluster.pod(decision.pod).spec.preemption_policy == "Never"
        if not never and self._engine.profile.preempts and (options.consolidation or self._gangs_below(row)):
            need = Need(decision.pod, 1, (row,), ())
            found = self._desk.make_room(need, int(cluster.pods.priority[row]), None)
            return found if found is not None else _nobody_goes(failure(self._engine, decision))
        told = failure(self._engine, decision)
        self._desk.budget.spend(PREEMPTION_NODE * cluster.nodes.count)
        if told.candidate is None:
            return told
        there = Decision(decision.pod, told.candidate.node, nodes=decision.nodes)
        return Evictions(told.candidate.victims, (there,), told.candidate.violations)

    def _gangs_below(self, row: int) -> bool:
        """Say whether gangs run that matter less than a pod."""
        pods, length = self._cluster.pods, self._cluster.pods.length
        if not self._cluster.groups.keys:
            return False
        lower = (pods.node[:length] >= 0) & (pods.group[:length] >= 0) & (pods.priority[:length] < pods.priority[row])
        return bool(lower.any())

    def _refusal(self, found: Failure) -> Refused:
        """Say what may cure a failure."""
        decision = found.decision
        plugins = {decision.refused.plugin} if decision.refused is not None else decision.plugins
        cures = self._engine.judge.cures(plugins) if plugins else frozenset(Event)
        return Refused(found.message, cures, tuple(self._cluster.events), "NodeResourcesFit" in plugins)

    def _refuse(self, pods: Iterable[str], found: Failure, refusal: Refused) -> dict[str, Refused]:
        """Note pods that fail for one reason."""
        decision, table = found.decision, self._cluster.pods
        reasons = decision.reasons
        if decision.refused is not None:
            reasons = dict.fromkeys(decision.refused.messages, decision.nodes)
        reasons = dict(sorted(reasons.items()))
        refused = {}
        for pod in pods:
            if found.eligible:
                self._desk.give_up_holds((pod,))
            priority = int(table.priority[table.row_of[pod]])
            self._desk.notes.refuse(Unschedulable(pod, refusal.message, priority, decision.nodes, reasons))
            refused[pod] = refusal
        return refused


def _nobody_goes(told: Failure) -> Failure:
    """Word a refusal where a pod could be evicted, but not the gang that it is part of."""
    if told.candidate is None:
        return told
    return Failure(told.decision, after="preemption: the victims are parts of gangs that cannot go whole.")
