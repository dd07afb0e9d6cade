"""The answers of gardener/scaling-advisor: the response of its planner, and a ScalingAdvice object.

Contract: pure. ``planner`` is the request that was sent; its id comes back. The scale-out plan also has the nodes
that replace those of the scale-in plan; a scale-in plan exists only if the request asks for nodes to remove and the
recommender finds some. Notes are a label of the response.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tutti.kube.generated_names import made_uid
from tutti.kube.objects import Node
from tutti.market.instance_types import INSTANCE_TYPE, REGION, ZONE
from tutti.market.pool_context import label_of
from tutti.recommend.after_purchase import OfferingIndex
from tutti.recommend.pending_pods import not_considered
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request
from tutti.wire.merged_scale_ups import purchases, removals
from tutti.wire.scaling_advisor.request import POOL, TEMPLATE
from tutti.wire.scaling_advisor.schema import GROUP, ConstraintText, PlannerText


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, gc=False):
    """A part of an answer."""


class RequestRef(_Part, frozen=True, omit_defaults=True):
    """The ids of the request."""

    id: str
    correlation_id: str = msgspec.field(default="", name="correlationID")


class _Placement(_Part, frozen=True):
    """The pool, template and zone of a node."""

    pool_name: str
    template_name: str
    instance_type: str
    region: str
    availability_zone: str


class ScaleOutItem(_Placement, frozen=True):
    """New nodes of one template in one zone."""

    current_replicas: int
    delta: int


class ScaleOutPlan(_Part, frozen=True):
    """Nodes to buy, and the pods that stay pending."""

    unsatisfied_pod_names: tuple[str, ...]
    items: tuple[ScaleOutItem, ...]


class ScaleInItem(_Placement, frozen=True):
    """A node to remove."""

    node_name: str


class ScaleInPlan(_Part, frozen=True):
    """Nodes to remove."""

    items: tuple[ScaleInItem, ...]


class PlannerResponse(_Part, frozen=True, omit_defaults=True):
    """The response of the planner: plans, or an error."""

    request_ref: RequestRef = msgspec.field(name="RequestRef")
    error: str = ""
    labels: dict[str, str] = {}
    scale_out_plan: ScaleOutPlan | None = None
    scale_in_plan: ScaleInPlan | None = None
    id: str = ""


class ObjectName(_Part, frozen=True):
    """The name and the namespace of a Kubernetes object."""

    name: str
    namespace: str


class ScalingAdviceSpec(_Part, frozen=True, omit_defaults=True):
    """The plans for one constraint."""

    constraint_ref: ObjectName
    scale_out_plan: ScaleOutPlan
    scale_in_plan: ScaleInPlan | None = None


class ScalingAdvice(_Part, frozen=True):
    """The object that scaling-advisor writes for a ScalingConstraint."""

    api_version: str
    kind: str
    metadata: ObjectName
    spec: ScalingAdviceSpec


def advisor_answer(answer: Recommendation, request: Request, *, planner: PlannerText, millis: int) -> PlannerResponse:
    """Return the response of the planner with its plans."""
    labels = {
        "request-id": planner.id or "",
        "correlation-id": planner.correlation_id or "",
        "total-simulation-runs": "1",
        "plan-generate-duration": f"{millis}ms",
        "constraint-num-pools": str(len(request.catalogue.pools)),
        "snapshot-num-unscheduled-pods": str(answer.pods),
        "notes": "; ".join((*answer.notes, *(answer.down.notes if answer.down is not None else ()))),
    }
    return PlannerResponse(
        request_ref=_reference(planner),
        labels={f"{GROUP}/{name}": value for name, value in labels.items() if value},
        scale_out_plan=_scale_out(answer, request),
        scale_in_plan=_scale_in(answer, request),
        id=made_uid(f"ScalingAdvice/{planner.id or ''}"),
    )


def advisor_error(text: str, *, planner: PlannerText | None = None) -> PlannerResponse:
    """Return the response of the planner without a plan; `planner` is None if the request cannot be read."""
    return PlannerResponse(request_ref=_reference(planner or PlannerText()), error=text)


def scaling_advice(answer: Recommendation, request: Request, *, constraint: ConstraintText) -> ScalingAdvice:
    """Return the ScalingAdvice object (sa.gardener.cloud/v1alpha1) for a constraint."""
    name = ObjectName(name=constraint.metadata.name or "tutti", namespace=constraint.metadata.namespace or "default")
    spec = ScalingAdviceSpec(
        constraint_ref=name,
        scale_out_plan=_scale_out(answer, request),
        scale_in_plan=_scale_in(answer, request),
    )
    return ScalingAdvice(api_version=f"{GROUP}/v1alpha1", kind="ScalingAdvice", metadata=name, spec=spec)


def _reference(text: PlannerText) -> RequestRef:
    return RequestRef(id=text.id or "", correlation_id=text.correlation_id or "")


def _scale_out(answer: Recommendation, request: Request) -> ScaleOutPlan:
    left = [each.pod for each in answer.left] + [each.pod for each in not_considered(request)]
    return ScaleOutPlan(
        unsatisfied_pod_names=tuple(dict.fromkeys(left)), items=tuple(_scale_out_items(answer, request))
    )


def _scale_out_items(answer: Recommendation, request: Request) -> Iterator[ScaleOutItem]:
    offered = OfferingIndex(request.catalogue)
    there = [_key(obj) for obj in request.objects if isinstance(obj, Node)]
    for each in purchases(answer):
        node = offered.find(each).node
        yield ScaleOutItem(
            pool_name=each.pool,
            template_name=_template(node),
            instance_type=each.instance_type,
            region=label_of(node, REGION),
            availability_zone=each.zone,
            current_replicas=there.count(_key(node)),
            delta=each.increment,
        )


def _scale_in(answer: Recommendation, request: Request) -> ScaleInPlan | None:
    gone = removals(answer)
    if not gone:
        return None
    nodes = {obj.metadata.name: obj for obj in request.objects if isinstance(obj, Node)}
    items = (
        ScaleInItem(
            pool_name=each.pool,
            template_name=_template(nodes[each.node]),
            instance_type=each.instance_type,
            region=label_of(nodes[each.node], REGION),
            availability_zone=each.zone,
            node_name=each.node,
        )
        for each in gone
    )
    return ScaleInPlan(items=tuple(items))


def _key(node: Node) -> tuple[str, ...]:
    labels = node.metadata.labels or {}
    return labels.get(POOL, ""), labels.get(TEMPLATE, ""), label_of(node, ZONE), label_of(node, INSTANCE_TYPE)


def _template(node: Node) -> str:
    return (node.metadata.labels or {}).get(TEMPLATE, "")
