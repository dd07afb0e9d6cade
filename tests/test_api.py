"""The Python API: what can be loaded, what-ifs, results that print as commands do, and lazy imports."""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import tutti
from tests.support.command_line import Run
from tests.support.documents import Document, node, pod
from tests.support.paths import EXAMPLES
from tutti.app.recommend.make_recommendation import make_recommendation
from tutti.cluster.cluster import Cluster
from tutti.cluster.work.work_budget import WorkBudget

Tutti = Callable[..., Run]
Write = Callable[..., str]
CLUSTER = EXAMPLES / "getting-started" / "cluster.json"
SMALL = (node("a"), node("b", cpu="2"), pod("there", cpu="3", on="a"), pod("new", cpu="2"))


def places(cluster: tutti.LoadedCluster) -> dict[str, str]:
    return {bind.pod: bind.node for bind in tutti.schedule(cluster).binds}


# Loading --------------------------------------------------------------------------------------------------------------


def listed(*objects: Document) -> Document:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


@pytest.mark.parametrize(
    "sources",
    [
        pytest.param([listed(*SMALL)], id="a List"),
        pytest.param([list(SMALL)], id="a list of dicts"),
        pytest.param(list(SMALL), id="one dict each"),
        pytest.param([json.dumps(listed(*SMALL))], id="text"),
        pytest.param([json.dumps(listed(*SMALL)).encode()], id="bytes"),
        pytest.param(["\n---\n".join(map(json.dumps, SMALL))], id="YAML"),
    ],
)
def test_all_kinds_of_sources_load_the_same_cluster(sources: list[Any]) -> None:
    assert places(tutti.load(*sources)) == {"default/new": "b"}


def test_paths(tmp_path: Path) -> None:
    (tmp_path / "nodes.json").write_text(json.dumps(listed(*SMALL[:2])), "utf-8")
    (tmp_path / "pods.json").write_text(json.dumps(listed(*SMALL[2:])), "utf-8")
    for sources in ([tmp_path], [str(tmp_path)], [tmp_path / "nodes.json", str(tmp_path / "pods.json")]):
        assert places(tutti.load(*sources)) == {"default/new": "b"}


def test_a_later_source_replaces_objects() -> None:
    cluster = tutti.load(listed(*SMALL), node("b", cpu="1"), node("c", cpu="8"))
    assert places(cluster) == {"default/new": "c"}
    assert cluster.notes == ("1 Node replaced by a later file",)


class V1PodList:
    """A list as the official client returns it: snake case, None for absent fields, datetimes, items without kind."""

    def to_dict(self) -> Document:
        created = datetime.datetime(2026, 11, 2, 8, tzinfo=datetime.UTC)
        return {"api_version": "v1", "kind": "PodList", "metadata": {"_continue": None}, "items": [
            {
                "api_version": None,
                "kind": None,
                "metadata": {
                    "name": "x", "namespace": "shop", "uid": "1", "labels": {"app_name": "x"},
                    "creation_timestamp": created, "owner_references": None,
                },
                "spec": {
                    "node_name": None,
                    "scheduler_name": "default-scheduler",
                    "node_selector": {"disk_type": "ssd"},
                    "affinity": None,
                    "topology_spread_constraints": [
                        {
                            "max_skew": 1, "topology_key": "kubernetes.io/hostname",
                            "when_unsatisfiable": "DoNotSchedule",
                            "label_selector": {"match_labels": {"app_name": "x"}, "match_expressions": None},
                        },
                    ],
                    "containers": [
                        {"name": "main", "image": "x", "resources": {"requests": {"cpu": "1"}, "limits": None}},
                    ],
                },
                "status": {"phase": "Pending", "host_ip": None},
            },
        ]}  # fmt: skip


class V1Node:
    """A node without kind, as items of a list are."""

    def __init__(self, name: str, disk: str) -> None:
        self._name, self._disk = name, disk

    def to_dict(self) -> Document:
        labels = {"kubernetes.io/hostname": self._name, "disk_type": self._disk}
        return {
            "api_version": None,
            "kind": None,
            "metadata": {"name": self._name, "uid": self._name, "labels": labels},
            "spec": {"provider_id": None, "unschedulable": None},
            "status": {"allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"}},
        }


def test_objects_of_the_official_client() -> None:
    nodes = [V1Node("a", "hdd"), V1Node("b", "ssd")]
    assert places(tutti.load(nodes, V1PodList())) == {"shop/x": "b"}
    as_dicts = [{**each.to_dict(), "kind": "Node"} for each in nodes]
    cluster = tutti.load(as_dicts, V1PodList().to_dict())
    assert places(cluster) == {"shop/x": "b"}
    (loaded,) = cluster.snapshot.pods
    assert loaded.metadata.labels == {"app_name": "x"}
    assert loaded.metadata.creation_timestamp == "2026-11-02T08:00:00Z"
    assert loaded.spec.topology_spread_constraints[0].label_selector.match_labels == {"app_name": "x"}


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ([], "there is nothing to load: want paths, text, or Kubernetes objects"),
        ([4], "source 1: want a path, text, or Kubernetes objects as dicts, got int"),
        ([[node("a"), 4]], "source 1, object 2: want a path, text, or Kubernetes objects as dicts, got int"),
        ([{"metadata": {"name": "x"}}], "source 1: object 1: it has no kind"),
        (["no-such-file.json"], "no-such-file.json: no such file or directory"),
        (['{"kind": "Node",\n'], "source 1: "),
    ],
)
def test_errors_name_the_source(sources: list[Any], message: str) -> None:
    with pytest.raises(tutti.TuttiError) as fault:
        tutti.load(*sources)
    assert str(fault.value).startswith(message)


# What-ifs -------------------------------------------------------------------------------------------------------------


def test_a_what_if_leaves_the_cluster_as_it_is() -> None:
    cluster = tutti.load(listed(*SMALL))
    with cluster.what_if(cordon=["b"], add={"a": 1}) as changed:
        assert places(changed) == {"default/new": "a-new-1"}
        assert places(cluster) == {"default/new": "b"}
        with changed.what_if(drain=["a"]) as both:
            assert both.notes == ("a is drained of 1 pod, of which 1 without a controller would not be created again",)
            assert len(tutti.schedule(both).unschedulable) == 1
        assert places(changed) == {"default/new": "a-new-1"}
    assert places(cluster) == {"default/new": "b"}
    assert repr(cluster) == "<cluster of 2 nodes and 2 pods>"


def test_all_functions_accept_a_changed_cluster() -> None:
    cluster = tutti.load(listed(*SMALL))
    with cluster.what_if(drain=["b"]) as changed:
        assert "1 node(s) were unschedulable" in str(tutti.explain(changed, "pod/new"))
        assert [each.pod for each in tutti.recommend(changed).pending] == []
        assert sum(each.increment for each in tutti.recommend(changed).scale_up) == 1
    assert not tutti.recommend(cluster).scale_up


def test_scaled_workloads_have_pods_that_can_be_explained(write: Write) -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "x"}]}}
    web = {
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template},
    }  # fmt: skip
    cluster = tutti.load(node("a"), web)
    assert set(places(cluster)) == {"shop/web-0"}
    with cluster.what_if(scale={"statefulset/web": 3}) as changed:
        assert set(places(changed)) == {"shop/web-0", "shop/web-1", "shop/web-2"}
        assert tutti.explain(changed, "pod/web-2").data()["goesTo"] == "a"
        with changed.what_if(scale={"statefulset/web": 4}) as larger:
            assert larger.notes == ("statefulset/web is scaled to 4: 1 pod more",)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"drain": ["z"]}, "node 'z'"),
        ({"add": {"a": -1}}, "--add: a: want a whole number that is not negative, got -1"),
        ({"add": {"a": 10**9}}, "--add: a: 1000000000 is more than the 500000 that can be added"),
        ({"scale": {"web": 1}}, "--scale: want KIND/NAME=COUNT"),
    ],
)
def test_invalid_what_ifs(arguments: Any, message: str) -> None:
    cluster = tutti.load(listed(*SMALL))
    with pytest.raises(tutti.TuttiError) as fault, cluster.what_if(**arguments):
        pass
    assert str(fault.value).startswith(message)


# Results --------------------------------------------------------------------------------------------------------------


def test_results_print_as_the_commands_do(tutti: Tutti) -> None:
    import tutti as api

    cluster, path = api.load(CLUSTER), str(CLUSTER)
    assert f"{api.schedule(cluster)}\n" == tutti("schedule", "-f", path).out
    wide = tutti("schedule", "-f", path, "-o", "wide", "-n", "batch", "--no-preemption").out
    assert f"{api.schedule(cluster, namespace='batch', preemption=False).text(wide=True)}\n" == wide
    assert json.loads(json.dumps(api.schedule(cluster).data())) == tutti("schedule", "-f", path, "-o", "json").json
    assert f"{api.explain(cluster, 'pod/train-3', namespace='batch')}\n" == tutti("explain", "train-3", "-f", path).out
    assert f"{api.recommend(cluster)}\n" == tutti("recommend", "-f", path).out
    assert json.loads(json.dumps(api.recommend(cluster).data())) == tutti("recommend", "-f", path, "-o", "json").json


def test_gangs(tutti: Tutti) -> None:
    import tutti as api

    path = str(EXAMPLES / "gangs" / "gang-over-gang.yaml")
    cluster = api.load(path)
    plan = api.schedule(cluster)
    assert f"{plan}\n" == tutti("schedule", "-f", path).out
    assert [(gang.gang, gang.placed) for gang in plan.gangs] == [("team-a/high", 3)]
    assert f"{api.explain(cluster, 'gang')}\n" == tutti("explain", "gang", "-f", path).out
    assert f"{api.explain(cluster, 'gang/high')!r}\n" == tutti("explain", "gang/high", "-f", path).out


def test_no_pending_pods() -> None:
    cluster = tutti.load(node("a"))
    assert str(tutti.schedule(cluster)) == str(tutti.recommend(cluster)) == "No pending pods found."


def test_profile_and_options_that_exclude_each_other() -> None:
    cluster = tutti.load(listed(*SMALL))
    profile = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: []\n"
    assert tutti.schedule(cluster, profile=profile).binds
    assert not tutti.schedule(cluster, scheduler_name="mine").binds
    assert tutti.explain(cluster, "pod/new", scheduler_name="mine").data()["remark"] is not None
    mine = tutti.load(node("a"), pod("mine", schedulerName="mine"))
    assert tutti.explain(mine, "pod/mine").data()["remark"] is None
    with pytest.raises(tutti.TuttiError, match="exclude each other"):
        tutti.schedule(cluster, preemption=False, consolidation=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weights": {"cpu": 5000}}, "options.weights.cpu: want an integer <= 1000"),
        ({"objective": "fun"}, "options.objective: "),
        ({"down": {"thresh": 1}}, "options.down.thresh: no such field"),
        ({"time_limit": 0}, "options.timeLimit: "),
        ({"region": "mars"}, "region: "),
    ],
)
def test_options_of_a_recommendation_are_checked(arguments: Any, message: str) -> None:
    with pytest.raises(tutti.TuttiError) as fault:
        tutti.recommend(tutti.load(CLUSTER), **arguments)
    assert str(fault.value).startswith(message)


# Imports --------------------------------------------------------------------------------------------------------------


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("down", [False, True])
def test_a_recommendation_uses_the_loaded_cluster(built: list[Cluster], down: bool) -> None:
    folder = EXAMPLES / "recommend"
    cluster = tutti.load(folder / "cluster.json")
    before = places(cluster)
    result = tutti.recommend(cluster, pools=folder / "pools.yaml", time_limit=1, down=down)
    assert result.scale_up
    assert tutti.compare(result, time_limit=1).purchases
    assert len(built) == 1
    again = replace(result.request, built_cluster=None)
    assert make_recommendation(again, WorkBudget.of_seconds(1, lambda: 0.0)) == result.recommendation
    assert len(built) == 2
    assert places(cluster) == before


def test_importing_tutti_imports_nothing_else() -> None:
    heavy = "{'numpy', 'msgspec', 'yaml', 'click', 'tutti.api', 'tutti.recommend'}"
    assert run(f"import sys, tutti; print(sorted({heavy} & set(sys.modules)))") == "[]"
    assert run("import tutti; print(*(name for name in tutti.__all__ if name not in dir(tutti)))") == ""


@pytest.mark.parametrize("first", ["", "import tutti.recommend.pipeline", "from tutti import recommend", "tutti.load"])
def test_recommend_is_a_function_and_a_package(first: str) -> None:
    code = f"import tutti\n{first}\nc = tutti.load({{'kind': 'Node', 'apiVersion': 'v1', 'metadata': {{'name': 'a'}}}})"
    assert (
        run(f"{code}\nprint(tutti.recommend(c))\nfrom tutti.recommend.pipeline import recommend")
        == "No pending pods found."
    )


def test_unknown_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        tutti.nonsense  # noqa: B018
