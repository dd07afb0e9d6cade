"""Jobs and CronJobs: pods that run to their end.

Contract: pure. A Job makes as many pods as may run at once and are still needed; pods that have succeeded, by its
status or by the pods in the dump, are not made again. Suspended and finished Jobs make none.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from tutti.kube.admission.defaults import default_job
from tutti.kube.generated_names import suffixed
from tutti.kube.objects import CronJob, Job, ObjectMeta, Pod
from tutti.kube.workloads.owners import OwnedPods, owner_reference, pod_from, uid_for
from tutti.kube.workloads.size_limits import check_size

INDEX = "batch.kubernetes.io/job-completion-index"
"""The label and annotation with a pod's number in an indexed Job."""
_LONGEST_PREFIX = 58


def job_pods(job: Job, owned: OwnedPods) -> list[Pod]:
    """The pods that a Job lacks."""
    job = default_job(job)
    if job.spec.suspend or _is_finished(job):
        return []
    active = owned.of(job)
    wanted = _wanted(job, len(active))
    check_size(job, wanted, "spec.parallelism")
    missing = wanted - len(active)
    indexed = job.spec.completion_mode == "Indexed"
    indexes = _free_indexes(job, active) if indexed else iter(range(max(missing, 0)))
    pods = []
    for _, index in zip(range(max(missing, 0)), indexes, strict=False):
        prefix = _indexed_prefix(job.metadata.name, index) if indexed else f"{job.metadata.name}-"
        mark = {INDEX: str(index)} if indexed else {}
        name = _free_name(job, owned, prefix=prefix, index=index)
        pods.append(pod_from(job.spec.template, job, name=name, labels={**_labels(job), **mark}, annotations=mark))
    return pods


def job_of(cron_job: CronJob) -> Job:
    """The Job of a CronJob's next run."""
    template = cron_job.spec.job_template
    metadata = ObjectMeta(
        name=f"{cron_job.metadata.name}-next",
        namespace=cron_job.metadata.namespace or "default",
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=[owner_reference(cron_job)],
    )
    job = Job(metadata=metadata, spec=template.spec)
    return replace(job, metadata=replace(metadata, uid=uid_for(job)))


def _wanted(job: Job, active: int) -> int:
    """How many pods should run now."""
    parallelism = job.spec.parallelism or 0
    succeeded = job.status.succeeded or 0
    if job.spec.completions is None:  # the first success ends such a job: what runs may run on
        return active if succeeded else parallelism
    return min(parallelism, max(job.spec.completions - succeeded, 0))


def _is_finished(job: Job) -> bool:
    ends = ("Complete", "Failed", "SuccessCriteriaMet", "FailureTarget")
    return any(condition.type in ends and condition.status == "True" for condition in job.status.conditions or ())


def _labels(job: Job) -> dict[str, str]:
    """Labels that mark the pods of one Job; labels of the template win."""
    uid = job.metadata.uid or uid_for(job)
    marks = {
        "job-name": job.metadata.name,
        "batch.kubernetes.io/job-name": job.metadata.name,
        "controller-uid": uid,
        "batch.kubernetes.io/controller-uid": uid,
    }
    return {**marks, **(job.spec.template.metadata.labels or {})}


def _free_indexes(job: Job, active: list[Pod]) -> Iterator[int]:
    """Numbers that neither run nor are done, from the lowest on."""
    taken = {(pod.metadata.annotations or {}).get(INDEX) for pod in active}
    done = _ranges(job.status.completed_indexes) | _ranges(job.status.failed_indexes)
    return (each for each in range(job.spec.completions or 0) if each not in done and str(each) not in taken)


def _ranges(text: str | None) -> set[int]:
    """Numbers written as "0-2,5"."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        if first.isdigit():
            found.update(range(int(first), int(last if last.isdigit() else first) + 1))
    return found


def _indexed_prefix(name: str, index: int) -> str:
    tail = f"-{index}-"
    return name[: _LONGEST_PREFIX - len(tail)] + tail


def _free_name(job: Job, owned: OwnedPods, *, prefix: str, index: int) -> str:
    namespace = job.metadata.namespace or "default"
    attempt = 0
    while owned.taken(f"{namespace}/{(name := suffixed(prefix, f'{index}/{attempt}'))}"):
        attempt += 1
    return name
