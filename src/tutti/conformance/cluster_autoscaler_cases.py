"""Readers of Cluster Autoscaler's recorded scale-ups.

Contract: one line of a file is one `PurchaseCase`; a line with a scale-down is not read. Every node group is a pool
with one offering, limited by the group's maximum size. Expendable pods (priority below the cutoff) buy no node and do
not count for Cluster Autoscaler: they are left out. Where runs vary, the peer is the best run: the fewest pods left,
then the lowest price.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec
from msgspec.structs import replace

from tutti.autoscalers.cluster_autoscaler.orchestrator import EXPENDABLE_BELOW
from tutti.conformance.purchase_cases import PeerPurchase, PurchaseCase
from tutti.exceptions import InputError
from tutti.kube.admission.defaults import with_defaults
from tutti.kube.admission.pod_admission import Admission
from tutti.kube.generated_names import made_uid
from tutti.kube.objects import DaemonSet, Node, Object, Pod, PodDisruptionBudget
from tutti.kube.quantity import milli
from tutti.market.money import nano_dollars
from tutti.market.offerings import Catalogue, NodePool, Offering, PoolLimit
from tutti.recommend.records.request import Request

NAME = "cluster-autoscaler"
_HOSTNAME, _ZONE, _TYPE = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "node.kubernetes.io/instance-type"


class _Group(msgspec.Struct, frozen=True):
    name: str
    max: int
    template: Node
    min: int = 0
    size: int = 0
    price: float = 0.0


class _Pods(msgspec.Struct, frozen=True):
    count: int
    pod: msgspec.Raw


class _GenerateName(msgspec.Struct, frozen=True, rename="camel"):
    generate_name: str


class _Named(msgspec.Struct, frozen=True):
    metadata: _GenerateName


class _Options(msgspec.Struct, frozen=True, rename="camel"):
    max_nodes_total: int | None = None
    max_cores_total: int | None = None
    max_nodes: int | None = None


class _Run(msgspec.Struct, frozen=True, rename="camel"):
    """The result of one run."""

    cost_per_hour: float = 0.0
    pending: int = 0
    loops: tuple[dict[str, int], ...] = ()

    @property
    def bought(self) -> Counter[str]:
        """The number of bought nodes of each group."""
        total: Counter[str] = Counter()
        for loop in self.loops:
            total.update(loop)
        return total


class _Range(msgspec.Struct, frozen=True, rename="camel"):
    cost_per_hour: tuple[float, float]
    nodes: tuple[int, int]
    pending: tuple[int, int]


class _Estimate(msgspec.Struct, frozen=True):
    nodes: int
    pods: int


class _Expect(_Run, frozen=True, rename="camel"):
    pending_after: tuple[tuple[int, ...], ...] = ()
    ties: tuple[_Run, ...] = ()
    range: _Range | None = None
    estimate: _Estimate | None = None


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    family: str
    kind: str
    node_groups: tuple[_Group, ...] = ()
    nodes: tuple[Node, ...] = ()
    running: tuple[Pod, ...] = ()
    pods: tuple[_Pods, ...] = ()
    daemon_sets: tuple[DaemonSet, ...] = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    options: _Options = _Options()
    expect: msgspec.Raw = msgspec.Raw(b"{}")


def read_cluster_autoscaler_case(path: str, number: int, line: bytes) -> PurchaseCase | None:
    """Decode one line of a file; return None for a scale-down."""
    try:
        case = msgspec.json.decode(line, type=_Line)
        if case.kind == "scale-down":
            return None
        expect = msgspec.json.decode(case.expect, type=_Expect)
        shapes = [_shape(each) for each in case.pods]
        catalogue = _catalogue(case)
        request = Request(
            objects=tuple(_objects(case, shapes)),
            daemon_sets=tuple(map(with_defaults, case.daemon_sets)),
            catalogue=catalogue,
        )
        counted = [not _is_expendable(shape) for shape in shapes]
        peer = _peer(case, expect, counted, catalogue)
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from None
    return PurchaseCase(name=case.name, family=case.family, request=request, peer=peer)


# The request ----------------------------------------------------------------------------------------------------------


def _shape(listed: _Pods) -> tuple[Pod, ...]:
    """Return the pods of one entry of the line, with numbered names."""
    pod = msgspec.json.decode(listed.pod, type=Pod)
    prefix = msgspec.json.decode(listed.pod, type=_Named).metadata.generate_name
    return tuple(
        replace(pod, metadata=replace(pod.metadata, name=f"{prefix}{number:04d}")) for number in range(listed.count)
    )


def _is_expendable(shape: Sequence[Pod]) -> bool:
    return bool(shape) and (shape[0].spec.priority or 0) < EXPENDABLE_BELOW


def _objects(case: _Line, shapes: Sequence[Sequence[Pod]]) -> Iterator[Object]:
    """Yield the objects of the cluster, with the defaults of an API server."""
    admission = Admission()
    for node in case.nodes:
        yield with_defaults(_labelled(node))
    yield from case.pod_disruption_budgets
    pending = [pod for shape in shapes if not _is_expendable(shape) for pod in shape]
    for pod in (*case.running, *pending):
        if not pod.metadata.uid:
            pod = replace(pod, metadata=replace(pod.metadata, uid=made_uid(f"Pod/{pod.key}")))
        yield admission.admit_pod(pod)


def _labelled(node: Node) -> Node:
    labels = {**(node.metadata.labels or {}), _HOSTNAME: node.metadata.name}
    return replace(node, metadata=replace(node.metadata, labels=labels))


def _catalogue(case: _Line) -> Catalogue:
    options, limits = case.options, []
    if options.max_nodes_total is not None:
        current = len(case.nodes)
        reason = f"the cluster has {current} of at most {options.max_nodes_total} nodes"
        limits.append(PoolLimit(left=max(options.max_nodes_total - current, 0), reason=reason))
    if options.max_cores_total is not None:
        current = sum(_millicores(node) for node in case.nodes)
        reason = f"the cluster has {current // 1000} of at most {options.max_cores_total} cores"
        limits.append(PoolLimit(what="cpu", left=max(1000 * options.max_cores_total - current, 0), reason=reason))
    return Catalogue(pools=tuple(_pool(group, options) for group in case.node_groups), limits=tuple(limits))


def _millicores(node: Node) -> int:
    return milli((node.status.capacity or node.status.allocatable or {}).get("cpu", "0"))


def _pool(group: _Group, options: _Options) -> NodePool:
    node = with_defaults(group.template)
    node = _labelled(replace(node, metadata=replace(node.metadata, name=node.metadata.name or group.name)))
    labels = node.metadata.labels or {}
    offering = Offering(
        pool=group.name,
        instance_type=labels.get(_TYPE, ""),
        zone=labels.get(_ZONE, ""),
        price=nano_dollars(group.price),
        node=node,
    )
    reason = f"pool {group.name} has {group.size} of at most {group.max} nodes"
    limits = [PoolLimit(left=max(group.max - group.size, 0), reason=reason)]
    if options.max_nodes is not None:
        limits.append(
            PoolLimit(left=options.max_nodes, reason=f"at most {options.max_nodes} nodes are estimated at once")
        )
    return NodePool(
        name=group.name,
        offerings=(offering,),
        limits=tuple(limits),
        current=group.size,
        minimum=group.min,
        maximum=group.max,
    )


# The peer -------------------------------------------------------------------------------------------------------------


def _peer(case: _Line, expect: _Expect, counted: Sequence[bool], catalogue: Catalogue) -> PeerPurchase:
    offerings = {pool.name: pool.offerings[0] for pool in catalogue.pools}
    if expect.estimate is not None:
        (offering,) = offerings.values()
        nodes = expect.estimate.nodes
        cost = nodes * (offering.price or 0)
        return PeerPurchase(name=NAME, placed=expect.estimate.pods, cost=cost, nodes=nodes, bought=((offering, nodes),))
    pods = sum(listed.count for listed, counts in zip(case.pods, counted, strict=True) if counts)
    best, nodes = _best(expect)
    # Only the recorded run lists the expendable pods that it leaves; assume that other runs leave equally many.
    expendable = 0
    if expect.pending_after and not all(counted):
        last = expect.pending_after[-1]
        expendable = sum(left for left, counts in zip(last, counted, strict=True) if not counts)
    return PeerPurchase(
        name=NAME,
        placed=pods - (best.pending - expendable),
        cost=nano_dollars(round(best.cost_per_hour, 9)),
        nodes=nodes,
        bought=tuple((offerings[group], count) for group, count in sorted(expect.bought.items())),
    )


def _best(expect: _Expect) -> tuple[_Run, int]:
    """Return the run with the fewest pods left, then the lowest price, and the number of nodes that it bought.

    `ties` does not list every run, but `range` covers all runs. The lowest price of `range` is used only if every run
    leaves equally many pods: otherwise the number of pods that the cheapest run left is unknown.
    """
    best = min((expect, *expect.ties), key=lambda run: (run.pending, run.cost_per_hour))
    all_runs = expect.range
    if (
        all_runs is not None
        and all_runs.pending[0] == all_runs.pending[1]
        and all_runs.cost_per_hour[0] < best.cost_per_hour
    ):
        return _Run(cost_per_hour=all_runs.cost_per_hour[0], pending=best.pending), all_runs.nodes[0]
    return best, best.bought.total()
