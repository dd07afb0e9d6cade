"""The daemons of a new node: DaemonSets, and DaemonSets inferred from pods.

Contract: pure. `daemon_sets_of` returns the DaemonSets of a snapshot, with admitted templates. Daemon pods without
their DaemonSet object, and static pods, give an inferred DaemonSet made from one of the pods. The pods do not show the
node affinity of their DaemonSet, so an inferred DaemonSet runs where its pods run: on all nodes where it could run, or
only on nodes with the labels that distinguish its nodes. `daemon_pods_for` returns the pods of a new node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from tutti.cluster.node_edits import belongs_to_node
from tutti.exceptions import InputError
from tutti.kube.admission.pod_admission import Admission
from tutti.kube.admission.prepare import admission_of
from tutti.kube.objects import (
    Affinity,
    DaemonSet,
    LabelSelectorRequirement,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
    Pod,
    PodSpec,
    PodTemplate,
    Toleration,
    WorkloadSpec,
)
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.workloads.daemon_sets import daemon_pods, daemon_tolerations, node_of
from tutti.kube.workloads.owners import OwnedPods, controller_of, is_active
from tutti.market.instance_types import ARCH, INSTANCE_TYPE, OS, ZONE
from tutti.market.pool_context import is_control_plane
from tutti.market.pool_labels import POOL_LABELS

_DISTINGUISHING_LABELS = (*POOL_LABELS, INSTANCE_TYPE, ARCH, OS, ZONE)
"""Labels that may distinguish the nodes of a daemon, the likeliest first."""
_DEFAULT_TOLERATIONS = daemon_tolerations(PodSpec(host_network=True))
_TOLERATE_ALL = Toleration(operator="Exists")


def daemon_sets_of(snapshot: Snapshot) -> tuple[DaemonSet, ...]:
    """Return the DaemonSets that new nodes run."""
    admission = admission_of(snapshot)
    declared = [_admitted(each, admission) for each in snapshot.objects_of(DaemonSet)]
    return (*declared, *inferred_daemon_sets(snapshot))


def inferred_daemon_sets(snapshot: Snapshot) -> list[DaemonSet]:
    """Return the DaemonSets inferred from pods, by namespace and name."""
    declared_keys = {each.key for each in snapshot.objects_of(DaemonSet)}
    pods_of_daemon: dict[str, list[Pod]] = {}
    workers = {node.metadata.name for node in snapshot.nodes if not is_control_plane(node)}
    for pod in snapshot.pods:
        if belongs_to_node(pod) and is_active(pod) and node_of(pod) in workers:
            key = f"{pod.metadata.namespace or 'default'}/{_daemon_name(pod)}"
            if key not in declared_keys:
                pods_of_daemon.setdefault(key, []).append(pod)
    return [_inferred_daemon_set(key, pods_of_daemon[key], nodes=snapshot.nodes) for key in sorted(pods_of_daemon)]


def daemon_pods_for(daemon_sets: Iterable[DaemonSet], node: Node) -> list[Pod]:
    """Return the DaemonSet pods that a new node runs from the start, bound to it."""
    no_pods = OwnedPods(())
    return [
        replace(pod, spec=replace(pod.spec, node_name=node.metadata.name))
        for each in daemon_sets
        for pod in daemon_pods(each, no_pods, nodes=[node])
    ]


def _admitted(daemon_set: DaemonSet, admission: Admission) -> DaemonSet:
    """Return the DaemonSet with the template that an API server admits: with a priority and limits."""
    template = daemon_set.spec.template
    metadata = ObjectMeta(name=daemon_set.metadata.name, namespace=daemon_set.metadata.namespace)
    try:
        spec = admission.admit_pod(Pod(metadata=metadata, spec=template.spec)).spec
    except InputError:  # the dump lacks a class; the pods exist all the same
        return daemon_set
    return replace(daemon_set, spec=replace(daemon_set.spec, template=replace(template, spec=spec)))


def _daemon_name(pod: Pod) -> str:
    """Return the name of a pod's daemon; the name of a static pod ends with its node's name."""
    owner = controller_of(pod)
    if owner is not None and owner.kind == "DaemonSet":
        return owner.name
    return pod.metadata.name.removesuffix(f"-{pod.spec.node_name}")


def _inferred_daemon_set(key: str, pods: Sequence[Pod], *, nodes: Sequence[Node]) -> DaemonSet:
    namespace, _, name = key.partition("/")
    pod = min(pods, key=lambda each: each.key)
    owner = controller_of(pod)
    spec = _template(pod.spec, is_static=owner is None or owner.kind != "DaemonSet")
    labels = {k: v for k, v in (pod.metadata.labels or {}).items() if k != "controller-revision-hash"}
    daemon_set = DaemonSet(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=owner.uid if owner is not None else None),
        spec=WorkloadSpec(template=PodTemplate(metadata=ObjectMeta(labels=labels or None), spec=spec)),
    )
    workers = [node for node in nodes if not is_control_plane(node)]
    daemon_nodes = {node_of(each) for each in pods}
    feasible_names = {node_of(each) for each in daemon_pods(daemon_set, OwnedPods(()), nodes=workers)}
    feasible_nodes = [node for node in workers if node.metadata.name in feasible_names]
    requirement = _distinguishing_requirement(
        [node for node in feasible_nodes if node.metadata.name in daemon_nodes],
        [node for node in feasible_nodes if node.metadata.name not in daemon_nodes],
    )
    if requirement is None:
        return daemon_set
    spec = replace(spec, affinity=_with_requirement(spec.affinity, requirement))
    return replace(daemon_set, spec=replace(daemon_set.spec, template=replace(daemon_set.spec.template, spec=spec)))


def _template(spec: PodSpec, *, is_static: bool) -> PodSpec:
    """Return a pod's spec without the fields that bind it to its node."""
    affinity = spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        affinity = replace(affinity, node_affinity=replace(affinity.node_affinity, required=None))
    tolerations = [each for each in spec.tolerations or () if each not in _DEFAULT_TOLERATIONS]
    if is_static:
        tolerations.append(_TOLERATE_ALL)
    return replace(spec, node_name=None, affinity=affinity, tolerations=tolerations or None)


def _distinguishing_requirement(
    daemon_nodes: Sequence[Node], others: Sequence[Node]
) -> LabelSelectorRequirement | None:
    """Return the requirement that distinguishes nodes with a daemon from nodes without; None if all nodes have it."""
    if not others or not daemon_nodes:
        return None
    best: LabelSelectorRequirement | None = None
    for key in _DISTINGUISHING_LABELS:
        values = {(node.metadata.labels or {}).get(key, "") for node in daemon_nodes}
        if "" in values:
            continue
        requirement = LabelSelectorRequirement(key=key, operator="In", values=sorted(values))
        if values.isdisjoint((node.metadata.labels or {}).get(key, "") for node in others):
            return requirement
        best = best or requirement
    return best


def _with_requirement(affinity: Affinity | None, requirement: LabelSelectorRequirement) -> Affinity:
    before = affinity or Affinity()
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[requirement])])
    return replace(before, node_affinity=replace(before.node_affinity or NodeAffinity(), required=required))
