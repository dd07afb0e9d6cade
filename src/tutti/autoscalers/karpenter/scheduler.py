"""One pass of Karpenter's scheduler: every waiting pod in turn, on nodes, on claims, on a new claim.

Contract: pods come by cpu, then memory, falling. Each goes to the first node by name that takes it, else to the claim
with the fewest pods that does, whatever its pool, else to a new claim of the first pool that has an offering for it;
where nothing takes it, wishes are dropped one by one. Who fails goes to the end of the queue, and the pass ends when a
whole round placed nobody. Prices are looked at only at the end, when each claim becomes its cheapest offering. A new
claim counts against limits with the largest type that it could have. Beyond Karpenter, a limit on the number of nodes
holds within the pass.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from tutti.autoscalers.karpenter.instancetypes import Shelf
from tutti.autoscalers.karpenter.nodeclaim import Claim, Nodes, running_of
from tutti.autoscalers.karpenter.nodeclaim_order import Claims, ClaimsAsInGo
from tutti.autoscalers.karpenter.preferences import Ask, Sorting, queue_order
from tutti.autoscalers.karpenter.state import ClusterState, RunningPod
from tutti.autoscalers.karpenter.topology import RuleBook, Rules
from tutti.autoscalers.karpenter.topologygroup import Topology
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.columns import Ints, Rows
from tutti.cluster.work_budget import Deadline
from tutti.kube.objects import DaemonSet
from tutti.market.offerings import Catalogue

_LOOK_AT_CLOCK = 32
"""After so many pods the deadline is looked at."""
_RUNNING, _POD, _DOMAIN = 1.2e-5, 1e-4, 2e-7
"""What a pod takes, roughly: one that runs, to be counted; one that waits, to be placed, and for every domain of every
claim that is looked at on the way."""


class _Limit:
    """How much is left of a limit, and how much a node of each row of each shelf takes."""

    def __init__(self, left: int, takes: list[Ints]) -> None:
        self.left, self.takes = left, takes


class Pass:
    """See the module's contract."""

    def __init__(
        self,
        state: ClusterState,
        catalogue: Catalogue,
        daemon_sets: Sequence[DaemonSet],
        *,
        order: Sequence[str] = (),
        as_in_go: bool = False,
    ) -> None:
        self.pods = [each.pod for each in state.pending]
        self._running = len(state.running)
        self.sorting = sorting = Sorting(state.pending, _watched(state.running))
        self.nodes = Nodes(state.nodes, state.running, resources=sorting.resources)
        self.nodes.keep_room(daemon_sets, sorting.resources)
        rank = {name: place for place, name in enumerate(order)}
        pools = sorted(catalogue.pools, key=lambda pool: (pool.weight, pool.name), reverse=True)
        pools.sort(key=lambda pool: rank.get(pool.name, len(rank)))
        self.shelves = [Shelf(pool, daemon_sets, sorting.resources) for pool in pools if pool.offerings]
        self.topology = Topology(
            self.shelves,
            self.nodes.rows,
            running=running_of(state.running, self.nodes.place, sorting),
            namespaces=state.namespaces,
        )
        self.book = RuleBook(self.topology, self.shelves, self.nodes)
        self.limits = self._limits(catalogue)
        self.some_prefer = any(shelf.rows.some_prefer for shelf in self.shelves)
        self.claims = ClaimsAsInGo() if as_in_go else Claims()
        self.placed: dict[int, int] = {}
        self.version = 0
        """How many pods were placed: nothing that failed at this number need be tried again."""
        self._empty: dict[tuple[int, int], Rows] = {}

    def _limits(self, catalogue: Catalogue) -> list[_Limit]:
        none = [np.zeros(len(shelf.offerings), dtype=np.int64) for shelf in self.shelves]
        found = [_Limit(limit.left, [shelf.takes(limit) for shelf in self.shelves]) for limit in catalogue.limits]
        for number, shelf in enumerate(self.shelves):
            before, after = none[:number], none[number + 1 :]
            found += [_Limit(limit.left, [*before, shelf.takes(limit), *after]) for limit in shelf.pool.limits]
        return found

    def run(self, deadline: Deadline | None = None) -> Purchase:
        """Place everybody who can be placed before the deadline."""
        if deadline is not None:
            deadline.effort.spend(_RUNNING * self._running)
        kinds = self.sorting.kinds
        for kind in self.sorting.all:  # all groups count from the start
            self.topology.owned(kind.ladder[0])
        queue = deque(queue_order(self.pods, kinds))
        waited: dict[int, int] = {}
        turn = 0
        while queue and waited.get(queue[0]) != len(queue):
            if deadline is not None and turn % _LOOK_AT_CLOCK == 0 and deadline.is_over():
                break
            turn += 1
            if deadline is not None:
                deadline.effort.spend(_POD + _DOMAIN * self.topology.widest * len(self.claims))
            pod = queue.popleft()
            if kinds[pod].failed_at == self.version or not self._place(pod):
                kinds[pod].failed_at = self.version
                queue.append(pod)
                waited[pod] = len(queue)
        return self._purchase(sorted(queue))

    def _place(self, pod: int) -> bool:
        kind, number = self.sorting.kinds[pod], 0
        while (ask := kind.step(number, some_prefer=self.some_prefer)) is not None:
            rules = self.book.of(ask)
            if self._on_node(pod, ask, rules) or self._on_claim(pod, ask, rules) or self._on_new(pod, ask, rules):
                self.version += 1
                return True
            number += 1
        return False

    def _on_node(self, pod: int, ask: Ask, rules: Rules) -> bool:
        if not self.nodes.names:
            return False
        for node in self.nodes.open_to(ask):
            had = [self.book.of_node(key, node) for key, _ in rules.domains]
            if rules.take_host(node) and self.book.narrowed(ask, rules, had) is not None:
                self.nodes.take(node, ask)
                self.placed[pod] = node
                self.book.settle_on_node(node, ask)
                return True
        return False

    def _on_claim(self, pod: int, ask: Ask, rules: Rules) -> bool:
        closed, memo = ask.closed, dict[tuple[int, ...], "list[int] | None"]()
        had = [(key, self.topology.domains(key).of_shelf) for key, _ in rules.domains]
        narrowed: list[int] | None = []
        for place, claim in enumerate(self.claims):
            if claim.number in closed:
                continue
            if had:
                bits = tuple([claim.bits.get(key, of_shelf[claim.shelf]) for key, of_shelf in had])
                if bits not in memo:
                    memo[bits] = self.book.narrowed(ask, rules, bits)
                narrowed = memo[bits]
            if narrowed is not None and self._joins(claim, pod, ask=ask, rules=rules, narrowed=narrowed):
                self.claims.grew(place)
                return True
        return False

    def _joins(self, claim: Claim, pod: int, *, ask: Ask, rules: Rules, narrowed: Sequence[int]) -> bool:
        """Put a pod into a claim if it fits there; a claim that has become too small is closed to its like."""
        if rules.hosts and not rules.take_host(claim.host):
            if rules.is_full(claim.host):
                ask.closed.add(claim.number)
            return False
        fits = claim.room_for(ask, self.shelves[claim.shelf])
        if fits is None:
            ask.closed.add(claim.number)
            return False
        for (key, _), allowed in zip(rules.domains, narrowed, strict=True):
            fits &= self.topology.domains(key).mask(claim.shelf, allowed)[claim.rows]
        if not fits.any():
            return False
        claim.take(pod, ask, fits)
        self.book.settle(claim, ask, rules=rules, narrowed=narrowed)
        return True

    def _on_new(self, pod: int, ask: Ask, rules: Rules) -> bool:
        number = len(self.claims)
        host = len(self.nodes.names) + number
        if not rules.take_host(host):
            return False
        for place, shelf in enumerate(self.shelves):
            rows = self._affordable(ask, place)
            had = [self.book.of_shelf(key, place) for key, _ in rules.domains]
            if not len(rows) or (narrowed := self.book.narrowed(ask, rules, had)) is None:
                continue
            for (key, _), allowed in zip(rules.domains, narrowed, strict=True):
                rows = rows[self.topology.domains(key).mask(place, allowed)[rows]]
            if not len(rows):
                continue
            claim = Claim(number, host=host, shelf=place, rows=rows, free=shelf.free[:, rows])
            self.book.begin(claim)
            claim.take(pod, ask, np.ones(len(rows), dtype=bool))
            for limit in self.limits:
                limit.left -= int(limit.takes[place][rows].max())
            self.book.settle(claim, ask, rules=rules, narrowed=narrowed)
            self.claims.add(claim)
            return True
        return False

    def _affordable(self, ask: Ask, place: int) -> Rows:
        """The offerings of a shelf that are large enough and within the limits."""
        shelf = self.shelves[place]
        rows = self._empty.get((id(ask), place))
        if rows is None:
            mask = ask.shelf_mask(place, shelf).copy()
            for resource, amount in ask.kind.needs:
                mask &= shelf.free[resource] >= amount
            rows = self._empty[id(ask), place] = np.flatnonzero(mask)
        for limit in self.limits:
            taken = limit.takes[place][rows]
            rows = rows[(taken <= limit.left) | (taken == 0)]
        return rows

    def _purchase(self, left: Sequence[int]) -> Purchase:
        keys = [pod.key for pod in self.pods]
        nodes = []
        for claim in sorted(self.claims, key=lambda each: each.number):
            shelf = self.shelves[claim.shelf]
            cheapest = int(claim.rows[np.argmin(shelf.rank[claim.rows])])
            nodes.append((shelf.offerings[cheapest], tuple(keys[pod] for pod in claim.pods)))
        return Purchase(
            nodes=tuple(nodes),
            on_existing=tuple((keys[pod], self.nodes.names[node]) for pod, node in self.placed.items()),
            left=tuple(keys[pod] for pod in left),
        )


def _watched(running: Sequence[RunningPod]) -> set[str]:
    """The pod labels that anti-affinity of running pods looks at."""
    found: set[str] = set()
    for each in running:
        affinity = each.pod.spec.affinity
        if affinity is not None and affinity.pod_anti_affinity is not None:
            found |= each.spec.watched_keys
    return found
