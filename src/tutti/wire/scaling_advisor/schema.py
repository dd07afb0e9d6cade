"""The schema of gardener/scaling-advisor: its planner request, its snapshot, and its ScalingConstraint.

Contract: pure. `parse_planner` and `parse_constraint` return records or raise `InputError` with the path of the field.
Names may be in any case, as in Go and in older samples; unknown names are ignored; a null is an absent field.
`find_constraint` finds the constraint among Kubernetes objects and decodes no other object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, NamedTuple, TypeVar

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
from tutti.kube.reading.parsed_file import ParsedFile, kind_and_version, parse_file
from tutti.kube.reading.sources import Source
from tutti.wire.case_folding import fault_at, fold, tree_of
from tutti.wire.wire_document import WireDocument

GROUP = "sa.gardener.cloud"
_KINDS = ("ScalingConstraint", "ClusterScalingConstraint")
_Nanos = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Size = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
_Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]


class _Text(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A part of a planner request."""


_Some = TypeVar("_Some", bound=_Text)


class _Meta(_Text, frozen=True):
    """The fields that all objects of a snapshot share."""

    name: str | None = None
    namespace: str | None = None
    uid: str | None = None
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None
    owner_references: list[OwnerReference] | None = None


class PlannerPodText(_Meta, frozen=True):
    """A pod, with the sum of its containers' requests."""

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


class PlannerNodeText(_Meta, frozen=True):
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


class PlannerSnapshotText(_Text, frozen=True):
    """The cluster."""

    pods: list[PlannerPodText] | None = None
    nodes: list[PlannerNodeText] | None = None
    volumes: list[VolumeText] | None = msgspec.field(default=None, name="pvs")
    claims: list[ClaimText] | None = msgspec.field(default=None, name="pvcs")
    storage_classes: list[StorageClass] | None = None
    priority_classes: list[PriorityClass] | None = None
    runtime_classes: list[RuntimeClass] | None = None


class ConstraintTemplateText(_Text, frozen=True):
    """A node template of a pool: an instance type and its size."""

    name: str | None = None
    instance_type: str | None = None
    architecture: str | None = None
    capacity: Quantities | None = None
    kube_reserved: Quantities | None = msgspec.field(default=None, name="kubeReservedCapacity")
    system_reserved: Quantities | None = msgspec.field(default=None, name="systemReservedCapacity")
    priority: _Int32 | None = None
    max_volumes: _Size | None = None


class ConstraintPoolText(_Text, frozen=True):
    """A pool."""

    name: str | None = None
    region: str | None = None
    availability_zones: list[str] | None = None
    labels: dict[str, str] | None = None
    taints: list[Taint] | None = None
    quota: Quantities | None = None
    priority: _Int32 | None = None
    min: _Size | None = None
    node_templates: list[ConstraintTemplateText] | None = None


class ConstraintSpec(_Text, frozen=True):
    """The pools of a constraint."""

    consumer_id: str | None = msgspec.field(default=None, name="consumerID")
    node_pools: list[ConstraintPoolText] | None = None


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
    timeout: _Nanos | None = msgspec.field(default=None, name="AdviceGenerationTimeout")
    """In nanoseconds; 0 means no timeout, as in Go."""
    snapshot: PlannerSnapshotText | None = None


def parse_planner(document: WireDocument) -> PlannerText:
    """Return the records of a planner request."""
    return _converted(tree_of(document), PlannerText, document.source)


def reference_of(text: PlannerText) -> PlannerText:
    """Return a planner request with only its ids, to which a response refers."""
    return PlannerText(id=text.id, correlation_id=text.correlation_id)


def parse_constraint(tree: Any, source: Source) -> ConstraintText:
    """Return the records of a ScalingConstraint."""
    return _converted(tree, ConstraintText, source)


def _converted(tree: Any, kind: type[_Some], source: Source) -> _Some:
    if not isinstance(tree, dict):
        raise InputError("want an object", file=source.name)
    folded = fold(tree, kind)
    try:
        return msgspec.convert(folded, kind)
    except msgspec.ValidationError as error:
        raise fault_at(error, source, tree=folded) from None


class ConstraintSearch(NamedTuple):
    """The result of a search for a ScalingConstraint: its tree, and the objects that were parsed to find it."""

    constraint: Any | None = None
    objects: ParsedFile | None = None


def find_constraint(source: Source, fields: Mapping[str, msgspec.Raw] | None = None) -> ConstraintSearch:
    """Find the ScalingConstraint among the Kubernetes objects of a document; several are an `InputError`.

    `fields` are the document's top-level fields, if the caller has parsed them.
    """
    if GROUP.encode() not in source.data or b"ScalingConstraint" not in source.data:
        return ConstraintSearch()
    try:
        objects = parse_file(source, fields)
        found = [*_constraints_in_json(objects), *filter(_is_constraint, _listed(objects.trees))]
    except InputError:  # the reader of the objects reports the error later
        objects = None
        found = [tree for tree in _listed(_decoded(source)) if _is_constraint(tree)]
    if len(found) > 1:
        raise InputError("want one ScalingConstraint, not several", file=source.name)
    return ConstraintSearch(found[0] if found else None, objects)


def _decoded(source: Source) -> list[Any]:
    """Return the tree of a JSON document that is not a valid list of objects, in a list; empty if it is malformed."""
    try:
        return [msgspec.json.decode(source.data)]
    except (msgspec.DecodeError, RecursionError):
        return []


def _constraints_in_json(objects: ParsedFile) -> Iterator[Any]:
    if len(objects.json) != 1:
        return
    header, text = objects.json[0]
    for item in [text] if header.items is None else header.items:
        try:
            kind, _ = kind_and_version(item)
            if kind in _KINDS and _is_constraint(tree := msgspec.json.decode(item)):
                yield tree
        except msgspec.DecodeError:  # the reader of the objects reports the error later
            continue


def _listed(trees: Iterable[Any]) -> Iterator[Any]:
    """Yield the objects of trees; a tree may be a list of objects."""
    for tree in trees:
        for each in tree if isinstance(tree, list) else [tree]:
            items = each.get("items") if isinstance(each, dict) else None
            yield from items if isinstance(items, list) else [each]


def _is_constraint(tree: Any) -> bool:
    if not isinstance(tree, dict) or tree.get("kind") not in _KINDS:
        return False
    return str(tree.get("apiVersion") or GROUP).partition("/")[0] == GROUP
