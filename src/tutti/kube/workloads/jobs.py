"""Jobs and CronJobs: pods that run to completion.

Contract: pure. A Job creates as many pods as may run in parallel and are still needed; succeeded pods of its status are
not created again. Suspended and finished Jobs create no pod.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tutti.kube.admission.defaults import default_job
from tutti.kube.generated_names import generated_name
from tutti.kube.objects import CronJob, Job, ObjectMeta, Pod
from tutti.kube.workloads.owners import OwnedPods, owner_reference, placeholder_uid, pod_from_template
from tutti.kube.workloads.size_limits import check_size

INDEX = "batch.kubernetes.io/job-completion-index"
"""The label and annotation with the index of a pod of an indexed Job."""
_MAX_PREFIX_LENGTH = 58


def job_pods(job: Job, owned: OwnedPods) -> list[Pod]:
    """Return the pods that a Job lacks."""
    job = default_job(job)
    if job.spec.suspend or _is_finished(job):
        return []
    active = owned.active_pods(job)
    needed = _needed_pods(job, len(active))
    check_size(job, needed, "spec.parallelism")
    missing = needed - len(active)
    indexed = job.spec.completion_mode == "Indexed"
    indexes = _free_indexes(job, active) if indexed else iter(range(max(missing, 0)))
    pods = []
    for _, index in zip(range(max(missing, 0)), indexes, strict=False):
        prefix = _indexed_prefix(job.metadata.name, index) if indexed else f"{job.metadata.name}-"
        index_label = {INDEX: str(index)} if indexed else {}
        name = _free_name(job, owned, prefix=prefix, index=index)
        pods.append(
            pod_from_template(
                job.spec.template, job, name=name, labels={**_labels(job), **index_label}, annotations=index_label
            )
        )
    return pods


def next_job(cron_job: CronJob) -> Job:
    """Return the Job of a CronJob's next run."""
    template = cron_job.spec.job_template
    metadata = ObjectMeta(
        name=f"{cron_job.metadata.name}-next",
        namespace=cron_job.metadata.namespace or "default",
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=[owner_reference(cron_job)],
    )
    job = Job(metadata=metadata, spec=template.spec)
    return replace(job, metadata=replace(metadata, uid=placeholder_uid(job)))


def _needed_pods(job: Job, active: int) -> int:
    """Return how many pods should run now."""
    parallelism = job.spec.parallelism or 0
    succeeded = job.status.succeeded or 0
    if job.spec.completions is None:  # after the first success such a Job starts no pod; active pods continue
        return active if succeeded else parallelism
    return min(parallelism, max(job.spec.completions - succeeded, 0))


def _is_finished(job: Job) -> bool:
    final_conditions = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
    return any(
        condition.type in final_conditions and condition.status == "True" for condition in job.status.conditions or ()
    )


def _labels(job: Job) -> dict[str, str]:
    """Return the labels of the Job's pods; labels of the template win."""
    uid = job.metadata.uid or placeholder_uid(job)
    job_labels = {
        "job-name": job.metadata.name,
        "batch.kubernetes.io/job-name": job.metadata.name,
        "controller-uid": uid,
        "batch.kubernetes.io/controller-uid": uid,
    }
    return {**job_labels, **(job.spec.template.metadata.labels or {})}


def _free_indexes(job: Job, active: list[Pod]) -> Iterator[int]:
    """Yield the indexes that no active pod has and that are not finished, in ascending order."""
    active_indexes = {(pod.metadata.annotations or {}).get(INDEX) for pod in active}
    finished = _parse_ranges(job.status.completed_indexes) | _parse_ranges(job.status.failed_indexes)
    indexes = range(job.spec.completions or 0)
    return (index for index in indexes if index not in finished and str(index) not in active_indexes)


def _parse_ranges(text: str | None) -> set[int]:
    """Parse indexes such as "0-2,5"."""
    indexes: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            indexes.update(range(int(first), int(last if last.isdigit() else first) + 1))
    return indexes


def _indexed_prefix(name: str, index: int) -> str:
    tail = f"-{index}-"
    return name[: _MAX_PREFIX_LENGTH - len(tail)] + tail


def _free_name(job: Job, owned: OwnedPods, *, prefix: str, index: int) -> str:
    namespace = job.metadata.namespace or "default"
    attempt = 0
    while owned.has_pod(f"{namespace}/{(name := generated_name(prefix, f'{index}/{attempt}'))}"):
        attempt += 1
    return name
