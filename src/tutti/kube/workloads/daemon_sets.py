"""DaemonSets: one pod for every node that should run it.

Contract: pure. A node should run the pod if the template's node selector and required node affinity match the node and
the pod, with the default tolerations of daemon pods, tolerates the node's taints. The free resources of the node do not
matter here; the scheduler checks them. Each pod has a required node affinity to the name of its node, in place of the
template's required node affinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
from msgspec.structs import replace

from tutti.kube.generated_names import generated_name, hash_letters, template_hash
from tutti.kube.objects import (
    Affinity,
    DaemonSet,
    LabelSelectorRequirement,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Toleration,
)
from tutti.kube.selectors import NODE_NAME_FIELD, NodeTerm, parse_node_selector
from tutti.kube.taints import first_untolerated, with_toleration
from tutti.kube.workloads.owners import OwnedPods, pod_from_template

_DEFAULT_TOLERATIONS = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)
_HOST_NETWORK_TOLERATIONS = (("network-unavailable", "NoSchedule"),)


def daemon_pods(workload: DaemonSet, owned: OwnedPods, *, nodes: Sequence[Node]) -> list[Pod]:
    """Return the pods that a DaemonSet lacks on these nodes."""
    template = workload.spec.template
    tolerations = daemon_tolerations(template.spec)
    revision = {"controller-revision-hash": template_hash(msgspec.json.encode(template))}
    nodes_with_pod = {node_of(pod) for pod in owned.active_pods(workload)}
    terms = _required_terms(template.spec)
    pods = []
    for node in nodes:
        name = node.metadata.name
        if name in nodes_with_pod or not _should_run(template.spec, node, tolerations=tolerations, terms=terms):
            continue
        affinity = affinity_to_node(template.spec.affinity, name)
        spec = replace(template.spec, affinity=affinity, tolerations=tolerations)
        pods.append(
            pod_from_template(
                template, workload, name=_pod_name(workload, owned, node=name), labels=revision, spec=spec
            )
        )
    return pods


def daemon_tolerations(spec: PodSpec) -> list[Toleration]:
    """Return the template's tolerations and the default tolerations of daemon pods."""
    tolerations = list(spec.tolerations or ())
    for state, effect in _DEFAULT_TOLERATIONS + (_HOST_NETWORK_TOLERATIONS if spec.host_network else ()):
        toleration = Toleration(key=f"node.kubernetes.io/{state}", operator="Exists", effect=effect)
        tolerations = with_toleration(tolerations, toleration)
    return tolerations


def affinity_to_node(affinity: Affinity | None, node: str) -> Affinity:
    """Return the affinity with a required node affinity to a node's name, as daemon pods have it."""
    name_requirement = LabelSelectorRequirement(key=NODE_NAME_FIELD, operator="In", values=[node])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[name_requirement])])
    template = affinity or Affinity()
    return replace(template, node_affinity=replace(template.node_affinity or NodeAffinity(), required=required))


def node_of(pod: Pod) -> str | None:
    """Return the node that a daemon pod runs on, or that its node affinity names; None if there is none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = affinity.required if affinity is not None else None
    for term in (required.node_selector_terms if required is not None else None) or ():
        for requirement in term.match_fields or ():
            if requirement.key == NODE_NAME_FIELD and requirement.operator == "In" and requirement.values:
                return requirement.values[0]
    return None


def _required_terms(spec: PodSpec) -> tuple[NodeTerm, ...] | None:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    return parse_node_selector(affinity.required) if affinity is not None else None


def _should_run(
    spec: PodSpec, node: Node, *, tolerations: Iterable[Toleration], terms: Iterable[NodeTerm] | None
) -> bool:
    name, labels = node.metadata.name, node.metadata.labels or {}
    if spec.node_name and spec.node_name != name:
        return False
    if any(labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    if terms is not None and not any(term.matches(name, labels) for term in terms):
        return False
    return first_untolerated(node.spec.taints or (), tolerations) is None


def _pod_name(workload: DaemonSet, owned: OwnedPods, *, node: str) -> str:
    namespace = workload.metadata.namespace or "default"
    prefix = f"{workload.metadata.name}-"
    name = generated_name(prefix, node)
    while owned.has_pod(f"{namespace}/{name}"):
        name = generated_name(prefix, node + hash_letters(name, count=5))
    return name
