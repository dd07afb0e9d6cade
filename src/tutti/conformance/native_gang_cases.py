"""Recorded arrivals of kube-scheduler's own gang scheduling: a cluster, an arriving gang, the native answer.

Contract: a case is one line with the objects of the cluster, the pods that arrive (a gang or a single pod), and what
kube-scheduler did: the node of each pod that it bound, and the pods that it evicted. `run_native_gang_case` asks
`engine.session` for the same arrival and compares numbers, because nodes and victims may differ among equals. Tutti's
answer is worse if it binds fewer of the arriving pods, evicts more pods, or binds fewer pods than the gang's minimum.
Running a case never raises: an exception becomes part of the outcome.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from tutti.cluster.cluster import Cluster
from tutti.engine.session.plan import Plan
from tutti.engine.session.schedule import schedule
from tutti.exceptions import InputError
from tutti.kube.admission.prepare import prepare
from tutti.kube.objects import Object
from tutti.kube.reading.loader import load_files
from tutti.kube.reading.parsed_file import ParsedFile, parse_file
from tutti.kube.reading.sources import Source


class GangAnswer(msgspec.Struct, frozen=True):
    """What a scheduler does for an arrival; pods are keys (namespace/name)."""

    bound: dict[str, str] = {}
    """By arriving pod that gets a node: the node."""
    evicted: tuple[str, ...] = ()


class NativeGangCase(msgspec.Struct, frozen=True):
    """One recorded arrival."""

    name: str
    family: str
    objects: tuple[Object, ...]
    """The cluster with the arriving pods."""
    arriving: tuple[str, ...]
    native: GangAnswer


class NativeGangOutcome(NamedTuple):
    """The result of one case: Tutti's answer and the native answer."""

    family: str
    case: str
    pods: int
    """The number of arriving pods."""
    native: GangAnswer
    tutti: GangAnswer = GangAnswer()
    partial: tuple[str, ...] = ()
    """Gangs of which Tutti binds some pods, but fewer than the minimum."""
    failed: str = ""

    @property
    def same(self) -> bool:
        """Whether both answers have the same pods on the same nodes, and the same victims."""
        return not self.failed and self.tutti == self.native

    @property
    def more_pods(self) -> bool:
        """Whether Tutti binds more of the arriving pods."""
        return len(self.tutti.bound) > len(self.native.bound)

    @property
    def fewer_victims(self) -> bool:
        """Whether Tutti evicts fewer pods."""
        return not self.failed and len(self.tutti.evicted) < len(self.native.evicted)

    @property
    def worse(self) -> bool:
        """Whether Tutti binds fewer of the arriving pods, evicts more pods, starts a partial gang, or fails."""
        return bool(
            self.failed
            or self.partial
            or len(self.tutti.bound) < len(self.native.bound)
            or len(self.tutti.evicted) > len(self.native.evicted)
        )

    @property
    def better(self) -> bool:
        """Whether Tutti binds more pods or evicts fewer, and is not worse."""
        return not self.worse and (self.more_pods or self.fewer_victims)


class _Line(msgspec.Struct, frozen=True):
    objects: msgspec.Raw
    arrives: msgspec.Raw
    expect: GangAnswer
    name: str = ""
    family: str = "?"


def read_native_gang_case(path: str, number: int, line: bytes) -> NativeGangCase:
    """Decode one line of a file; as in a dump of a cluster, objects of kinds that Tutti does not read are skipped."""
    try:
        return _native_gang_case(msgspec.json.decode(line, type=_Line), number)
    except (msgspec.DecodeError, InputError) as error:
        raise InputError(str(error), file=path, obj=f"line {number}") from None


def _native_gang_case(line: _Line, number: int) -> NativeGangCase:
    arriving_pods = load_files([_parsed("arrives", line.arrives)]).pods
    if not arriving_pods:
        raise InputError("no pod arrives: list the pods of the arriving gang", obj="arrives")
    for pod in arriving_pods:
        if pod.spec.node_name:
            raise InputError(f"pod {pod.key} has a node already", obj="arrives")
    snapshot = prepare(load_files([_parsed("objects", line.objects), _parsed("arrives", line.arrives)]))
    namespace, arriving = arriving_pods[0].metadata.namespace or "", tuple(pod.key for pod in arriving_pods)
    native = GangAnswer(
        {_pod_key(pod, namespace): node for pod, node in line.expect.bound.items()},
        tuple(sorted(_pod_key(pod, namespace) for pod in line.expect.evicted)),
    )
    present = {pod.key for pod in snapshot.pods}
    _refuse_unknown(sorted(native.bound.keys() - arriving), "bound", "does not arrive")
    _refuse_unknown(sorted(set(native.evicted) - (present - {*arriving})), "evicted", "is not in the cluster")
    return NativeGangCase(line.name or f"line {number}", line.family, tuple(snapshot.all_objects()), arriving, native)


def _parsed(field: str, text: msgspec.Raw) -> ParsedFile:
    return parse_file(Source(field, bytes(text)))


def _pod_key(name: str, namespace: str) -> str:
    """Return the key of a recorded pod; a recorded name without a namespace is in the arriving gang's."""
    return name if "/" in name else f"{namespace}/{name}"


def _refuse_unknown(pods: list[str], field: str, problem: str) -> None:
    if pods:
        raise InputError(f"pod {pods[0]} {problem}", obj="expect", field=field)


def run_native_gang_case(case: NativeGangCase) -> NativeGangOutcome:
    """Ask Tutti for the arrival of a case, and return both answers."""
    outcome = NativeGangOutcome(case.family, case.name, len(case.arriving), case.native)
    try:
        plan = plan_arrival(case)
    except Exception as error:  # other cases must run even if one fails
        return outcome._replace(failed=f"{type(error).__name__}: {error}")
    answer = GangAnswer(
        {each.pod: each.node for each in plan.binds if each.pod in case.arriving},
        tuple(sorted(each.pod for each in plan.evictions)),
    )
    partial = tuple(each.gang for each in plan.gangs if each.placed and not each.starts)
    return outcome._replace(tutti=answer, partial=partial)


def plan_arrival(case: NativeGangCase) -> Plan:
    """Return Tutti's plan for the arriving pods; other pending pods of the cluster are not tried."""
    return schedule(Cluster(case.objects), case.arriving)
