"""Admission: the changes that an API server makes to a new pod or claim at creation.

Contract: pure. `Admission.admit_pod` and `Admission.admit_claim` take an object as a user or a controller writes it.
They return the object as an API server with its default admission plugins stores it, in the fields that can affect
scheduling. The order is that of the API server: defaults, limit ranges, priority, default tolerations, runtime class,
label keys merged into selectors, pod-level resources. Admit only new objects (`is_stored`): labels may have changed
since the selectors of a stored pod were merged. A second admission of an admitted pod changes nothing. An object that
an API server would refuse raises `InputError`. If the priority or runtime classes are unknown (None), a pod keeps the
values of its own spec, and the caller tells the user which kind is missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.admission.defaults import default_claim, default_pod
from tutti.kube.admission.limit_ranges import limit_range_defaults, with_limit_defaults
from tutti.kube.admission.match_label_keys import merge_label_keys
from tutti.kube.container_totals import limits_total, nano_amounts, spec_total
from tutti.kube.objects import (
    LimitRange,
    Object,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    PriorityClass,
    Quantities,
    RuntimeClass,
    StorageClass,
    Toleration,
)
from tutti.kube.resource_names import is_pod_level
from tutti.kube.taints import merge_tolerations
from tutti.kube.times import micros

SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""The values of the priority classes that every cluster has."""

_Some = TypeVar("_Some", bound=Object)
_DEFAULT_PREEMPTION_POLICY = "PreemptLowerPriority"
_DEFAULT_TOLERATIONS = tuple(
    Toleration(key=f"node.kubernetes.io/{state}", operator="Exists", effect="NoExecute", toleration_seconds=300)
    for state in ("not-ready", "unreachable")
)
_DEFAULT_CLASS_ANNOTATIONS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def is_stored(obj: Object) -> bool:
    """Whether an API server has stored the object: a uid, a creation timestamp, or a pod phase is set."""
    metadata = obj.metadata
    if metadata.uid or metadata.creation_timestamp:
        return True
    return isinstance(obj, Pod) and bool(obj.status.phase)


class Admission:
    """Admits new objects with the classes and limit ranges of one cluster."""

    def __init__(
        self,
        *,
        priority_classes: Iterable[PriorityClass] | None = (),
        runtime_classes: Iterable[RuntimeClass] | None = (),
        limit_ranges: Iterable[LimitRange] = (),
        storage_classes: Iterable[StorageClass] = (),
    ) -> None:
        self._priorities = _by_name(priority_classes)
        self._runtimes = _by_name(runtime_classes)
        self._limits = limit_range_defaults(limit_ranges)
        self._default_priority = _default_priority((self._priorities or {}).values())
        self._default_storage_class = _default_storage_class(storage_classes)

    def admit_pod(self, pod: Pod) -> Pod:
        """Return a new pod as an API server would store it."""
        pod = default_pod(pod)
        if (limits := self._limits.get(pod.metadata.namespace or "default")) is not None:
            pod = with_limit_defaults(pod, limits)
        changes = self._priority(pod)
        tolerations = _with_default_tolerations(pod.spec.tolerations or [])
        changes |= self._runtime(pod, tolerations)
        pod = replace(pod, spec=replace(pod.spec, **{"tolerations": tolerations, **changes}))
        return _with_pod_level(merge_label_keys(pod))

    def admit_claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """Return a new claim as an API server would store it; a claim without a class gets the default class."""
        claim = default_claim(claim)
        has_annotation = "volume.beta.kubernetes.io/storage-class" in (claim.metadata.annotations or {})
        if claim.spec.storage_class_name is not None or has_annotation or self._default_storage_class is None:
            return claim
        return replace(claim, spec=replace(claim.spec, storage_class_name=self._default_storage_class))

    def knows_priority(self, name: str) -> bool:
        """Whether a priority class can be looked up: a system class, or the cluster's classes are known."""
        return name in SYSTEM_PRIORITIES or self._priorities is not None

    def _priority(self, pod: Pod) -> dict[str, Any]:
        """Return priority and preemption policy of the pod's priority class, as changes of its spec.

        A pod with a priority but without a class keeps its priority. An API server would refuse the pod, but the
        meaning is clear.
        """
        spec = pod.spec
        name = spec.priority_class_name
        if not name:
            default = self._default_priority or PriorityClass()
            return {
                "priority": default.value if spec.priority is None else spec.priority,
                "preemption_policy": spec.preemption_policy or default.preemption_policy or _DEFAULT_PREEMPTION_POLICY,
            }
        if not self.knows_priority(name):
            return {
                "priority": spec.priority or 0,
                "preemption_policy": spec.preemption_policy or _DEFAULT_PREEMPTION_POLICY,
            }
        named = (self._priorities or {}).get(name) or _system_class(name)
        if named is None:
            raise _admission_error(pod, "priorityClassName", f'there is no PriorityClass "{name}"')
        if spec.priority is not None and spec.priority != named.value:
            raise _admission_error(
                pod, "priority", f'{spec.priority} is not the {named.value} of PriorityClass "{name}"'
            )
        policy = named.preemption_policy or _DEFAULT_PREEMPTION_POLICY
        if spec.preemption_policy and spec.preemption_policy != policy:
            problem = f'{spec.preemption_policy} is not the {policy} of PriorityClass "{name}"'
            raise _admission_error(pod, "preemptionPolicy", problem)
        return {"priority": named.value, "preemption_policy": policy}

    def _runtime(self, pod: Pod, tolerations: list[Toleration]) -> dict[str, Any]:
        """Return overhead, node selector and tolerations of the pod's runtime class, as changes of its spec."""
        spec = pod.spec
        if not spec.runtime_class_name or self._runtimes is None:
            return {}
        runtime = self._runtimes.get(spec.runtime_class_name)
        if runtime is None:
            raise _admission_error(pod, "runtimeClassName", f'there is no RuntimeClass "{spec.runtime_class_name}"')
        changes: dict[str, Any] = {}
        if runtime.overhead is not None:
            fixed = runtime.overhead.pod_fixed
            if spec.overhead and nano_amounts(spec.overhead) != nano_amounts(fixed):
                raise _admission_error(
                    pod, "overhead", f'differs from the overhead of RuntimeClass "{runtime.metadata.name}"'
                )
            changes["overhead"] = fixed
        if runtime.scheduling is not None:
            changes["node_selector"] = _merged_node_selector(pod, runtime.scheduling.node_selector or {}) or None
            changes["tolerations"] = merge_tolerations(tolerations, runtime.scheduling.tolerations or ())
        return changes


def _with_default_tolerations(tolerations: list[Toleration]) -> list[Toleration]:
    """Tolerate a failed node for five minutes, unless the pod has such a toleration of its own."""
    missing = [
        default
        for default in _DEFAULT_TOLERATIONS
        if not any(t.key in (default.key, None, "") and t.effect in ("NoExecute", None, "") for t in tolerations)
    ]
    return [*tolerations, *missing]


def _with_pod_level(pod: Pod) -> Pod:
    """Complete the pod-level requests from the containers and from the pod-level limits."""
    resources = pod.spec.resources
    if resources is None or not (resources.requests or resources.limits):
        return pod
    requests: Quantities = dict(resources.requests or {})
    for name, nano in spec_total(pod).items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, f"{nano}n")
    limits = {name: quantity for name, quantity in (resources.limits or {}).items() if is_pod_level(name)}
    for name, nano in limits_total(pod).items():
        if name.startswith("hugepages-"):
            limits.setdefault(name, f"{nano}n")
    for name, quantity in limits.items():
        requests.setdefault(name, quantity)
    return replace(pod, spec=replace(pod.spec, resources=replace(resources, requests=requests)))


def _merged_node_selector(pod: Pod, runtime_selector: Mapping[str, str]) -> dict[str, str]:
    pod_selector = pod.spec.node_selector or {}
    for key, value in runtime_selector.items():
        if pod_selector.get(key, value) != value:
            problem = f"{key}={pod_selector[key]} contradicts the {key}={value} of its RuntimeClass"
            raise _admission_error(pod, "nodeSelector", problem)
    return pod_selector | dict(runtime_selector)


def _default_priority(classes: Iterable[PriorityClass]) -> PriorityClass | None:
    defaults = [each for each in classes if each.global_default]
    return min(defaults, key=lambda each: (each.value, each.metadata.name), default=None)


def _default_storage_class(classes: Iterable[StorageClass]) -> str | None:
    """Return the name of the newest class that is annotated as the default; None if there is none."""

    def age(storage: StorageClass) -> tuple[int, str]:
        created = storage.metadata.creation_timestamp
        return (-micros(created) if created else 0, storage.metadata.name)

    defaults = [
        each
        for each in classes
        if any((each.metadata.annotations or {}).get(key) == "true" for key in _DEFAULT_CLASS_ANNOTATIONS)
    ]
    return min(defaults, key=age).metadata.name if defaults else None


def _system_class(name: str) -> PriorityClass | None:
    if name not in SYSTEM_PRIORITIES:
        return None
    return PriorityClass(metadata=ObjectMeta(name=name), value=SYSTEM_PRIORITIES[name])


def _by_name(objects: Iterable[_Some] | None) -> dict[str, _Some] | None:
    return None if objects is None else {obj.metadata.name: obj for obj in objects}


def _admission_error(pod: Pod, field: str, problem: str) -> InputError:
    return InputError(problem, obj=f"pod {pod.key}", field=f"spec.{field}")
