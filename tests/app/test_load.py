"""Loading: from sources or dicts to prepared objects, notes, and a cluster."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.documents import node, pod
from tutti.app.load import LoadedObjects, load_parsed, load_sources
from tutti.exceptions import InputError
from tutti.kube.reading.parsed_file import parsed_trees
from tutti.kube.reading.sources import Source


def load_objects(trees: Any) -> LoadedObjects:
    return load_parsed([parsed_trees(trees, "objects")], name="objects")


def listed(*objects: Any) -> Any:
    return {"apiVersion": "v1", "kind": "List", "items": list(objects)}


def source(*objects: Any, name: str = "cluster.json") -> Source:
    return Source(name, json.dumps(listed(*objects)).encode())


def test_dicts_and_sources_are_the_same():
    objects = [node("n1"), pod("p"), pod("q", on="n1")]
    from_bytes = load_sources([source(*objects)], name="cluster.json")
    for trees in (objects, [listed(*objects)], [objects]):
        assert load_objects(trees) == from_bytes
    cluster = load_objects(objects).build_cluster()
    assert sorted(cluster.pods.row_of) == ["default/p", "default/q"]


def test_dicts_as_the_kubernetes_client_gives_them():
    # ApiClient().sanitize_for_serialization and to_dict(serialize=True): times may be datetimes, absent fields None.
    metadata = {"name": "p", "namespace": "default", "labels": None, "uid": "u"}
    made = datetime(2024, 10, 15, 9, 30, tzinfo=UTC)
    item = {
        "apiVersion": None, "kind": None, "metadata": metadata | {"creationTimestamp": made},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}, "limits": None}}]},
        "status": {"phase": "Pending", "startTime": None},
    }  # fmt: skip
    (found,) = load_objects([{"apiVersion": "v1", "kind": "PodList", "items": [item]}]).snapshot.pods
    assert (found.key, found.metadata.creation_timestamp) == ("default/p", "2024-10-15T09:30:00Z")


def test_unknown_volumes_are_only_in_the_snapshot():
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    loaded = load_objects([pod("p", volumes=[volume])])
    assert [len(each.pods[0].spec.volumes or ()) for each in (loaded.snapshot, loaded.schedulable)] == [1, 0]


def test_notes_name_ignored_kinds_and_pods_on_unknown_nodes():
    other = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
    finished = pod("done", on="gone") | {"status": {"phase": "Succeeded"}}
    one = load_objects([other, pod("p", on="gone"), finished])
    assert one.snapshot.skipped == {"ConfigMap": 1}
    assert one.notes == (
        "ignored objects of kinds that do not affect scheduling: 1 ConfigMap",
        "1 pod is on a node that is not in the input, and counts nowhere",
    )
    two = load_objects([pod("p", on="gone"), pod("q", on="gone")])
    assert two.notes == ("2 pods are on nodes that are not in the input, and count nowhere",)
    assert sum(map(len, two.build_cluster().pods_on_missing_nodes.values())) == 2


def test_errors_name_the_input():
    twice = source(pod("p"), pod("p", cpu="2"), name="a.json")
    with pytest.raises(InputError, match=r"a.json: pod default/p: defined twice, with different content"):
        load_sources([twice], name="a.json, b.json")
    unknown = pod("p", priorityClassName="none")
    unknown["metadata"].pop("uid")
    del unknown["status"]
    classes = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "x"}, "value": 1}
    with pytest.raises(InputError, match=r"a.json, b.json: pod default/p: "):
        load_sources([source(unknown, classes)], name="a.json, b.json")
    with pytest.raises(InputError, match="objects: want dicts of plain values"):
        load_objects([object()])
    for field, value in (("kind", {"a": 1}), ("apiVersion", 1)):
        with pytest.raises(InputError, match=f"objects: {field}: expected str"):
            load_objects([pod("p") | {field: value}])
    with pytest.raises(InputError, match="objects: items: expected a list"):
        load_objects([{"kind": "List", "items": 5}])
