"""Disruption budgets, namespaces, limit ranges, priority and runtime classes as data."""

from __future__ import annotations

from typing import Any

from tutti.kube.objects.affinity import Toleration
from tutti.kube.objects.meta import Int32, KubeStruct, Object, Quantities
from tutti.kube.objects.selectors import LabelSelector


class BudgetSpec(KubeStruct, frozen=True):
    """The pods that a disruption budget protects, and the limit."""

    selector: LabelSelector | None = None
    min_available: int | str | None = None
    max_unavailable: int | str | None = None


class BudgetStatus(KubeStruct, frozen=True):
    """How many protected pods may be evicted now."""

    disruptions_allowed: Int32 | None = None
    disrupted_pods: dict[str, Any] | None = None


class PodDisruptionBudget(Object, frozen=True):
    """A limit on the evictions of the selected pods."""

    KIND = "PodDisruptionBudget"
    API_VERSION = "policy/v1"
    NAMESPACED = True
    spec: BudgetSpec = BudgetSpec()
    status: BudgetStatus = BudgetStatus()


class Namespace(Object, frozen=True):
    """A namespace."""

    KIND = "Namespace"


class LimitRangeItem(KubeStruct, frozen=True):
    """Defaults and bounds for the requests and limits of containers."""

    type: str = ""
    default: Quantities | None = None
    default_request: Quantities | None = None
    max: Quantities | None = None
    min: Quantities | None = None


class LimitRangeSpec(KubeStruct, frozen=True):
    """The items of a limit range."""

    limits: list[LimitRangeItem] | None = None


class LimitRange(Object, frozen=True):
    """Defaults and bounds for the requests of a namespace's pods; read at the admission of new pods."""

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


class RuntimeOverhead(KubeStruct, frozen=True):
    """The resources that a container runtime adds to each pod."""

    pod_fixed: Quantities | None = None


class RuntimeScheduling(KubeStruct, frozen=True):
    """The nodes that have a container runtime: a node selector and tolerations."""

    node_selector: dict[str, str] | None = None
    tolerations: list[Toleration] | None = None


class RuntimeClass(Object, frozen=True):
    """A container runtime."""

    KIND = "RuntimeClass"
    API_VERSION = "node.k8s.io/v1"
    handler: str = ""
    overhead: RuntimeOverhead | None = None
    scheduling: RuntimeScheduling | None = None
