"""Cluster Autoscaler's eligibility checker: which nodes are underused and may be removed.

Contract: pure. A node is not eligible if an annotation disables its scale-down, if its allocatable cpu or memory is
unknown, or if its utilization is above the threshold of its group (by default the threshold of all groups).
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
    """Return the reason why a node is not eligible (None if eligible), and its utilization (None if not computed)."""
    if (node.metadata.annotations or {}).get(DISABLED) == "true":
        return UnremovableNode("ScaleDownDisabledAnnotation"), None
    counted = [pod for pod in pods if not rules.is_long_terminating(pod)]
    utilization = utilization_of(node, counted, ignore_daemons=options.ignore_daemons)
    if utilization is None:
        return UnremovableNode("UnexpectedError"), None
    threshold = options.threshold if group.threshold is None else group.threshold
    return (UnremovableNode("NotUnderutilized") if utilization > threshold else None), utilization
