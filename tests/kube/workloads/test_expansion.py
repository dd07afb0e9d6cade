"""The pods that workloads create, and the pods that scaling adds and removes."""

import msgspec
import pytest

from tests.support import builders
from tests.support.builders import node, owner_reference
from tutti.exceptions import InputError
from tutti.kube.objects import KINDS, PersistentVolumeClaim
from tutti.kube.workloads.expansion import expand
from tutti.kube.workloads.owners import controller_of
from tutti.kube.workloads.scaling import removal_order, scale

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


def owned_pod(name, kind, owner, *, uid="", node="n", **fields):
    """Return a pod of a controller with this uid."""
    return builders.pod(name, namespace="shop", on=node, owner=owner_reference(kind, owner, uid=uid), **fields)


def names(pods):
    return [pod.metadata.name for pod in pods]


def test_a_deployment_creates_a_replica_set_that_owns_the_pods():
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


def test_a_deployment_with_a_replica_set_creates_no_other():
    deployment = workload("Deployment", replicas=3, uid="d")
    replica_set = workload("ReplicaSet", "web-1", uid="r", replicas=3, owner=reference("Deployment", "web", "d"))
    pods = [owned_pod(f"web-1-{i}", "ReplicaSet", "web-1", uid="r") for i in range(2)]
    made = expand([deployment, replica_set], pods=pods)
    assert made.replica_sets == []
    assert len(made.pods) == 1
    assert controller_of(made.pods[0]).uid == "r"


def test_a_new_deployment_overrides_the_replicas_of_a_stored_one():
    replica_set = workload("ReplicaSet", "web-1", uid="r", replicas=2, owner=reference("Deployment", "web", "d"))
    pods = [owned_pod(f"web-1-{i}", "ReplicaSet", "web-1", uid="r") for i in range(2)]
    made = expand([workload("Deployment", replicas=5), replica_set], pods=pods)
    assert len(made.pods) == 3
    assert [each.spec.replicas for each in made.replica_sets] == [5]


def test_a_replica_set_that_is_not_in_the_dump_is_known_from_its_pods():
    pods = [
        owned_pod(f"web-abc-{i}", "ReplicaSet", "web-abc", uid="r", labels={"pod-template-hash": "abc"})
        for i in range(2)
    ]
    made = expand([workload("Deployment", replicas=3)], pods=pods)
    assert len(made.pods) == 1
    assert (controller_of(made.pods[0]).name, controller_of(made.pods[0]).uid) == ("web-abc", "r")


def reference(kind, name, uid):
    return {"kind": kind, "name": name, "uid": uid, "controller": True}


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
def test_only_missing_pods_are_created_and_finished_pods_do_not_count(kind):
    pods = [
        owned_pod("a", kind, "web"),
        owned_pod("b", kind, "web", phase="Failed"),
        owned_pod("c", kind, "web", deleted="2024-01-01T00:00:00Z"),
        owned_pod("d", kind, "other"),
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
    existing_claim = PersistentVolumeClaim(
        metadata=msgspec.convert({"name": "data-db-2", "namespace": "shop"}, type(stateful.metadata))
    )
    made = expand([stateful], pods=[owned_pod("db-1", "StatefulSet", "db")], claims=[existing_claim])
    assert names(made.pods) == ["db-2", "db-3"]
    assert [claim.metadata.name for claim in made.claims] == ["data-db-3"]
    pod = made.pods[0]
    assert pod.metadata.labels["statefulset.kubernetes.io/pod-name"] == "db-2"
    assert pod.metadata.labels["apps.kubernetes.io/pod-index"] == "2"
    assert [volume.name for volume in pod.spec.volumes] == ["data", "tmp"]
    assert pod.spec.volumes[0].persistent_volume_claim.claim_name == "data-db-2"


def test_a_daemon_set_creates_one_pod_for_every_matching_node():
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
    made = expand([daemons], nodes=nodes, pods=[owned_pod("log-x", "DaemonSet", "log", node="a4")])
    bound = []
    for pod in made.pods:
        (required,) = pod.spec.affinity.node_affinity.required.node_selector_terms
        assert required.match_expressions is None
        bound += required.match_fields[0].values
        assert ("node.kubernetes.io/not-ready", None) in [(t.key, t.toleration_seconds) for t in pod.spec.tolerations]
    assert bound == ["a1", "a2"]
    assert (
        expand([daemons], nodes=nodes, pods=[*made.pods, owned_pod("log-x", "DaemonSet", "log", node="a4")]).pods == []
    )


def test_an_indexed_job_uses_the_lowest_free_indexes():
    job = workload(
        "Job",
        "train",
        completions=8,
        parallelism=4,
        completionMode="Indexed",
        status={"completedIndexes": "0-1,3", "succeeded": 3},
    )
    running = owned_pod("train-2-x", "Job", "train", annotations={"batch.kubernetes.io/job-completion-index": "2"})
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
def test_a_job_creates_the_parallel_pods_that_are_still_needed(spec, status, count):
    assert len(expand([workload("Job", status=status, **spec)]).pods) == count


def test_a_cron_job_runs_only_on_request():
    cron = workload("CronJob", "night", template=None, jobTemplate={"spec": {"parallelism": 2, "template": TEMPLATE}})
    assert expand([cron]).pods == []
    made = expand([cron], start_cron_jobs=True)
    assert len(made.pods) == 2
    assert controller_of(made.jobs[0]).name == "night"
    assert controller_of(made.pods[0]).name == made.jobs[0].metadata.name
    suspended = workload("CronJob", "night", template=None, suspend=True, jobTemplate={"spec": {"template": TEMPLATE}})
    assert expand([suspended], start_cron_jobs=True).pods == []


def test_new_pods_never_get_an_existing_name():
    first = expand([workload("ReplicaSet", replicas=2)]).pods
    again = expand([workload("ReplicaSet", replicas=4)], pods=first).pods
    assert len({*names(first), *names(again)}) == 4


def test_scaling_up_a_deployment_enlarges_its_current_replica_set():
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
    pods = [owned_pod(f"web-{i}-x", "ReplicaSet", f"web-{i}", uid=f"r{i}") for i in (9, 10)]
    change = scale(deployment, 5, pods=pods, replica_sets=[current, older])
    assert len(change.added) == 3
    assert {controller_of(pod).uid for pod in change.added} == {"r10"}
    assert change.removed == []
    assert [each.spec.replicas for each in change.objects] == [5, 4]


def test_pods_are_removed_in_the_order_of_the_controller():
    def one(name, **fields):
        return owned_pod(name, "ReplicaSet", "web", **({"created": "2024-01-01T00:00:00Z"} | fields))

    pods = [
        one("old", node="a"),
        one("newer", node="b", created="2024-02-01T00:00:00Z"),
        one("cheap", node="c", annotations={"controller.kubernetes.io/pod-deletion-cost": "-5"}),
        one("starting", node="d", phase="Pending"),
        one("waiting", node=None, phase="Pending"),
    ]
    assert names(removal_order(pods, pods)) == ["waiting", "starting", "cheap", "newer", "old"]
    doubled = [one("a", node="x", created="2020-01-01T00:00:00Z"), one("b", node="x"), one("c", node="y")]
    assert names(removal_order(doubled, doubled)) == ["b", "a", "c"]
    change = scale(workload("ReplicaSet", replicas=5), 3, pods=pods)
    assert (names(change.removed), change.added) == (["waiting", "starting"], [])


def test_scaling_down_a_stateful_set_removes_the_highest_ordinals():
    pods = [owned_pod(f"db-{i}", "StatefulSet", "db") for i in range(12)]
    change = scale(workload("StatefulSet", "db", replicas=12), 9, pods=pods)
    assert names(change.removed) == ["db-11", "db-10", "db-9"]
    assert names(scale(workload("StatefulSet", "db", replicas=12), 13, pods=pods).added) == ["db-12"]


def test_a_daemon_set_cannot_be_scaled():
    with pytest.raises(InputError, match="daemonset shop/log"):
        scale(workload("DaemonSet", "log"), 3, pods=[])


@pytest.mark.parametrize(
    ("kind", "fields", "message"),
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
def test_too_many_pods_are_refused_before_any_pod_is_created(kind, fields, message):
    with pytest.raises(InputError) as raised:
        expand([workload(kind, **fields)])
    assert str(raised.value).startswith(message)


def test_a_job_of_many_completions_creates_only_the_parallel_pods():
    fields = {"parallelism": 2, "completions": 2**31 - 1, "completionMode": "Indexed"}
    assert len(expand([workload("Job", **fields)]).pods) == 2
    assert len(expand([workload("Job", parallelism=2**31 - 1, completions=3)]).pods) == 3
