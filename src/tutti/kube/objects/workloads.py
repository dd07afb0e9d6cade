"""Services and workloads (ReplicaSet, StatefulSet, Deployment, DaemonSet, Job, CronJob) as data."""

from __future__ import annotations

from tutti.kube.objects.meta import Count, KubeStruct, Object, ObjectMeta
from tutti.kube.objects.pod import Condition, PodTemplate
from tutti.kube.objects.selectors import LabelSelector
from tutti.kube.objects.storage import PersistentVolumeClaim


class ServiceSpec(KubeStruct, frozen=True):
    """The pod selector of a service."""

    selector: dict[str, str] | None = None


class Service(Object, frozen=True):
    """A service."""

    KIND = "Service"
    NAMESPACED = True
    spec: ServiceSpec = ServiceSpec()


class ControllerSpec(KubeStruct, frozen=True):
    """Replica count, selector and template of a ReplicationController."""

    replicas: Count | None = None
    selector: dict[str, str] | None = None
    template: PodTemplate | None = None


class ReplicationController(Object, frozen=True):
    """The predecessor of the ReplicaSet."""

    KIND = "ReplicationController"
    NAMESPACED = True
    spec: ControllerSpec = ControllerSpec()


class Ordinals(KubeStruct, frozen=True):
    """The first ordinal of a StatefulSet."""

    start: Count | None = None


class WorkloadSpec(KubeStruct, frozen=True):
    """Replica count, selector and template of a workload."""

    replicas: Count | None = None
    selector: LabelSelector | None = None
    template: PodTemplate = PodTemplate()
    volume_claim_templates: list[PersistentVolumeClaim] | None = None
    ordinals: Ordinals | None = None


class ReplicaSet(Object, frozen=True):
    """A number of equal pods."""

    KIND = "ReplicaSet"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class StatefulSet(Object, frozen=True):
    """Numbered pods, each with its own volume claims."""

    KIND = "StatefulSet"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class Deployment(Object, frozen=True):
    """A number of equal pods, managed through ReplicaSets."""

    KIND = "Deployment"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class DaemonSet(Object, frozen=True):
    """One pod on every matching node."""

    KIND = "DaemonSet"
    API_VERSION = "apps/v1"
    NAMESPACED = True
    spec: WorkloadSpec = WorkloadSpec()


class JobSpec(KubeStruct, frozen=True):
    """How many pods a Job runs, and their template."""

    parallelism: Count | None = None
    completions: Count | None = None
    completion_mode: str | None = None
    suspend: bool | None = None
    template: PodTemplate = PodTemplate()


class JobStatus(KubeStruct, frozen=True):
    """The succeeded and failed pods of a Job."""

    succeeded: int | None = None
    completed_indexes: str | None = None
    failed_indexes: str | None = None
    conditions: list[Condition] | None = None


class Job(Object, frozen=True):
    """Pods that run to completion."""

    KIND = "Job"
    API_VERSION = "batch/v1"
    NAMESPACED = True
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplate(KubeStruct, frozen=True):
    """The template from which a CronJob creates Jobs."""

    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(KubeStruct, frozen=True):
    """The Job template of a CronJob, and whether it is suspended."""

    suspend: bool | None = None
    job_template: JobTemplate = JobTemplate()


class CronJob(Object, frozen=True):
    """A Job that starts on a schedule."""

    KIND = "CronJob"
    API_VERSION = "batch/v1"
    NAMESPACED = True
    spec: CronJobSpec = CronJobSpec()
