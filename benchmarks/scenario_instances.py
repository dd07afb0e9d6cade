"""The scale-up scenarios of the Go recommender (unmarshall/scaling-recommender, client/assets), as requests.

Contract: `scenarios` reads s1 to s5 and s4a of a folder, with the monthly prices and the allocatable amounts of its
templates.csv; nodes that are there have the allocatable amounts of their type, as that recommender does it. `BEST` has
what each costs a month at least (../shared/reference/seed-systems.md 9.1).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tutti.kube.objects import Node, Object, Pod
from tutti.market.instance_types import INSTANCE_TYPE, ZONE, template_name, template_node
from tutti.market.money import HOURS_A_MONTH, nano_dollars
from tutti.market.offerings import Catalogue, NodePool, Offering
from tutti.market.pool_limits import nodes_limit
from tutti.recommend.records.request import Request

FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data" / "scaling_scenarios"
NAMES = ("s1", "s2", "s3", "s4", "s4a", "s5")
BEST = {"s1": 291.297, "s2": 163.869, "s3": 182.073, "s4": 309.552, "s5": 127.459}
"""Dollars a month. s1: 1 4xlarge + 8 large; s2: 1 4xlarge + 1 large; s3: 1 4xlarge + 2 large; s4: 3 large + 3 xlarge +
1 4xlarge; s5: 1 large + 1 xlarge + 1 2xlarge."""


def scenarios() -> Iterator[tuple[str, Request]]:
    """The scenarios that are there."""
    if not FOLDER.exists():
        return
    with (FOLDER / "templates.csv").open() as file:
        types = {row["instance_type"]: row for row in csv.DictReader(file)}
    for name in NAMES:
        yield name, _request(json.loads((FOLDER / f"{name}.json").read_text()), types)


def _request(scenario: Mapping[str, Any], types: Mapping[str, Mapping[str, str]]) -> Request:
    pools = []
    for each in scenario["nodePools"]:
        name, kind = each["name"], each["instanceType"]
        price = nano_dollars(float(types[kind]["usd_month"]) / HOURS_A_MONTH)
        offerings = tuple(
            Offering(
                pool=name, instance_type=kind, zone=zone, price=price,
                node=_node(template_name(name, kind, zone=zone), types[kind], {INSTANCE_TYPE: kind, ZONE: zone}),
            )
            for zone in each["zones"]
        )  # fmt: skip
        limit = nodes_limit(f"pool {name}", each["max"], current=each["current"])
        pools.append(
            NodePool(
                name=name, offerings=offerings, limits=(limit,), current=each["current"], maximum=each["max"]
            )
        )  # fmt: skip
    nodes: list[Object] = [
        _node(each["name"], types[each["labels"][INSTANCE_TYPE]], each["labels"]) for each in scenario["nodes"]
    ]
    pods = [pod for each in scenario["pods"] for pod in _pods(each)]
    return Request(objects=(*nodes, *pods), catalogue=Catalogue(pools=tuple(pools)))


def _node(name: str, kind: Mapping[str, str], labels: Mapping[str, str]) -> Node:
    has = {"cpu": kind["cpu"], "memory": f"{kind['memory_ki']}Ki", "pods": kind["pods"]}
    return template_node(name, labels=labels, capacity=has, allocatable=has)


def _pods(pod_group: Mapping[str, Any]) -> Iterator[Pod]:
    node = pod_group.get("scheduledOn", {}).get("name")
    for i in range(pod_group["count"]):
        spec = {
            "containers": [{"name": "main", "resources": {"requests": pod_group["requests"]}}],
            "topologySpreadConstraints": pod_group.get("topologySpreadConstraints"),
            "schedulerName": "default-scheduler",
            "nodeName": node,
        }
        metadata = {"name": f"{pod_group['namePrefix']}{i}", "namespace": "default", "labels": pod_group.get("labels")}
        status = {"phase": "Running" if node else "Pending"}
        yield msgspec.convert({"metadata": metadata, "spec": spec, "status": status}, Pod)
