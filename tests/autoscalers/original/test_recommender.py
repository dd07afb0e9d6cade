"""The original recommender: one node a run."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support import builders
from tests.support.builders import amounts, apart
from tutti.autoscalers.original import recommender as original
from tutti.autoscalers.original.recommender import original_recommender, pod_value
from tutti.autoscalers.shared.cluster_snapshot import EngineSnapshot
from tutti.autoscalers.shared.purchase import Purchase
from tutti.cluster.work.work_budget import WorkBudget
from tutti.kube import objects as k
from tutti.kube.admission.pod_admission import Admission
from tutti.market.offerings import Catalogue, NodePool, Offering, PoolLimit
from tutti.recommend.records.request import Request

LARGE, LARGEST = (2, 8, 18_206_000_000), (16, 64, 145_665_000_000)
"""Cores, GiB and price of a small and a large node."""


def sized_node(name: str, cores: int, gib: int) -> k.Node:
    """A node that keeps some of its capacity for the system."""
    return builders.node(
        name, f"{1000 * cores - 80}m", memory=f"{gib - 1}Gi", capacity=amounts(cores, f"{gib}Gi", pods=110)
    )


def admitted_pods(name: str, count: int, cpu: str, memory: str, **how: Any) -> list[k.Pod]:
    new = (builders.pod(f"{name}-{i}", cpu, memory=memory, app=name, **how) for i in range(count))
    return [Admission().admit_pod(each) for each in new]


def request(objects: list[k.Object], **sizes: tuple[int, int, int | None, int]) -> Request:
    """A request with pools of so many cores, GiB, price and nodes at most."""
    pools = []
    for name, (cores, gib, price, most) in sizes.items():
        offering = Offering(pool=name, instance_type=name, zone="", price=price, node=sized_node(name, cores, gib))
        pools.append(NodePool(name=name, offerings=(offering,), limits=(PoolLimit(left=most, reason="no more"),)))
    return Request(objects=tuple(objects), catalogue=Catalogue(pools=tuple(pools)))


def bought_for(purchase_request: Request, budget: WorkBudget | None = None) -> Purchase:
    return original_recommender(
        purchase_request.cluster, purchase_request.catalogue, purchase_request.daemon_sets, budget=budget
    )


def bought(purchase_request: Request) -> list[tuple[str, int]]:
    purchase = bought_for(purchase_request)
    return [(offering.pool, len(taken)) for offering, taken in purchase.nodes]


def test_the_known_answer_of_its_first_scenario() -> None:
    # Twenty pods of 5 GiB: one large node for twelve, then eight small ones, which are a hair cheaper.
    purchase_request = request(list(admitted_pods("p", 20, "100m", "5Gi")), large=(*LARGE, 12), largest=(*LARGEST, 4))
    assert bought(purchase_request) == [("largest", 12), *[("large", 1)] * 8]


def test_limits_end_a_pool() -> None:
    purchase_request = request(list(admitted_pods("p", 20, "100m", "5Gi")), large=(*LARGE, 3), largest=(*LARGEST, 1))
    assert bought(purchase_request) == [("largest", 12), *[("large", 1)] * 3]
    assert len(bought_for(purchase_request).left) == 5


def test_ties_go_to_the_most_memory() -> None:
    waiting: list[k.Object] = list(admitted_pods("p", 1, "1", "1Gi"))
    purchase_request = request(waiting, small=(2, 8, 100, 5), more=(2, 16, 100, 5), same=(2, 16, 100, 5))
    assert bought(purchase_request) == [("more", 1)]


def test_room_that_is_there_is_taken_first() -> None:
    purchase_request = request([sized_node("there", 4, 16), *admitted_pods("p", 4, "1", "4Gi")], large=(*LARGE, 9))
    purchase = bought_for(purchase_request)
    assert [name for _, name in purchase.on_existing] == ["there"] * 3
    assert [len(taken) for _, taken in purchase.nodes] == [1]


def test_pods_worth_nothing_buy_nothing() -> None:
    purchase_request = request(list(admitted_pods("p", 2, "0", "1Mi")), large=(*LARGE, 9))
    assert pod_value(admitted_pods("p", 1, "0", "1Mi")[0]) == 0
    assert bought(purchase_request) == []
    assert len(bought_for(purchase_request).left) == 2


def test_a_node_without_a_price_wins() -> None:
    purchase_request = request(list(admitted_pods("p", 1, "1", "1Gi")), large=(*LARGE, 9), unknown=(2, 8, None, 9))
    assert bought(purchase_request) == [("unknown", 1)]


def test_pods_that_avoid_each_other() -> None:
    purchase_request = request(
        [*admitted_pods("apart", 3, "100m", "1Gi", affinity=apart("apart")), *admitted_pods("p", 4, "500m", "1Gi")],
        large=(*LARGE, 9),
    )
    purchase = bought_for(purchase_request)
    assert not purchase.left
    assert [sum("apart" in pod for pod in taken) for _, taken in purchase.nodes] == [1, 1, 1]


@pytest.mark.parametrize("seed", range(3))
def test_numbers_and_the_engine_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    objects: list[k.Object] = [sized_node("there", 4, 16)]
    for number in range(4):
        objects += admitted_pods(
            f"p{number}", 7 + seed, f"{300 * number + 200}m", f"{900 * (number + 1) + 512 * seed}Mi"
        )
    purchase_request = request(objects, large=(*LARGE, 9), largest=(*LARGEST, 2), middle=(4, 16, 36_000_000_000, 3))
    by_numbers = bought_for(purchase_request)
    monkeypatch.setattr(original, "snapshot_of", EngineSnapshot)
    assert bought_for(purchase_request) == by_numbers


def test_time_is_up() -> None:
    purchase_request = request(list(admitted_pods("p", 20, "100m", "5Gi")), large=(*LARGE, 12))
    assert len(bought_for(purchase_request, budget=WorkBudget.of_seconds(0.0, lambda: 0.0)).left) == 20
