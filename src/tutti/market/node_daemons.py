"""The daemons of a new node: DaemonSets, and stand-ins for what only its pods tell of.

Contract: pure. `daemon_sets_of` gives the DaemonSets of a snapshot, their templates admitted like pods, and for daemons
whose pods are there without the object, and for static pods, a stand-in made from one of the pods. What a daemon's own
node affinity said cannot be seen in its pods, so a stand-in runs where its pods run: on all nodes that it could be on,
or else on those with the labels that tell its nodes from the others. `daemon_pods_for` gives the pods of a new node.
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

_TELLING = (*POOL_LABELS, INSTANCE_TYPE, ARCH, OS, ZONE)
"""Labels that can tell where a daemon runs, the likeliest first."""
_BORNE_BY_ALL = daemon_tolerations(PodSpec(host_network=True))
_EVERYTHING = Toleration(operator="Exists")


def daemon_sets_of(snapshot: Snapshot) -> tuple[DaemonSet, ...]:
    """The daemons that new nodes run."""
    admission = admission_of(snapshot)
    given = [_admitted(each, admission) for each in snapshot.of(DaemonSet)]
    return (*given, *inferred_daemon_sets(snapshot))


def inferred_daemon_sets(snapshot: Snapshot) -> list[DaemonSet]:
    """Daemons that only their pods tell of, by namespace and name."""
    known = {each.key for each in snapshot.of(DaemonSet)}
    found: dict[str, list[Pod]] = {}
    workers = {node.metadata.name for node in snapshot.nodes if not is_control_plane(node)}
    for pod in snapshot.pods:
        if belongs_to_node(pod) and is_active(pod) and node_of(pod) in workers:
            key = f"{pod.metadata.namespace or 'default'}/{_name(pod)}"
            if key not in known:
                found.setdefault(key, []).append(pod)
    return [_stand_in(key, found[key], nodes=snapshot.nodes) for key in sorted(found)]


def daemon_pods_for(daemon_sets: Iterable[DaemonSet], node: Node) -> list[Pod]:
    """The pods that a new node runs from the start, on it."""
    nobody = OwnedPods(())
    return [
        replace(pod, spec=replace(pod.spec, node_name=node.metadata.name))
        for each in daemon_sets
        for pod in daemon_pods(each, nobody, nodes=[node])
    ]


def _admitted(daemon_set: DaemonSet, admission: Admission) -> DaemonSet:
    """The DaemonSet with a template like the pods that an API server makes of it: with a priority and limits."""
    template = daemon_set.spec.template
    metadata = ObjectMeta(name=daemon_set.metadata.name, namespace=daemon_set.metadata.namespace)
    try:
        spec = admission.pod(Pod(metadata=metadata, spec=template.spec)).spec
    except InputError:  # a class that the dump lacks: its pods are there all the same
        return daemon_set
    return replace(daemon_set, spec=replace(daemon_set.spec, template=replace(template, spec=spec)))


def _name(pod: Pod) -> str:
    """The daemon that a pod is of; a static pod bears its node's name at its end."""
    owner = controller_of(pod)
    if owner is not None and owner.kind == "DaemonSet":
        return owner.name
    return pod.metadata.name.removesuffix(f"-{pod.spec.node_name}")


def _stand_in(key: str, pods: Sequence[Pod], *, nodes: Sequence[Node]) -> DaemonSet:
    namespace, _, name = key.partition("/")
    pod = min(pods, key=lambda each: each.key)
    owner = controller_of(pod)
    spec = _template(pod.spec, is_static=owner is None or owner.kind != "DaemonSet")
    labels = {k: v for k, v in (pod.metadata.labels or {}).items() if k != "controller-revision-hash"}
    made = DaemonSet(
        metadata=ObjectMeta(name=name, namespace=namespace, uid=owner.uid if owner is not None else None),
        spec=WorkloadSpec(template=PodTemplate(metadata=ObjectMeta(labels=labels or None), spec=spec)),
    )
    workers = [node for node in nodes if not is_control_plane(node)]
    served = {node_of(each) for each in pods}
    could = {node_of(each) for each in daemon_pods(made, OwnedPods(()), nodes=workers)}
    able = [node for node in workers if node.metadata.name in could]
    telling = _telling(
        [node for node in able if node.metadata.name in served],
        [node for node in able if node.metadata.name not in served],
    )
    if telling is None:
        return made
    spec = replace(spec, affinity=_selecting(spec.affinity, telling))
    return replace(made, spec=replace(made.spec, template=replace(made.spec.template, spec=spec)))


def _template(spec: PodSpec, *, is_static: bool) -> PodSpec:
    """A pod's spec without what binds it to its node."""
    affinity = spec.affinity
    if affinity is not None and affinity.node_affinity is not None:
        affinity = replace(affinity, node_affinity=replace(affinity.node_affinity, required=None))
    tolerations = [each for each in spec.tolerations or () if each not in _BORNE_BY_ALL]
    if is_static:
        tolerations.append(_EVERYTHING)
    return replace(spec, node_name=None, affinity=affinity, tolerations=tolerations or None)


def _telling(served: Sequence[Node], others: Sequence[Node]) -> LabelSelectorRequirement | None:
    """The condition that tells nodes with a daemon from those without; None when all have it."""
    if not others or not served:
        return None
    best: LabelSelectorRequirement | None = None
    for key in _TELLING:
        values = {(node.metadata.labels or {}).get(key, "") for node in served}
        if "" in values:
            continue
        condition = LabelSelectorRequirement(key=key, operator="In", values=sorted(values))
        if values.isdisjoint((node.metadata.labels or {}).get(key, "") for node in others):
            return condition
        best = best or condition
    return best


def _selecting(affinity: Affinity | None, condition: LabelSelectorRequirement) -> Affinity:
    before = affinity or Affinity()
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[condition])])
    return replace(before, node_affinity=replace(before.node_affinity or NodeAffinity(), required=required))
