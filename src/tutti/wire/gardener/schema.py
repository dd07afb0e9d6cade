"""The schema of Gardener's ClusterSnapshot: its records, and how they are decoded.

Contract: pure. `parse_snapshot` returns the records of a document or raises `InputError` with the path of the field.
Names are those of Go and Kubernetes, in any case; unknown names are ignored; a null is an absent field. A document with
the usual names is decoded once, directly into records, and `field_names` checks the names. The first unusual name, at
any depth, sends the whole document through a slower decoder that ignores the case of names.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, NamedTuple

import msgspec

from tutti.exceptions import InputError
from tutti.kube.objects import ObjectMeta, PodSpec, Quantities, Taint
from tutti.kube.reading.sources import Source
from tutti.wire.case_folding import fault_at, fold, malformed, tree_of
from tutti.wire.field_names import checker
from tutti.wire.wire_document import WireDocument

ZERO_TIME = "0001-01-01T00:00:00Z"
"""Go's text of a time that is not set."""
Size = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Status = Annotated[int, msgspec.Meta(ge=-2, le=1)]


class _Text(msgspec.Struct, frozen=True, kw_only=True, rename="pascal", forbid_unknown_fields=True, gc=False):
    """A part of a snapshot."""


class _Meta(_Text, frozen=True):
    """The fields that pools, pods and nodes share."""

    row_id: Any = msgspec.field(default=None, name="RowID")
    creation_timestamp: str | None = None
    snapshot_timestamp: Any = None
    name: str | None = None
    namespace: str | None = None
    deletion_timestamp: str | None = None
    hash: Any = None


class WorkerPoolText(_Meta, frozen=True):
    """A worker pool."""

    machine_type: str | None = None
    architecture: str | None = None
    minimum: Size | None = None
    maximum: Size | None = None
    max_surge: Any = None
    max_unavailable: Any = None
    zones: list[str] | None = None
    labels: dict[str, str] | None = None
    taints: list[Taint] | None = None


class GardenerPodText(_Meta, frozen=True):
    """A pod."""

    uid: str | None = msgspec.field(default=None, name="UID")
    node_name: str | None = None
    nominated_node_name: str | None = None
    labels: dict[str, str] | None = None
    requests: Quantities | None = None
    spec: PodSpec | None = None
    pod_schedule_status: Status | None = None
    pod_phase: str | None = None


class GardenerNodeText(_Meta, frozen=True):
    """A node."""

    provider_id: str | None = msgspec.field(default=None, name="ProviderID")
    allocatable_volumes: int | None = None
    labels: dict[str, str] | None = None
    taints: list[Taint] | None = None
    allocatable: Quantities | None = None
    capacity: Quantities | None = None


class PriorityClassText(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """A priority class: the Kubernetes object, with additional fields."""

    metadata: ObjectMeta = ObjectMeta()
    value: Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)] = 0
    global_default: bool | None = None
    preemption_policy: str | None = None


class GardenerTemplateText(_Text, frozen=True):
    """A template of new nodes."""

    name: str | None = None
    instance_type: str | None = None
    region: str | None = None
    zone: str | None = None
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    labels: dict[str, str] | None = None
    taints: list[Taint] | None = None
    hash: Any = None


class GroupText(_Text, frozen=True):
    """A node group: a pool in one zone."""

    name: str | None = None
    pool_name: str | None = None
    zone: str | None = None
    target_size: Size | None = None
    min_size: Size | None = None
    max_size: Size | None = None
    hash: Any = None


class RangeText(_Text, frozen=True):
    """The minimum and maximum size of a group."""

    min: Size | None = None
    max: Size | None = None


class SettingsText(_Text, frozen=True):
    """Settings of Cluster Autoscaler; durations are in nanoseconds."""

    snapshot_timestamp: Any = None
    expander: str | None = None
    node_groups_min_max: dict[str, RangeText] | None = None
    max_node_provision_time: int | None = None
    scan_interval: int | None = None
    new_pod_scale_up_delay: int | None = None
    max_graceful_termination_seconds: int | None = None
    max_empty_bulk_delete: int | None = None
    ignore_daemon_set_utilization: bool | None = None
    max_nodes_total: Size | None = None
    priorities: str | None = None
    hash: Any = None


class AutoscalerText(_Text, frozen=True):
    """The configuration of Cluster Autoscaler: node templates and node groups."""

    node_templates: dict[str, GardenerTemplateText] | None = None
    node_groups: dict[str, GroupText] | None = None
    existing_nodes: list[GardenerNodeText] | None = None
    settings: SettingsText | None = msgspec.field(default=None, name="CASettings")
    mode: str | None = None
    success_signal_path: Any = None
    error_signal_path: Any = None
    hash: Any = None


class GardenerSnapshotText(_Text, frozen=True):
    """The whole snapshot."""

    id: str | None = msgspec.field(default=None, name="ID")
    number: Any = None
    snapshot_time: str | None = None
    autoscaler: AutoscalerText | None = msgspec.field(default=None, name="AutoscalerConfig")
    worker_pools: list[WorkerPoolText] | None = None
    priority_classes: list[PriorityClassText] | None = None
    pods: list[GardenerPodText] | None = None
    nodes: list[GardenerNodeText] | None = None
    hash: Any = None


_DECODER = msgspec.json.Decoder(GardenerSnapshotText)


class _FieldDecoders(NamedTuple):
    """The decoders of one top-level field of a snapshot."""

    attribute: str
    value: msgspec.json.Decoder[Any]
    names: msgspec.json.Decoder[Any] | None
    """Builds no values: it raises at the first unusual name."""


@cache
def _field_decoders() -> dict[str, _FieldDecoders]:
    return {
        field.encode_name: _FieldDecoders(field.name, msgspec.json.Decoder(field.type), checker(field.type))
        for field in msgspec.structs.fields(GardenerSnapshotText)
    }


def parse_snapshot(document: WireDocument) -> GardenerSnapshotText:
    """Return the records of a document."""
    if document.fields is None:
        _refuse_malformed(document.source)
    else:
        try:
            if (text := _with_usual_names(document.fields)) is not None:
                return text
        except msgspec.ValidationError:  # an unusual name, a null, or an error that the slower decoder reports
            pass
        except (msgspec.DecodeError, RecursionError):
            _refuse_malformed(document.source)
    return _in_any_case(document)


def _refuse_malformed(source: Source) -> None:
    """Raise `InputError` with the line where text is not JSON."""
    try:
        _DECODER.decode(source.data)
    except msgspec.ValidationError:
        pass
    except msgspec.DecodeError as error:
        raise malformed(error, source) from None
    except RecursionError:
        raise InputError("it is nested too deeply", file=source.name) from None


def _with_usual_names(fields: Mapping[str, msgspec.Raw]) -> GardenerSnapshotText | None:
    """Return the records of a snapshot with the usual names; None if a top-level name is unusual."""
    decoders = _field_decoders()
    if not fields.keys() <= decoders.keys():
        return None
    values = {}
    for name, field in fields.items():
        decoder = decoders[name]
        values[decoder.attribute] = decoder.value.decode(field)
        if decoder.names is not None:
            decoder.names.decode(field)
    return GardenerSnapshotText(**values)


def _in_any_case(document: WireDocument) -> GardenerSnapshotText:
    source = document.source
    tree = tree_of(document)
    if not isinstance(tree, dict):
        raise InputError("want an object, a ClusterSnapshot", file=source.name)
    folded = fold(tree, GardenerSnapshotText)
    try:
        return msgspec.convert(folded, GardenerSnapshotText)
    except msgspec.ValidationError as error:
        raise fault_at(_placed(error, folded), source, tree=folded) from None


def _placed(error: msgspec.ValidationError, tree: dict[str, Any]) -> msgspec.ValidationError:
    """Return the error with the name of its template or group, which the decoder leaves out."""
    autoscaler = tree.get("AutoscalerConfig")
    if "[...]" not in str(error) or not isinstance(autoscaler, dict):
        return error
    settings = autoscaler.get("CASettings")
    ranges = settings.get("NodeGroupsMinMax") if isinstance(settings, dict) else None
    for path, mapping, kind in (
        ("AutoscalerConfig.NodeTemplates", autoscaler.get("NodeTemplates"), GardenerTemplateText),
        ("AutoscalerConfig.NodeGroups", autoscaler.get("NodeGroups"), GroupText),
        ("AutoscalerConfig.CASettings.NodeGroupsMinMax", ranges, RangeText),
    ):
        if f"$.{path}[...]" not in str(error) or not isinstance(mapping, dict):
            continue
        for name, each in mapping.items():
            try:
                msgspec.convert(each, kind)
            except msgspec.ValidationError as inner:
                message, at, rest = str(inner).partition(" - at `$")
                return msgspec.ValidationError(f"{message} - at `$.{path}.{name}{rest if at else '`'}")
    return error
