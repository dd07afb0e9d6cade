"""What an API server does to a new pod or claim, once, when it is created.

Contract: pure; `Admission.pod` and `Admission.claim` take an object as a user or a controller writes it and give it as
an API server with its default admission plugins would store it, as far as that changes a scheduling answer, in the same
order: defaults, limit ranges, priority, default tolerations, runtime class, label keys merged into selectors,
pod-level resources. Only new objects belong here (`is_stored` tells): labels may have changed since a stored pod's
selectors were merged. Yet a second admission of an admitted pod changes nothing. What an API server would refuse raises
`InputError`. Where a kind of class was not given at all (None) its names cannot be looked up: a pod then keeps what it
says itself, and the caller tells the user which kind was missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from tutti.exceptions import InputError
from tutti.kube.admission.defaults import default_claim, default_pod
from tutti.kube.admission.limit_ranges import limit_defaults, within_limits
from tutti.kube.admission.match_label_keys import merge_label_keys
from tutti.kube.container_totals import limits_total, nano_of, spec_total
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
from tutti.kube.taints import merged
from tutti.kube.times import micros

SYSTEM_PRIORITIES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that every cluster has."""

_Some = TypeVar("_Some", bound=Object)
_PREEMPTS = "PreemptLowerPriority"
_GRACE = tuple(
    Toleration(key=f"node.kubernetes.io/{state}", operator="Exists", effect="NoExecute", toleration_seconds=300)
    for state in ("not-ready", "unreachable")
)
_DEFAULT_CLASS_MARKS = (
    "storageclass.kubernetes.io/is-default-class",
    "storageclass.beta.kubernetes.io/is-default-class",
)


def is_stored(obj: Object) -> bool:
    """Whether an API server has already admitted the object: it bears the marks that only an API server sets."""
    metadata = obj.metadata
    if metadata.uid or metadata.creation_timestamp:
        return True
    return isinstance(obj, Pod) and bool(obj.status.phase)


class Admission:
    """The classes and limits of one cluster, with which new objects are admitted."""

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
        self._limits = limit_defaults(limit_ranges)
        self._default_priority = _default_priority((self._priorities or {}).values())
        self._default_storage = _default_storage(storage_classes)

    def pod(self, pod: Pod) -> Pod:
        """A new pod as it would be stored."""
        pod = default_pod(pod)
        if (limits := self._limits.get(pod.metadata.namespace or "default")) is not None:
            pod = within_limits(pod, limits)
        changes = self._priority(pod)
        tolerations = _with_grace(pod.spec.tolerations or [])
        changes |= self._runtime(pod, tolerations)
        pod = replace(pod, spec=replace(pod.spec, **{"tolerations": tolerations, **changes}))
        return _with_pod_level(merge_label_keys(pod))

    def claim(self, claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
        """A new claim as it would be stored: without a class it gets the default one, if there is one."""
        claim = default_claim(claim)
        named = "volume.beta.kubernetes.io/storage-class" in (claim.metadata.annotations or {})
        if claim.spec.storage_class_name is not None or named or self._default_storage is None:
            return claim
        return replace(claim, spec=replace(claim.spec, storage_class_name=self._default_storage))

    def knows_priority(self, name: str) -> bool:
        """Whether a priority class can be looked up."""
        return name in SYSTEM_PRIORITIES or self._priorities is not None

    def _priority(self, pod: Pod) -> dict[str, Any]:
        """The number behind a priority class, and whether the pod may preempt.

        A number without a class is kept: an API server would refuse it, but what is meant is plain.
        """
        spec = pod.spec
        name = spec.priority_class_name
        if not name:
            found = self._default_priority or PriorityClass()
            return {
                "priority": found.value if spec.priority is None else spec.priority,
                "preemption_policy": spec.preemption_policy or found.preemption_policy or _PREEMPTS,
            }
        if not self.knows_priority(name):
            return {"priority": spec.priority or 0, "preemption_policy": spec.preemption_policy or _PREEMPTS}
        named = (self._priorities or {}).get(name) or _system_class(name)
        if named is None:
            raise _refused(pod, "priorityClassName", f'there is no PriorityClass "{name}"')
        if spec.priority is not None and spec.priority != named.value:
            raise _refused(pod, "priority", f'{spec.priority} is not the {named.value} of PriorityClass "{name}"')
        policy = named.preemption_policy or _PREEMPTS
        if spec.preemption_policy and spec.preemption_policy != policy:
            problem = f'{spec.preemption_policy} is not the {policy} of PriorityClass "{name}"'
            raise _refused(pod, "preemptionPolicy", problem)
        return {"priority": named.value, "preemption_policy": policy}

    def _runtime(self, pod: Pod, tolerations: list[Toleration]) -> dict[str, Any]:
        """Overhead, node selector and tolerations of the pod's container runtime."""
        spec = pod.spec
        if not spec.runtime_class_name or self._runtimes is None:
            return {}
        runtime = self._runtimes.get(spec.runtime_class_name)
        if runtime is None:
            raise _refused(pod, "runtimeClassName", f'there is no RuntimeClass "{spec.runtime_class_name}"')
        changes: dict[str, Any] = {}
        if runtime.overhead is not None:
            fixed = runtime.overhead.pod_fixed
            if spec.overhead and nano_of(spec.overhead) != nano_of(fixed):
                raise _refused(pod, "overhead", f'it is not the overhead of RuntimeClass "{runtime.metadata.name}"')
            changes["overhead"] = fixed
        if runtime.scheduling is not None:
            changes["node_selector"] = _joined_selector(pod, runtime.scheduling.node_selector or {}) or None
            changes["tolerations"] = merged(tolerations, runtime.scheduling.tolerations or ())
        return changes


def _with_grace(tolerations: list[Toleration]) -> list[Toleration]:
    """A pod stays for five minutes on a node that fails, unless it says itself how long."""
    missing = [
        grace
        for grace in _GRACE
        if not any(t.key in (grace.key, None, "") and t.effect in ("NoExecute", None, "") for t in tolerations)
    ]
    return [*tolerations, *missing]


def _with_pod_level(pod: Pod) -> Pod:
    """Requests of the pod as a whole, completed from its containers and its own limits."""
    whole = pod.spec.resources
    if whole is None or not (whole.requests or whole.limits):
        return pod
    requests: Quantities = dict(whole.requests or {})
    for name, nano in spec_total(pod).items():
        if name in ("cpu", "memory"):
            requests.setdefault(name, f"{nano}n")
    limits = {name: quantity for name, quantity in (whole.limits or {}).items() if is_pod_level(name)}
    for name, nano in limits_total(pod).items():
        if name.startswith("hugepages-"):
            limits.setdefault(name, f"{nano}n")
    for name, quantity in limits.items():
        requests.setdefault(name, quantity)
    return replace(pod, spec=replace(pod.spec, resources=replace(whole, requests=requests)))


def _joined_selector(pod: Pod, wanted: Mapping[str, str]) -> dict[str, str]:
    own = pod.spec.node_selector or {}
    for key, value in wanted.items():
        if own.get(key, value) != value:
            problem = f"{key}={own[key]} contradicts the {key}={value} of its RuntimeClass"
            raise _refused(pod, "nodeSelector", problem)
    return own | dict(wanted)


def _default_priority(classes: Iterable[PriorityClass]) -> PriorityClass | None:
    marked = [each for each in classes if each.global_default]
    return min(marked, key=lambda each: (each.value, each.metadata.name), default=None)


def _default_storage(classes: Iterable[StorageClass]) -> str | None:
    """The newest of the classes that are marked as the default."""

    def age(storage: StorageClass) -> tuple[int, str]:
        created = storage.metadata.creation_timestamp
        return (-micros(created) if created else 0, storage.metadata.name)

    marked = [
        each
        for each in classes
        if any((each.metadata.annotations or {}).get(mark) == "true" for mark in _DEFAULT_CLASS_MARKS)
    ]
    return min(marked, key=age).metadata.name if marked else None


def _system_class(name: str) -> PriorityClass | None:
    if name not in SYSTEM_PRIORITIES:
        return None
    return PriorityClass(metadata=ObjectMeta(name=name), value=SYSTEM_PRIORITIES[name])


def _by_name(objects: Iterable[_Some] | None) -> dict[str, _Some] | None:
    return None if objects is None else {obj.metadata.name: obj for obj in objects}


def _refused(pod: Pod, field: str, problem: str) -> InputError:
    return InputError(problem, obj=f"pod {pod.key}", field=f"spec.{field}")
