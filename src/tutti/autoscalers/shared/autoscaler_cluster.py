"""A cluster as autoscalers see it: pending pods in equivalence groups, numbered offerings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tutti.autoscalers.shared.equivalence_groups import build_pod_groups
from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Rows
from tutti.cluster.counters.label_classes import Role
from tutti.engine.placement.capacity import Capacity
from tutti.engine.placement.profile import Profile
from tutti.engine.plugins.base import IncomingPod
from tutti.kube.objects import DaemonSet
from tutti.market.offerings import Catalogue
from tutti.market.planning_cluster import PlanningCluster

_HOSTNAME = "kubernetes.io/hostname"


def filters_only() -> Profile:
    """Return the default profile without scores, for callers that need only filters."""
    return Profile(tuple(enabled._replace(weight=0) for enabled in Profile.default().plugins))


class AutoscalerCluster:
    """A cluster with its engine, pod groups and offerings.

    Pods with a nominated node count as placed there. Without a profile the engine filters and does not score. Nodes
    that join stay until the caller rolls back the cluster.
    """

    def __init__(
        self,
        cluster: Cluster,
        catalogue: Catalogue,
        daemon_sets: Sequence[DaemonSet] = (),
        *,
        profile: Profile | None = None,
    ) -> None:
        self._planning = PlanningCluster(cluster, daemon_sets, profile or filters_only())
        self.cluster, self.engine = cluster, self._planning.engine
        self.capacity = Capacity(self.engine.evaluator)
        self.offerings = tuple(offering for pool in catalogue.pools for offering in pool.offerings)
        self.rows: Rows = np.array(list(cluster.nodes.row_of.values()), dtype=np.intp)
        """The existing nodes, in the order of the cluster's node table."""
        pending = set(self._planning.pending)
        self.pod_groups = build_pod_groups(cluster, [key for key in cluster.pods.row_of if key in pending])

    def is_plain(self, incoming: IncomingPod) -> bool:
        """Return whether the filters of a pod depend only on the node and its free resources."""
        spec = incoming.spec
        if spec.ports or spec.volumes or spec.affinity or spec.anti_affinity:
            return False
        if any(constraint.hard for constraint in spec.spread):
            return False
        repelling = (
            held for held in self.cluster.labels.carried_terms_matching(incoming.labels) if held.key.role == Role.REPELS
        )
        return not any(held.total for held in repelling)

    def is_local(self, incoming: IncomingPod) -> bool:
        """Return whether the filters of a pod depend only on the node and the pods on that node."""
        spec = incoming.spec
        if spec.volumes or spec.affinity or any(constraint.hard for constraint in spec.spread):
            return False
        if any(term.topology_key != _HOSTNAME for term in spec.anti_affinity):
            return False
        repelling = (
            held for held in self.cluster.labels.carried_terms_matching(incoming.labels) if held.key.role == Role.REPELS
        )
        return not any(held.total and held.key.term.topology_key != _HOSTNAME for held in repelling)

    def join(self, offering: int, name: str) -> int:
        """Add a node of an offering to the cluster, with its daemons, and return its row."""
        self._planning.join(self.offerings[offering], name)
        return self.cluster.node_row(name)
