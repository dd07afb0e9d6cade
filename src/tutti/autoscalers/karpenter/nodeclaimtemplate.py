"""The offerings of one pool as columns: one row per offering (instance type, zone and capacity type).

Contract: rows are the pool's offerings in the catalogue's order. `free` has the resources that the daemons of a new
node leave. If a daemon runs on one offering of an instance type, all offerings of that type keep room for the daemon,
as in Karpenter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tutti.autoscalers.karpenter.hostportusage import Port, ports_conflict
from tutti.autoscalers.karpenter.label_rows import HOSTNAME, LabelRows, selected_by
from tutti.cluster.columns import Bools, Ints
from tutti.kube.objects import DaemonSet, Pod, PodSpec
from tutti.kube.resources import allocatable, host_ports, incoming_requests
from tutti.kube.workloads.daemon_sets import daemon_tolerations
from tutti.market.offerings import NodePool, Offering, PoolLimit, takes

_CAPACITY_TYPES = ("on-demand", "reserved", "spot")


class NodeClaimTemplate:
    """The offerings of one pool; see the module's contract."""

    def __init__(self, pool: NodePool, daemon_sets: Sequence[DaemonSet], resources: Sequence[str]) -> None:
        self.pool, self.offerings = pool, pool.offerings
        labels = [_labels(each) for each in pool.offerings]
        self.rows = LabelRows(labels, [each.node.spec.taints or () for each in pool.offerings])
        amounts = [allocatable(each.node) for each in pool.offerings]
        self.free: Ints = np.array([[each.get(name, 0) for each in amounts] for name in resources], dtype=np.int64)
        self.free = self.free.reshape(len(resources), len(amounts))
        self._types = np.unique([each.instance_type for each in pool.offerings], return_inverse=True)[1]
        self._daemon_ports: list[tuple[tuple[Port, ...], Bools]] = []
        for daemon_set in daemon_sets:
            self._keep_room(daemon_set.spec.template.spec, resources)
        self.rank = _price_ranks(pool.offerings)
        """By row: its place in the order of the lowest-price launch, 0 for the cheapest."""

    def _keep_room(self, spec: PodSpec, resources: Sequence[str]) -> None:
        """Subtract a daemon's requests from every instance type on which it runs."""
        mask = selected_by(spec, self.rows) & self.rows.tolerated(daemon_tolerations(spec), hard_only=True)
        mask = np.isin(self._types, self._types[mask])
        pod = Pod(spec=spec)
        requests = {**incoming_requests(pod), "pods": 1}
        amounts = np.array([requests.get(name, 0) for name in resources], dtype=np.int64)
        self.free[:, mask] -= amounts[:, None]
        if ports := host_ports(pod):
            self._daemon_ports.append((ports, mask))

    def without_port_conflict(self, ports: Sequence[Port]) -> Bools:
        """Return the rows whose daemons do not use these host ports."""
        mask: Bools = np.ones(len(self.offerings), dtype=bool)
        for daemon_ports, rows in self._daemon_ports:
            if ports_conflict(ports, daemon_ports):
                mask &= ~rows
        return mask

    def takes(self, limit: PoolLimit) -> Ints:
        """Return how much of a limit a node of each row takes."""
        return np.array([takes(limit, each) for each in self.offerings], dtype=np.int64)


def _labels(offering: Offering) -> dict[str, str]:
    """Return the labels of a new node; the hostname is not known yet, so no pod can select it."""
    return {**(offering.node.metadata.labels or {}), HOSTNAME: ""}


def _price_ranks(offerings: Sequence[Offering]) -> Ints:
    """Rank offerings by price; offerings without a price come last, by cpu."""

    def price_order(row: int) -> tuple[bool, int, int, str, int, str]:
        each = offerings[row]
        cpu = 0 if each.price is not None else allocatable(each.node).get("cpu", 0)
        capacity = _CAPACITY_TYPES.index(each.capacity_type) if each.capacity_type in _CAPACITY_TYPES else 3
        return each.price is None, each.price or 0, cpu, each.instance_type, capacity, each.zone

    ranks: Ints = np.empty(len(offerings), dtype=np.int64)
    ranks[sorted(range(len(offerings)), key=price_order)] = np.arange(len(offerings))
    return ranks
