"""Disruption budgets, namespaces, limit ranges, priority and runtime classes as data."""

from __future__ import annotations

from typing import Any

from tutti.kube.objects.affinity import Toleration
from tutti.kube.objects.meta import Int32, Object, Quantities, Wire
from tutti.kube.objects.selectors import LabelSelector


class BudgetSpec(Wire, frozen=True):
    """Which pods a disruption budget protects."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class BudgetStatus(Wire, frozen=True):
    """How many of them may go now."""

    disruptions_allowed: Int32 | None = None
    disrupted_pods: dict[str, Any] | None = None


class PodDisruptionBudget(Object, frozen=True):
    """A limit on evictions."""

    KIND = "PodDisruptionBudget"
    API_VERSION = "policy/v1"
    NAMESPACED = True
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class Namespace(Object, frozen=True):
    """A namespace."""

    KIND = "Namespace"


class LimitRangeItem(Wire, frozen=True):
    """What a container gets that does not ask for itself."""

    type: str = ""
    default: Quantities | None = None
    default_request: Quantities | None = None
    max: Quantities | None = None
    min: Quantities | None = None


class LimitRangeSpec(Wire, frozen=True):
    """The limits of a namespace."""

    limits: list[LimitRangeItem] | None = None


class LimitRange(Object, frozen=True):
    """Defaults and bounds for the requests of a namespace's pods; read when a new pod is admitted."""

    KIND = "LimitRange"
    NAMESPACED = True
    spec: LimitRangeSpec = LimitRangeSpec()


class PriorityClass(Object, frozen=True):
    """A named priority."""

    KIND = "PriorityClass"
    API_VERSION = "scheduling.k8s.io/v1"
    value: Int32 = 0
    global_default: bool | None = None
    preemption_policy: str | None = None


class RuntimeOverhead(Wire, frozen=True):
    """What a runtime takes for itself."""

    pod_fixed: Quantities | None = None


class RuntimeScheduling(Wire, frozen=True):
    """Where a runtime is."""

    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class RuntimeClass(Object, frozen=True):
    """A container runtime."""

    KIND = "RuntimeClass"
    API_VERSION = "node.k8s.io/v1"
    handler: str = ""
    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None
