"""Karpenter NodePools (karpenter.sh) as data."""

from __future__ import annotations

from tutti.kube.objects.meta import Int32, KubeStruct, Object, ObjectMeta, Quantities
from tutti.kube.objects.node import Taint
from tutti.kube.objects.selectors import LabelSelectorRequirement


class PoolRequirement(LabelSelectorRequirement, frozen=True):
    """A requirement on the nodes that a NodePool may create."""

    min_values: Int32 | None = None


class PoolTemplateSpec(KubeStruct, frozen=True):
    """Requirements and taints of the nodes of a NodePool."""

    requirements: list[PoolRequirement] | None = None
    taints: list[Taint] | None = None


class PoolTemplate(KubeStruct, frozen=True):
    """The node template of a NodePool."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PoolTemplateSpec = PoolTemplateSpec()


class DisruptionBudget(KubeStruct, frozen=True):
    """How many nodes of a NodePool Karpenter may disrupt at a time."""

    nodes: str | int | None = None
    reasons: list[str] | None = None
    schedule: str | None = None
    duration: str | None = None


class NodePoolDisruption(KubeStruct, frozen=True):
    """When Karpenter removes nodes of a NodePool."""

    budgets: list[DisruptionBudget] | None = None
    consolidate_after: str | None = None
    consolidation_policy: str | None = None


class KarpenterPoolSpec(KubeStruct, frozen=True):
    """The nodes that a NodePool may create, and its limits."""

    template: PoolTemplate = PoolTemplate()
    limits: Quantities | None = None
    weight: Int32 | None = None
    disruption: NodePoolDisruption | None = None


class KarpenterPool(Object, frozen=True):
    """A Karpenter NodePool; the scheduler does not read it."""

    KIND = "NodePool.karpenter.sh"
    API_VERSION = "karpenter.sh/v1"
    spec: KarpenterPoolSpec = KarpenterPoolSpec()
