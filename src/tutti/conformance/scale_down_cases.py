"""Cluster Autoscaler's recorded scale-downs, read for its model.

Contract: one line of kind ``scale-down`` is one `RemovalCase`; `is_removal` tells a line that has such an answer. The
answers are what was recorded: first the run with nodes and pods in the file's own order; where runs vary, then each
distinct outcome of the runs with everything listed in random order. `conformance.removal_parts` compares.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from tutti.autoscalers.cluster_autoscaler.planner import cluster_autoscaler_down
from tutti.autoscalers.cluster_autoscaler.scaledown_records import (
    NodesToDelete,
    ScaleDownDecision,
    ScaleDownNodeGroup,
    ScaleDownOptions,
    UnremovableNode,
)
from tutti.exceptions import InputError
from tutti.kube.admission.defaults import with_defaults
from tutti.kube.admission.pod_admission import Admission
from tutti.kube.generated_names import made_uid
from tutti.kube.objects import Node, Object, Pod, PodDisruptionBudget
from tutti.kube.times import micros, timestamp
from tutti.market.planning_cluster import build_cluster

GROUP = "cluster-autoscaler/node-group"
_HOSTNAME = "kubernetes.io/hostname"
_USUAL_AGE = 10 * 60 * 1_000_000
"""Default pod age."""


class _Group(msgspec.Struct, frozen=True):
    name: str
    min: int = 0


class _Options(msgspec.Struct, frozen=True, rename="camel"):
    ignore_daemon_sets_utilization: bool = False


class _Kept(msgspec.Struct, frozen=True, rename="camel"):
    reason: str
    pod: str = ""
    pod_reason: str = ""
    prefiltered: bool = False


class _Batch(msgspec.Struct, frozen=True):
    empty: list[str] = []
    drain: list[str] = []


class _After(msgspec.Struct, frozen=True, rename="camel"):
    empty: list[str] = []
    drain: list[str] = []
    held: dict[str, str] = {}
    first_batch: _Batch = _Batch()


class _Answer(msgspec.Struct, frozen=True, rename="camel"):
    removable: list[str]
    unremovable: dict[str, _Kept]
    after_unneeded_time: _After
    utilization: dict[str, float] = {}


class _Expect(_Answer, frozen=True, rename="camel", kw_only=True):
    ties: tuple[_Answer, ...] = ()
    always: list[str] = []
    sometimes: list[str] = []
    removable_count: tuple[int, int] | None = None


class _Line(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    family: str
    kind: str
    now: str
    expect: _Expect
    node_groups: tuple[_Group, ...] = ()
    nodes: tuple[Node, ...] = ()
    running: tuple[Pod, ...] = ()
    pod_disruption_budgets: tuple[PodDisruptionBudget, ...] = ()
    missing_controllers: tuple[str, ...] = ()
    options: _Options = _Options()


class _Told(msgspec.Struct, frozen=True):
    removable: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Head(msgspec.Struct, frozen=True):
    kind: str = ""
    expect: _Told = _Told()


class RemovalCase(NamedTuple):
    """One recorded scale-down."""

    name: str
    family: str
    objects: tuple[Object, ...]
    groups: tuple[ScaleDownNodeGroup, ...]
    now: int
    gone: frozenset[str]
    ignore_daemons: bool
    answers: tuple[ScaleDownDecision, ...]
    """What was recorded, the run in the file's own order first."""
    always: frozenset[str] = frozenset()
    """Where runs vary: nodes that every run removed."""
    sometimes: frozenset[str] = frozenset()
    counts: tuple[int, int] | None = None
    """Where runs vary: the fewest and the most nodes that a run removed."""

    def run(self) -> ScaleDownDecision:
        """What the model makes of it."""
        options = ScaleDownOptions(ignore_daemons=self.ignore_daemons)
        cluster = build_cluster(self.objects)
        return cluster_autoscaler_down(cluster, self.groups, options=options, now=self.now, gone=self.gone)


def is_removal(line: bytes) -> bool:
    """Whether a line of Cluster Autoscaler's format is about a scale-down, and says what came of it."""
    try:
        head = msgspec.json.decode(line, type=_Head)
    except msgspec.DecodeError:
        return False
    return head.kind == "scale-down" and head.expect.removable is not msgspec.UNSET


def read_removal(path: str, number: int, line: bytes) -> RemovalCase:
    """Read one line of a file."""
    try:
        case = msgspec.json.decode(line, type=_Line)
        now = micros(case.now)
        return RemovalCase(
            name=case.name,
            family=case.family,
            objects=tuple(_objects(case, now)),
            groups=tuple(_groups(case)),
            now=now,
            gone=frozenset(case.missing_controllers),
            ignore_daemons=case.options.ignore_daemon_sets_utilization,
            answers=tuple(map(_removals, (case.expect, *case.expect.ties))),
            always=frozenset(case.expect.always),
            sometimes=frozenset(case.expect.sometimes),
            counts=case.expect.removable_count,
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from None


def _objects(case: _Line, now: int) -> Iterator[Object]:
    admission, born = Admission(), timestamp(now - _USUAL_AGE)
    for node in case.nodes:
        labels = {**(node.metadata.labels or {}), _HOSTNAME: node.metadata.name}
        yield with_defaults(replace(node, metadata=replace(node.metadata, labels=labels)))
    yield from case.pod_disruption_budgets
    for pod in case.running:
        metadata = pod.metadata
        told = {"uid": metadata.uid or made_uid(f"Pod/{pod.key}")}
        metadata = replace(metadata, **told, creation_timestamp=metadata.creation_timestamp or born)
        yield admission.admit_pod(replace(pod, metadata=metadata))


def _groups(case: _Line) -> Iterator[ScaleDownNodeGroup]:
    for group in case.node_groups:
        names = (
            node.metadata.name for node in case.nodes if (node.metadata.annotations or {}).get(GROUP) == group.name
        )
        yield ScaleDownNodeGroup(name=group.name, minimum=group.min, members=tuple(names))


def _removals(answer: _Answer) -> ScaleDownDecision:
    after = answer.after_unneeded_time
    return ScaleDownDecision(
        removable=tuple(answer.removable),
        kept={
            name: UnremovableNode(each.reason, each.pod, each.pod_reason, each.prefiltered)
            for name, each in answer.unremovable.items()
        },
        utilization=answer.utilization,
        deleted=NodesToDelete(
            empty=tuple(after.empty),
            drain=tuple(after.drain),
            held=after.held,
            first_empty=tuple(after.first_batch.empty),
            first_drain=tuple(after.first_batch.drain),
        ),
    )
