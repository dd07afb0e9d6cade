"""Loading of files: every form that kubectl prints, and the errors for invalid files."""

import codecs
import gzip
import io
import json
import sys
import types
from functools import partial
from itertools import pairwise

import pytest

from tests.support.documents import manifest, new_pod
from tests.support.loading import load
from tutti.exceptions import InputError
from tutti.kube.objects import Deployment, Node, PodDisruptionBudget, Service


def web_pod(**fields):
    return new_pod("web-1", namespace="shop") | fields


node = partial(manifest, "Node")


def listed(*items, kind="List"):
    return {"apiVersion": "v1", "kind": kind, "items": list(items)}


@pytest.fixture
def write(tmp_path):
    def write_file(content, name="cluster.json"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        if isinstance(content, bytes):
            file.write_bytes(content)
        else:
            file.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(file)

    return write_file


def keys(snapshot):
    return [obj.key for objects in snapshot.objects.values() for obj in objects]


def without_kind(obj):
    return {key: value for key, value in obj.items() if key not in ("kind", "apiVersion")}


@pytest.mark.parametrize(
    "content",
    [
        listed(web_pod(), node("n1")),
        json.dumps(listed(web_pod(), node("n1")), indent=4),
        [web_pod(), node("n1")],
        json.dumps(web_pod()) + "\n" + json.dumps(node("n1")),
        {"items": [web_pod(), node("n1")]},
        "\ufeff" + json.dumps(listed(node("n1"), web_pod())),
    ],
)
def test_all_json_forms_of_objects(write, content):
    assert sorted(keys(load([write(content)]))) == ["n1", "shop/web-1"]


def test_items_of_a_typed_list_need_no_kind(write):
    content = json.dumps(listed(without_kind(web_pod()), kind="PodList")) + json.dumps(listed(kind="NodeList"))
    snapshot = load([write(content)])
    assert keys(snapshot) == ["shop/web-1"]
    assert snapshot.present_kinds == {"Pod", "Node"}
    assert snapshot.objects_if_given(Node) == []
    assert snapshot.objects_if_given(Service) is None


@pytest.mark.parametrize("name", ["cluster.json", "cluster.yaml"])
def test_a_list_may_contain_lists(write, name):
    pods = listed(without_kind(web_pod()), kind="PodList")
    snapshot = load([write(listed(pods, node("n1"), listed(kind="ServiceList"), listed(node("n2"))), name=name)])
    assert keys(snapshot) == ["shop/web-1", "n1", "n2"]
    assert snapshot.present_kinds == {"Pod", "Node", "Service"}
    assert not snapshot.skipped


def test_an_object_whose_kind_ends_in_list_is_no_list(write):
    snapshot = load([write(listed({"apiVersion": "example.com/v1", "kind": "AllowList"}, node("n1")))])
    assert keys(snapshot) == ["n1"]
    assert snapshot.skipped == {"AllowList.example.com": 1}


def test_yaml_with_many_documents(write):
    text = """
# a comment
---
kind: PodList
apiVersion: v1
items:
- metadata: {name: web-1, namespace: shop, creationTimestamp: 2024-05-01T12:00:00Z}
  spec:
    containers: [{name: c, resources: {requests: {cpu: 0.5, memory: 1e9, example.com/x: 1}}}]
  status:
---
apiVersion: v1
kind: Node
metadata: {name: n1, labels: {address: 1:30}}
---
"""
    snapshot = load([write(text, "cluster.yaml")])
    assert keys(snapshot) == ["shop/web-1", "n1"]
    assert snapshot.pods[0].metadata.creation_timestamp == "2024-05-01T12:00:00Z"
    assert snapshot.nodes[0].metadata.labels == {"address": "1:30"}


def test_yaml_may_start_with_a_brace(write):
    assert keys(load([write("{kind: Node, metadata: {name: n1}}", "n.yaml")])) == ["n1"]


def test_directories_gzip_and_standard_input(write, tmp_path, monkeypatch):
    write(node("b"), "b.json")
    write(gzip.compress(json.dumps(node("a")).encode()), "a.json.gz")
    write("kind: Node\nmetadata: {name: c}", "deep/c.yml")
    write("not read", "notes.txt")
    packed = io.BytesIO(gzip.compress(json.dumps(node("d")).encode()))
    monkeypatch.setattr(sys, "stdin", types.SimpleNamespace(buffer=packed))
    assert keys(load([str(tmp_path), "-"])) == ["a", "b", "c", "d"]


def test_objects_of_unknown_kinds_and_groups_are_counted(write):
    knative = {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "s"}}
    snapshot = load([write(listed(node("n"), {"kind": "ConfigMap", "apiVersion": "v1"}, knative, knative))])
    assert snapshot.skipped == {"ConfigMap": 1, "Service.serving.knative.dev": 2}
    assert snapshot.present_kinds == {"Node"}


def test_an_older_version_of_a_known_api_group_is_read(write):
    budget = {"apiVersion": "policy/v1beta1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    assert len(load([write(budget)]).objects_of(PodDisruptionBudget)) == 1


def test_the_later_file_wins_with_a_note(write):
    first, second = write(listed(node("a"), node("b")), "1.json"), write(node("a", labels={"x": "y"}), "2.json")
    snapshot = load([first, second])
    assert keys(snapshot) == ["a", "b"]
    assert snapshot.nodes[0].metadata.labels == {"x": "y"}
    assert snapshot.notes == ("1 Node replaced by a later file",)


def test_two_definitions_in_one_file_must_be_equal(write):
    assert len(load([write(listed(node("a"), node("a")))])) == 1
    with pytest.raises(InputError, match=r"node a: defined twice, with different content$"):
        load([write(listed(node("a"), node("a", labels={"x": "y"})))])


def test_an_absent_namespace_means_default_with_a_note(write):
    snapshot = load([write(web_pod(metadata={"name": "p"}))])
    assert snapshot.pods[0].metadata.namespace == "default"
    assert snapshot.notes == ("1 Pod without a namespace taken as in namespace default",)


def test_generated_names_are_the_same_in_every_run(write):
    path = write(listed(web_pod(metadata={"generateName": "x-"}), web_pod(metadata={"generateName": "x-"})))
    assert keys(load([path])) == keys(load([path]))
    assert len(set(keys(load([path])))) == 2


def test_utf_16_as_powershell_writes_it(write):
    text = json.dumps(listed(web_pod(), node("nœud")))
    assert load([write(text.encode("utf-16"))]).nodes[0].metadata.name == "nœud"


@pytest.mark.parametrize("name", ["cluster.json", "cluster.yaml"])
@pytest.mark.parametrize("kind", ["List", "PodList"])
def test_null_items_are_an_empty_list(write, name, kind):
    snapshot = load([write({"apiVersion": "v1", "kind": kind, "items": None}, name)])
    assert (snapshot.pods, snapshot.skipped) == ([], {})
    assert ("Pod" in snapshot.present_kinds) == (kind == "PodList")


def test_null_means_an_absent_field(write):
    snapshot = load(
        [write(web_pod(status=None, spec={"containers": [{"name": "c", "resources": None}], "affinity": None}))]
    )
    assert snapshot.pods[0].status.phase is None


def with_spec(**spec):
    return web_pod(spec={"containers": [{"name": "c"}]} | spec)


def with_requests(**requests):
    return with_spec(containers=[{"name": "c", "resources": {"requests": requests}}])


ANTI = "requiredDuringSchedulingIgnoredDuringExecution"


NODE_TERM = {"matchExpressions": [{"key": "a", "operator": "Is"}]}
REQUESTS = "pod shop/web-1: spec.containers[0].resources.requests"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (with_requests(cpu="12x"), f'{REQUESTS}.cpu: "12x" is not a quantity (want for example 500m or 2Gi)'),
        (with_requests(cpu="-1"), f'{REQUESTS}.cpu: "-1" is negative'),
        (with_requests(cpu=True), f"{REQUESTS}.cpu: expected int | float | str, got bool"),
        (with_spec(containers="c"), "pod shop/web-1: spec.containers: expected a list, got str"),
        (with_spec(containers=[]), "pod shop/web-1: spec.containers: at least one container is required"),
        (with_spec(priority=10**23), "pod shop/web-1: spec.priority: expected int <= 2147483647"),
        ("[" * 100_000, "it is nested too deeply (does a YAML alias contain itself?)"),
        (codecs.BOM_UTF16_LE + b"{", "not whole UTF-16 text: save it as UTF-8"),
        (
            {"kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": -1}},
            "deployment default/d: spec.replicas: expected int >= 0",
        ),
        (with_spec(priority="high"), "pod shop/web-1: spec.priority: expected int, got str"),
        (
            {"kind": "LimitRange", "metadata": {"name": "l"}, "spec": {"limits": [{"defaultRequest": {"cpu": "x"}}]}},
            'limitrange default/l: spec.limits[0].defaultRequest.cpu: "x" is not a quantity '
            "(want for example 500m or 2Gi)",
        ),
        (
            with_spec(tolerations=[{"key": "a", "operator": "Is"}]),
            'pod shop/web-1: spec.tolerations[0].operator: "Is" is not an operator (want Equal, Exists, Lt or Gt)',
        ),
        (
            with_spec(topologySpreadConstraints=[{"topologyKey": "z", "whenUnsatisfiable": "No"}]),
            "pod shop/web-1: spec.topologySpreadConstraints[0].whenUnsatisfiable: "
            '"No" is neither DoNotSchedule nor ScheduleAnyway',
        ),
        (
            with_spec(affinity={"podAntiAffinity": {ANTI: [{"labelSelector": {}}]}}),
            f"pod shop/web-1: spec.affinity.podAntiAffinity.{ANTI}[0].topologyKey: a label is required",
        ),
        (
            with_spec(affinity={"nodeAffinity": {ANTI: {"nodeSelectorTerms": [NODE_TERM]}}}),
            f"pod shop/web-1: spec.affinity.nodeAffinity.{ANTI}.nodeSelectorTerms[0].matchExpressions[0].operator: "
            '"Is" is not an operator (want In, NotIn, Exists, DoesNotExist, Gt or Lt)',
        ),
        (web_pod(metadata={"namespace": "shop"}), "pod shop/without a name: metadata.name: a name is required"),
        (
            node("n", creationTimestamp="today"),
            'node n: metadata.creationTimestamp: "today" is not a time (want for example 2024-05-01T12:00:00Z)',
        ),
        (node("n", labels={"v": 1}), "node n: metadata.labels.v: expected str, got int"),
        (
            node("n") | {"spec": {"taints": [{"key": "a", "effect": "Maybe"}]}},
            'node n: spec.taints[0].effect: "Maybe" is not an effect',
        ),
        (listed(node("n"), {"metadata": {}}), "object 2: it has no kind"),
        (listed("x"), "expected a mapping, got str"),
        ('{"kind": "List", "items": [', "JSON is malformed: it ends too early"),
        ('{"kind": "Node",\n"metadata": oops}', "JSON is malformed: invalid character (line 2)"),
        ("", "there is no object in it"),
        (gzip.compress(b"{}", mtime=0)[:-9], "not a whole gzip file (it ends too early)"),
    ],
)
def test_error_message_names_file_object_and_field(write, content, message):
    path = write(content)
    with pytest.raises(InputError) as raised:
        load([write(node("fine"), "fine.json"), path])
    assert str(raised.value) == f"{path}: {message}"
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a: [1", "YAML is malformed: did not find expected ',' or ']' (line 2)"),
        ("just text", "expected Kubernetes objects, got str"),
        (
            "kind: Pod\na: &a [x, x, x, x, x, x, x, x, x]\n"
            + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghijkl")),
            "YAML aliases repeat too much: write out what they stand for",
        ),
        ("&t\nkind: List\nitems: [*t]\n", "it is nested too deeply (does a YAML alias contain itself?)"),
        (
            "kind: Pod\nmetadata: {name: p, labels: {on: yes}}",
            "pod default/p: metadata.labels (a key of this mapping): expected str, got bool",
        ),
        ("kind: Node\nmetadata: {name: n, labels: {v: 1.0}}", "node n: metadata.labels.v: expected str, got float"),
    ],
)
def test_yaml_errors(write, content, message):
    path = write(content, "cluster.yaml")
    with pytest.raises(InputError) as raised:
        load([path])
    assert str(raised.value) == f"{path}: {message}"


def test_workload_templates_are_validated(write):
    template = {"spec": {"containers": [{"name": "c", "resources": {"limits": {"memory": "1GB"}}}]}}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "d"},
        "spec": {"template": template},
    }
    with pytest.raises(
        InputError, match=r"deployment default/d: spec\.template\.spec\.containers\[0\]\.resources\.limits\.memory"
    ):
        load([write(deployment)])
    template["spec"]["containers"][0]["resources"]["limits"]["memory"] = "1G"
    assert len(load([write(deployment)]).objects_of(Deployment)) == 1


def test_a_path_without_files_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"none\.json: no such file or directory"):
        load([str(tmp_path / "none.json")])
    with pytest.raises(InputError, match="no \\.json, \\.yaml or \\.yml file"):
        load([str(tmp_path)])
