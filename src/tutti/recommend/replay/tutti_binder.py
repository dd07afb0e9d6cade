"""Tutti binds: pods follow the draft.

Contract: see `binding`. The engine puts every pod where the draft says, what it refuses goes elsewhere, what then waits
is bought for; nodes that got less than they were meant for are bought smaller, and nodes that nobody needs not at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tutti.cluster.edits import Remove, Unbind
from tutti.cluster.trial import Trial
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.problem.search_context import Progress
from tutti.recommend.records.draft import Draft
from tutti.recommend.replay.binding import MENDS, Binding, BoundPurchase
from tutti.recommend.replay.gang_check import gangs_short
from tutti.recommend.replay.place_draft import anywhere, into, realise


class TuttiBinder(Binding):
    """See the module's contract."""

    def followed(self, draft: Draft, progress: Progress) -> BoundPurchase:
        """What becomes of a draft that pods follow, without the nodes that nobody needs."""
        with Trial(self.planning.cluster):
            placed = realise(self.planning, self.problem, draft)
            nodes, left = list(placed.nodes), list(placed.left)
            for _ in range(MENDS):
                if not left or progress.is_far_over_budget():
                    break
                more = self.buy(self.rest(nodes), left)
                if not more.bought and not more.on_existing:
                    break
                added = realise(self.planning, self.problem, more)
                nodes += added.nodes
                if len(added.left) >= len(left):
                    break
                left = list(added.left)
            meant = {node: len(each.pods) for (node, _), each in zip(placed.nodes, draft.bought, strict=True)}
            self._send_home(gangs_short(self.planning, self.pods))
            nodes, minimal = self._pruned(self._shrunk(nodes, meant), progress.budget)
            return self.outcome(draft.maker, nodes, minimal)

    def _send_home(self, gangs: Sequence[str]) -> None:
        """Take the pods of gangs that would not start off their nodes."""
        cluster = self.planning.cluster
        for pod in self.pods if gangs else ():
            row = cluster.pod_row(pod)
            if cluster.pods.node_names[row] is not None and self.planning.gangs.key_of(row) in gangs:
                cluster.apply(Unbind(pod))

    def _shrunk(self, nodes: list[tuple[str, int]], meant: Mapping[str, int]) -> list[tuple[str, int]]:
        """Buy nodes that hold less than they were meant for as smaller ones, where the engine lets the same pods in."""
        cluster, problem = self.planning.cluster, self.problem
        keys = sorted({rule.key for rule in problem.rules.domains})
        domains = [np.array([value or "" for value in problem.domain(key)]) for key in keys]
        prices = np.array([offering.price or 0 for offering in problem.offerings], dtype=np.int64)
        kept = []
        for name, offering in nodes:
            pods = [cluster.pods.keys[row] for row in cluster.pods_on_row[cluster.node_row(name)]]
            mine = sorted((pod for pod in pods if pod in self.turn), key=self.turn.__getitem__)
            if not mine or len(mine) >= meant.get(name, len(mine) + 1):
                kept.append((name, offering))
                continue
            numbers = [self.pods[pod] for pod in mine]
            fits = (problem.free >= problem.requests[numbers].sum(axis=0)).all(axis=1) & (prices < prices[offering])
            fits &= problem.allowed[:, numbers].all(axis=1) & np.all(
                [domain == domain[offering] for domain in domains], axis=0
            )
            for row in problem.limits:
                fits &= row.takes <= row.takes[offering]
            best = int(np.where(fits, prices, np.iinfo(np.int64).max).argmin()) if fits.any() else offering
            kept.append((name, best if best != offering and self._exchange(name, best, pods, mine) else offering))
        return kept

    def _exchange(self, name: str, offering: int, pods: Sequence[str], mine: Sequence[str]) -> bool:
        """Put a node of another offering in the place of one, with the same pods, if they all get in."""
        cluster = self.planning.cluster
        with Trial(cluster) as trial:
            for pod in pods:
                cluster.apply(Unbind(pod) if pod in self.pods else Remove("Pod", pod))
            cluster.apply(Remove("Node", name))
            self.planning.join(self.problem.offerings[offering], name)
            if into(self.planning, name, mine) or gangs_short(self.planning, mine):
                return False
            trial.keep()
            return True

    def _pruned(self, nodes: list[tuple[str, int]], budget: WorkBudget) -> tuple[list[tuple[str, int]], bool | None]:
        """Give nodes back whose pods fit elsewhere, the emptiest first; say whether all others were tried since."""
        cluster = self.planning.cluster
        kept = sorted(nodes, key=lambda node: len(cluster.pods_on_row[cluster.node_row(node[0])]))
        quiet = not self.problem.rules.affected.any()
        changed = True
        while changed:
            changed = False
            needed: set[tuple[int, tuple[int, ...]]] = set()
            for node in list(kept):
                if budget.is_exhausted():
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
        cluster = self.planning.cluster
        rows = list(cluster.pods_on_row[cluster.node_row(node[0])])
        return node[1], tuple(sorted(cluster.pods.spec[rows].tolist()))

    def _is_spare(self, name: str) -> bool:
        """Take a node away if its pods fit elsewhere."""
        cluster = self.planning.cluster
        keys = [cluster.pods.keys[row] for row in cluster.pods_on_row[cluster.node_row(name)]]
        mine = sorted((key for key in keys if key in self.turn), key=self.turn.__getitem__)
        if not self._is_room(name, mine):
            return False
        with Trial(cluster) as trial:
            for key in keys:
                cluster.apply(Unbind(key) if key in self.pods else Remove("Pod", key))
            cluster.apply(Remove("Node", name))
            if anywhere(self.planning, mine, patient=False) or gangs_short(self.planning, mine):
                return False
            trial.keep()
            return True

    def _is_room(self, name: str, pods: Sequence[str]) -> bool:
        """Whether each of some pods alone would find the room that it asks for on another node: a quick first look."""
        nodes = self.planning.cluster.nodes
        others = nodes.on[: nodes.length].copy()
        others[nodes.row_of[name]] = False
        places = [self.planning.cluster.resources.index(resource) for resource in self.problem.resources]
        room = nodes.alloc[places][:, : nodes.length][:, others] - nodes.used[places][:, : nodes.length][:, others]
        wanted = self.problem.requests[sorted({self.pods[pod] for pod in pods})]
        return all((room >= each[:, None]).all(axis=0).any() for each in wanted)
