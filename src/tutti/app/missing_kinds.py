"""Notes about kinds that the input lacks and that could change the answer, one line for each kind.

Contract: pure. `missing_kinds` checks which kinds affect the given pods and evictions, and returns a line for each of
those kinds without an object in the input. kubectl prints nothing for an empty list, so a line says that there are no
such objects, not that the user forgot to dump them.
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
    """Return a line for each missing kind that affects these pods or evictions."""
    considered = list(pods)
    candidates = (*_for_new_pods(snapshot), *_for_spreading(considered), *_for_volumes(snapshot, considered))
    reason_by_kind: dict[type[Object], str] = {}
    for kind, why in candidates:
        reason_by_kind.setdefault(kind, why)
    if evictions:
        reason_by_kind[PodDisruptionBudget] = f"{_count_text(evictions, 'eviction')} may break budgets"
    return [
        f"there are no {kind.KIND}{'es' if kind.KIND.endswith('s') else 's'} in the input: {why}"
        for kind, why in reason_by_kind.items()
        if not snapshot.objects_of(kind) and kind.KIND not in snapshot.present_kinds
    ]


def missing_kinds_of_pending(snapshot: Snapshot) -> list[str]:
    """Return a line for each missing kind that affects the pending pods that the default scheduler tries."""
    profile = Profile.default()
    return missing_kinds(
        snapshot, [pod for pod in snapshot.pods if is_pending(pod) and not_considered(pod, profile) is None]
    )


_MissingKind = tuple[type[Object], str]


def _for_new_pods(snapshot: Snapshot) -> Iterator[_MissingKind]:
    """Yield the kinds that the admission of new pods needs."""
    if PriorityClass.KIND in snapshot.missing_kinds:
        yield PriorityClass, "new pods that name one have the priority they state themselves, or 0"
    if RuntimeClass.KIND in snapshot.missing_kinds:
        yield RuntimeClass, "new pods that name one have no overhead and no node selector from it"


def _for_spreading(pods: list[Pod]) -> Iterator[_MissingKind]:
    """Yield the kinds that the default topology spreading and the namespace selectors of pods need."""
    unconstrained = [pod for pod in pods if not pod.spec.topology_spread_constraints]
    owners = [owner.kind for pod in unconstrained if (owner := controller_of(pod)) is not None]
    for kind in _OWNERS:
        if count := owners.count(kind.KIND):
            yield kind, f"{_count_text(count, 'pod')} of such owners may be spread differently"
    if count := sum(bool(pod.metadata.labels) for pod in unconstrained):
        yield Service, f"{_count_text(count, 'pod')} may be spread differently"
    if count := sum(any(term.namespace_selector for term in _terms(pod)) for pod in pods):
        yield Namespace, f"{_count_text(count, 'pod')} {'selects' if count == 1 else 'select'} namespaces by label"


def _for_volumes(snapshot: Snapshot, pods: list[Pod]) -> Iterator[_MissingKind]:
    """Yield the kinds that the volume claims of pods need."""
    known = KnownVolumes(snapshot)
    pods_by_kind = Counter(kind for pod in pods for kind in set(known.missing_kinds(pod)))
    for kind, count in pods_by_kind.items():
        yield kind, f"{_count_text(count, 'pod')} placed without regard to some volumes"
    names = {claim_key(pod, volume) for pod in pods for volume in pod.spec.volumes or ()}
    claims = [claim for claim in snapshot.objects_of(PersistentVolumeClaim) if claim.key in names]
    if claims:
        yield CSINode, "the volume limits of nodes are unknown"
    if any(not claim.spec.volume_name for claim in claims):
        yield CSIDriver, "free storage for new volumes is not checked"


def _terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    affinity = pod.spec.affinity
    for part in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity is not None else ():
        if part is not None:
            yield from part.required or ()
            yield from (weighted.pod_affinity_term for weighted in part.preferred or ())


def _count_text(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
