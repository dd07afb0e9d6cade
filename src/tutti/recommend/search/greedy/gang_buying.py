"""Gangs whole or not at all: which gangs a strategy buys for.

Contract: no node is bought for a gang that could not start whole. The strategy is run with all gangs; those that do not
reach their minimums are set aside, the later ones by turn first, and it is run again without them; then those that were
set aside get a second chance, one by one. A gang that must run in one domain of a node label is tried in every domain
alone, and gets the one where it starts for the least. Pods above a gang's maximum are not bought for. Pods of gangs
that are left out stay in `left`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tutti.cluster.columns import Bools
from tutti.cluster.groups import NO_GROUP
from tutti.cluster.work.work_budget import WorkBudget
from tutti.engine.gangs.gang_state import GangState
from tutti.market.planning_cluster import PlanningCluster
from tutti.recommend.problem.pod_rules import HOSTNAME
from tutti.recommend.problem.problem import Problem
from tutti.recommend.problem.scores import Scorer
from tutti.recommend.records.draft import Draft
from tutti.recommend.search.greedy.buying import BuyingTask, PinnedDomain, Run

_SECOND_CHANCES = 16
"""Gangs that are tried again after they were set aside."""


def buy_whole(
    planning: PlanningCluster,
    problem: Problem,
    scorer: Scorer,
    run: Run,
    *,
    eligible: Bools,
    budget: WorkBudget | None = None,
) -> Draft:
    """Run a strategy so that gangs are bought for whole."""
    pods = tuple(each.pods for each in problem.classes)
    task = BuyingTask(planning, problem, scorer, eligible, problem.allowed, pods, {}, budget)
    groups = planning.cluster.pods.group
    row_of = planning.cluster.pods.row_of
    if all(groups[row_of[pod]] == NO_GROUP for each in pods for pod in each):
        return run(task)
    return _Gangs(task, run).buy()


class _Gangs:
    def __init__(self, task: BuyingTask, run: Run) -> None:
        self._task, self._run = task, run
        self._planning, self._cluster = task.planning, task.planning.cluster
        self._members: dict[str, list[str]] = {}
        self._of_pod: dict[str, str] = {}
        for each in task.pods:
            for pod in each:
                gang = self._planning.gangs.key_of(self._cluster.pod_row(pod))
                if gang is not None:
                    self._members.setdefault(gang, []).append(pod)
                    self._of_pod[pod] = gang
        turns = [turn.gang for turn in self._planning.turns if turn.gang is not None and not turn.surplus]
        self._turn = {gang: place for place, gang in enumerate(turns)}
        self._standing = {gang: self._planning.gangs.state(gang, ()) for gang in self._members}
        self._pins: dict[str, list[PinnedDomain]] = {}
        """Where a gang that must run in one domain may go, the best first."""

    def buy(self) -> Draft:
        """Find out which gangs can be started."""
        hopeless = {gang for gang in self._members if not self._could_start(gang)}
        wanted = [gang for gang in self._in_turn(self._members) if gang not in hopeless]
        for gang in list(wanted):
            key = self._required(gang)
            if key is not None:
                self._pins[gang] = self._ranked(gang, key)
                if not self._pins[gang]:
                    wanted.remove(gang)
        wanted, aside, draft = self._stable(wanted)
        for gang in aside[:_SECOND_CHANCES]:
            if self._task.is_exhausted():
                break
            more = self._in_turn([*wanted, gang])
            again = self._attempt(more)
            if not self._short(more, again):
                wanted, draft = more, again
        return self._with_left(draft)

    def _stable(self, wanted: list[str]) -> tuple[list[str], list[str], Draft]:
        """Set gangs aside until all others start; give both, and the plan for those that start."""
        aside: list[str] = []
        while True:
            draft = self._attempt(wanted)
            short = self._short(wanted, draft)
            if not short:
                return wanted, aside, draft
            moved = next((gang for gang in short if len(self._pins.get(gang, ())) > 1), None)
            if moved is not None and not self._task.is_exhausted():
                self._pins[moved] = self._pins[moved][1:]  # the next best domain
                continue
            later = short if self._task.is_exhausted() else short[len(short) // 2 :]
            aside = self._in_turn([*aside, *later])
            wanted = [gang for gang in wanted if gang not in later]

    def _attempt(self, gangs: Iterable[str], *, alone: bool = False) -> Draft:
        """Run the strategy with these gangs, and with the pods on their own unless they are to be alone."""
        chosen = set(gangs)
        task = self._task
        over = {pod for gang in chosen for pod in self._above_maximum(gang)}
        pods = tuple(
            tuple(pod for pod in each if pod not in over and self._is_in(pod, chosen, alone=alone))
            for each in task.pods
        )
        pins = self._class_pins({gang: self._pins[gang][0] for gang in chosen if gang in self._pins})
        return self._run(task._replace(pods=pods, pins=pins, allowed=self._narrowed(pins)))

    def _is_in(self, pod: str, chosen: set[str], *, alone: bool) -> bool:
        gang = self._of_pod.get(pod)
        return not alone if gang is None else gang in chosen

    # Minimums and maximums --------------------------------------------------------------------------------------------

    def _could_start(self, gang: str) -> bool:
        """Say whether there are pods enough, and nothing is wrong with the gang."""
        return self._standing[gang].gang.problem is None and self._is_whole(gang, self._members[gang])

    def _is_whole(self, gang: str, placed: Iterable[str]) -> bool:
        standing = self._standing[gang]
        running = (*standing.running, *(self._cluster.pod_row(pod) for pod in placed))
        return not GangState(standing.gang, running, (), standing.part_of).need().least

    def _short(self, gangs: Sequence[str], draft: Draft) -> list[str]:
        """The gangs that a plan does not start, in the order of their turns."""
        placed: dict[str, list[str]] = {}
        for pod in (*(pod for each in draft.bought for pod in each.pods), *(pod for pod, _ in draft.on_existing)):
            gang = self._of_pod.get(pod)
            if gang is not None:
                placed.setdefault(gang, []).append(pod)
        return [gang for gang in gangs if not self._is_whole(gang, placed.get(gang, ()))]

    def _above_maximum(self, gang: str) -> list[str]:
        standing = self._standing[gang]
        most = standing.gang.maximum
        return [] if most is None else self._members[gang][max(most - len(standing.running), 0) :]

    def _in_turn(self, gangs: Iterable[str]) -> list[str]:
        return sorted(gangs, key=lambda gang: (self._turn.get(gang, len(self._turn)), gang))

    def _with_left(self, draft: Draft) -> Draft:
        """Name all pods that stay pending, in the order of the classes."""
        placed = {pod for each in draft.bought for pod in each.pods} | {pod for pod, _ in draft.on_existing}
        return draft._replace(left=tuple(pod for each in self._task.pods for pod in each if pod not in placed))

    # Domains ----------------------------------------------------------------------------------------------------------

    def _required(self, gang: str) -> str | None:
        """The label whose value all pods of a gang must share; that of a part binds the whole gang here."""
        found = self._standing[gang].gang
        keys = [found.topology.required, *(part.topology.required for part in found.parts)]
        return next((key for key in keys if key is not None), None)

    def _ranked(self, gang: str, key: str) -> list[PinnedDomain]:
        """The domains in which a gang alone can be started, the cheapest first."""
        found: list[tuple[tuple[int, int, str], PinnedDomain]] = []
        for value in self._values(gang, key):
            if found and self._task.is_exhausted():
                break
            self._pins[gang] = [PinnedDomain(key, value)]
            draft = self._attempt([gang], alone=True)
            if not self._short([gang], draft):
                cost = (draft.price(self._task.problem.offerings), len(draft.bought), value)
                found.append((cost, PinnedDomain(key, value)))
        return [pin for _, pin in sorted(found)]

    def _values(self, gang: str, key: str) -> list[str]:
        nodes = self._cluster.nodes
        column = nodes.column(key)
        names = {digit: value for value, digit in column.values.items()}
        running = {int(column.ids[self._cluster.pods.node[row]]) for row in self._standing[gang].running}
        if running:
            return [names[digit] for digit in running if digit in names] if len(running) == 1 else []
        there = {names[digit] for digit in set(column.ids[nodes.on].tolist()) if digit in names}
        if key != HOSTNAME:  # a new node's name is nothing that others could share
            there |= {value for value in self._task.problem.domain(key) if value is not None}
        return sorted(there)

    def _class_pins(self, pins: Mapping[str, PinnedDomain]) -> dict[int, PinnedDomain]:
        found = {}
        for number, each in enumerate(self._task.problem.classes):
            if each.gang is not None and each.gang in pins:
                found[number] = pins[each.gang]
        return found

    def _narrowed(self, pins: Mapping[int, PinnedDomain]) -> Bools:
        allowed = self._task.allowed
        if not pins:
            return allowed
        allowed = allowed.copy()
        for number, pin in pins.items():
            allowed[:, number] &= np.array(
                [value == pin.value for value in self._task.problem.domain(pin.key)], dtype=bool
            )
        return allowed
