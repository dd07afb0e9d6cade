"""From a snapshot and files to a request."""

import msgspec

from tutti.kube.objects import KINDS
from tutti.kube.reading.snapshot import Snapshot, by_kind
from tutti.kube.reading.sources import Source
from tutti.recommend.build_request import build_request


def objects(*trees):
    return [msgspec.convert(tree, KINDS[tree["kind"]]) for tree in trees]


def pod(name, **spec):
    return {"kind": "Pod", "metadata": {"name": name, "namespace": "x"}, "spec": spec}


def test_a_request_has_cluster_catalogue_and_notes():
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "d", "uid": "u", "controller": True}
    daemon = pod("d-1", nodeName="n1")
    daemon["metadata"]["ownerReferences"] = [owner]
    pool = {"kind": "NodePool.karpenter.sh", "metadata": {"name": "p"}, "spec": {"limits": {"nodes": 3}}}
    listed = objects(pod("a"), {"kind": "Node", "metadata": {"name": "n1"}}, daemon, pool)
    snapshot = Snapshot(objects=by_kind(listed))
    request = build_request(
        snapshot,
        pools=Source("p.yaml", b"pools: [{name: w, instanceType: m5.large}]"),
        prices=Source("p.csv", b"instance_type,usd_hour\nm5.large,2\n"),
        region="eu-west-1",
    )
    assert [obj.key for obj in request.objects] == ["n1", "x/a", "x/d-1"]
    assert [each.key for each in request.daemon_sets] == ["x/d"]
    assert request.catalogue.pools[0].offerings[0].price == 2_000_000_000
    assert request.notes == ("1 daemon is known by pods alone, and expected where these run: x/d",)
    (own,) = build_request(snapshot, region="eu-west-1").catalogue.pools
    assert (own.name, own.maximum, len({o.zone for o in own.offerings})) == ("p", 3, 3)
