"""Readers of Karpenter's recorded purchases.

Contract: a line of a file is one case: node pools, instance types with prices, pending pods, optionally nodes with
running pods and daemon sets, and what Karpenter bought. Pods have the names of the recording: numbered over the whole
case, created in the same second, with uids in the same order. Where later passes bought more nodes (`settled`), the
peer's purchase is that after all passes; where runs vary, it is the cheapest one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from tutti.conformance.purchase_cases import PeerPurchase, PurchaseCase
from tutti.exceptions import InputError
from tutti.kube.admission.defaults import with_defaults
from tutti.kube.admission.pod_admission import Admission
from tutti.kube.objects import (
    DaemonSet,
    LabelSelector,
    LabelSelectorRequirement,
    Node,
    ObjectMeta,
    Pod,
    PodTemplate,
    Quantities,
    Taint,
    WorkloadSpec,
)
from tutti.market.instance_types import InstanceOffer, InstanceType
from tutti.market.money import nano_dollars
from tutti.market.offerings import Catalogue, NodePool, Offering
from tutti.market.pools.karpenter_offerings import karpenter_pool
from tutti.recommend.records.request import Request

_CREATED = "2026-01-01T00:00:00Z"


class KarpenterCase(NamedTuple):
    """A case, and the order in which Karpenter tries its pools."""

    case: PurchaseCase
    order: tuple[str, ...]


class _Camel(msgspec.Struct, frozen=True, rename="camel"):
    pass


class _Pool(_Camel, frozen=True):
    name: str
    weight: int = 0
    limits: Quantities | None = None
    requirements: tuple[LabelSelectorRequirement, ...] = ()
    taints: tuple[Taint, ...] = ()
    labels: dict[str, str] = {}


class _Offer(_Camel, frozen=True):
    zone: str
    capacity_type: str
    price: float


class _Type(_Camel, frozen=True):
    name: str
    capacity: Quantities
    overhead: Quantities = {}
    labels: dict[str, str] = {}
    offerings: tuple[_Offer, ...] = ()


class _Pods(_Camel, frozen=True):
    count: int
    pod: Pod


class _Daemon(_Camel, frozen=True):
    pod: Pod


class _Claim(_Camel, frozen=True):
    count: int
    node_pool: str
    instance_type: str
    zone: str
    capacity_type: str


class SettledPurchase(_Camel, frozen=True):
    """The purchase after all passes, where later passes bought more nodes."""

    nodes: int
    cost_per_hour: float
    unscheduled: dict[str, int] = {}


class _Expect(_Camel, frozen=True):
    nodes: int
    cost_per_hour: float
    cost_per_hour_min: float
    claims: tuple[_Claim, ...] = ()
    unscheduled: dict[str, int] = {}
    settled: SettledPurchase | None = None


class _Line(_Camel, frozen=True):
    node_pools: tuple[_Pool, ...]
    instance_types: tuple[_Type, ...]
    pods: tuple[_Pods, ...]
    expect: _Expect
    name: str = ""
    family: str = "?"
    nodes: tuple[Node, ...] = ()
    running: tuple[Pod, ...] = ()
    daemon_sets: tuple[_Daemon, ...] = ()


def read_karpenter_case(path: str, number: int, line: bytes) -> PurchaseCase:
    """Decode one line of a file, without the order of pools."""
    return read_karpenter(path, number, line).case


def read_karpenter(path: str, number: int, line: bytes) -> KarpenterCase:
    """Decode one line of a file, with the order in which Karpenter tries pools."""
    try:
        decoded = msgspec.json.decode(line, type=_Line)
    except msgspec.DecodeError as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from None
    try:
        pools = {pool.name: pool for pool in _pools(decoded)}
        request = Request(
            objects=(*_nodes(decoded), *_running(decoded), *_pending(decoded)),
            daemon_sets=tuple(_daemon_set(each.pod, place) for place, each in enumerate(decoded.daemon_sets)),
            catalogue=Catalogue(pools=tuple(pools.values())),
        )
        peer = _peer(decoded.expect, pools, sum(each.count for each in decoded.pods))
    except (InputError, ValueError) as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from None
    name = decoded.name or f"line {number}"
    case = PurchaseCase(name=name, family=decoded.family, request=request, peer=peer)
    by_name = sorted(decoded.node_pools, key=lambda pool: pool.name, reverse=True)
    return KarpenterCase(case, tuple(pool.name for pool in sorted(by_name, key=lambda pool: -pool.weight)))


def _pools(line: _Line) -> list[NodePool]:
    types = [
        InstanceType(
            name=each.name,
            capacity=each.capacity,
            overhead=each.overhead,
            labels=each.labels,
            offers=tuple(
                InstanceOffer(zone=offer.zone, capacity_type=offer.capacity_type, price=nano_dollars(offer.price))
                for offer in each.offerings
            ),
        )
        for each in line.instance_types
    ]
    return [
        karpenter_pool(
            name=pool.name,
            requirements=pool.requirements,
            labels=pool.labels,
            taints=pool.taints,
            limits=pool.limits,
            types=types,
            nodes=line.nodes,
        )
        for pool in line.node_pools
    ]


def _nodes(line: _Line) -> Iterable[Node]:
    for place, node in enumerate(line.nodes):
        yield with_defaults(replace(node, metadata=_stored(node.metadata, _uid(3, place))))


def _running(line: _Line) -> Iterable[Pod]:
    for place, pod in enumerate(line.running):
        name = pod.metadata.name or f"{pod.metadata.generate_name or ''}running-{place:05}"
        yield _named(_admitted(pod, phase="Running"), name, _uid(4, place))


def _pending(line: _Line) -> Iterable[Pod]:
    number = 0
    for each in line.pods:
        template = _admitted(each.pod, phase="Pending")
        for _ in range(each.count):
            yield _named(template, f"{each.pod.metadata.generate_name or ''}{number:05}", _uid(1, number))
            number += 1


def _admitted(pod: Pod, *, phase: str) -> Pod:
    return Admission().admit_pod(replace(with_defaults(pod), status=replace(pod.status, phase=phase)))


def _named(pod: Pod, name: str, uid: str) -> Pod:
    metadata = replace(pod.metadata, name=name, generate_name=None, namespace=pod.metadata.namespace or "default")
    return replace(pod, metadata=_stored(metadata, uid))


def _stored(metadata: ObjectMeta, uid: str) -> ObjectMeta:
    return replace(metadata, uid=uid, creation_timestamp=_CREATED)


def _uid(kind: int, number: int) -> str:
    return f"00000000-0000-0000-{kind:04}-{number:012}"


def _daemon_set(pod: Pod, place: int) -> DaemonSet:
    metadata = pod.metadata
    name = (metadata.generate_name or "").removesuffix("-") or metadata.name
    own = {"daemonset": name}
    template = PodTemplate(metadata=ObjectMeta(labels={**own, **(metadata.labels or {})}), spec=with_defaults(pod).spec)
    return DaemonSet(
        metadata=_stored(ObjectMeta(name=name, namespace=metadata.namespace or "kube-system"), _uid(2, place)),
        spec=WorkloadSpec(selector=LabelSelector(match_labels=own), template=template),
    )


def _peer(expect: _Expect, pools: Mapping[str, NodePool], pods: int) -> PeerPurchase:
    final: Any = expect.settled or expect
    cost = expect.settled.cost_per_hour if expect.settled is not None else expect.cost_per_hour_min
    bought = () if expect.settled is not None else tuple(_bought(each, pools) for each in expect.claims)
    return PeerPurchase(
        name="karpenter",
        placed=pods - sum(final.unscheduled.values()),
        cost=nano_dollars(cost),
        nodes=final.nodes,
        bought=bought,
    )


def _bought(claim: _Claim, pools: Mapping[str, NodePool]) -> tuple[Offering, int]:
    wanted = claim.instance_type, claim.zone, claim.capacity_type
    pool = pools.get(claim.node_pool)
    for offering in pool.offerings if pool is not None else ():
        if (offering.instance_type, offering.zone, offering.capacity_type) == wanted:
            return offering, claim.count
    raise ValueError(f"the answer buys {' '.join(wanted)}, which node pool {claim.node_pool} does not offer")
