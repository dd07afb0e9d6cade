"""What Karpenter would buy: passes of its scheduler until one buys nothing more.

Contract: `karpenter` leaves the cluster as it was, and works for every catalogue: the offerings of a pool are taken as
instance types with zones and capacity types. Where Karpenter takes any of several equal zones, the model takes the
first by name. A pass that bought nodes and left pods is followed by another one with those nodes in the cluster,
because limits then count what was really bought. When the work budget is exhausted, the remaining pods are left.
Karpenter looks at neither priorities nor gangs. Volumes, minimum numbers of types and reserved capacity are not
modelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from tutti.autoscalers.karpenter.label_rows import HOSTNAME
from tutti.autoscalers.karpenter.scheduler import Scheduler
from tutti.autoscalers.karpenter.state import cluster_state
from tutti.autoscalers.shared.borrowed_cluster import borrowed
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Bind, Put
from tutti.cluster.work.work_budget import WorkBudget
from tutti.kube.generated_names import made_uid
from tutti.kube.objects import DaemonSet, Node, Pod
from tutti.kube.workloads.daemon_sets import daemon_pods, node_of
from tutti.kube.workloads.owners import OwnedPods
from tutti.market.offerings import Catalogue, Offering
from tutti.market.remaining_limits import catalogue_after_purchase

_MOST_PASSES = 50


class KarpenterOptions(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """How the model runs."""

    order: tuple[str, ...] = ()
    """Pools to try first; the others follow by falling weight, then by falling name."""
    passes: int = _MOST_PASSES
    """The most passes of the scheduler."""
    as_in_go: bool = False
    """Whether equals come in the order in which Go's sort leaves them: exact, and several times slower."""


_DEFAULT = KarpenterOptions()


def karpenter(
    cluster: Cluster,
    catalogue: Catalogue,
    daemon_sets: Sequence[DaemonSet] = (),
    *,
    options: KarpenterOptions = _DEFAULT,
    budget: WorkBudget | None = None,
) -> Purchase:
    """Buy as Karpenter would for the pending pods of a cluster."""
    bought: list[tuple[Offering, list[str]]] = []
    place_of: dict[str, int] = {}
    on_existing: list[tuple[str, str]] = []
    prefix = _free_prefix(cluster.nodes.row_of)
    with borrowed(cluster):
        for number in range(1, options.passes + 1):
            found = Scheduler(
                cluster_state(cluster), catalogue, daemon_sets, order=options.order, as_in_go=options.as_in_go
            ).solve(budget)
            for pod, node in found.on_existing:
                if node in place_of:
                    bought[place_of[node]][1].append(pod)
                else:
                    on_existing.append((pod, node))
            joined = {f"{prefix}-{number:02}-{place:05}": each for place, each in enumerate(found.nodes)}
            for name, (offering, pods) in joined.items():
                place_of[name] = len(bought)
                bought.append((offering, list(pods)))
            over = budget is not None and budget.is_exhausted()
            if not found.left or not found.nodes or over or number == options.passes:
                break
            _carry_out(cluster, joined, daemon_sets, on_existing=found.on_existing)
            catalogue = catalogue_after_purchase(catalogue, [offering for offering, _ in joined.values()])
    return Purchase(
        nodes=tuple((offering, tuple(pods)) for offering, pods in bought),
        on_existing=tuple(on_existing),
        left=found.left,
    )


def _carry_out(
    cluster: Cluster,
    joined: Mapping[str, tuple[Offering, tuple[str, ...]]],
    daemon_sets: Sequence[DaemonSet],
    *,
    on_existing: Iterable[tuple[str, str]],
) -> None:
    """Put the bought nodes into the cluster with their daemons, and bind the pods of the pass."""
    nodes = [_node(offering, name) for name, (offering, _) in joined.items()]
    owned = OwnedPods(())
    daemons = [_started(pod) for each in daemon_sets for pod in daemon_pods(each, owned, nodes=nodes)]
    for obj in (*nodes, *daemons):
        cluster.apply(Put(obj))
    for pod, node in on_existing:
        cluster.apply(Bind(pod, node))
    for name, (_, pods) in joined.items():
        for pod in pods:
            cluster.apply(Bind(pod, name))


def _free_prefix(names: Iterable[str]) -> str:
    """A prefix for names of bought nodes that no existing node's name begins with."""
    prefix = "new"
    while any(name.startswith(prefix) for name in names):
        prefix += "-new"
    return prefix


def _node(offering: Offering, name: str) -> Node:
    metadata = offering.node.metadata
    labels = {**(metadata.labels or {}), HOSTNAME: name}
    return replace(offering.node, metadata=replace(metadata, name=name, uid=made_uid(f"Node/{name}"), labels=labels))


def _started(pod: Pod) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node_of(pod)))
