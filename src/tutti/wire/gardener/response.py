"""The RecommendationResponse of Gardener's scaling recommender: its types, and the response for a recommendation.

Contract: pure; every response has all keys. ``scaleUp`` lists what pending pods need. ``scaleDown`` names the nodes
that can be removed without buying a replacement, if the request asks for them: clients of this format do not expect
replacement nodes, and most of them apply ``scaleUp`` alone. ``unscheduledPods`` lists every pod that stays without a
node, pods included that the recommender does not try to place.
"""

from __future__ import annotations

import msgspec

from tutti.recommend.pending_pods import not_considered
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request
from tutti.wire.merged_scale_ups import free_removals


class _Part(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, gc=False):
    """A part of a response."""


class GardenerScaleUp(_Part, frozen=True):
    """New nodes of one pool in one zone."""

    zone: str
    node_pool_name: str
    increment_by: int
    instance_type: str
    node_names: tuple[str, ...]


class GardenerPlan(_Part, frozen=True):
    """Nodes to buy, and the names of the nodes to remove."""

    scale_up: tuple[GardenerScaleUp, ...]
    scale_down: tuple[str, ...]


class GardenerPod(_Part, frozen=True, rename="pascal"):
    """A pod that stays pending."""

    namespace: str
    name: str


class RecommendationResponse(_Part, frozen=True):
    """The whole response; `error` is empty if there is a plan."""

    recommendation: GardenerPlan
    unscheduled_pods: tuple[GardenerPod, ...]
    run_time: str
    error: str


def gardener_answer(answer: Recommendation, request: Request, *, millis: int) -> RecommendationResponse:
    """Return the response with the plan for `request`."""
    scale_up = (
        GardenerScaleUp(
            zone=each.zone,
            node_pool_name=each.pool,
            increment_by=each.increment,
            instance_type=each.instance_type,
            node_names=each.node_names,
        )
        for each in answer.scale_up
    )
    left = [each.pod for each in answer.left] + [each.pod for each in not_considered(request)]
    pods = (key.partition("/") for key in dict.fromkeys(left))
    return RecommendationResponse(
        recommendation=GardenerPlan(
            scale_up=tuple(scale_up), scale_down=tuple(each.node for each in free_removals(answer))
        ),
        unscheduled_pods=tuple(GardenerPod(namespace=namespace, name=name) for namespace, _, name in pods),
        run_time=f"{millis} millis",
        error="",
    )


def gardener_error(text: str, *, millis: int) -> RecommendationResponse:
    """Return a response with an error and without a plan."""
    return RecommendationResponse(
        recommendation=GardenerPlan(scale_up=(), scale_down=()),
        unscheduled_pods=(),
        run_time=f"{millis} millis",
        error=text,
    )
