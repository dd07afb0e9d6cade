"""New nodes of Gardener's worker pools: from a node template, from an existing node, or from the price book.

Contract: pure. A node has the labels that every kubelet sets, by their new and old names; labels of the pool and of its
template take precedence. If a template has no allocatable, its capacity less Gardener's kubelet reservation is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from tutti.cluster.node_edits import new_node_like
from tutti.kube.objects import Node, Quantities, Taint
from tutti.market.instance_types import ARCH, INSTANCE_TYPE, OLD_KEYS, OS, REGION, ZONE, subtract, template_node
from tutti.market.pool_context import PoolContext
from tutti.market.pool_labels import best_example
from tutti.wire.gardener.schema import GardenerTemplateText, WorkerPoolText

POOL = "worker.gardener.cloud/pool"
_POOL_LABELS = (POOL, "worker_gardener_cloud_pool", "worker.gardener.cloud_pool")
"""Labels with the name of a node's pool; the first one that is set counts."""
_ZONE_LABELS = (
    ZONE, "topology.gke.io/zone", "topology.ebs.csi.aws.com/zone", "topology.disk.csi.azure.com/zone",
    "failure-domain.beta.kubernetes.io/zone",
)  # fmt: skip
_RESERVED: Quantities = {"cpu": "80m", "memory": "1Gi"}
"""The resources that Gardener's kubelets reserve."""
_PODS: Quantities = {"pods": "110"}


def pool_of(labels: Mapping[str, str] | None) -> str:
    """Return the pool that labels name; empty if they name no pool."""
    return next((labels[key] for key in _POOL_LABELS if labels.get(key)), "") if labels else ""


def zone_of(node: Node) -> str:
    """Return the zone of a node; empty if its labels name no zone."""
    labels = node.metadata.labels or {}
    return next((labels[key] for key in _ZONE_LABELS if labels.get(key)), "")


def _name(pool: WorkerPoolText, zone: str) -> str:
    return f"{pool.name}-{zone}" if zone else pool.name or ""


def _labels(pool: WorkerPoolText, *, kind: str, zone: str, region: str, arch: str = "amd64") -> dict[str, str]:
    """Return the labels that every node of a pool has, by their new and old names."""
    new = {ARCH: pool.architecture or arch, OS: "linux", INSTANCE_TYPE: kind, REGION: region, ZONE: zone}
    both = new | {old: new[key] for old, key in OLD_KEYS.items()} | (pool.labels or {})
    return {key: value for key, value in both.items() if value} | {POOL: pool.name or ""}


def _taints(*lists: Iterable[Taint] | None) -> list[Taint]:
    """Return the taints of several lists; of taints with the same key and effect, only the first."""
    found: dict[tuple[str, str], Taint] = {}
    for taint in (each for listed in lists for each in listed or ()):
        found.setdefault((taint.key, taint.effect), taint)
    return list(found.values())


def from_template(pool: WorkerPoolText, template: GardenerTemplateText, *, kind: str, zone: str, region: str) -> Node:
    """Return a node with the size, labels and taints of a template, in a zone of its pool."""
    labels = _labels(pool, kind=kind, zone=zone, region=region) | (template.labels or {})
    where = {key: zone for key in _ZONE_LABELS if zone and key in labels}
    capacity = template.capacity or template.allocatable or {}
    return template_node(
        _name(pool, zone),
        labels=labels | where,
        taints=_taints(template.taints, pool.taints),
        capacity=_PODS | capacity,
        allocatable=_PODS | (template.allocatable or subtract(capacity, _RESERVED)),
    )


def like_one_of(pool: WorkerPoolText, nodes: Sequence[Node], *, zone: str) -> Node:
    """Return a node like an existing node of the pool, in a zone of the pool."""
    example = best_example([node for node in nodes if zone_of(node) == zone] or nodes)
    labels = {key: zone if key in _ZONE_LABELS else value for key, value in (example.metadata.labels or {}).items()}
    moved = replace(example, metadata=replace(example.metadata, labels=labels, deletion_timestamp=None))
    return new_node_like(moved, _name(pool, zone))


def from_market(pool: WorkerPoolText, market: PoolContext, *, kind: str, zone: str, region: str) -> Node | None:
    """Return a node of a machine type in the price book; None if the price book does not have the type."""
    machine = market.machine(kind) if kind else None
    if machine is None:
        return None
    labels = _labels(pool, kind=kind, zone=zone, region=region, arch=machine.labels.get(ARCH, "amd64"))
    return template_node(
        _name(pool, zone),
        labels=machine.labels | labels,
        taints=pool.taints or (),
        capacity=machine.capacity,
        allocatable=machine.allocatable,
    )
