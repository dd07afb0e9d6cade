"""`tutti dump`: what a dump contains, what it never contains, and that it answers as the cluster does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.cluster_api_server import ClusterApiServer, objects_of
from tests.support.command_line import Run
from tests.support.documents import Document, disruption_budget, karpenter_pool, manifest, node, pod, pod_group
from tests.support.paths import EXAMPLES
from tutti.kube.private_fields import LAST_APPLIED

Tutti = Callable[..., Run]
Serve = Callable[..., ClusterApiServer]
SECRET = "hunter2"
CONTAINER = {
    "name": "main",
    "image": "registry/app:1",
    "env": [{"name": "PASSWORD", "value": SECRET}, {"name": "S", "valueFrom": {"secretKeyRef": {"name": SECRET}}}],
    "envFrom": [{"secretRef": {"name": SECRET}}],
    "command": ["run", SECRET],
    "args": [f"--password={SECRET}"],
    "livenessProbe": {"exec": {"command": ["check", SECRET]}},
    "readinessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": SECRET}]}},
    "lifecycle": {"preStop": {"exec": {"command": [SECRET]}}},
    "resources": {"requests": {"cpu": "1"}},
}
SPEC = {"containers": [CONTAINER], "initContainers": [CONTAINER], "ephemeralContainers": [CONTAINER]}
PRIVATE = {"annotations": {LAST_APPLIED: SECRET, "kept": "yes"}, "managedFields": [{"manager": SECRET}]}


def with_secrets() -> list[Document]:
    """Return objects of all kinds that have containers, with secrets in every place."""
    template = {"metadata": {"labels": {"app": "w"}}, "spec": SPEC}
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "w"}}, "template": template}
    workloads = [
        manifest(kind, f"w-{kind.lower()}", namespace="default", uid=kind, **PRIVATE)
        | {"apiVersion": version, "spec": spec | ({"selector": {"app": "w"}} if version == "v1" else {})}
        for kind, version in (
            ("Deployment", "apps/v1"),
            ("ReplicaSet", "apps/v1"),
            ("StatefulSet", "apps/v1"),
            ("DaemonSet", "apps/v1"),
            ("Job", "batch/v1"),
            ("ReplicationController", "v1"),
        )
    ]
    cron_job = manifest("CronJob", "c", namespace="default", uid="c") | {
        "apiVersion": "batch/v1",
        "spec": {"schedule": "* * * * *", "jobTemplate": {"spec": {"template": template}}},
    }
    hidden = [
        manifest("Secret", SECRET, namespace="default") | {"data": {"password": SECRET}},
        manifest("ConfigMap", "c", namespace="default") | {"data": {"password": SECRET}},
    ]
    pods = [pod("p", metadata=PRIVATE), pod("q", on="a", metadata=PRIVATE)]
    for each in pods:
        each["spec"] |= SPEC
    return [node("a", cpu="8"), *pods, *workloads, cron_job, *hidden]


def test_a_dump_has_no_secrets(tutti: Tutti, serve: Serve) -> None:
    server = serve(*with_secrets())
    dump = tutti("dump")
    assert (dump.code, dump.err) == (0, "")
    assert SECRET not in dump.out
    assert not [path for path in server.paths if "secrets" in path or "configmaps" in path or "cronjobs" in path]
    (dumped,) = [each for each in dump.json["items"] if each["kind"] == "Pod" and each["metadata"]["name"] == "p"]
    assert dumped["metadata"]["annotations"] == {"kept": "yes"}
    container = {"name": "main", "image": "registry/app:1", "resources": {"requests": {"cpu": "1"}}}
    assert dumped["spec"]["containers"] == dumped["spec"]["initContainers"] == [container]


def test_the_form_of_a_dump(tutti: Tutti, serve: Serve) -> None:
    serve(node("a"), pod("p"), pod_group("g", 2))
    dump = tutti("dump")
    assert dump.json["apiVersion"] == "v1"
    assert dump.json["kind"] == "List"
    assert dump.out == tutti("dump").out
    assert dump.lines[0] == '{"apiVersion":"v1","kind":"List","metadata":{},"items":['
    items = [json.loads(line.rstrip(",")) for line in dump.lines[1:-1]]
    assert items == dump.json["items"]
    kinds = [(each["apiVersion"], each["kind"]) for each in items if not each["kind"].endswith("List")]
    assert kinds == [("v1", "Node"), ("scheduling.x-k8s.io/v1alpha1", "PodGroup"), ("v1", "Pod")]
    assert {"apiVersion": "v1", "kind": "ServiceList", "items": []} in items


EXAMPLE_CLUSTERS = (
    "getting-started/cluster.json",
    "recommend/cluster.json",
    "recommend/overgrown.json",
)
QUESTIONS = (
    "schedule",
    "schedule -o json",
    "schedule -o wide -A --no-preemption",
    "schedule -n batch",
    "recommend -o json --apply",
    "recommend --down --compare -o wide",
)


def same_answers(tutti: Tutti, *questions: str, dump: str) -> None:
    for question in questions:
        direct, from_dump = tutti(*question.split()), tutti(*question.split(), "-f", "-", stdin=dump)
        assert direct.code == 0, direct.err
        assert direct == from_dump
        assert direct.out or "No pending pods" in direct.err


@pytest.mark.parametrize("example", EXAMPLE_CLUSTERS)
def test_a_dump_answers_as_the_cluster_does(tutti: Tutti, serve: Serve, example: str) -> None:
    serve(*objects_of(EXAMPLES / example))
    same_answers(tutti, *QUESTIONS, dump=tutti("dump").out)


def test_a_dump_answers_as_the_cluster_does_with_secrets_and_workloads(tutti: Tutti, serve: Serve) -> None:
    zones = {"topology.kubernetes.io/zone": ["us-east-1a"]}
    pools = [karpenter_pool("general", {"karpenter.k8s.aws/instance-family": ["m6i"], **zones})]
    gang = [pod(f"g-{number}", cpu="6", labels={"scheduling.x-k8s.io/pod-group": "g"}) for number in range(2)]
    group = pod_group("g", 2, annotations={LAST_APPLIED: SECRET})
    limits = manifest("LimitRange", "l", namespace="default") | {
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"memory": "1Gi"}}]}
    }
    serve(*with_secrets(), *pools, *gang, group, limits, disruption_budget("w", 0))
    questions = (
        *QUESTIONS,
        "schedule --scale deployment/w-deployment=5 -o wide",
        "schedule --scale job/w-job=3 -o json",
        "explain pod/p -o json",
        "explain pod/q",
        "explain gang/g -o yaml",
    )
    same_answers(tutti, *questions, dump=tutti("dump").out)


def test_a_dump_that_fails_writes_nothing(tutti: Tutti, serve: Serve, tmp_path: Path) -> None:
    server = serve(node("a"), pod("p"))
    del server.lists["/api/v1/pods"]
    run = tutti("dump")
    assert (run.code, run.out) == (2, "")
    assert run.err == f"error: context test ({server.url}): the server has no Pods\n"
