"""The text of gardener/scaling-advisor: its planner request, its snapshot, and its ScalingConstraint.

Contract: pure. `parse_planner` and `parse_constraint` give records or raise `InputError` with the path of the field.
Names may be in any case, as Go reads them and as older samples have them; unknown names are accepted; a null is an
absent field. `constraint_of` finds the constraint among Kubernetes objects, `constraint_beside` that of a document
which is no planner request. Documents begin without a byte order mark.
"""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

from tutti.exceptions import InputError
from tutti.kube.objects import (
    Affinity,
    Condition,
    CsiNodeSpec,
    LabelSelector,
    NodeSelector,
    ObjectReference,
    OwnerReference,
    PodResourceClaim,
    PriorityClass,
    Quantities,
    ResourceRequirements,
    RuntimeClass,
    StorageClass,
    Taint,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from tutti.kube.reading.sources import Source
from tutti.kube.reading.yaml_text import parse_yaml
from tutti.wire.case_folding import fault_at, fold, parse_json
from tutti.wire.document import first_level, is_planner

GROUP = "sa.gardener.cloud"
TIMEOUT = "AdviceGenerationTimeout"
_KINDS = ("ScalingConstraint", "ClusterScalingConstraint")
Nanos = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Size = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class _Text(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a planner request."""


_Some = TypeVar("_Some", bound=_Text)


class _Meta(_Text, frozen=True):
    """What every object of a snapshot begins with."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: list[OwnerReference] | None = None


class PodText(_Meta, frozen=True):
    """A pod, with the sum of what its containers ask for."""

    aggregated_requests: Quantities | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    overhead: Quantities | None = None
    node_name: str | None = None
    nominated_node_name: str | None = None
    scheduler_name: str | None = None
    priority_class_name: str | None = None
    preemption_policy: str | None = None
    runtime_class_name: str | None = None
    volumes: list[Volume] | None = None
    tolerations: list[Toleration] | None = None
    topology_spread_constraints: list[TopologySpreadConstraint] | None = None
    resource_claims: list[PodResourceClaim] | None = None
    priority: _Int32 | None = None


class NodeText(_Meta, frozen=True):
    """A node."""

    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    csi_node_spec: CsiNodeSpec | None = None
    instance_type: str | None = None
    taints: list[Taint] | None = None
    conditions: list[Condition] | None = None
    unschedulable: bool | None = None


class ClaimText(_Meta, frozen=True):
    """A volume claim."""

    access_modes: list[str] | None = None
    storage_class_name: str | None = None
    volume_name: str | None = None
    volume_mode: str | None = None
    resources: ResourceRequirements | None = None
    selector: LabelSelector | None = None
    phase: str | None = None


class VolumeText(_Meta, frozen=True):
    """A volume."""

    capacity: Quantities | None = None
    node_affinity: NodeSelector | None = None
    claim_ref: ObjectReference | None = None
    storage_class_name: str | None = None
    phase: str | None = None
    volume_mode: str | None = None
    access_modes: list[str] | None = None


class SnapshotText(_Text, frozen=True):
    """The cluster."""

    pods: list[PodText] | None = None
    nodes: list[NodeText] | None = None
    volumes: list[VolumeText] | None = msgspec.field(default=None, name="pvs")
    claims: list[ClaimText] | None = msgspec.field(default=None, name="pvcs")
    storage_classes: list[StorageClass] | None = None
    priority_classes: list[PriorityClass] | None = None
    runtime_classes: list[RuntimeClass] | None = None


class TemplateText(_Text, frozen=True):
    """A node of a pool, by its instance type."""

    name: str | None = None
    instance_type: str | None = None
    architecture: str | None = None
    capacity: Quantities | None = None
    kube_reserved: Quantities | None = msgspec.field(default=None, name="kubeReservedCapacity")
    system_reserved: Quantities | None = msgspec.field(default=None, name="systemReservedCapacity")
    priority: _Int32 | None = None
    max_volumes: _Size | None = None


class PoolText(_Text, frozen=True):
    """A pool."""

    name: str | None = None
    region: str | None = None
    availability_zones: list[str] | None = None
    labels: dict[str, str] | None = None
    taints: list[Taint] | None = None
    quota: Quantities | None = None
    priority: _Int32 | None = None
    min: _Size | None = None
    node_templates: list[TemplateText] | None = None


class ConstraintSpec(_Text, frozen=True):
    """What can be bought."""

    consumer_id: str | None = msgspec.field(default=None, name="consumerID")
    node_pools: list[PoolText] | None = None


class ConstraintText(_Text, frozen=True):
    """A ScalingConstraint."""

    metadata: _Meta = _Meta()
    spec: ConstraintSpec = ConstraintSpec()


class PlannerText(_Text, frozen=True):
    """A planner request."""

    id: str | None = None
    correlation_id: str | None = msgspec.field(default=None, name="correlationID")
    constraint: ConstraintText | None = None
    simulator_strategy: str | None = None
    scoring_strategy: str | None = None
    advice_generation_mode: str | None = None
    timeout: Nanos | None = msgspec.field(default=None, name=TIMEOUT)
    """In nanoseconds; 0 stands for none, as in Go."""
    snapshot: SnapshotText | None = None


def parse_planner(source: Source) -> PlannerText:
    """The records of a planner request."""
    return _converted(parse_json(source), PlannerText, source)


def parse_constraint(tree: Any, source: Source) -> ConstraintText:
    """The records of a ScalingConstraint."""
    return _converted(tree, ConstraintText, source)


def _converted(tree: Any, kind: type[_Some], source: Source) -> _Some:
    if not isinstance(tree, dict):
        raise InputError("want an object", file=source.name)
    folded = fold(tree, kind)
    try:
        return msgspec.convert(folded, kind)
    except msgspec.ValidationError as error:
        raise fault_at(error, source, tree=folded) from None


def constraint_beside(source: Source) -> Any | None:
    """The tree of the constraint among the objects of a document; None as well for a planner request."""
    names = first_level(source)
    return None if names is not None and is_planner(names) else constraint_of(source)


def constraint_of(source: Source) -> Any | None:
    """The tree of the ScalingConstraint among the Kubernetes objects of a document; None when there is none."""
    if GROUP.encode() not in source.data or b"ScalingConstraint" not in source.data:
        return None
    try:
        documents = _documents(source)
    except InputError:  # whoever reads the objects says what is wrong
        return None
    found = [tree for tree in documents if _is_constraint(tree)]
    if len(found) > 1:
        raise InputError("want one ScalingConstraint, not several", file=source.name)
    return found[0] if found else None


def _documents(source: Source) -> list[Any]:
    looks_like_json = source.data[:64].lstrip()[:1] in (b"{", b"[")
    try:
        trees = [parse_json(source)] if looks_like_json or source.is_json else list(parse_yaml(source))
    except InputError:
        if source.is_json or not looks_like_json:
            raise
        trees = list(parse_yaml(source))
    listed = [each for tree in trees for each in (tree if isinstance(tree, list) else [tree])]
    found = []
    for tree in listed:
        items = tree.get("items") if isinstance(tree, dict) else None
        found += items if isinstance(items, list) else [tree]
    return found


def _is_constraint(tree: Any) -> bool:
    if not isinstance(tree, dict) or tree.get("kind") not in _KINDS:
        return False
    return str(tree.get("apiVersion") or GROUP).partition("/")[0] == GROUP
