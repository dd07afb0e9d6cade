"""Karpenter's provisioner: passes of the scheduler until a pass buys no node.

Contract: `karpenter` leaves the cluster unchanged and works for every catalogue: the offerings of a pool count as
instance types with zones and capacity types. Where Karpenter chooses among equal zones at random, the model takes the
first by name. After a pass that buys nodes and leaves pods pending, another pass runs with those nodes in the cluster,
because limits then count the bought nodes instead of the largest possible ones. When the work budget is exhausted, the
remaining pods stay pending. Karpenter ignores priorities and gangs. Volumes, minimum numbers of instance types and
reserved capacity are not modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from tutti.autoscalers.karpenter.label_rows import HOSTNAME
from tutti.autoscalers.karpenter.scheduler import Scheduler
from tutti.autoscalers.karpenter.state import cluster_state
from tutti.autoscalers.shared.purchase import Purchase
from tutti.autoscalers.shared.temporary_edits import temporary_edits
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Put
from tutti.cluster.work.work_budget import WorkBudget
from tutti.kube.generated_names import made_uid
from tutti.kube.objects import DaemonSet, Node, Pod
from tutti.kube.workloads.daemon_sets import daemon_pods, node_of
from tutti.kube.workloads.owners import OwnedPods
from tutti.market.offerings import Catalogue, Offering
from tutti.market.remaining_limits import catalogue_after_purchase

_MAX_PASSES = 50


class KarpenterOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Options of the model."""

    order: tuple[str, ...] = ()
    """Names of pools to try first; other pools follow by decreasing weight, then by decreasing name."""
    passes: int = _MAX_PASSES
    """The maximum number of passes of the scheduler."""
    as_in_go: bool = False
    """Whether claims with equally many pods are tried in the order of Go's sort: exact, and several times slower."""


_DEFAULT = KarpenterOptions()


def karpenter(
    cluster: Cluster,
    catalogue: Catalogue,
    daemon_sets: Sequence[DaemonSet] = (),
    *,
    options: KarpenterOptions = _DEFAULT,
    budget: WorkBudget | None = None,
) -> Purchase:
    """Return the nodes that Karpenter would buy for the pending pods of a cluster."""
    bought: list[tuple[Offering, list[str]]] = []
    index_of: dict[str, int] = {}
    on_existing: list[tuple[str, str]] = []
    prefix = _free_prefix(cluster.nodes.row_of)
    with temporary_edits(cluster):
        for number in range(1, options.passes + 1):
            purchase = Scheduler(
                cluster_state(cluster), catalogue, daemon_sets, order=options.order, as_in_go=options.as_in_go
            ).solve(budget)
            for pod, node in purchase.on_existing:
                if node in index_of:
                    bought[index_of[node]][1].append(pod)
                else:
                    on_existing.append((pod, node))
            new_nodes = {f"{prefix}-{number:02}-{place:05}": each for place, each in enumerate(purchase.nodes)}
            for name, (offering, pods) in new_nodes.items():
                index_of[name] = len(bought)
                bought.append((offering, list(pods)))
            is_exhausted = budget is not None and budget.is_exhausted()
            if not purchase.left or not purchase.nodes or is_exhausted or number == options.passes:
                break
            _apply_pass(cluster, new_nodes, daemon_sets, on_existing=purchase.on_existing)
            catalogue = catalogue_after_purchase(catalogue, [offering for offering, _ in new_nodes.values()])
    return Purchase(
        nodes=tuple((offering, tuple(pods)) for offering, pods in bought),
        on_existing=tuple(on_existing),
        left=purchase.left,
    )


def _apply_pass(
    cluster: Cluster,
    new_nodes: Mapping[str, tuple[Offering, tuple[str, ...]]],
    daemon_sets: Sequence[DaemonSet],
    *,
    on_existing: Iterable[tuple[str, str]],
) -> None:
    """Add the bought nodes to the cluster with their daemons, and bind the pods of the pass."""
    nodes = [_node(offering, name) for name, (offering, _) in new_nodes.items()]
    owned = OwnedPods(())
    daemons = [_bound_daemon(pod) for each in daemon_sets for pod in daemon_pods(each, owned, nodes=nodes)]
    for obj in (*nodes, *daemons):
        cluster.apply(Put(obj))
    for pod, node in on_existing:
        cluster.apply(Bind(pod, node))
    for name, (_, pods) in new_nodes.items():
        for pod in pods:
            cluster.apply(Bind(pod, name))


def _free_prefix(names: Iterable[str]) -> str:
    """Return a prefix for names of bought nodes that no existing node's name begins with."""
    prefix = "new"
    while any(name.startswith(prefix) for name in names):
        prefix += "-new"
    return prefix


def _node(offering: Offering, name: str) -> Node:
    metadata = offering.node.metadata
    labels = {**(metadata.labels or {}), HOSTNAME: name}
    return replace(offering.node, metadata=replace(metadata, name=name, uid=made_uid(f"Node/{name}"), labels=labels))


def _bound_daemon(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node_of(pod)))
