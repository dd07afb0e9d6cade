"""A profile is a value: engines on different clusters can share it."""

from __future__ import annotations

from msgspec.structs import replace

from tests.support.builders import node, pod
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put, Remove
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.kube import objects as k


def test_two_clusters_share_a_profile() -> None:
    shared = Profile.default()
    small = Cluster([node("a", "1", memory="4Gi"), pod("p", "100m", memory="64Mi")])
    Engine(small, shared).place(["default/p"])
    nodes = [node(name, "1", memory="4Gi") for name in "ab"]
    pods = [pod(name, "900m", memory="64Mi") for name in "pqr"]
    alone, second = Cluster([*nodes, *pods]), Cluster([*nodes, *pods])
    expected = [Engine(alone).place([each.key])[0].node for each in pods]
    engine = Engine(second, shared)
    assert [engine.place([each.key])[0].node for each in pods] == expected == ["a", "b", None]


def test_a_cluster_and_its_copy_share_a_profile() -> None:
    shared = Profile.default()
    cluster = Cluster([node("a", memory="4Gi"), pod("p", memory="64Mi")])
    twin = cluster.copy()
    for each, resource in ((cluster, "a/x"), (twin, "b/y")):
        each.resources.index(resource)
        engine = Engine(each, shared)
        assert engine.place(["default/p"])[0].node == "a"


def test_a_node_may_list_an_image_twice() -> None:
    cluster = Cluster([node("a", "1", memory="1Gi")])
    engine_node = cluster.nodes.objects[0]
    assert engine_node is not None
    twice = k.NodeImage(names=["<none>:<none>"], size_bytes=1)
    cluster.apply(Put(replace(engine_node, status=replace(engine_node.status, images=[twice, twice]))))
    cluster.apply(Remove("Node", "a"))
    assert not cluster.nodes.row_of
    assert not cluster.nodes.image_rows
