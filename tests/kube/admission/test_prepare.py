"""Preparation of a loaded snapshot for the scheduler."""

import gzip
import json
from functools import partial

import msgspec
import pytest

from tests.support.documents import new_pod
from tests.support.paths import VECTORS
from tutti.exceptions import InputError
from tutti.kube.admission.prepare import prepare
from tutti.kube.objects import KINDS, Job, PersistentVolume, PersistentVolumeClaim, Pod, ReplicaSet
from tutti.kube.reading.snapshot import Snapshot, by_kind
from tutti.kube.resources import incoming_requests
from tutti.kube.workloads.owners import controller_of

VECTORS = VECTORS / "kube-scheduler-more.jsonl.gz"


def snapshot(*objects):
    typed = [msgspec.convert(obj, KINDS[obj["kind"]]) for obj in objects]
    return Snapshot(objects=by_kind(typed), present_kinds=frozenset(obj.KIND for obj in typed))


pod = partial(new_pod, namespace="shop")


def test_new_pods_are_admitted_and_stored_pods_are_not():
    stored = pod("stored", metadata={"uid": "1"}, schedulerName="default-scheduler", priorityClassName="gone")
    new = pod("new", containers=[{"name": "c", "resources": {"limits": {"cpu": "1"}}}])
    before = snapshot(stored, new, {"kind": "PriorityClass", "metadata": {"name": "x"}})
    after = prepare(before)
    assert after.pods[0] is before.pods[0]
    assert after.pods[1].spec.tolerations
    assert incoming_requests(after.pods[1]) == {"cpu": 1000}
    with pytest.raises(InputError, match='there is no PriorityClass "gone"'):
        prepare(snapshot(pod(priorityClassName="gone"), {"kind": "PriorityClass", "metadata": {"name": "x"}}))


def test_missing_kinds_names_an_absent_kind_once():
    after = prepare(snapshot(pod("a", priorityClassName="high"), pod("b", priorityClassName="high")))
    assert after.missing_kinds == {"PriorityClass"}


def test_workloads_create_pods_and_their_owners():
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}
    deployment = {
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    after = prepare(snapshot(deployment))
    (replica_set,) = after.objects_of(ReplicaSet)
    (prepared,) = after.objects["Deployment"]
    assert controller_of(replica_set).uid == prepared.metadata.uid
    assert {controller_of(each).uid for each in after.pods} == {replica_set.metadata.uid}
    assert all(each.spec.scheduler_name == "default-scheduler" for each in after.pods)
    assert after.notes == ("2 pods made for 1 workload",)
    assert prepare(after).pods == after.pods


def test_stored_workloads_create_pods_only_if_the_dump_has_none():
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}
    stored = {
        "kind": "ReplicaSet",
        "metadata": {"name": "web", "namespace": "shop", "uid": "r"},
        "spec": {"replicas": 3, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }
    assert len(prepare(snapshot(stored)).pods) == 3
    assert len(prepare(snapshot(stored, pod())).pods) == 1
    assert len(prepare(snapshot(stored, pod()), expand_stored=True).pods) == 4
    new = stored | {"metadata": {"name": "new", "namespace": "shop"}}
    assert len(prepare(snapshot(stored, new, pod())).pods) == 4


def test_a_pod_adds_the_claims_of_its_ephemeral_volumes():
    template = {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    storage = {
        "kind": "StorageClass",
        "metadata": {"name": "fast", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    }
    scratch = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
    after = prepare(snapshot(pod(volumes=[scratch]), storage))
    (claim,) = after.objects_of(PersistentVolumeClaim)
    assert claim.key == "shop/p-scratch"
    assert claim.spec.storage_class_name == "fast"
    assert controller_of(claim).uid == after.pods[0].metadata.uid


def test_a_new_volume_is_available():
    after = prepare(
        snapshot({"kind": "PersistentVolume", "metadata": {"name": "v"}, "spec": {"capacity": {"storage": "1Gi"}}})
    )
    assert after.objects_of(PersistentVolume)[0].status.phase == "Available"


def test_a_cron_job_runs_once_on_request():
    template = {"spec": {"containers": [{"name": "c"}]}}
    cron = {
        "kind": "CronJob",
        "metadata": {"name": "n", "namespace": "shop"},
        "spec": {"jobTemplate": {"spec": {"template": template}}},
    }
    assert prepare(snapshot(cron)).pods == []
    after = prepare(snapshot(cron), start_cron_jobs=True)
    assert (len(after.pods), len(after.objects_of(Job))) == (1, 1)


def test_a_second_admission_does_not_change_an_admitted_pod():
    """The pods of the vectors are admitted by an API server's own code, so a second admission changes nothing."""
    with gzip.open(VECTORS) as lines:
        cases = [
            json.loads(line) for line in lines if b'"pod-resources"' in line[:200] or b'"spread-policies"' in line[:200]
        ]
    assert cases
    for case in cases[:20]:
        for tree in case["pending"]:
            before = msgspec.convert(tree | {"kind": "Pod"}, Pod)
            bare = msgspec.structs.replace(
                before,
                metadata=msgspec.structs.replace(before.metadata, uid=None, creation_timestamp=None),
                status=type(before.status)(),
            )
            (after,) = prepare(Snapshot(objects={"Pod": [bare]}, present_kinds=frozenset(["Pod"]))).pods
            assert incoming_requests(after) == incoming_requests(before)
            assert after.spec.topology_spread_constraints == before.spec.topology_spread_constraints
            assert after.spec.affinity == before.spec.affinity
