"""Which nodes may be removed for being underused: Cluster Autoscaler's eligibility checker.

Contract: pure. A node is not eligible if an annotation forbids it, if it does not say what it has, or if its
utilization is above the threshold of its group, or of all groups.
"""

from __future__ import annotations

from collections.abc import Sequence

from tutti.autoscalers.cluster_autoscaler.drainability import DrainabilityRules
from tutti.autoscalers.cluster_autoscaler.scaledown_records import ScaleDownNodeGroup, ScaleDownOptions, UnremovableNode
from tutti.autoscalers.cluster_autoscaler.utilization import utilization_of
from tutti.kube.objects import Node, Pod

DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


def check_eligibility(
    node: Node,
    pods: Sequence[Pod],
    group: ScaleDownNodeGroup,
    *,
    rules: DrainabilityRules,
    options: ScaleDownOptions,
) -> tuple[UnremovableNode | None, float | None]:
    """Why a node is not eligible, None if it is; and its utilization, as far as that was looked at."""
    if (node.metadata.annotations or {}).get(DISABLED) == "true":
        return UnremovableNode("ScaleDownDisabledAnnotation"), None
    counted = [pod for pod in pods if not rules.is_long_terminating(pod)]
    share = utilization_of(node, counted, ignore_daemons=options.ignore_daemons)
    if share is None:
        return UnremovableNode("UnexpectedError"), None
    threshold = options.threshold if group.threshold is None else group.threshold
    return (UnremovableNode("NotUnderutilized") if share > threshold else None), share
