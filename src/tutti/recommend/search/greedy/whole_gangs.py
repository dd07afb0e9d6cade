"""Whole gangs: for which gangs a greedy strategy buys.

Contract: no node is bought for a gang that could not start whole. The strategy runs with all gangs; gangs that do not
reach their minimums are dropped, later turns first, and the strategy runs again without them. Then each dropped gang
gets a second chance. A gang that must run in one domain of a node label is tried alone in every domain, and is pinned
to the domain where it starts at the least price. No node is bought for pods above a gang's maximum. Pods of dropped
gangs stay in `left`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tutti.cluster.columns import Bools
from tutti.cluster.indexes.groups import NO_GROUP
from tutti.cluster.work.work_budget import WorkBudget
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.pod_rules import HOSTNAME
from tutti.recommend.problem.problem import Problem
from tutti.recommend.problem.scores import Scorer
from tutti.recommend.records.draft import Draft
from tutti.recommend.search.greedy.buyer import BuyingTask, PinnedDomain, StrategyRun

_SECOND_CHANCES = 16
"""How many dropped gangs are tried again."""


def buy_whole_gangs(
    planning: PlanningCluster,
    problem: Problem,
    scorer: Scorer,
    run: StrategyRun,
    *,
    eligible: Bools,
    budget: WorkBudget | None = None,
) -> Draft:
    """Run a strategy so that each gang is bought for whole or not at all."""
    pods = tuple(each.pods for each in problem.classes)
    task = BuyingTask(planning, problem, scorer, eligible, problem.allowed, pods, {}, budget)
    groups = planning.cluster.pods.group
    row_of = planning.cluster.pods.row_of
    if all(groups[row_of[pod]] == NO_GROUP for each in pods for pod in each):
        return run(task)
    return _GangBuyer(task, run).buy()


class _GangBuyer:
    """Runs a strategy with different sets of gangs until every gang of the draft starts."""

    def __init__(self, task: BuyingTask, run: StrategyRun) -> None:
        self._task, self._run = task, run
        self._planning, self._cluster = task.planning, task.planning.cluster
        self._members: dict[str, list[str]] = {}
        self._gang_of_pod: dict[str, str] = {}
        for each in task.pods:
            for pod in each:
                gang = self._planning.gangs.key_of(self._cluster.pod_row(pod))
                if gang is not None:
                    self._members.setdefault(gang, []).append(pod)
                    self._gang_of_pod[pod] = gang
        turns = [turn.gang for turn in self._planning.turns if turn.gang is not None and not turn.surplus]
        self._turn_number = {gang: place for place, gang in enumerate(turns)}
        self._standing = {gang: self._planning.gangs.state(gang, ()) for gang in self._members}
        self._pins: dict[str, list[PinnedDomain]] = {}
        """The domains of a gang that must run in one domain, the best first."""

    def buy(self) -> Draft:
        """Return the draft for the gangs that can start."""
        impossible = {gang for gang in self._members if not self._could_start(gang)}
        kept = [gang for gang in self._by_turn(self._members) if gang not in impossible]
        for gang in list(kept):
            key = self._required_label(gang)
            if key is not None:
                self._pins[gang] = self._feasible_domains(gang, key)
                if not self._pins[gang]:
                    kept.remove(gang)
        kept, dropped, draft = self._drop_short_gangs(kept)
        for gang in dropped[:_SECOND_CHANCES]:
            if self._task.is_exhausted():
                break
            candidates = self._by_turn([*kept, gang])
            new_draft = self._attempt(candidates)
            if not self._gangs_short(candidates, new_draft):
                kept, draft = candidates, new_draft
        return self._with_unplaced(draft)

    def _drop_short_gangs(self, kept: list[str]) -> tuple[list[str], list[str], Draft]:
        """Drop gangs until all kept gangs start; return the kept gangs, the dropped gangs, and the draft."""
        dropped: list[str] = []
        while True:
            draft = self._attempt(kept)
            short_gangs = self._gangs_short(kept, draft)
            if not short_gangs:
                return kept, dropped, draft
            repinned = next((gang for gang in short_gangs if len(self._pins.get(gang, ())) > 1), None)
            if repinned is not None and not self._task.is_exhausted():
                self._pins[repinned] = self._pins[repinned][1:]  # the next best domain
                continue
            later = short_gangs if self._task.is_exhausted() else short_gangs[len(short_gangs) // 2 :]
            dropped = self._by_turn([*dropped, *later])
            kept = [gang for gang in kept if gang not in later]

    def _attempt(self, gangs: Iterable[str], *, alone: bool = False) -> Draft:
        """Run the strategy with some gangs, and with the pods without a gang unless `alone`."""
        chosen = set(gangs)
        task = self._task
        above_maximum = {pod for gang in chosen for pod in self._above_maximum(gang)}
        pods = tuple(
            tuple(pod for pod in each if pod not in above_maximum and self._is_chosen(pod, chosen, alone=alone))
            for each in task.pods
        )
        pins = self._class_pins({gang: self._pins[gang][0] for gang in chosen if gang in self._pins})
        return self._run(task._replace(pods=pods, pins=pins, allowed=self._allowed_within(pins)))

    def _is_chosen(self, pod: str, chosen: set[str], *, alone: bool) -> bool:
        """Return whether a pod takes part: its gang is chosen, or it has no gang and `alone` is False."""
        gang = self._gang_of_pod.get(pod)
        return not alone if gang is None else gang in chosen

    # Minimums and maximums --------------------------------------------------------------------------------------------

    def _could_start(self, gang: str) -> bool:
        """Return whether the gang has enough pods and no error in its declaration."""
        return self._standing[gang].gang.problem is None and self._is_whole(gang, self._members[gang])

    def _is_whole(self, gang: str, placed: Iterable[str]) -> bool:
        """Return whether the gang reaches its minimums when some more pods are placed."""
        rows = (self._cluster.pod_row(pod) for pod in placed)
        return not self._standing[gang].with_more_running(rows).is_short

    def _gangs_short(self, gangs: Sequence[str], draft: Draft) -> list[str]:
        """Return the gangs that a draft does not start, in the given order."""
        placed: dict[str, list[str]] = {}
        for pod in (*(pod for each in draft.nodes for pod in each.pods), *(pod for pod, _ in draft.on_existing)):
            gang = self._gang_of_pod.get(pod)
            if gang is not None:
                placed.setdefault(gang, []).append(pod)
        return [gang for gang in gangs if not self._is_whole(gang, placed.get(gang, ()))]

    def _above_maximum(self, gang: str) -> list[str]:
        """Return the pods of a gang above its maximum."""
        standing = self._standing[gang]
        maximum = standing.gang.maximum
        return [] if maximum is None else self._members[gang][max(maximum - len(standing.running), 0) :]

    def _by_turn(self, gangs: Iterable[str]) -> list[str]:
        """Return gangs in the order of their turns."""
        return sorted(gangs, key=lambda gang: (self._turn_number.get(gang, len(self._turn_number)), gang))

    def _with_unplaced(self, draft: Draft) -> Draft:
        """Return a draft with all unplaced pods in `left`, in the order of the classes."""
        placed = {pod for each in draft.nodes for pod in each.pods} | {pod for pod, _ in draft.on_existing}
        return draft._replace(left=tuple(pod for each in self._task.pods for pod in each if pod not in placed))

    # Domains ----------------------------------------------------------------------------------------------------------

    def _required_label(self, gang: str) -> str | None:
        """Return the node label that all pods of a gang must share; a part's label counts for the whole gang here."""
        gang_record = self._standing[gang].gang
        keys = [gang_record.topology.required, *(part.topology.required for part in gang_record.parts)]
        return next((key for key in keys if key is not None), None)

    def _feasible_domains(self, gang: str, key: str) -> list[PinnedDomain]:
        """Return the domains in which a gang alone can start, the cheapest first."""
        ranked: list[tuple[tuple[int, int, str], PinnedDomain]] = []
        for value in self._domain_values(gang, key):
            if ranked and self._task.is_exhausted():
                break
            self._pins[gang] = [PinnedDomain(key, value)]
            draft = self._attempt([gang], alone=True)
            if not self._gangs_short([gang], draft):
                cost = (draft.price(self._task.problem.offerings), len(draft.nodes), value)
                ranked.append((cost, PinnedDomain(key, value)))
        return [pin for _, pin in sorted(ranked)]

    def _domain_values(self, gang: str, key: str) -> list[str]:
        """Return the domains to try for a gang: only the domain of its running pods, if it has any."""
        nodes = self._cluster.nodes
        column = nodes.column(key)
        value_of_id = {label_id: value for value, label_id in column.values.items()}
        running = {int(column.ids[self._cluster.pods.node[row]]) for row in self._standing[gang].running}
        if running:
            return (
                [value_of_id[label_id] for label_id in running if label_id in value_of_id] if len(running) == 1 else []
            )
        existing = {value_of_id[label_id] for label_id in set(column.ids[nodes.on].tolist()) if label_id in value_of_id}
        if key != HOSTNAME:  # the name of a new node is a domain that no other node shares
            existing |= {value for value in self._task.problem.domain(key) if value is not None}
        return sorted(existing)

    def _class_pins(self, pins: Mapping[str, PinnedDomain]) -> dict[int, PinnedDomain]:
        """Return the pinned domains by class number."""
        class_pins = {}
        for number, each in enumerate(self._task.problem.classes):
            if each.gang is not None and each.gang in pins:
                class_pins[number] = pins[each.gang]
        return class_pins

    def _allowed_within(self, pins: Mapping[int, PinnedDomain]) -> Bools:
        """Return offering x class `allowed`, restricted to the pinned domains."""
        allowed = self._task.allowed
        if not pins:
            return allowed
        allowed = allowed.copy()
        for number, pin in pins.items():
            allowed[:, number] &= np.array(
                [value == pin.value for value in self._task.problem.domain(pin.key)], dtype=bool
            )
        return allowed
