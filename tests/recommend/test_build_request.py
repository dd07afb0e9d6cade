"""From a snapshot and files to a request."""

from functools import partial

from tests.support import builders
from tutti.kube.objects import KarpenterPool, KarpenterPoolSpec, ObjectMeta
from tutti.kube.reading.snapshot import Snapshot, by_kind
from tutti.kube.reading.sources import Source
from tutti.recommend.build_request import build_request

pod = partial(builders.new_pod, namespace="x")


def test_a_request_has_cluster_catalogue_and_notes():
    daemon = builders.pod("d-1", namespace="x", on="n1", owner=("DaemonSet", "d"))
    pool = KarpenterPool(metadata=ObjectMeta(name="p"), spec=KarpenterPoolSpec(limits={"nodes": 3}))
    snapshot = Snapshot(objects=by_kind([pod("a"), builders.node("n1"), daemon, pool]))
    request = build_request(
        snapshot,
        pools=Source("p.yaml", b"pools: [{name: w, instanceType: m5.large}]"),
        prices=Source("p.csv", b"instance_type,usd_hour\nm5.large,2\n"),
        region="eu-west-1",
    )
    assert [obj.key for obj in request.objects] == ["n1", "x/a", "x/d-1"]
    assert [each.key for each in request.daemon_sets] == ["x/d"]
    assert request.catalogue.pools[0].offerings[0].price == 2_000_000_000
    assert request.notes == (
        "1 daemon has pods but no DaemonSet object; expected on new nodes like those of the pods: x/d",
    )
    (own,) = build_request(snapshot, region="eu-west-1").catalogue.pools
    assert (own.name, own.maximum, len({o.zone for o in own.offerings})) == ("p", 3, 3)
