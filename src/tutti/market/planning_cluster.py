"""The cluster that purchases are planned on: existing nodes, pending pods, and new nodes that join.

Contract: a `PlanningCluster` wraps a cluster and changes it at once: pods with a nominated node are bound to that node,
and pending DaemonSet pods are placed on existing nodes. All other pending pods are then in `turns`, in queue order, or
in `not_considered`. `schedule_now` places every pod that fits now, for an external binder. `join` puts a node of an
offering into the cluster, with the pods of its daemon sets. Callers undo their changes with a `Trial`. `build_cluster`
builds a cluster from objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Put
from tutti.cluster.node_edits import belongs_to_node, new_node_like, new_node_pod
from tutti.cluster.work.meter import OBJECT
from tutti.engine.gangs.cluster_gangs import Gangs
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.engine.session.plan import NotConsidered, Plan, Turn
from tutti.engine.session.queue_order import sort_into_turns
from tutti.engine.session.schedule import schedule
from tutti.kube.objects import (
    KINDS,
    CronJob,
    CSINode,
    DaemonSet,
    Deployment,
    Job,
    KarpenterPool,
    Object,
    ObjectMeta,
    Pod,
)
from tutti.market.node_daemons import daemon_pods_for
from tutti.market.offerings import Offering

_UNCOUNTED = frozenset((KarpenterPool.KIND, Deployment.KIND, Job.KIND, CronJob.KIND))
"""Kinds that planning does not read: a plan must not depend on whether the input has them."""
_NOT_A_NAME = re.compile(r"[^a-z0-9.-]+")


class PlanningCluster:
    """A cluster with its engine, gangs, queue and daemon sets; see the module's contract."""

    def __init__(self, cluster: Cluster, daemon_sets: Sequence[DaemonSet] = (), profile: Profile | None = None) -> None:
        self.cluster, self.profile = cluster, profile or Profile.default()
        self.engine = Engine(cluster, self.profile)
        self.gangs = Gangs.of(cluster)
        self.turns: list[Turn] = []
        """The turns of the pending pods, in the order of the queue."""
        self.pending: list[str] = []
        """The pods of all turns, once each, in order."""
        self.promised: dict[str, str] = {}
        """Pods with a nominated node, and pods that `schedule_now` placed, with the node's name."""
        self.not_considered: list[NotConsidered] = []
        """Pending pods that no scheduler tries to place, with the reason."""
        self.daemon_sets = daemon_sets
        self._daemons: dict[int, list[Pod]] = {}
        # Counted like reading every object, although a copy reads none: work budgets, and so plans, depend on it.
        others = sum(len(objects) for kind, objects in cluster.objects.items() if kind not in _UNCOUNTED)
        cluster.meter.count += OBJECT * (len(cluster.nodes.row_of) + len(cluster.pods.row_of) + others)
        self._split_pods()

    def _split_pods(self) -> None:
        cluster = self.cluster
        pods = cluster.pods
        self.promised = {key: hold.node for key, hold in cluster.holds.items() if hold.node in cluster.nodes.row_of}
        for key, node in self.promised.items():
            cluster.apply(Bind(key, node))
        waiting = [key for key, row in pods.row_of.items() if pods.node_names[row] is None and key not in self.promised]
        daemons = [key for key in waiting if belongs_to_node(cluster.pod(key))]
        self.engine.place(daemons)  # only on existing nodes: no node is bought for them
        waiting = [key for key in waiting if not belongs_to_node(cluster.pod(key))]
        self.turns, self.not_considered = sort_into_turns(cluster, self.gangs, waiting, profile=self.profile)
        self.pending = list(dict.fromkeys(key for turn in self.turns for key in turn.pods))

    def schedule_now(self) -> Plan:
        """Let the scheduler place the pending pods that fit on existing nodes; these pods are then promised.

        kube-scheduler does not wait for new nodes: it binds what fits now long before they join.
        """
        plan = schedule(self.cluster, self.pending, self.profile, preemption=False)
        if not plan.binds:
            return plan
        self.promised |= {each.pod: each.node for each in plan.binds}
        waiting = [pod for pod in self.pending if pod not in self.promised]
        self.turns, _ = sort_into_turns(self.cluster, self.gangs, waiting, profile=self.profile)
        self.pending = list(dict.fromkeys(key for turn in self.turns for key in turn.pods))
        return plan

    def join(self, offering: Offering, name: str) -> None:
        """Put a node of an offering into the cluster, with its DaemonSet pods and the limits of its volume drivers."""
        self.cluster.apply(Put(new_node_like(offering.node, name)))
        if offering.csi is not None:
            self.cluster.apply(Put(CSINode(metadata=ObjectMeta(name=name), spec=offering.csi)))
        for pod in self.daemons(offering):
            self.cluster.apply(Put(new_node_pod(pod, name)))

    def join_all(self, offerings: Iterable[Offering]) -> list[str]:
        """Put one node of each offering into the cluster; return their names."""
        names = []
        numbers: dict[str, int] = {}
        for offering in offerings:
            name = self.name_of(offering, numbers)
            self.join(offering, name)
            names.append(name)
        return names

    def name_of(self, offering: Offering, numbers: dict[str, int]) -> str:
        """Return an unused name for the next node of an offering; `numbers` counts the names given per prefix."""
        prefix = "-".join(part for part in (offering.pool, offering.zone, "new") if part).lower()
        prefix = _NOT_A_NAME.sub("-", prefix)
        while True:
            numbers[prefix] = numbers.get(prefix, 0) + 1
            name = f"{prefix}-{numbers[prefix]}"
            if name not in self.cluster.nodes.row_of:
                return name

    def daemons(self, offering: Offering) -> list[Pod]:
        """Return the DaemonSet pods that a new node of an offering runs."""
        known = self._daemons.get(id(offering))
        if known is None:
            known = self._daemons[id(offering)] = daemon_pods_for(self.daemon_sets, offering.node)
        return known


def build_cluster(objects: Iterable[Object]) -> Cluster:
    """Build a cluster from objects, kind by kind, so that no object refers to a later one."""
    by_kind: dict[str, list[Object]] = {kind: [] for kind in KINDS}
    for obj in objects:
        by_kind[obj.KIND].append(obj)
    return Cluster(obj for group in by_kind.values() for obj in group)
