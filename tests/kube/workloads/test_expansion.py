"""Workloads and the pods they would make."""

import msgspec
import pytest

from tests.support import builders
from tests.support.builders import node, owner_reference
from tutti.exceptions import InputError
from tutti.kube.objects import KINDS, PersistentVolumeClaim
from tutti.kube.workloads.expansion import expand
from tutti.kube.workloads.owners import controller_of
from tutti.kube.workloads.scaling import going_first, scale

TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c"}]}}


def workload(kind, name="web", *, uid=None, status=None, owner=None, annotations=None, **spec):
    spec = {"template": TEMPLATE, "selector": {"matchLabels": {"app": "web"}}} | spec
    if kind in ("Job", "CronJob"):
        del spec["selector"]
    metadata = {"name": name, "namespace": "shop", "annotations": annotations}
    if uid:
        metadata |= {"uid": uid, "creationTimestamp": "2024-01-01T00:00:00Z"}
    if owner:
        metadata["ownerReferences"] = [owner]
    fields = {"metadata": metadata, "spec": spec} | ({"status": status} if status else {})
    return msgspec.convert(fields, KINDS[kind])


def owned(name, kind, owner, *, uid="", node="n", **how):
    """A pod of a controller that has this uid."""
    return builders.pod(name, namespace="shop", on=node, owner=owner_reference(kind, owner, uid=uid), **how)


def names(pods):
    return [pod.metadata.name for pod in pods]


def test_a_deployment_makes_a_replica_set_that_owns_the_pods():
    made = expand([workload("Deployment", replicas=3)])
    (replica_set,) = made.replica_sets
    digest = replica_set.metadata.labels["pod-template-hash"]
    assert replica_set.metadata.name == f"web-{digest}"
    assert controller_of(replica_set).kind == "Deployment"
    assert replica_set.spec.selector.match_labels == {"app": "web", "pod-template-hash": digest}
    assert len(set(names(made.pods))) == 3
    for pod in made.pods:
        owner = controller_of(pod)
        assert (owner.kind, owner.name, owner.uid) == ("ReplicaSet", f"web-{digest}", replica_set.metadata.uid)
        assert pod.metadata.labels == {"app": "web", "pod-template-hash": digest}
        assert pod.metadata.namespace == "shop"
    assert made == expand([workload("Deployment", replicas=3)])


def test_a_deployment_whose_replica_set_is_there_makes_no_other():
    deployment = workload("Deployment", replicas=3, uid="d")
    replica_set = workload("ReplicaSet", "web-1", uid="r", replicas=3, owner=reference("Deployment", "web", "d"))
    pods = [owned(f"web-1-{i}", "ReplicaSet", "web-1", uid="r") for i in range(2)]
    made = expand([deployment, replica_set], pods=pods)
    assert made.replica_sets == []
    assert len(made.pods) == 1
    assert controller_of(made.pods[0]).uid == "r"


def test_a_manifest_on_top_of_a_dump_asks_for_its_own_number():
    replica_set = workload("ReplicaSet", "web-1", uid="r", replicas=2, owner=reference("Deployment", "web", "d"))
    pods = [owned(f"web-1-{i}", "ReplicaSet", "web-1", uid="r") for i in range(2)]
    made = expand([workload("Deployment", replicas=5), replica_set], pods=pods)
    assert len(made.pods) == 3
    assert [each.spec.replicas for each in made.replica_sets] == [5]


def test_pods_tell_of_a_replica_set_that_is_not_in_the_dump():
    pods = [
        owned(f"web-abc-{i}", "ReplicaSet", "web-abc", uid="r", labels={"pod-template-hash": "abc"}) for i in range(2)
    ]
    made = expand([workload("Deployment", replicas=3)], pods=pods)
    assert len(made.pods) == 1
    assert (controller_of(made.pods[0]).name, controller_of(made.pods[0]).uid) == ("web-abc", "r")


def reference(kind, name, uid):
    return {"kind": kind, "name": name, "uid": uid, "controller": True}


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_only_missing_pods_are_made_and_finished_ones_do_not_count(kind):
    pods = [
        owned("a", kind, "web"),
        owned("b", kind, "web", phase="Failed"),
        owned("c", kind, "web", deleted="2024-01-01T00:00:00Z"),
        owned("d", kind, "other"),
    ]
    spec = {"selector": {"app": "web"}} if kind == "ReplicationController" else {}
    assert len(expand([workload(kind, replicas=3, **spec)], pods=pods).pods) == 2


def test_a_stateful_set_numbers_its_pods_and_claims():
    claim = {"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    spec = {"containers": [{"name": "c"}], "volumes": [{"name": "data"}, {"name": "tmp"}]}
    stateful = workload(
        "StatefulSet",
        "db",
        replicas=3,
        ordinals={"start": 1},
        volumeClaimTemplates=[claim],
        template=TEMPLATE | {"spec": spec},
    )
    there = PersistentVolumeClaim(
        metadata=msgspec.convert({"name": "data-db-2", "namespace": "shop"}, type(stateful.metadata))
    )
    made = expand([stateful], pods=[owned("db-1", "StatefulSet", "db")], claims=[there])
    assert names(made.pods) == ["db-2", "db-3"]
    assert [claim.metadata.name for claim in made.claims] == ["data-db-3"]
    pod = made.pods[0]
    assert pod.metadata.labels["statefulset.kubernetes.io/pod-name"] == "db-2"
    assert pod.metadata.labels["apps.kubernetes.io/pod-index"] == "2"
    assert [volume.name for volume in pod.spec.volumes] == ["data", "tmp"]
    assert pod.spec.volumes[0].persistent_volume_claim.claim_name == "data-db-2"


def test_a_daemon_set_makes_one_pod_for_every_node_that_should_run_it():
    a = {"labels": {"pool": "a"}}
    nodes = [
        node("a1", **a),
        node(
            "a2", **a, unschedulable=True, taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}]
        ),
        node("a3", **a, taints=[{"key": "gpu", "effect": "NoSchedule"}]),
        node("a4", **a),
        node("b1", labels={"pool": "b"}),
    ]
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["a"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    template = TEMPLATE | {"spec": {"containers": [{"name": "c"}], "affinity": affinity}}
    daemons = workload("DaemonSet", "log", template=template)
    made = expand([daemons], nodes=nodes, pods=[owned("log-x", "DaemonSet", "log", node="a4")])
    bound = []
    for pod in made.pods:
        (required,) = pod.spec.affinity.node_affinity.required.node_selector_terms
        assert required.match_expressions is None
        bound += required.match_fields[0].values
        assert ("node.kubernetes.io/not-ready", None) in [(t.key, t.toleration_seconds) for t in pod.spec.tolerations]
    assert bound == ["a1", "a2"]
    assert expand([daemons], nodes=nodes, pods=[*made.pods, owned("log-x", "DaemonSet", "log", node="a4")]).pods == []


def test_an_indexed_job_makes_the_lowest_free_indexes():
    job = workload(
        "Job",
        "train",
        completions=8,
        parallelism=4,
        completionMode="Indexed",
        status={"completedIndexes": "0-1,3", "succeeded": 3},
    )
    running = owned("train-2-x", "Job", "train", annotations={"batch.kubernetes.io/job-completion-index": "2"})
    pods = expand([job], pods=[running]).pods
    assert [pod.metadata.annotations["batch.kubernetes.io/job-completion-index"] for pod in pods] == ["4", "5", "6"]
    labels = pods[0].metadata.labels
    assert labels["job-name"] == labels["batch.kubernetes.io/job-name"] == "train"
    assert labels["controller-uid"] == controller_of(pods[0]).uid
    assert labels["batch.kubernetes.io/job-completion-index"] == "4"
    assert pods[0].metadata.name.startswith("train-4-")


@pytest.mark.parametrize(
    ("spec", "status", "count"),
    [
        ({}, None, 1),
        ({"parallelism": 3}, None, 3),
        ({"completions": 5}, None, 1),
        ({"completions": 2, "parallelism": 5}, None, 2),
        ({"completions": 5, "parallelism": 3}, {"succeeded": 4}, 1),
        ({"parallelism": 3}, {"succeeded": 1}, 0),
        ({"parallelism": 3, "suspend": True}, None, 0),
        ({"parallelism": 3}, {"conditions": [{"type": "Complete", "status": "True"}]}, 0),
    ],
)
def test_a_job_makes_what_runs_at_once_and_is_still_needed(spec, status, count):
    assert len(expand([workload("Job", status=status, **spec)]).pods) == count


def test_a_cron_job_runs_only_when_asked():
    cron = workload("CronJob", "night", template=None, jobTemplate={"spec": {"parallelism": 2, "template": TEMPLATE}})
    assert expand([cron]).pods == []
    made = expand([cron], cron_jobs=True)
    assert len(made.pods) == 2
    assert controller_of(made.jobs[0]).name == "night"
    assert controller_of(made.pods[0]).name == made.jobs[0].metadata.name
    suspended = workload("CronJob", "night", template=None, suspend=True, jobTemplate={"spec": {"template": TEMPLATE}})
    assert expand([suspended], cron_jobs=True).pods == []


def test_a_new_name_is_never_one_that_is_taken():
    first = expand([workload("ReplicaSet", replicas=2)]).pods
    again = expand([workload("ReplicaSet", replicas=4)], pods=first).pods
    assert len({*names(first), *names(again)}) == 4


def test_a_deployment_grows_by_its_current_replica_set():
    deployment = workload("Deployment", replicas=2, uid="d")
    older, current = (
        workload(
            "ReplicaSet",
            f"web-{i}",
            uid=f"r{i}",
            replicas=1,
            owner=reference("Deployment", "web", "d"),
            annotations={"deployment.kubernetes.io/revision": str(i)},
        )
        for i in (9, 10)
    )
    pods = [owned(f"web-{i}-x", "ReplicaSet", f"web-{i}", uid=f"r{i}") for i in (9, 10)]
    change = scale(deployment, 5, pods=pods, replica_sets=[current, older])
    assert len(change.added) == 3
    assert {controller_of(pod).uid for pod in change.added} == {"r10"}
    assert change.removed == []
    assert [each.spec.replicas for each in change.objects] == [5, 4]


def test_pods_go_in_the_order_of_their_controller():
    def one(name, **fields):
        return owned(name, "ReplicaSet", "web", **({"created": "2024-01-01T00:00:00Z"} | fields))

    pods = [
        one("old", node="a"),
        one("newer", node="b", created="2024-02-01T00:00:00Z"),
        one("cheap", node="c", annotations={"controller.kubernetes.io/pod-deletion-cost": "-5"}),
        one("starting", node="d", phase="Pending"),
        one("waiting", node=None, phase="Pending"),
    ]
    assert names(going_first(pods, pods)) == ["waiting", "starting", "cheap", "newer", "old"]
    doubled = [one("a", node="x", created="2020-01-01T00:00:00Z"), one("b", node="x"), one("c", node="y")]
    assert names(going_first(doubled, doubled)) == ["b", "a", "c"]
    change = scale(workload("ReplicaSet", replicas=5), 3, pods=pods)
    assert (names(change.removed), change.added) == (["waiting", "starting"], [])


def test_a_stateful_set_shrinks_from_the_highest_number():
    pods = [owned(f"db-{i}", "StatefulSet", "db") for i in range(12)]
    change = scale(workload("StatefulSet", "db", replicas=12), 9, pods=pods)
    assert names(change.removed) == ["db-11", "db-10", "db-9"]
    assert names(scale(workload("StatefulSet", "db", replicas=12), 13, pods=pods).added) == ["db-12"]


def test_what_has_no_size_cannot_be_scaled():
    with pytest.raises(InputError, match="daemonset shop/log"):
        scale(workload("DaemonSet", "log"), 3, pods=[])


@pytest.mark.parametrize(
    ("kind", "fields", "line"),
    [
        ("Deployment", {"replicas": 2_000_000_000}, "deployment shop/web: spec.replicas: 2000000000 is more than"),
        (
            "ReplicaSet",
            {"replicas": 500_001},
            "replicaset shop/web: spec.replicas: 500001 is more than the 500000 pods",
        ),
        ("StatefulSet", {"replicas": 2_000_000}, "statefulset shop/web: spec.replicas: 2000000 is more than"),
        ("Job", {"parallelism": 2**31 - 1, "completions": 2**31 - 1}, "job shop/web: spec.parallelism: 2147483647 is"),
    ],
)
def test_a_number_that_nobody_can_mean_is_refused_before_any_pod_is_made(kind, fields, line):
    with pytest.raises(InputError) as caught:
        expand([workload(kind, **fields)])
    assert str(caught.value).startswith(line)


def test_a_job_of_many_completions_makes_those_that_run_at_once():
    fields = {"parallelism": 2, "completions": 2**31 - 1, "completionMode": "Indexed"}
    assert len(expand([workload("Job", **fields)]).pods) == 2
    assert len(expand([workload("Job", parallelism=2**31 - 1, completions=3)]).pods) == 3
