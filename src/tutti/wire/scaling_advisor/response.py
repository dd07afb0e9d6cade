"""A recommendation in the words of gardener/scaling-advisor: its planner's response, and a ScalingAdvice object.

Contract: pure. ``planner`` is the request that was sent; its id comes back. The scale-out plan has also the nodes that
replace those of the scale-in plan; that one is there only when nodes that can go were asked for and found. Notes are a
label of the response.
"""

from __future__ import annotations

from typing import Any

from tutti.kube.generated_names import made_uid
from tutti.kube.objects import Node
from tutti.market.instance_types import INSTANCE_TYPE, REGION, ZONE
from tutti.market.pool_context import label_of
from tutti.recommend.after_purchase import Offered
from tutti.recommend.pending_pods import not_considered
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request
from tutti.wire.merged_scale_ups import purchases, removals
from tutti.wire.scaling_advisor.request import POOL, TEMPLATE
from tutti.wire.scaling_advisor.text import GROUP, ConstraintText, PlannerText

Data = dict[str, Any]


def advisor_answer(answer: Recommendation, request: Request, *, planner: PlannerText, millis: int) -> Data:
    """The planner's response."""
    labels = {
        "request-id": planner.id or "",
        "correlation-id": planner.correlation_id or "",
        "total-simulation-runs": "1",
        "plan-generate-duration": f"{millis}ms",
        "constraint-num-pools": str(len(request.catalogue.pools)),
        "snapshot-num-unscheduled-pods": str(answer.pods),
        "notes": "; ".join((*answer.notes, *(answer.down.notes if answer.down is not None else ()))),
    }
    return {
        "RequestRef": _reference(planner),
        "labels": {f"{GROUP}/{name}": value for name, value in labels.items() if value},
        **_plans(answer, request),
        "id": made_uid(f"ScalingAdvice/{planner.id or ''}"),
    }


def advisor_error(text: str, *, planner: PlannerText | None = None) -> Data:
    """The planner's response where there is no plan; `planner` is None where the request cannot be read."""
    return {"RequestRef": _reference(planner or PlannerText()), "error": text}


def scaling_advice(answer: Recommendation, request: Request, *, constraint: ConstraintText) -> Data:
    """The ScalingAdvice object (sa.gardener.cloud/v1alpha1) for a constraint."""
    name, namespace = constraint.metadata.name or "tutti", constraint.metadata.namespace or "default"
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "ScalingAdvice",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"constraintRef": {"name": name, "namespace": namespace}, **_plans(answer, request)},
    }


def _reference(text: PlannerText) -> Data:
    more = {"correlationID": text.correlation_id} if text.correlation_id else {}
    return {"id": text.id or "", **more}


def _plans(answer: Recommendation, request: Request) -> Data:
    left = [each.pod for each in answer.left] + [each.pod for each in not_considered(request)]
    plans: Data = {
        "scaleOutPlan": {"unsatisfiedPodNames": list(dict.fromkeys(left)), "items": _out(answer, request)},
    }
    if gone := removals(answer):
        nodes = {obj.metadata.name: obj for obj in request.objects if isinstance(obj, Node)}
        plans["scaleInPlan"] = {
            "items": [
                {
                    **_placement(each.pool, nodes[each.node], zone=each.zone, instance_type=each.instance_type),
                    "nodeName": each.node,
                }
                for each in gone
            ]
        }
    return plans


def _out(answer: Recommendation, request: Request) -> list[Data]:
    offered = Offered(request.catalogue)
    there = [_key(obj) for obj in request.objects if isinstance(obj, Node)]
    items = []
    for each in purchases(answer):
        node = offered.of(each).node
        placed = _placement(each.pool, node, zone=each.zone, instance_type=each.instance_type)
        items.append({**placed, "currentReplicas": there.count(_key(node)), "delta": each.increment})
    return items


def _key(node: Node) -> tuple[str, ...]:
    labels = node.metadata.labels or {}
    return labels.get(POOL, ""), labels.get(TEMPLATE, ""), label_of(node, ZONE), label_of(node, INSTANCE_TYPE)


def _placement(pool: str, node: Node, *, zone: str, instance_type: str) -> Data:
    return {
        "poolName": pool,
        "templateName": (node.metadata.labels or {}).get(TEMPLATE, ""),
        "instanceType": instance_type,
        "region": label_of(node, REGION),
        "availabilityZone": zone,
    }
