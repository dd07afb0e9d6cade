"""Karpenter NodePools (karpenter.sh) as data."""

from __future__ import annotations

from tutti.kube.objects.meta import Int32, Object, ObjectMeta, Quantities, Wire
from tutti.kube.objects.node import Taint
from tutti.kube.objects.selectors import LabelSelectorRequirement


class PoolRequirement(LabelSelectorRequirement, frozen=True):
    """A condition on what a Karpenter pool may buy."""

    min_values: Int32 | None = None


class PoolTemplateSpec(Wire, frozen=True):
    """What the nodes of a Karpenter pool are."""

    requirements: list[PoolRequirement] | None = None
    taints: list[Taint] | None = None


class PoolTemplate(Wire, frozen=True):
    """A node of a Karpenter pool."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PoolTemplateSpec = PoolTemplateSpec()


class DisruptionBudget(Wire, frozen=True):
    """How many nodes of a Karpenter pool may go at a time."""

    nodes: str | int | None = None
    reasons: list[str] | None = None
    schedule: str | None = None
    duration: str | None = None


class NodePoolDisruption(Wire, frozen=True):
    """When Karpenter gives nodes of a pool back."""

    budgets: list[DisruptionBudget] | None = None
    consolidate_after: str | None = None
    consolidation_policy: str | None = None


class KarpenterPoolSpec(Wire, frozen=True):
    """What a Karpenter pool may buy, and how much of it."""

    template: PoolTemplate = PoolTemplate()
    limits: Quantities | None = None
    weight: Int32 | None = None
    disruption: NodePoolDisruption | None = None


class KarpenterPool(Object, frozen=True):
    """A pool that Karpenter buys nodes for; scheduling does not look at it."""

    KIND = "NodePool.karpenter.sh"
    API_VERSION = "karpenter.sh/v1"
    spec: KarpenterPoolSpec = KarpenterPoolSpec()
