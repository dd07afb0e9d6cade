"""Services and workloads (ReplicaSet, StatefulSet, Deployment, DaemonSet, Job, CronJob) as data."""

from __future__ import annotations

from tutti.kube.objects.meta import Count, Object, ObjectMeta, Wire
from tutti.kube.objects.pod import Condition, PodTemplate
from tutti.kube.objects.selectors import LabelSelector
from tutti.kube.objects.storage import PersistentVolumeClaim


class ServiceSpec(Wire, frozen=True):
    """Which pods a service stands before."""

    selector: dict[str, str] | None = None


class Service(Object, frozen=True):
    """A service."""

    KIND = "Service"
    NAMESPACED = True
    spec: ServiceSpec = ServiceSpec()


class ControllerSpec(Wire, frozen=True):
    """A replication controller's selector and size."""

    replicas: Count | None = None
    selector: dict[str, str] | None = None
    template: PodTemplate | None = None


class ReplicationController(Object, frozen=True):
    """The oldest kind of replica set."""

    KIND = "ReplicationController"
    NAMESPACED = True
    spec: ControllerSpec = ControllerSpec()


class Ordinals(Wire, frozen=True):
    """Where a stateful set starts to count."""

    start: Count | None = None


class WorkloadSpec(Wire, frozen=True):
    """Selector, size and template of a workload."""

    replicas: Count | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    volume_claim_templates: list[PersistentVolumeClaim] | None = None
    ordinals: Ordinals | None = None


class ReplicaSet(Object, frozen=True):
    """Equal pods."""

    KIND = "ReplicaSet"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(Object, frozen=True):
    """Numbered pods with their own volumes."""

    KIND = "StatefulSet"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class Deployment(Object, frozen=True):
    """Equal pods, rolled out."""

    KIND = "Deployment"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class DaemonSet(Object, frozen=True):
    """A pod on every node."""

    KIND = "DaemonSet"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class JobSpec(Wire, frozen=True):
    """How many pods a job runs."""

    parallelism: Count | None = None
    completions: Count | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    template: PodTemplate = PodTemplate()


class JobStatus(Wire, frozen=True):
    """How far a job has come."""

    succeeded: int | None = None
    completed_indexes: str | None = None
    failed_indexes: str | None = None
    conditions: list[Condition] | None = None


class Job(Object, frozen=True):
    """Pods that run to their end."""

    KIND = "Job"
    API_VERSION = "batch/v1"
    NAMESPACED = True
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(Wire, frozen=True):
    """The job that a cron job makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Wire, frozen=True):
    """When a cron job runs, and what."""

    suspend: bool | None = None
    job_template: JobTemplate = JobTemplate()


class CronJob(Object, frozen=True):
    """A job that is started by the clock."""

    KIND = "CronJob"
    API_VERSION = "batch/v1"
    NAMESPACED = True
    spec: CronJobSpec = CronJobSpec()
