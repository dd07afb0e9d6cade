"""One pass of Karpenter's scheduler: try each pending pod on existing nodes, then on claims, then on a new claim.

Contract: the `queue` decides the order of pods. A pod goes to the first existing node by name that takes it, else to
the claim with the fewest pods that takes it, from any pool, else to a new claim of the first pool with a suitable
offering. If none of them takes the pod, its preferences are dropped one by one. A pod that fails goes to the end of the
queue, and the pass ends when a whole round placed no pod. Prices matter only at the end, when each claim becomes its
cheapest offering. A new claim counts against limits with the largest instance type that it can have. Unlike in
Karpenter, a limit on the number of nodes holds within the pass.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tutti.autoscalers.karpenter.existingnode import ExistingNodes
from tutti.autoscalers.karpenter.nodeclaim import NodeClaim, NodeClaims, NodeClaimsAsInGo
from tutti.autoscalers.karpenter.nodeclaimtemplate import NodeClaimTemplate
from tutti.autoscalers.karpenter.poddata import PodClasses, PodData
from tutti.autoscalers.karpenter.queue import PodQueue
from tutti.autoscalers.karpenter.state import ClusterState, RunningPod
from tutti.autoscalers.karpenter.topology import MatchingTopologies, Topology
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.columns import Ints, Rows
from tutti.cluster.work.meter import KARPENTER_DOMAIN, KARPENTER_POD, KARPENTER_RUNNING_POD
from tutti.cluster.work.work_budget import WorkBudget
from tutti.kube.objects import DaemonSet
from tutti.market.offerings import Catalogue

_BUDGET_CHECK_INTERVAL = 32
"""The work budget is checked before every 32nd pod."""


class _RemainingLimit:
    """The remaining amount of a limit, and the amount that one node takes, by template and row."""

    def __init__(self, left: int, takes: list[Ints]) -> None:
        self.left, self.takes = left, takes


class Scheduler:
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
        self._keys = [each.pod.key for each in state.pending]
        self._running = len(state.running)
        self._classes = classes = PodClasses(state.pending, _watched_labels(state.running))
        self._queue = PodQueue([each.pod for each in state.pending], classes.of_pod)
        self._nodes = ExistingNodes(state.nodes, state.running, resources=classes.resources)
        self._nodes.keep_room(daemon_sets, classes.resources)
        rank = {name: index for index, name in enumerate(order)}
        pools = sorted(catalogue.pools, key=lambda pool: (pool.weight, pool.name), reverse=True)
        pools.sort(key=lambda pool: rank.get(pool.name, len(rank)))
        self._templates = [NodeClaimTemplate(pool, daemon_sets, classes.resources) for pool in pools if pool.offerings]
        self._topology = Topology(
            self._templates, self._nodes, running=state.running, classes=classes, namespaces=state.namespaces
        )
        self._limits = self._remaining_limits(catalogue)
        self._has_soft_taints = any(template.rows.has_soft_taints for template in self._templates)
        self._claims = NodeClaimsAsInGo() if as_in_go else NodeClaims()
        self._on_node: dict[int, int] = {}
        self._placed = 0
        """The number of placed pods; a pod class that failed at this number would fail again."""
        self._large_enough: dict[tuple[int, int], Rows] = {}
        """By `PodData` (its id) and template: the offerings that are large enough."""

    def _remaining_limits(self, catalogue: Catalogue) -> list[_RemainingLimit]:
        """Return the limits of the catalogue, and the limits of each pool, which other pools do not use up."""
        zeros = [np.zeros(len(template.offerings), dtype=np.int64) for template in self._templates]
        limits = [
            _RemainingLimit(limit.left, [template.takes(limit) for template in self._templates])
            for limit in catalogue.limits
        ]
        for number, template in enumerate(self._templates):
            before, after = zeros[:number], zeros[number + 1 :]
            limits += [
                _RemainingLimit(limit.left, [*before, template.takes(limit), *after]) for limit in template.pool.limits
            ]
        return limits

    def solve(self, budget: WorkBudget | None = None) -> Purchase:
        """Place pods until the queue ends or the work budget is exhausted, and return the purchase."""
        if budget is not None:
            budget.meter.count += KARPENTER_RUNNING_POD * self._running
        for pod_class in self._classes.all:  # every topology group must count all pods of the pass
            self._topology.update(pod_class.first)
        attempts = 0
        while self._queue:
            if budget is not None and attempts % _BUDGET_CHECK_INTERVAL == 0 and budget.is_exhausted():
                break
            attempts += 1
            if budget is not None:
                budget.meter.count += KARPENTER_POD + KARPENTER_DOMAIN * self._topology.most_domains * len(self._claims)
            pod = self._queue.pop()
            pod_class = self._classes.of_pod[pod]
            if pod_class.failed_at == self._placed or not self._add(pod):
                pod_class.failed_at = self._placed
                self._queue.push(pod)
        return self._purchase()

    def _add(self, pod: int) -> bool:
        """Place a pod with as few preferences dropped as possible; return whether the pod was placed."""
        pod_class, step = self._classes.of_pod[pod], 0
        while (data := pod_class.step(step, has_soft_taints=self._has_soft_taints)) is not None:
            matching = self._topology.matching(data)
            if (
                self._add_to_existing_node(pod, data, matching)
                or self._add_to_claim(pod, data, matching)
                or self._add_to_new_claim(pod, data, matching)
            ):
                self._placed += 1
                return True
            step += 1
        return False

    def _add_to_existing_node(self, pod: int, data: PodData, matching: MatchingTopologies) -> bool:
        if not self._nodes.names:
            return False
        for node in self._nodes.with_room_for(data):
            domains = [self._topology.of_node(label, node) for label, _ in matching.domains]
            is_allowed = matching.allow_host(node)
            if is_allowed and self._topology.add_requirements(data, matching, domains) is not None:
                self._nodes.add(node, data)
                self._on_node[pod] = node
                self._topology.record_on_node(node, data)
                return True
        return False

    def _add_to_claim(self, pod: int, data: PodData, matching: MatchingTopologies) -> bool:
        closed, memo = data.closed_claims, dict[tuple[int, ...], "list[int] | None"]()
        labels = [(label, self._topology.domains(label).of_template) for label, _ in matching.domains]
        narrowed: list[int] | None = []
        for index, claim in enumerate(self._claims):
            if claim.number in closed:
                continue
            if labels:
                bits = tuple([claim.bits.get(label, of_template[claim.template]) for label, of_template in labels])
                if bits not in memo:
                    memo[bits] = self._topology.add_requirements(data, matching, bits)
                narrowed = memo[bits]
            if narrowed is not None and self._try_claim(claim, pod, data=data, matching=matching, narrowed=narrowed):
                self._claims.move_grown(index)
                return True
        return False

    def _try_claim(
        self, claim: NodeClaim, pod: int, *, data: PodData, matching: MatchingTopologies, narrowed: Sequence[int]
    ) -> bool:
        """Add a pod to a claim if the pod fits; close a claim to such pods if they can never fit again."""
        if matching.hosts and not matching.allow_host(claim.host):
            if matching.is_host_closed(claim.host):
                data.closed_claims.add(claim.number)
            return False
        fits = claim.with_room_for(data, self._templates[claim.template])
        if fits is None:
            data.closed_claims.add(claim.number)
            return False
        for (label, _), allowed in zip(matching.domains, narrowed, strict=True):
            fits &= self._topology.domains(label).mask(claim.template, allowed)[claim.rows]
        if not fits.any():
            return False
        claim.add(pod, data, fits)
        self._topology.record(claim, data, matching=matching, narrowed=narrowed)
        return True

    def _add_to_new_claim(self, pod: int, data: PodData, matching: MatchingTopologies) -> bool:
        number = len(self._claims)
        host = len(self._nodes.names) + number
        if not matching.allow_host(host):
            return False
        for template_number, template in enumerate(self._templates):
            rows = self._within_limits(data, template_number)
            domains = [self._topology.of_template(label, template_number) for label, _ in matching.domains]
            if not len(rows) or (narrowed := self._topology.add_requirements(data, matching, domains)) is None:
                continue
            for (label, _), allowed in zip(matching.domains, narrowed, strict=True):
                rows = rows[self._topology.domains(label).mask(template_number, allowed)[rows]]
            if not len(rows):
                continue
            claim = NodeClaim(number, host=host, template=template_number, rows=rows, free=template.free[:, rows])
            self._topology.register(claim)
            claim.add(pod, data, np.ones(len(rows), dtype=bool))
            for limit in self._limits:
                limit.left -= int(limit.takes[template_number][rows].max())
            self._topology.record(claim, data, matching=matching, narrowed=narrowed)
            self._claims.add(claim)
            return True
        return False

    def _within_limits(self, data: PodData, template_number: int) -> Rows:
        """Return the offerings of a template that are large enough for a pod and within the limits."""
        template = self._templates[template_number]
        rows = self._large_enough.get((id(data), template_number))
        if rows is None:
            mask = data.template_mask(template_number, template).copy()
            for resource, amount in data.pod_class.requests:
                mask &= template.free[resource] >= amount
            rows = self._large_enough[id(data), template_number] = np.flatnonzero(mask)
        for limit in self._limits:
            taken = limit.takes[template_number][rows]
            rows = rows[(taken <= limit.left) | (taken == 0)]
        return rows

    def _purchase(self) -> Purchase:
        keys, nodes = self._keys, []
        for claim in sorted(self._claims, key=lambda each: each.number):
            template = self._templates[claim.template]
            cheapest = int(claim.rows[np.argmin(template.rank[claim.rows])])
            nodes.append((template.offerings[cheapest], tuple(keys[pod] for pod in claim.pods)))
        return Purchase(
            nodes=tuple(nodes),
            on_existing=tuple((keys[pod], self._nodes.names[node]) for pod, node in self._on_node.items()),
            left=tuple(keys[pod] for pod in self._queue.left()),
        )


def _watched_labels(running: Sequence[RunningPod]) -> set[str]:
    """Return the pod labels that the anti-affinity of running pods selects."""
    keys: set[str] = set()
    for each in running:
        affinity = each.pod.spec.affinity
        if affinity is not None and affinity.pod_anti_affinity is not None:
            keys |= each.spec.watched_keys
    return keys
