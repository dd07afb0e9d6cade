"""StatefulSets: numbered pods, each with its own claims.

Contract: pure. All missing pods are created at once. Kubernetes may wait until a pod is ready before it creates the
next, but Tutti plans the placement of all of them.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from tutti.kube.generated_names import template_hash
from tutti.kube.objects import ClaimVolume, ObjectMeta, PersistentVolumeClaim, Pod, StatefulSet, Volume
from tutti.kube.workloads.owners import OwnedPods, pod_from_template
from tutti.kube.workloads.size_limits import check_size

POD_NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


def stateful_pods(workload: StatefulSet, owned: OwnedPods) -> tuple[list[Pod], list[PersistentVolumeClaim]]:
    """Return the pods that a StatefulSet lacks, and all claims of these pods."""
    check_size(workload, workload.spec.replicas or 0, "spec.replicas")
    name, namespace = workload.metadata.name, workload.metadata.namespace or "default"
    revision = f"{name}-{template_hash(msgspec.json.encode(workload.spec.template))}"
    pods: list[Pod] = []
    claims: list[PersistentVolumeClaim] = []
    for ordinal in ordinals(workload):
        pod_name = f"{name}-{ordinal}"
        if owned.has_pod(f"{namespace}/{pod_name}"):
            continue
        pod_claims = _claims(workload, ordinal)
        claims += pod_claims.values()
        volumes = [
            Volume(name=volume_name, persistent_volume_claim=ClaimVolume(claim_name=claim.metadata.name))
            for volume_name, claim in pod_claims.items()
        ]
        template = workload.spec.template
        volumes += [volume for volume in template.spec.volumes or () if volume.name not in pod_claims]
        labels = {POD_NAME_LABEL: pod_name, INDEX_LABEL: str(ordinal), "controller-revision-hash": revision}
        spec = replace(template.spec, volumes=volumes) if pod_claims else template.spec
        pods.append(pod_from_template(template, workload, name=pod_name, labels=labels, spec=spec))
    return pods, claims


def ordinals(workload: StatefulSet) -> range:
    """Return the ordinals of the StatefulSet's pods."""
    start = (workload.spec.ordinals.start or 0) if workload.spec.ordinals is not None else 0
    return range(start, start + (1 if workload.spec.replicas is None else workload.spec.replicas))


def _claims(workload: StatefulSet, ordinal: int) -> dict[str, PersistentVolumeClaim]:
    """Return the claims of one pod by volume name."""
    selector_labels = (workload.spec.selector.match_labels if workload.spec.selector is not None else None) or {}
    claims = {}
    for template in workload.spec.volume_claim_templates or ():
        metadata = ObjectMeta(
            name=f"{template.metadata.name}-{workload.metadata.name}-{ordinal}",
            namespace=workload.metadata.namespace or "default",
            labels={**(template.metadata.labels or {}), **selector_labels} or None,
            annotations=template.metadata.annotations,
        )
        claims[template.metadata.name] = PersistentVolumeClaim(metadata=metadata, spec=template.spec)
    return claims
