"""The model of Karpenter: it buys what Karpenter bought, within limits, and for requests of any kind."""

from __future__ import annotations

import gzip
import json
from collections import Counter
from functools import cache
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from tests.support.documents import karpenter_pool, new_pod
from tests.support.paths import VECTORS
from tests.support.wire_bodies import answer, read
from tutti.autoscalers.karpenter.provisioner import KarpenterOptions, karpenter
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.work.work_budget import WorkBudget
from tutti.conformance.cluster_autoscaler_cases import read_cluster_autoscaler_case
from tutti.conformance.karpenter_cases import KarpenterCase, read_karpenter
from tutti.conformance.model_karpenter import CLAIMS, KarpenterChecks, read_karpenter_checks, totals
from tutti.exceptions import InputError
from tutti.kube.objects import Node, OwnerReference, Pod
from tutti.kube.resources import allocatable, incoming_requests
from tutti.market.offerings import NODES
from tutti.recommend.records.request import Request

RECORDED = VECTORS / "purchases"


def bought_for(request: Request, budget: WorkBudget | None = None, **options: Any) -> Purchase:
    chosen = KarpenterOptions(**options)
    return karpenter(request.cluster, request.catalogue, request.daemon_sets, options=chosen, budget=budget)


@cache
def lines(name: str) -> tuple[bytes, ...]:
    return tuple(gzip.decompress((RECORDED / f"{name}.jsonl.gz").read_bytes()).splitlines())


@cache
def recorded(number: int) -> KarpenterChecks:
    return read_karpenter_checks("karpenter", number + 1, lines("karpenter")[number])


def case(number: int) -> KarpenterCase:
    return recorded(number).karpenter


@cache
def first_pass(number: int) -> Purchase:
    return recorded(number).first_pass()


def expected(number: int) -> dict[str, Any]:
    expect: dict[str, Any] = json.loads(lines("karpenter")[number])["expect"]
    return expect


def check(request: Request, bought: Purchase) -> None:
    """Every pod is somewhere once, no node has more than it takes, and no limit is broken."""
    pods = {each.key: each for each in request.objects if isinstance(each, Pod)}
    waiting = [key for key, pod in pods.items() if not pod.spec.node_name]
    all_pods = [
        *bought.left,
        *(pod for pod, _ in bought.on_existing),
        *(pod for _, held in bought.nodes for pod in held),
    ]
    assert sorted(all_pods) == sorted(waiting)
    for offering, held in bought.nodes:
        requested: Counter[str] = Counter(pods=len(held))
        for key in held:
            requested.update(incoming_requests(pods[key]))
        room = allocatable(offering.node)
        assert all(amount <= room.get(name, 0) for name, amount in requested.items())
    for pool in request.catalogue.pools:
        mine = [offering for offering, _ in bought.nodes if offering.pool == pool.name]
        for limit in pool.limits:
            if limit.what == NODES and limit.zone is None:
                assert len(mine) <= limit.left


def test_it_buys_what_karpenter_bought() -> None:
    otherwise = set()
    for number in range(len(lines("karpenter"))):
        found = case(number)
        bought = first_pass(number)
        check(found.case.request, bought)
        if not recorded(number).is_within(totals(bought)):
            otherwise.add(found.case.name)
    assert number + 1 == 104
    assert not otherwise


def test_the_same_pods_share_a_node_where_every_run_agreed() -> None:
    checks = [check for number in range(len(lines("karpenter"))) for check in recorded(number).checks()]
    claims = [check for check in checks if check.part == CLAIMS]
    assert len(claims) == 96
    assert all(check.exact for check in claims)


@pytest.mark.parametrize("name", ["limits-s04", "limits-s06"])
def test_later_passes_go_on_from_what_was_really_bought(name: str) -> None:
    number = next(place for place, line in enumerate(lines("karpenter")) if json.loads(line)["name"] == name)
    found, settled = case(number), expected(number)["settled"]
    bought = bought_for(found.case.request, order=found.order)
    check(found.case.request, bought)
    assert bought.cost == found.case.peer.cost == round(settled["costPerHour"] * 1e9)
    assert len(bought.nodes) == found.case.peer.nodes == settled["nodes"]
    assert bought.placed == found.case.peer.placed
    assert found.case.peer.bought == ()


def test_without_an_order_pools_come_by_falling_name() -> None:
    number = next(n for n, line in enumerate(lines("karpenter")) if json.loads(line)["name"] == "two-node-pools-s02")
    found = case(number)
    assert found.order == ("beta", "alpha")
    assert bought_for(found.case.request) == bought_for(found.case.request, order=found.order)
    turned = bought_for(found.case.request, order=("alpha",))
    assert Counter(offering.pool for offering, _ in turned.nodes)["alpha"] > 2


def test_requests_of_other_origin() -> None:
    for number, line in enumerate(lines("cluster-autoscaler"), start=1):
        read = read_cluster_autoscaler_case("cluster-autoscaler", number, line)
        if read is not None:
            check(read.request, bought_for(read.request))


def test_when_time_is_up_the_rest_is_left() -> None:
    request = case(7).case.request
    steps = count()
    some = bought_for(request, WorkBudget.of_seconds(20.0, lambda: float(next(steps))))
    check(request, some)
    assert 0 < some.placed < 2000
    assert bought_for(request, WorkBudget.of_seconds(0.0, lambda: float(next(steps)))).placed == 0


def test_what_the_peer_bought_is_in_the_catalogue() -> None:
    for number in range(len(lines("karpenter"))):
        peer, expect = case(number).case.peer, expected(number)
        if "settled" not in expect:
            cost = sum((offering.price or 0) * number for offering, number in peer.bought)
            assert abs(cost / 1e9 - expect["costPerHour"]) < 1e-5
            assert sum(number for _, number in peer.bought) == expect["nodes"]


def test_a_promised_pod_keeps_its_room_and_daemons_buy_nothing() -> None:
    number = next(n for n, line in enumerate(lines("karpenter")) if json.loads(line)["name"] == "existing-nodes-s01")
    request = case(number).case.request
    pods = [each for each in request.objects if isinstance(each, Pod) and not each.spec.node_name]
    first, second = pods[:2]
    node = next(each.metadata.name for each in request.objects if isinstance(each, Node))
    owner = OwnerReference(kind="DaemonSet", name="agent", controller=True)
    changed = {
        first.key: replace(first, status=replace(first.status, nominated_node_name=node)),
        second.key: replace(second, metadata=replace(second.metadata, owner_references=[owner])),
    }
    objects = tuple(changed.get(each.key, each) if isinstance(each, Pod) else each for each in request.objects)
    bought = bought_for(replace(request, objects=objects))
    assert bought.placed + len(bought.left) == len(pods) - 2
    assert not {first.key, second.key} & {*bought.left, *(pod for pod, _ in bought.on_existing)}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"nodePools": 7}, "Expected `array`"),
        ({"expect": {"nodes": 1}}, "missing required field"),
        ({"instanceTypes": []}, "which node pool default does not offer"),
    ],
)
def test_lines_that_cannot_be_read(change: dict[str, Any], problem: str) -> None:
    line = json.dumps({**json.loads(lines("karpenter")[0]), **change}).encode()
    with pytest.raises(InputError, match=f"file: line 3: .*{problem}"):
        read_karpenter("file", 3, line)


# Weights --------------------------------------------------------------------------------------------------------------


def pool(name: str, kind: str, weight: int | None) -> dict[str, Any]:
    wanted = {
        "node.kubernetes.io/instance-type": [kind],
        "karpenter.sh/capacity-type": ["on-demand"],
        "topology.kubernetes.io/zone": ["us-east-1a"],
    }
    return karpenter_pool(name, wanted, **({"weight": weight} if weight else {}))


@pytest.mark.parametrize(
    ("weights", "first", "order"),
    [((None, 50), "dear", "dear, cheap"), ((60, 50), "cheap", "cheap, dear"), ((None, None), "dear", "")],
)
def test_heavier_pools_come_first(weights: tuple[int | None, int | None], first: str, order: str) -> None:
    """Where weights are equal the last by name does; for ours price decides either way."""
    pools = [pool("cheap", "m5.large", weights[0]), pool("dear", "m5.xlarge", weights[1])]
    request = read({"cluster": [new_pod(cpu="1")], "pools": pools})
    assert [offering.pool for offering, _ in bought_for(request).nodes] == [first]
    assert [each.pool for each in answer(request).scale_up] == ["cheap"]
    notes = [note for note in request.catalogue.notes if "weight" in note]
    line = "weights of pools do not count, price decides; Karpenter would try them in this order"
    assert notes == ([f"{line}: {order}"] if order else [])
