"""Readers of Cluster Autoscaler's recorded scale-downs.

Contract: one line of kind ``scale-down`` is one `ScaleDownCase`; `has_scale_down_answer` recognises such a line. The
first answer of a case is the run with nodes and pods in the file's own order; where runs vary, each distinct result of
the runs with nodes and pods in random order follows. `scale_down_parts` compares the model with them.
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
_DEFAULT_POD_AGE = 10 * 60 * 1_000_000
"""In microseconds."""


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


class _ExpectHead(msgspec.Struct, frozen=True):
    removable: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Head(msgspec.Struct, frozen=True):
    kind: str = ""
    expect: _ExpectHead = _ExpectHead()


class ScaleDownCase(NamedTuple):
    """One recorded scale-down."""

    name: str
    family: str
    objects: tuple[Object, ...]
    groups: tuple[ScaleDownNodeGroup, ...]
    now: int
    missing_controllers: frozenset[str]
    ignore_daemons: bool
    answers: tuple[ScaleDownDecision, ...]
    """The recorded decisions, first the run in the file's own order."""
    always: frozenset[str] = frozenset()
    """Where runs vary: the nodes that every run removed."""
    sometimes: frozenset[str] = frozenset()
    """Where runs vary: the nodes that some runs removed."""
    counts: tuple[int, int] | None = None
    """Where runs vary: the smallest and the largest number of nodes that a run removed."""

    def run(self) -> ScaleDownDecision:
        """Run the model on the case."""
        options = ScaleDownOptions(ignore_daemons=self.ignore_daemons)
        cluster = build_cluster(self.objects)
        return cluster_autoscaler_down(
            cluster, self.groups, options=options, now=self.now, missing_controllers=self.missing_controllers
        )


def has_scale_down_answer(line: bytes) -> bool:
    """Return whether a line of Cluster Autoscaler's format is a scale-down with a recorded answer."""
    try:
        head = msgspec.json.decode(line, type=_Head)
    except msgspec.DecodeError:
        return False
    return head.kind == "scale-down" and head.expect.removable is not msgspec.UNSET


def read_scale_down(path: str, number: int, line: bytes) -> ScaleDownCase:
    """Decode one line of a file."""
    try:
        case = msgspec.json.decode(line, type=_Line)
        now = micros(case.now)
        return ScaleDownCase(
            name=case.name,
            family=case.family,
            objects=tuple(_objects(case, now)),
            groups=tuple(_groups(case)),
            now=now,
            missing_controllers=frozenset(case.missing_controllers),
            ignore_daemons=case.options.ignore_daemon_sets_utilization,
            answers=tuple(map(_decision, (case.expect, *case.expect.ties))),
            always=frozenset(case.expect.always),
            sometimes=frozenset(case.expect.sometimes),
            counts=case.expect.removable_count,
        )
    except (msgspec.DecodeError, ValueError) as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from None


def _objects(case: _Line, now: int) -> Iterator[Object]:
    admission, default_creation = Admission(), timestamp(now - _DEFAULT_POD_AGE)
    for node in case.nodes:
        labels = {**(node.metadata.labels or {}), _HOSTNAME: node.metadata.name}
        yield with_defaults(replace(node, metadata=replace(node.metadata, labels=labels)))
    yield from case.pod_disruption_budgets
    for pod in case.running:
        metadata = pod.metadata
        uid, created = metadata.uid or made_uid(f"Pod/{pod.key}"), metadata.creation_timestamp or default_creation
        yield admission.admit_pod(replace(pod, metadata=replace(metadata, uid=uid, creation_timestamp=created)))


def _groups(case: _Line) -> Iterator[ScaleDownNodeGroup]:
    for group in case.node_groups:
        names = (
            node.metadata.name for node in case.nodes if (node.metadata.annotations or {}).get(GROUP) == group.name
        )
        yield ScaleDownNodeGroup(name=group.name, minimum=group.min, members=tuple(names))


def _decision(answer: _Answer) -> ScaleDownDecision:
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
