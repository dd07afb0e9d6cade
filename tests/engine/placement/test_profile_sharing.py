"""A profile is a value: engines on different clusters can share one."""

from __future__ import annotations

from msgspec.structs import replace

from tests.engine.placement.test_placement_properties import node, pending, pod
from tutti.cluster.cluster import Cluster
from tutti.cluster.edits import Put, Remove
from tutti.engine.placement.engine import Engine
from tutti.engine.placement.profile import Profile
from tutti.kube import objects as k


def test_two_clusters_share_a_profile() -> None:
    shared = Profile.default()
    small = Cluster([node(0, "1", "4Gi"), pod(0, "100m", "64Mi")])
    Engine(small, shared).place(pending(small))
    objects: list[k.Object] = [node(0, "1", "4Gi"), node(1, "1", "4Gi"), *(pod(i, "900m", "64Mi") for i in range(3))]
    alone, second = Cluster(objects), Cluster(objects)
    expected = [Engine(alone).place([key])[0].node for key in pending(alone)]
    engine = Engine(second, shared)
    assert [engine.place([key])[0].node for key in pending(second)] == expected == ["node-00", "node-01", None]


def test_twins_share_a_profile() -> None:
    shared = Profile.default()
    cluster = Cluster([node(0, "4", "4Gi"), pod(0, "1", "64Mi")])
    twin = cluster.copy()
    for each, resource in ((cluster, "a/x"), (twin, "b/y")):
        each.resources.place(resource)
        engine = Engine(each, shared)
        assert engine.place(pending(each))[0].node == "node-00"


def test_a_node_may_list_an_image_twice() -> None:
    cluster = Cluster([node(0, "1", "1Gi")])
    engine_node = cluster.nodes.objects[0]
    assert engine_node is not None
    twice = k.NodeImage(names=["<none>:<none>"], size_bytes=1)
    cluster.apply(Put(replace(engine_node, status=replace(engine_node.status, images=[twice, twice]))))
    cluster.apply(Remove("Node", "node-00"))
    assert not cluster.nodes.row_of
    assert not cluster.nodes.image_rows
