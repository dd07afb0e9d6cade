"""A recommendation as the scaling recommender's clients expect it: its RecommendationResponse, field for field.

Contract: pure. All keys are there in every answer. ``scaleUp`` is what waiting pods need. ``scaleDown`` names the nodes
that can go, as far as that was asked, and without another one bought in their place: the clients of this format were
never told of such nodes, and most apply ``scaleUp`` alone. ``unscheduledPods`` are all pods that are left without a
node, under their own namespaces and names, those included that nobody tries to place.
"""

from __future__ import annotations

from typing import Any

from tutti.recommend.pending_pods import not_considered
from tutti.recommend.records.recommendation import Recommendation
from tutti.recommend.records.request import Request
from tutti.wire.merged_scale_ups import free_removals

Data = dict[str, Any]


def gardener_answer(answer: Recommendation, request: Request, *, millis: int) -> Data:
    """The whole answer; `request` is what it was given to."""
    left = [each.pod for each in answer.left] + [each.pod for each in not_considered(request)]
    pods = [key.partition("/") for key in dict.fromkeys(left)]
    return {
        "recommendation": {
            "scaleUp": [
                {
                    "zone": each.zone,
                    "nodePoolName": each.pool,
                    "incrementBy": each.increment,
                    "instanceType": each.instance_type,
                    "nodeNames": list(each.node_names),
                }
                for each in answer.scale_up
            ],
            "scaleDown": [each.node for each in free_removals(answer)],
        },
        "unscheduledPods": [{"Namespace": namespace, "Name": name} for namespace, _, name in pods],
        "runTime": f"{millis} millis",
        "error": "",
    }


def gardener_error(text: str, *, millis: int) -> Data:
    """The envelope of a refusal."""
    return {
        "recommendation": {"scaleUp": [], "scaleDown": []},
        "unscheduledPods": [],
        "runTime": f"{millis} millis",
        "error": text,
    }
