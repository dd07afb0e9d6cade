"""Tutti binds: pods go to the nodes that the draft names.

Contract: see `binding`. The engine places every pod where the draft says; pods that it refuses there are placed on any
node, and nodes are bought for pods that are then left. New nodes with fewer pods than drafted are exchanged for smaller
ones, and new nodes whose pods fit elsewhere are removed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tutti.cluster.edits import Remove, Unbind
from tutti.cluster.trial import Trial
from tutti.cluster.work.work_budget import WorkBudget
from tutti.recommend.problem.search_context import Progress
from tutti.recommend.records.draft import Draft
from tutti.recommend.replay.binding import MAX_EXTRA_PURCHASES, BoundPurchase, DraftBinder
from tutti.recommend.replay.gang_check import unstarted_gangs
from tutti.recommend.replay.place_draft import place_anywhere, place_draft, place_on_node


class TuttiBinder(DraftBinder):
    """Binds drafts with Tutti as the binder; see the module's contract."""

    def bind(self, draft: Draft, progress: Progress) -> BoundPurchase:
        """Return the purchase that results from a draft, without spare nodes."""
        with Trial(self.planning.cluster):
            placed = place_draft(self.planning, self.problem, draft)
            nodes, left = list(placed.nodes), list(placed.left)
            for _ in range(MAX_EXTRA_PURCHASES):
                if not left or progress.is_far_over_budget():
                    break
                extra = self.buy(self.after_purchase(nodes), left)
                if not extra.nodes and not extra.on_existing:
                    break
                placed_extra = place_draft(self.planning, self.problem, extra)
                nodes += placed_extra.nodes
                if len(placed_extra.left) >= len(left):
                    break
                left = list(placed_extra.left)
            drafted_counts = {node: len(each.pods) for (node, _), each in zip(placed.nodes, draft.nodes, strict=True)}
            self._unbind_gangs(unstarted_gangs(self.planning, self.pods))
            nodes, minimal = self._remove_spare_nodes(self._downsize(nodes, drafted_counts), progress.budget)
            return self.bound_purchase(draft.maker, nodes, minimal)

    def _unbind_gangs(self, gangs: Sequence[str]) -> None:
        """Unbind the pods of gangs that would not start."""
        cluster = self.planning.cluster
        for pod in self.pods if gangs else ():
            row = cluster.pod_row(pod)
            if cluster.pods.node_names[row] is not None and self.planning.gangs.key_of(row) in gangs:
                cluster.apply(Unbind(pod))

    def _downsize(self, nodes: list[tuple[str, int]], drafted_counts: Mapping[str, int]) -> list[tuple[str, int]]:
        """Exchange nodes with fewer pods than drafted for cheaper ones, if the engine places the same pods there."""
        cluster, problem = self.planning.cluster, self.problem
        keys = sorted({rule.key for rule in problem.rules.domains})
        domains = [np.array([value or "" for value in problem.domain(key)]) for key in keys]
        prices = np.array([offering.price or 0 for offering in problem.offerings], dtype=np.int64)
        kept = []
        for name, offering in nodes:
            pods = [cluster.pods.keys[row] for row in cluster.pods_on_row[cluster.node_row(name)]]
            pending_here = sorted((pod for pod in pods if pod in self.queue_place), key=self.queue_place.__getitem__)
            if not pending_here or len(pending_here) >= drafted_counts.get(name, len(pending_here) + 1):
                kept.append((name, offering))
                continue
            numbers = [self.pods[pod] for pod in pending_here]
            fits = (problem.free >= problem.requests[numbers].sum(axis=0)).all(axis=1) & (prices < prices[offering])
            fits &= problem.allowed[:, numbers].all(axis=1) & np.all(
                [domain == domain[offering] for domain in domains], axis=0
            )
            for row in problem.limits:
                fits &= row.takes <= row.takes[offering]
            best = int(np.where(fits, prices, np.iinfo(np.int64).max).argmin()) if fits.any() else offering
            kept.append(
                (name, best if best != offering and self._exchange_node(name, best, pods, pending_here) else offering)
            )
        return kept

    def _exchange_node(self, name: str, offering: int, pods: Sequence[str], pending_here: Sequence[str]) -> bool:
        """Exchange a node for one of another offering with the same pods; return whether all pods fit."""
        cluster = self.planning.cluster
        with Trial(cluster) as trial:
            for pod in pods:
                cluster.apply(Unbind(pod) if pod in self.pods else Remove("Pod", pod))
            cluster.apply(Remove("Node", name))
            self.planning.join(self.problem.offerings[offering], name)
            if place_on_node(self.planning, name, pending_here) or unstarted_gangs(self.planning, pending_here):
                return False
            trial.keep()
            return True

    def _remove_spare_nodes(
        self, nodes: list[tuple[str, int]], budget: WorkBudget
    ) -> tuple[list[tuple[str, int]], bool | None]:
        """Remove nodes whose pods fit elsewhere, the emptiest first.

        Return the remaining nodes, and True if all of them are needed, or None if the budget was exhausted before.
        """
        cluster = self.planning.cluster
        kept = sorted(nodes, key=lambda node: len(cluster.pods_on_row[cluster.node_row(node[0])]))
        no_rules = not self.problem.rules.affected.any()
        changed = True
        while changed:
            changed = False
            needed: set[tuple[int, tuple[int, ...]]] = set()
            for node in list(kept):
                if budget.is_exhausted():
                    return kept, None
                content = self._content(node) if no_rules else None
                if content is not None and content in needed:  # a node with the same content is needed
                    continue
                if self._remove_if_spare(node[0]):
                    kept.remove(node)
                    changed = True
                    needed.clear()
                elif content is not None:
                    needed.add(content)
        return kept, True

    def _content(self, node: tuple[str, int]) -> tuple[int, tuple[int, ...]]:
        """Return the offering and the pod specs of a node; nodes with equal contents are equal if no pod has rules."""
        cluster = self.planning.cluster
        rows = list(cluster.pods_on_row[cluster.node_row(node[0])])
        return node[1], tuple(sorted(cluster.pods.spec[rows].tolist()))

    def _remove_if_spare(self, name: str) -> bool:
        """Remove a node if its pods fit elsewhere; return whether it is removed."""
        cluster = self.planning.cluster
        keys = [cluster.pods.keys[row] for row in cluster.pods_on_row[cluster.node_row(name)]]
        pending_here = sorted((key for key in keys if key in self.queue_place), key=self.queue_place.__getitem__)
        if not self._has_room_elsewhere(name, pending_here):
            return False
        with Trial(cluster) as trial:
            for key in keys:
                cluster.apply(Unbind(key) if key in self.pods else Remove("Pod", key))
            cluster.apply(Remove("Node", name))
            if place_anywhere(self.planning, pending_here, patient=False) or unstarted_gangs(
                self.planning, pending_here
            ):
                return False
            trial.keep()
            return True

    def _has_room_elsewhere(self, name: str, pods: Sequence[str]) -> bool:
        """Return whether each of some pods alone has room on another node: a quick check before the engine is asked."""
        nodes = self.planning.cluster.nodes
        is_other = nodes.on[: nodes.length].copy()
        is_other[nodes.row_of[name]] = False
        places = [self.planning.cluster.resources.index(resource) for resource in self.problem.resources]
        room = nodes.alloc[places][:, : nodes.length][:, is_other] - nodes.used[places][:, : nodes.length][:, is_other]
        wanted = self.problem.requests[sorted({self.pods[pod] for pod in pods})]
        return all((room >= each[:, None]).all(axis=0).any() for each in wanted)
