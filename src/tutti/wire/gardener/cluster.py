"""The cluster of a Gardener snapshot: its nodes, pods and priority classes as Kubernetes objects.

Contract: pure. Pods keep their namespaces and names; pods of kube-system count like all others. A pod is on the node
that it names. A pod that is committed to a node without naming the node is left out, and a note says so. Snapshots have
no owners of pods: controllers are guessed from labels and affinity (`guess_controllers`). A node that is being deleted
takes no more pods. Defaults of an API server are set; what an API server would reject raises `InputError` with the
object and the field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from tutti.cluster.node_edits import cordoned
from tutti.exceptions import InputError
from tutti.kube.admission.defaults import DEFAULT_SCHEDULER, default_pod
from tutti.kube.admission.pod_admission import Admission, is_stored
from tutti.kube.admission.unknown_volumes import KnownVolumes
from tutti.kube.generated_names import made_uid
from tutti.kube.objects import (
    Container,
    Node,
    NodeSpec,
    NodeStatus,
    Object,
    ObjectMeta,
    Pod,
    PodSpec,
    PodStatus,
    PriorityClass,
    ResourceRequirements,
    Volume,
)
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.validation import validate
from tutti.market.instance_types import HOSTNAME
from tutti.wire.gardener.schema import (
    ZERO_TIME,
    GardenerNodeText,
    GardenerPodText,
    GardenerSnapshotText,
    PriorityClassText,
)
from tutti.wire.guess_controllers import controllers_of

_Some = TypeVar("_Some", bound=Object)
_COMMITTED = 1
_NO_SPEC = PodSpec()
_NAMES = {
    "metadata.name": "Name",
    "metadata.creationTimestamp": "CreationTimestamp",
    "metadata.deletionTimestamp": "DeletionTimestamp",
    "status.allocatable": "Allocatable",
    "status.capacity": "Capacity",
    "spec.taints": "Taints",
    "spec.": "Spec.",
}
"""By field of Kubernetes objects: its name in a snapshot; longer names first."""
_OWN_SCHEDULER = "bin-packing-scheduler"
"""The scheduler of the recommender's own virtual cluster; its pods are pods of the default scheduler."""


def read_cluster(text: GardenerSnapshotText, *, file: str) -> Snapshot:
    """Return the prepared cluster of a snapshot."""
    existing = text.autoscaler.existing_nodes if text.autoscaler is not None else None
    nodes = _checked((_node(each) for each in text.nodes or existing or ()), file=file)
    classes = _checked((_priority_class(each) for each in text.priority_classes or ()), file=file)
    pods = _checked(_pods(text.pods or ()), file=file)
    admission = Admission(priority_classes=classes or None, runtime_classes=None)
    present = [Node.KIND, Pod.KIND] + ([PriorityClass.KIND] if classes else [])
    bare = Snapshot(present_kinds=frozenset(present))
    known = KnownVolumes(bare)
    ready: list[Object] = [_admitted(known.without_unknown_volumes(pod), admission, file=file) for pod in pods]
    objects: dict[str, list[Object]] = {PriorityClass.KIND: [*classes], Node.KIND: [*nodes], Pod.KIND: ready}
    return replace(bare, objects=objects, notes=(*_notes(text.pods or (), pods, nodes), *_volume_note(text)))


def _notes(texts: Sequence[GardenerPodText], pods: Sequence[Pod], nodes: Sequence[Node]) -> list[str]:
    notes = []
    if missing := len(texts) - len(pods):
        are, count = ("pod is", "counts") if missing == 1 else ("pods are", "count")
        notes.append(f"{missing} {are} committed to a node without naming it, and {count} nowhere")
    there = {node.metadata.name for node in nodes}
    if lost := sum(bool(pod.spec.node_name) and pod.spec.node_name not in there for pod in pods):
        are, count = ("pod is on a node that is", "counts") if lost == 1 else ("pods are on nodes that are", "count")
        notes.append(f"{lost} {are} not in the snapshot, and {count} nowhere")
    return notes


def _volume_note(text: GardenerSnapshotText) -> Iterator[str]:
    """Yield a note if pods have volume claims: a snapshot does not have the volumes of claims, nor their zones."""
    if any(volume.persistent_volume_claim is not None for pod in text.pods or () for volume in _volumes(pod)):
        existing = text.autoscaler.existing_nodes if text.autoscaler is not None else None
        counted = any(node.allocatable_volumes for node in text.nodes or existing or ())
        more = ", nor to AllocatableVolumes of nodes" if counted else ""
        yield f"the snapshot does not tell of volume claims: pods are placed without regard to them{more}"


def _volumes(text: GardenerPodText) -> Sequence[Volume]:
    return (text.spec.volumes or ()) if text.spec is not None else ()


def time_of(text: str | None) -> str | None:
    """Return a time; None if it is not set."""
    return None if not text or text == ZERO_TIME else text


# Objects --------------------------------------------------------------------------------------------------------------


def _node(text: GardenerNodeText) -> Node:
    name = text.name or ""
    leaving = time_of(text.deletion_timestamp)
    node = Node(
        metadata=ObjectMeta(
            name=name,
            uid=made_uid(f"Node/{name}"),
            labels={HOSTNAME: name} | (text.labels or {}),
            creation_timestamp=time_of(text.creation_timestamp),
            deletion_timestamp=leaving,
        ),
        spec=NodeSpec(taints=text.taints, provider_id=text.provider_id),
        status=NodeStatus(capacity=text.capacity, allocatable=text.allocatable or text.capacity),
    )
    return cordoned(node) if leaving is not None else node


def _priority_class(text: PriorityClassText) -> PriorityClass:
    metadata = replace(text.metadata, creation_timestamp=time_of(text.metadata.creation_timestamp))
    return PriorityClass(
        metadata=metadata,
        value=text.value,
        global_default=text.global_default,
        preemption_policy=text.preemption_policy,
    )


def _pods(texts: Iterable[GardenerPodText]) -> Iterator[Pod]:
    """Yield the pods that are pending or name their node."""
    for text in texts:
        spec = text.spec or _NO_SPEC
        node = text.node_name or spec.node_name or None
        if node is None and text.pod_schedule_status == _COMMITTED and not text.nominated_node_name:
            continue
        yield Pod(
            metadata=ObjectMeta(
                name=text.name or "",
                namespace=text.namespace or "default",
                uid=text.uid or None,
                labels=text.labels,
                creation_timestamp=time_of(text.creation_timestamp),
                deletion_timestamp=time_of(text.deletion_timestamp),
                owner_references=controllers_of(text.name or "", text.labels, spec),
            ),
            spec=_spec(text, spec, node),
            status=PodStatus(phase=text.pod_phase or None, nominated_node_name=text.nominated_node_name or None),
        )


def _spec(text: GardenerPodText, spec: PodSpec, node: str | None) -> PodSpec:
    """Return the spec with the node, the scheduler and the requests that the snapshot has outside of the spec."""
    changes: dict[str, Any] = {}
    if spec.node_name != node:
        changes["node_name"] = node
    if not spec.scheduler_name or spec.scheduler_name == _OWN_SCHEDULER:
        changes["scheduler_name"] = DEFAULT_SCHEDULER
    if text.requests and not any(_asks(each) for each in spec.containers or ()):
        first, *others = spec.containers or [Container(name="main")]
        changes["containers"] = [replace(first, resources=ResourceRequirements(requests=text.requests)), *others]
    return replace(spec, **changes) if changes else spec


def _asks(container: Container) -> bool:
    resources = container.resources
    return resources is not None and bool(resources.requests or resources.limits)


# Checks ---------------------------------------------------------------------------------------------------------------


def _checked(objects: Iterable[_Some], *, file: str) -> list[_Some]:
    """Validate objects, and return them without duplicates."""
    found: dict[str, _Some] = {}
    for place, obj in enumerate(objects):
        try:
            validate(obj)
        except InputError as error:
            called = obj.key if obj.metadata.name else f"{place + 1}"
            raise InputError(
                error.problem, file=file, obj=f"{obj.KIND.lower()} {called}", field=_field(obj, error.field)
            ) from None
        before = found.setdefault(obj.key, obj)
        if before is not obj and before != obj:
            problem = "defined twice, with different content"
            raise InputError(problem, file=file, obj=f"{obj.KIND.lower()} {obj.key}")
    return list(found.values())


def _field(obj: Object, field: str) -> str:
    """Return the name of an object's field in a snapshot."""
    if isinstance(obj, PriorityClass):
        return field
    for start, name in _NAMES.items():
        if field.startswith(start):
            return name + field.removeprefix(start)
    return field


def _admitted(pod: Pod, admission: Admission, *, file: str) -> Pod:
    """Return the pod as an API server would have stored it."""
    spec = pod.spec
    if is_stored(pod) and (spec.priority is not None or not spec.priority_class_name):
        return default_pod(pod)
    if not pod.metadata.uid:
        pod = replace(pod, metadata=replace(pod.metadata, uid=made_uid(f"Pod/{pod.key}")))
    try:
        return admission.admit_pod(pod)
    except InputError as error:
        raise InputError(error.problem, file=file, obj=error.obj, field=_field(pod, error.field)) from None
