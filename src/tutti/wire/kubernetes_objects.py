"""Kubernetes objects in a document, as the snapshot that a request is made from.

Contract: pure. A document is read as `kube.loader` reads a file: sound, each object once, workloads with the pods that
they lack; volumes that nothing is known about are left out of the question.
"""

from __future__ import annotations

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.admission.pod_admission import is_stored
from tutti.kube.admission.prepare import prepare
from tutti.kube.admission.unknown_volumes import KnownVolumes
from tutti.kube.objects import CronJob, Object, Pod
from tutti.kube.reading.loader import load_sources
from tutti.kube.reading.snapshot import Snapshot
from tutti.kube.reading.sources import Source


def snapshot_of(source: Source) -> Snapshot:
    """The cluster that a document with Kubernetes objects shows, prepared."""
    snapshot = load_sources([source])
    new: list[Object] = [each for each in snapshot.of(CronJob) if not is_stored(each)]
    try:
        prepared = prepare(replace(snapshot, objects=snapshot.objects | {CronJob.KIND: new}), cron_jobs=True)
    except InputError as error:  # objects do not know their file any more
        raise InputError(error.problem, file=source.name, obj=error.obj, field=error.field) from None
    known = KnownVolumes(prepared)
    pods: list[Object] = [known.within(pod) for pod in prepared.pods]
    return replace(prepared, objects=prepared.objects | {Pod.KIND: pods})
