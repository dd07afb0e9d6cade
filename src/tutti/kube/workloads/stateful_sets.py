"""StatefulSets: numbered pods, each with its own claims.

Contract: pure. All missing ordinals are made at once, although Kubernetes may wait for one pod before it makes the
next: what is asked here is where they would all go.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tutti.kube.generated_names import template_hash
from tutti.kube.objects import ClaimVolume, ObjectMeta, PersistentVolumeClaim, Pod, StatefulSet, Volume
from tutti.kube.workloads.owners import OwnedPods, pod_from
from tutti.kube.workloads.size_limits import check_size

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


def stateful_pods(workload: StatefulSet, owned: OwnedPods) -> tuple[list[Pod], list[PersistentVolumeClaim]]:
    """The pods that a StatefulSet lacks, and all the claims they use."""
    check_size(workload, workload.spec.replicas or 0, "spec.replicas")
    name, namespace = workload.metadata.name, workload.metadata.namespace or "default"
    revision = f"{name}-{template_hash(msgspec.json.encode(workload.spec.template))}"
    pods: list[Pod] = []
    claims: list[PersistentVolumeClaim] = []
    for ordinal in ordinals(workload):
        pod_name = f"{name}-{ordinal}"
        if owned.taken(f"{namespace}/{pod_name}"):
            continue
        own = _claims(workload, ordinal)
        claims += own.values()
        volumes = [
            Volume(name=each, persistent_volume_claim=ClaimVolume(claim_name=own[each].metadata.name)) for each in own
        ]
        template = workload.spec.template
        volumes += [volume for volume in template.spec.volumes or () if volume.name not in own]
        labels = {POD_NAME_LABEL: pod_name, INDEX_LABEL: str(ordinal), "controller-revision-hash": revision}
        spec = replace(template.spec, volumes=volumes) if own else template.spec
        pods.append(pod_from(template, workload, name=pod_name, labels=labels, spec=spec))
    return pods, claims


def ordinals(workload: StatefulSet) -> range:
    """The numbers that the pods should have."""
    start = (workload.spec.ordinals.start or 0) if workload.spec.ordinals is not None else 0
    return range(start, start + (1 if workload.spec.replicas is None else workload.spec.replicas))


def _claims(workload: StatefulSet, ordinal: int) -> dict[str, PersistentVolumeClaim]:
    """The claims of one pod, by the name of their volume."""
    selected = (workload.spec.selector.match_labels if workload.spec.selector is not None else None) or {}
    found = {}
    for template in workload.spec.volume_claim_templates or ():
        metadata = ObjectMeta(
            name=f"{template.metadata.name}-{workload.metadata.name}-{ordinal}",
            namespace=workload.metadata.namespace or "default",
            labels={**(template.metadata.labels or {}), **selected} or None,
            annotations=template.metadata.annotations,
        )
        found[template.metadata.name] = PersistentVolumeClaim(metadata=metadata, spec=template.spec)
    return found
