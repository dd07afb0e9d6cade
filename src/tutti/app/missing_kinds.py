"""Kinds that the input lacks and that could have changed an answer, each named once.

Contract: pure. `missing_kinds` looks at the pods that were asked about and at what was done for them, and gives a line
for each kind of which there is no object. Empty lists leave no trace in what kubectl prints, so a line says that there
are none, not that they were forgotten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from tutti.engine.placement.profile import Profile
from tutti.engine.session.queue_order import not_considered
from tutti.kube.admission.unknown_volumes import KnownVolumes, claim_key
from tutti.kube.objects import (
    CSIDriver,
    CSINode,
    Namespace,
    Object,
    PersistentVolumeClaim,
    Pod,
    PodAffinityTerm,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    RuntimeClass,
    Service,
    StatefulSet,
)
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.workloads.owners import controller_of
from tutti.recommend.build_request import is_pending

_OWNERS: tuple[type[Object], ...] = (ReplicaSet, StatefulSet, ReplicationController)


def missing_kinds(snapshot: Snapshot, pods: Iterable[Pod], *, evictions: int = 0) -> list[str]:
    """A line for each kind that is missing and mattered."""
    asked = list(pods)
    found = (*_of_new_pods(snapshot), *_of_spreading(asked), *_of_volumes(snapshot, asked))
    wanted: dict[type[Object], str] = {}
    for kind, why in found:
        wanted.setdefault(kind, why)
    if evictions:
        wanted[PodDisruptionBudget] = f"{_counted(evictions, 'eviction')} may break budgets"
    return [
        f"there are no {kind.KIND}{'es' if kind.KIND.endswith('s') else 's'} in the input: {why}"
        for kind, why in wanted.items()
        if not snapshot.objects_of(kind) and kind.KIND not in snapshot.present_kinds
    ]


def missing_kinds_of_pending(snapshot: Snapshot) -> list[str]:
    """A line for each kind that mattered to the pending pods that a scheduler tries."""
    profile = Profile.default()
    return missing_kinds(
        snapshot, [pod for pod in snapshot.pods if is_pending(pod) and not_considered(pod, profile) is None]
    )


_Lack = tuple[type[Object], str]


def _of_new_pods(snapshot: Snapshot) -> Iterator[_Lack]:
    """What the admission of new pods asked for."""
    if PriorityClass.KIND in snapshot.missing_kinds:
        yield PriorityClass, "new pods that name one have the priority they state themselves, or 0"
    if RuntimeClass.KIND in snapshot.missing_kinds:
        yield RuntimeClass, "new pods that name one have no overhead and no node selector from it"


def _of_spreading(pods: list[Pod]) -> Iterator[_Lack]:
    """What the default spreading of pods without constraints of their own looks at, and namespace selectors."""
    free = [pod for pod in pods if not pod.spec.topology_spread_constraints]
    owners = [owner.kind for pod in free if (owner := controller_of(pod)) is not None]
    for kind in _OWNERS:
        if number := owners.count(kind.KIND):
            yield kind, f"{_counted(number, 'pod')} of such owners may be spread otherwise than here"
    if number := sum(bool(pod.metadata.labels) for pod in free):
        yield Service, f"{_counted(number, 'pod')} may be spread otherwise than here"
    if number := sum(any(term.namespace_selector for term in _terms(pod)) for pod in pods):
        yield Namespace, f"{_counted(number, 'pod')} select namespaces by label"


def _of_volumes(snapshot: Snapshot, pods: list[Pod]) -> Iterator[_Lack]:
    """What volume claims lead to."""
    known = KnownVolumes(snapshot)
    blind = Counter(kind for pod in pods for kind in set(known.missing_kinds(pod)))
    for kind, number in blind.items():
        yield kind, f"{_counted(number, 'pod')} placed without regard to some volumes"
    names = {claim_key(pod, volume) for pod in pods for volume in pod.spec.volumes or ()}
    claims = [claim for claim in snapshot.objects_of(PersistentVolumeClaim) if claim.key in names]
    if claims:
        yield CSINode, "how many volumes a node takes is not known"
    if any(not claim.spec.volume_name for claim in claims):
        yield CSIDriver, "whether there is room for new volumes is not looked at"


def _terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    affinity = pod.spec.affinity
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        if part is not None:
            yield from part.required or ()
            yield from (weighted.pod_affinity_term for weighted in part.preferred or ())


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
