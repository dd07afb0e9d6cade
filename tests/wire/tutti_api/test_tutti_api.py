"""The body of POST /v1/recommendations, and telling the formats apart."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import msgspec
import pytest

from tests.support import documents
from tests.support.documents import new_pod
from tests.support.paths import EXAMPLES
from tests.support.wire_bodies import BOOK, answer, planner, prices, read, smallest, source
from tutti.exceptions import InputError, PoolError
from tutti.kube.reading.sources import Source
from tutti.recommend.records.request import Binder, DownOptions, Objective, RecommendOptions, Strategy
from tutti.wire.request_formats import ParsedRequest, identify, parse_request, read_request
from tutti.wire.tutti_api.request import Body
from tutti.wire.wire_document import WireFormat

POOL = {"name": "x", "instanceType": "m5.large", "zones": ["eu-west-1a"], "max": 3}


def parsed(tree: Any) -> ParsedRequest:
    return parse_request(identify(source(tree), WireFormat.TUTTI))


pod = partial(new_pod, cpu="1")


def body(**fields: Any) -> dict[str, Any]:
    return {"cluster": [pod()], "pools": {"pools": [POOL]}} | fields


# The body -------------------------------------------------------------------------------------------------------------


def test_a_list_of_objects_and_a_kubectl_list_are_the_same():
    listed = read(body())
    assert listed == read(body(cluster={"apiVersion": "v1", "kind": "List", "items": [pod()]}))
    recommendation = answer(listed)
    assert [(each.pool, each.increment, each.price) for each in recommendation.scale_up] == [
        ("x", 1, BOOK.price("m5.large", "eu-west-1"))
    ]


def test_without_pools_they_are_told_by_the_cluster():
    labels = {"karpenter.sh/nodepool": "k", "node.kubernetes.io/instance-type": "m5.large"}
    node = documents.node("n", cpu="2", memory="8Gi", pods="10", labels=labels)
    for pools in ({}, {"pools": None}):
        request = read({"cluster": [node, pod(cpu="1500m"), pod("q", cpu="1500m")], "region": "us-east-1"} | pools)
        (pool,) = request.catalogue.pools
        assert (pool.name, pool.offerings[0].price) == ("k", BOOK.price("m5.large", "us-east-1"))


def test_pools_can_be_karpenter_s_or_a_constraint():
    pool = {
        "apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": "k"},
        "spec": {"template": {"spec": {"requirements": [
            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["m5.large"]},
        ]}}},
    }  # fmt: skip
    request = read(body(pools=[pool], region="us-east-1"))
    assert [each.name for each in request.catalogue.pools] == ["k"]
    assert [each.name for each in read(body(pools=planner()["constraint"])).catalogue.pools] == ["a"]


def test_prices_of_the_body_come_before_the_given_ones():
    rows = [
        {"instance_type": "m5.large", "usd_hour": 0.05},
        {"instance_type": "m5.xlarge", "usd_hour": 1, "zone": None},
    ]
    for given in (rows, "instance_type,usd_hour\nm5.large,0.05\n"):
        request = read(body(prices=given), prices(m5_large=0.07))
        assert request.catalogue.pools[0].offerings[0].price == 50_000_000


def test_options_of_the_body_come_before_the_given_ones():
    given = RecommendOptions(objective=Objective.PODS, binder=Binder.TUTTI, down=DownOptions(threshold=0.4))
    assert read(body(), options=given).options == given
    chosen = {
        "objective": "nodes", "strategy": "most-pods", "binder": "kube-scheduler", "weights": {"cpu": 9},
        "down": {"unneeded": 5, "moveCost": 0.5, "consolidate": False, "now": "1970-01-01T00:00:01Z"}, "timeLimit": 2,
    }  # fmt: skip
    made = read(body(options=chosen), options=given).options
    assert (made.objective, made.strategy, made.binder) == (Objective.NODES, Strategy.MOST_PODS, Binder.KUBE_SCHEDULER)
    assert (made.weights.cpu, made.weights.memory) == (9, 1)
    down = DownOptions(threshold=0.4, unneeded=5, move_cost=500_000_000, consolidate=False, now=1_000_000)
    assert made.down == down
    assert read(body(options={"down": False}), options=given).options.down is None
    assert read(body(options={"down": True})).options.down == DownOptions()


def test_the_time_limit():
    assert parsed(body(options={"timeLimit": 2})).seconds(5.0) == 2
    assert parsed(body()).seconds(5.0) == 5.0


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"cluster": ...}, "cluster: it is required"),
        ({"cluster": "x"}, "cluster: want an object or a list of objects"),
        ({"cluster": {"kind": "List", "items": [{"kind": "Pod", "metadata": {"name": 7}}]}}, "cluster: pod default/7"),
        ({"cluster": [pod(cpu="much")]}, "cluster: pod default/p: spec.containers[0].resources.requests.cpu"),
        ({"cluster": [{}]}, "cluster: object 1: it has no kind"),
        ({"pools": {"pools": [{"name": "x"}]}}, "pools: pool x: instanceTypes: instance types or a template"),
        ({"pools": 7}, "pools: "),
        ({"prices": [{"usd_hour": 1}]}, "prices: no column instance_type"),
        ({"prices": [{"instance_type": "a", "usd_hour": "x"}]}, 'prices[0].usd_hour: "x" is not an amount'),
        ({"prices": 7}, "prices: want"),
        ({"region": "mars"}, 'region: no price is known in region "mars" (known: eu-central-1, '),
        ({"options": {"objective": "speed"}}, "options.objective: invalid enum value 'speed'"),
        ({"options": {"timeLimit": 0}}, "options.timeLimit: want a number > 0"),
        ({"options": {"colour": 1}}, "options.colour: no such field"),
        ({"options": {"weights": {"cpu": 0, "memory": 0, "gpu": 0}}}, "options.weights: one of them must be above 0"),
        ({"options": {"down": {"threshold": 2}}}, "options.down.threshold: want a number <= 1"),
        ({"options": {"down": {"now": "noon"}}}, 'options.down.now: "noon" is not a time'),
        ({"colour": 1}, "colour: no such field"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], line: str):
    tree = {key: value for key, value in body(**fields).items() if value is not ...}
    with pytest.raises(InputError) as error:
        parsed(tree).read(BOOK)
    assert str(error.value).startswith(line)


@pytest.mark.parametrize("changes", [{"min": 4}, {"instanceType": "m5.huge"}])
def test_pools_that_cannot_be(changes: dict[str, Any]):
    with pytest.raises(PoolError, match="pools: pool x: "):
        read(body(pools={"pools": [POOL | changes]}))


def test_groups_that_cannot_be():
    group = {"AutoScalingGroupName": "g", "MinSize": 3, "MaxSize": 1}
    with pytest.raises(PoolError, match="pools: group g: MaxSize"):
        read(body(pools={"AutoScalingGroups": [group]}))
    with pytest.raises(PoolError, match="pools: group g: its instance type is not known"):
        read(body(pools={"AutoScalingGroups": [group | {"MinSize": 0}]}))


def test_the_body_has_a_schema():
    schema = msgspec.json.schema(Body)
    fields = schema["$defs"]["Body"]["properties"]
    assert set(fields) == {"cluster", "pools", "prices", "region", "options"}
    assert schema["$defs"]["Body"]["required"] == ["cluster"]


# Telling formats apart ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "form"),
    [
        (smallest(), WireFormat.GARDENER),
        ({"id": "x", "workerpools": []}, WireFormat.GARDENER),
        ({"PODS": []}, WireFormat.GARDENER),
        (planner(), WireFormat.ADVISOR),
        (planner()["constraint"], WireFormat.ADVISOR),
        ({"kind": "List", "items": [pod(), planner()["constraint"]]}, WireFormat.ADVISOR),
        (body(), WireFormat.TUTTI),
        ({"nodePools": [], "pods": []}, WireFormat.SCENARIO),
        ({"Name": "x", "Scenarios": []}, WireFormat.SCENARIO),
        (pod(), WireFormat.KUBERNETES),
        ({"items": []}, WireFormat.KUBERNETES),
        ([pod()], WireFormat.KUBERNETES),
        ({}, WireFormat.KUBERNETES),
        (
            {"kind": "Pod", "metadata": {"annotations": {"x": "ScalingConstraint sa.gardener.cloud"}}},
            WireFormat.KUBERNETES,
        ),
    ],
)
def test_formats(tree: Any, form: WireFormat):
    assert identify(source(tree)).format is form


@pytest.mark.parametrize("text", [b"", b"{", b"kind: Pod\n", b"\xff\xfe", b"{kind: Pod}", b'{"kind": "Pod"} {"a": 1}'])
def test_anything_else_is_taken_for_kubernetes_objects(text: bytes):
    assert identify(Source("x", text)).format is WireFormat.KUBERNETES


def test_the_examples_are_read():
    forms = {
        "recommend/gardener-snapshot.json": WireFormat.GARDENER, "recommend/scaling-advisor.json": WireFormat.ADVISOR,
        "recommend/cluster.json": WireFormat.KUBERNETES,
    }  # fmt: skip
    for name, form in forms.items():
        given = Source(name, (EXAMPLES / name).read_bytes())
        assert identify(given).format is form
        assert read_request(given, BOOK).objects


@pytest.mark.parametrize(
    "tree",
    [
        smallest(),
        planner(),
        body(),
        {"nodePools": [], "pods": []},
        {"kind": "List", "apiVersion": "v1", "items": [pod()]},
    ],
)
def test_a_byte_order_mark_is_nothing(tree: Any):
    given = source(tree)
    marked = Source(given.name, b"\xef\xbb\xbf" + given.data)
    assert identify(marked).format is identify(given).format
    assert read_request(marked, BOOK) == read_request(given, BOOK)


def test_a_byte_order_mark_before_pools_is_nothing():
    for tree in ({"pools": [POOL]}, planner()["constraint"]):
        plain = source(tree, "pools.json")
        marked = Source(plain.name, b"\xef\xbb\xbf" + plain.data)
        assert read_request(source(pod()), BOOK, pools=marked) == read_request(source(pod()), BOOK, pools=plain)


def test_a_scenario_is_read():
    pool = {"name": "p", "zones": ["eu-west-1a"], "max": 2, "current": 0, "instanceType": "m5.large"}
    tree = {"nodePools": [pool], "pods": [{"namePrefix": "a-", "requests": {"cpu": "1"}, "count": 2}]}
    assert answer(read(tree)).placed == 2


def test_kubernetes_objects_are_read_like_files():
    text = b"kind: Pod\napiVersion: v1\nmetadata: {generateName: a-}\nspec: {containers: [{name: c}]}\n"
    (made,) = read_request(Source("a.yaml", text), BOOK).objects
    assert made.key.startswith("default/a-")
    twice = [pod(), pod(cpu="2")]
    with pytest.raises(InputError, match=re.escape("body.json: pod default/p: defined twice, with different cont")):
        read(twice)
    assert len(read([pod(), pod()]).objects) == 1
    with pytest.raises(InputError, match=re.escape("body.json: pod default/p: spec.containers: at least one")):
        read(pod() | {"spec": {}})
    pools = source({"pools": [POOL]}, "pools.json")
    assert read_request(source(pod()), BOOK, pools=pools).catalogue.pools[0].name == "x"
    assert read_request(source(pod()), BOOK, pools=pools, region="us-east-1").catalogue.pools


@pytest.mark.parametrize("more", [{"pools": source({"pools": [POOL]})}, {"region": "eu-west-1"}])
def test_pools_are_refused_where_the_document_has_its_own(more: Any):
    with pytest.raises(InputError, match=r"body.json: it says itself what can be bought \(gardener format\)"):
        read_request(source(smallest()), BOOK, **more)


def test_a_body_is_not_decoded_twice():
    # The cluster of a body goes on as bytes: what is within is read by the one decoder of objects.
    tree = body(cluster={"apiVersion": "v1", "kind": "PodList", "items": [json.loads(json.dumps(pod()))]})
    del tree["cluster"]["items"][0]["kind"]
    assert len(read(tree).objects) == 1
