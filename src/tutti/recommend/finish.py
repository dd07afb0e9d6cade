"""Finishing a plan: what the binder makes of a draft, mended and pruned.

Contract: `Finisher` tries drafts on the picture and leaves it as it was. With the binder `tutti` pods follow the draft;
with `kube-scheduler` the nodes are bought and the engine places all pods as that scheduler would, again after every
mending, until every pod that the plan promises has a node. Gangs start whole or none of their pods counts. Nodes that
nobody needs are given back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from tutti.cluster.columns import Bools
from tutti.cluster.edits import Remove, Unbind
from tutti.cluster.trial import Trial
from tutti.engine.schedule import schedule
from tutti.recommend.draft import Bought, Draft
from tutti.recommend.gang_check import gangs_short
from tutti.recommend.merge import in_order
from tutti.recommend.offerings import Offering
from tutti.recommend.picture import Picture
from tutti.recommend.problem import LimitRow, Problem
from tutti.recommend.realise import anywhere, into, realise
from tutti.recommend.request import Binder, Deadline

Buyer = Callable[[Problem, Sequence[str]], Draft]
"""Buys nodes for some pods on the picture as it stands."""
_MENDS = 12


class Outcome(NamedTuple):
    """A plan as the binder would carry it out."""

    maker: str
    nodes: tuple[tuple[str, int], ...]
    """New nodes by name, with the numbers of their offerings."""
    where: dict[str, str]
    left: tuple[str, ...]
    short: tuple[str, ...] = ()
    """Gangs of which some pods wait that would not start whole."""
    minimal: bool | None = None
    """Whether every node was found to be needed; None when that was not looked at."""

    offerings: tuple[Offering, ...] = ()
    """All that could be bought, by number."""

    @property
    def bought(self) -> tuple[tuple[str, Offering], ...]:
        """The new nodes by name, with their offerings."""
        return tuple((name, self.offerings[number]) for name, number in self.nodes)

    @property
    def price(self) -> int:
        """What the nodes cost, as far as prices are known."""
        return sum(offering.price or 0 for _, offering in self.bought)


class Finisher:
    """See the module's contract."""

    def __init__(self, picture: Picture, problem: Problem, *, binder: Binder, buy: Buyer) -> None:
        self.picture, self.problem, self.binder, self._buy = picture, problem, binder, buy
        self._pods = problem.of_pod
        self._turn = {pod: place for place, pod in enumerate(picture.pending)}

    def finish(self, draft: Draft, deadline: Deadline) -> Outcome:
        """What becomes of a draft; where pods follow it, without the nodes that nobody needs."""
        if self.binder is Binder.TUTTI:
            return self._followed(draft, deadline, prune=True)
        return self._replayed(draft, deadline)

    # Tutti binds ------------------------------------------------------------------------------------------------------

    def _followed(self, draft: Draft, deadline: Deadline, *, prune: bool) -> Outcome:
        with Trial(self.picture.cluster):
            placed = realise(self.picture, self.problem, draft)
            nodes, left = list(placed.nodes), list(placed.left)
            for _ in range(_MENDS):
                if not left:
                    break
                more = self._buy(self._rest(nodes), left)
                if not more.bought and not more.on_existing:
                    break
                added = realise(self.picture, self.problem, more)
                nodes += added.nodes
                if len(added.left) >= len(left):
                    break
                left = list(added.left)
            minimal: bool | None = None
            if prune:
                nodes = self._shrunk(
                    nodes, {node: len(each.pods) for (node, _), each in zip(placed.nodes, draft.bought, strict=True)}
                )
                nodes, minimal = self._pruned(nodes, deadline)
            return self._outcome(draft.maker, nodes, minimal)

    def _shrunk(self, nodes: list[tuple[str, int]], meant: Mapping[str, int]) -> list[tuple[str, int]]:
        """Buy nodes that hold less than they were meant for as smaller ones, where the engine lets the same pods in."""
        cluster, problem = self.picture.cluster, self.problem
        keys = {rule.key for rule in problem.rules.domains}
        prices = np.array([offering.price or 0 for offering in problem.offerings], dtype=np.int64)
        kept = []
        for name, offering in nodes:
            pods = [cluster.pods.keys[row] for row in cluster.on_node[cluster.node_row(name)]]
            mine = sorted((pod for pod in pods if pod in self._turn), key=self._turn.__getitem__)
            if not mine or len(mine) >= meant.get(name, len(mine) + 1):
                kept.append((name, offering))
                continue
            numbers = [self._pods[pod] for pod in mine]
            fits = (problem.free >= problem.requests[numbers].sum(axis=0)).all(axis=1) & (prices < prices[offering])
            fits &= problem.allowed[:, numbers].all(axis=1) & self._like(offering, keys)
            for row in problem.limits:
                fits &= row.takes <= row.takes[offering]
            best = int(np.where(fits, prices, np.iinfo(np.int64).max).argmin()) if fits.any() else offering
            kept.append((name, best if best != offering and self._exchange(name, best, pods, mine) else offering))
        return kept

    def _like(self, offering: int, keys: Iterable[str]) -> Bools:
        """The offerings whose nodes are in the same domains as those of one."""
        like = np.ones(len(self.problem.offerings), dtype=bool)
        for key in keys:
            values = self.problem.domain(key)
            like &= np.array([value == values[offering] for value in values], dtype=bool)
        return like

    def _exchange(self, name: str, offering: int, pods: Sequence[str], mine: Sequence[str]) -> bool:
        """Put a node of another offering in the place of one, with the same pods, if they all get in."""
        cluster = self.picture.cluster
        with Trial(cluster) as trial:
            for pod in pods:
                cluster.apply(Unbind(pod) if pod in self._pods else Remove("Pod", pod))
            cluster.apply(Remove("Node", name))
            self.picture.join(self.problem.offerings[offering], name)
            if into(self.picture, name, mine):
                return False
            trial.keep()
            return True

    def _pruned(self, nodes: list[tuple[str, int]], deadline: Deadline) -> tuple[list[tuple[str, int]], bool | None]:
        """Give nodes back whose pods fit elsewhere, the emptiest first; say whether all others were tried since."""
        cluster = self.picture.cluster
        kept = sorted(nodes, key=lambda node: len(cluster.on_node[cluster.node_row(node[0])]))
        quiet = not self.problem.rules.looks.any()
        changed = True
        while changed:
            changed = False
            needed: set[tuple[int, tuple[int, ...]]] = set()
            for node in list(kept):
                if deadline.is_over():
                    return kept, None
                look = self._look(node) if quiet else None
                if look is not None and look in needed:  # one that holds the same was needed
                    continue
                if self._is_spare(node[0]):
                    kept.remove(node)
                    changed = True
                    needed.clear()
                elif look is not None:
                    needed.add(look)
        return kept, True

    def _look(self, node: tuple[str, int]) -> tuple[int, tuple[int, ...]]:
        """What tells a node from others when nobody looks at other pods: its offering, and what it holds."""
        cluster = self.picture.cluster
        rows = list(cluster.on_node[cluster.node_row(node[0])])
        return node[1], tuple(sorted(cluster.pods.spec[rows].tolist()))

    def _is_spare(self, name: str) -> bool:
        """Take a node away if its pods fit elsewhere."""
        cluster = self.picture.cluster
        keys = [cluster.pods.keys[row] for row in cluster.on_node[cluster.node_row(name)]]
        mine = sorted((key for key in keys if key in self._turn), key=self._turn.__getitem__)
        with Trial(cluster) as trial:
            for key in keys:
                cluster.apply(Unbind(key) if key in self._pods else Remove("Pod", key))
            cluster.apply(Remove("Node", name))
            if anywhere(self.picture, mine, patient=False):
                return False
            trial.keep()
            return True

    # kube-scheduler binds ---------------------------------------------------------------------------------------------

    def _replayed(self, draft: Draft, deadline: Deadline) -> Outcome:
        wanted = frozenset(self._followed(draft, deadline, prune=False).where)
        bought = [each.offering for each in draft.bought]
        outcome, missing, times = self.replay(draft.maker, bought), len(wanted) + 1, 1
        for _ in range(_MENDS):
            left = [pod for pod in self.picture.pending if pod in wanted and pod not in outcome.where]
            if not left:
                break
            times = times * 2 if 2 * len(left) > missing else 1  # what helps too little is bought in larger steps
            missing = len(left)
            more = self._affordable(bought, self._more(bought, left) * times)
            if not more:
                break
            bought += more
            outcome = self.replay(draft.maker, bought)
        return outcome

    def _affordable(self, bought: Sequence[int], more: Sequence[int]) -> list[int]:
        """As many of some further nodes as limits allow."""
        left = [row.left - sum(int(row.takes[offering]) for offering in bought) for row in self.problem.limits]
        chosen = []
        for offering in more:
            takes = [int(row.takes[offering]) for row in self.problem.limits]
            if all(amount <= rest for amount, rest in zip(takes, left, strict=True)):
                left = [rest - amount for amount, rest in zip(takes, left, strict=True)]
                chosen.append(offering)
        return chosen

    def replay(self, maker: str, bought: Sequence[int]) -> Outcome:
        """Buy nodes, and let the scheduler place all pods that wait."""
        with Trial(self.picture.cluster):
            return self._outcome(maker, self._scheduled(bought), None)

    def _scheduled(self, bought: Sequence[int]) -> list[tuple[str, int]]:
        """Let nodes join in the order in which they are merged, so that names say the same everywhere; schedule."""
        chosen = sorted(bought, key=lambda number: in_order(self.problem.offerings[number]))
        names = self.picture.join_all([self.problem.offerings[number] for number in chosen])
        schedule(self.picture.cluster, self._pods, self.picture.profile, preemption=False)
        return list(zip(names, chosen, strict=True))

    def _more(self, bought: Sequence[int], missing: Sequence[str]) -> list[int]:
        """What to buy for pods that the scheduler leaves, as things then are."""
        with Trial(self.picture.cluster):
            draft = self._buy(self._rest(self._scheduled(bought)), missing)
            return [each.offering for each in draft.bought]

    def spared(self, outcome: Outcome, deadline: Deadline) -> Outcome:
        """Buy less as long as the scheduler still places everybody: of every offering, the dearest first."""
        bought, wanted = [offering for _, offering in outcome.nodes], outcome.where.keys()
        prices = {offering: self.problem.offerings[offering].price or 0 for offering in bought}
        counts = Counter(bought)
        changed = True
        while changed:
            changed = False
            for offering in sorted(counts, key=lambda each: (-prices[each], each)):
                step = counts[offering]  # more than half of a large number first, then less and less
                while step and counts[offering]:
                    if deadline.is_over():
                        return outcome
                    step = min(step, counts[offering])
                    fewer = Counter(counts)
                    fewer[offering] -= step
                    again = self.replay(outcome.maker, sorted(fewer.elements()))
                    if wanted <= again.where.keys():
                        counts, outcome, changed = fewer, again, True
                    else:
                        step //= 2
        return outcome._replace(minimal=True)

    # Both -------------------------------------------------------------------------------------------------------------

    def _rest(self, nodes: Sequence[tuple[str, int]]) -> Problem:
        """The problem with what is left of the limits after some purchases."""
        limits = tuple(
            LimitRow(row.takes, row.left - sum(int(row.takes[offering]) for _, offering in nodes), row.reason)
            for row in self.problem.limits
        )
        return self.problem._replace(limits=limits)

    def _outcome(self, maker: str, nodes: Sequence[tuple[str, int]], minimal: bool | None) -> Outcome:
        pods = self.picture.cluster.pods
        short = gangs_short(self.picture, self._pods)
        where = {pod: node for pod in self._pods if (node := pods.node_names[pods.row_of[pod]]) is not None}
        if short:  # a gang that does not start has no pod placed
            gangs = self.picture.gangs
            where = {pod: node for pod, node in where.items() if gangs.key_of(pods.row_of[pod]) not in short}
        left = tuple(pod for pod in self.picture.pending if pod in self._pods and pod not in where)
        return Outcome(maker, tuple(nodes), where, left, tuple(short), minimal, self.problem.offerings)


def bought_of(outcome: Outcome) -> tuple[Bought, ...]:
    """The nodes of an outcome with their pods."""
    pods: dict[str, list[str]] = {name: [] for name, _ in outcome.nodes}
    for pod, node in outcome.where.items():
        if node in pods:
            pods[node].append(pod)
    return tuple(Bought(offering, tuple(pods[name])) for name, offering in outcome.nodes)
