"""Pod classes: pods that the scheduler cannot tell apart are evaluated once.

The class of a pod is its spec class (all fields of the spec that decide where the pod fits), its label class (the
namespace and the labels that some selector reads) and its controller. A rollback does not change the registries; only
`collection` takes classes without pods out of them. The key of a spec class is the encoded spec without the fields that
do not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Generic, NamedTuple, TypeVar, overload

import msgspec

from tutti.cluster.counters.pod_terms import PodTerm, WeightedTerm, parse_term
from tutti.cluster.object_versions import resized_amounts
from tutti.kube.node_features import needs_user_namespace_on_host_network, required_features
from tutti.kube.objects import Pod, PodAffinity, Toleration, TopologySpreadConstraint, Volume
from tutti.kube.resources import host_ports, incoming_requests, placed_requests, score_requests
from tutti.kube.selectors import (
    NodeTerm,
    Requirement,
    Selector,
    labels_selector,
    parse_label_selector,
    parse_node_selector,
    parse_node_term,
)

_encode = msgspec.json.Encoder().encode


T = TypeVar("T")


class lazy(Generic[T]):  # noqa: N801 - a decorator
    """An attribute that is computed at its first use.

    Like functools.cached_property, but without the lock that Python before 3.12 takes: thousands of specs are created
    in a row, and one thread uses a cluster at a time.
    """

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute = compute
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> lazy[T]: ...

    @overload
    def __get__(self, instance: object, owner: type) -> T: ...

    def __get__(self, instance: object | None, owner: type) -> lazy[T] | T:
        if instance is None:
            return self
        value = instance.__dict__[self._compute.__name__] = self._compute(instance)
        return value


class SpreadConstraint(NamedTuple):
    """A parsed topology spread constraint; `extra_keys` are its `matchLabelKeys`."""

    max_skew: int
    topology_key: str
    hard: bool
    selector: Selector
    min_domains: int
    honor_affinity: bool
    honor_taints: bool
    extra_keys: tuple[str, ...]


class SpecClass:
    """The parsed requirements of one pod spec; each attribute is parsed at its first use."""

    def __init__(self, key: bytes, pod: Pod) -> None:
        self.key = key
        self.number = -1
        self.namespace = pod.metadata.namespace or "default"
        self.pod = pod
        self.spec = pod.spec

    def check(self) -> None:
        """Parse every field that can be malformed; raise `InputError` for the first that is."""
        spec, affinity = self.spec, self.spec.affinity
        _ = self.requests
        if spec.node_selector or affinity is not None:
            _ = self.node_labels, self.node_terms, self.preferred_nodes
        if affinity is not None:
            _ = self.affinity, self.anti_affinity, self.preferred_pods
        if spec.topology_spread_constraints:
            _ = self.spread

    @lazy
    def requests(self) -> dict[str, int]:
        """The resource requests that the filter checks; `pods` is one of them."""
        return {**incoming_requests(self.pod), "pods": 1}

    @lazy
    def scored_requests(self) -> dict[str, int]:
        """The resource requests that NodeResourcesFit scores."""
        return score_requests(self.pod)

    @lazy
    def balanced_requests(self) -> dict[str, int]:
        """The resource requests that NodeResourcesBalancedAllocation scores."""
        return placed_requests(self.pod).requests

    @lazy
    def ports(self) -> tuple[tuple[str, str, int], ...]:
        """The pod's host ports as (address, protocol, port)."""
        return host_ports(self.pod)

    @lazy
    def images(self) -> tuple[str, ...]:
        """The images of containers, init containers and image volumes, with their tags."""
        spec = self.spec
        names = [c.image or "" for c in (*(spec.init_containers or ()), *(spec.containers or ()))]
        names += [v.image.reference or "" for v in spec.volumes or () if v.image is not None]
        return tuple(n if n.rfind(":") > n.rfind("/") else n + ":latest" for n in names)

    @lazy
    def volumes(self) -> tuple[Volume, ...]:
        """The volumes that limit where the pod fits."""
        return tuple(v for v in self.spec.volumes or () if v.affects_scheduling)

    @lazy
    def tolerations(self) -> tuple[Toleration, ...]:
        """The pod's tolerations."""
        return tuple(self.spec.tolerations or ())

    @lazy
    def required_features(self) -> tuple[str, ...]:
        """The features that a node must declare."""
        return required_features(self.spec)

    @lazy
    def node_labels(self) -> tuple[Requirement, ...]:
        """The requirements of the pod's node selector."""
        return labels_selector(self.spec.node_selector or {}).requirements

    @lazy
    def node_terms(self) -> tuple[NodeTerm, ...] | None:
        """The terms of the required node affinity; a node must match at least one."""
        affinity = self.spec.affinity and self.spec.affinity.node_affinity
        return parse_node_selector(affinity.required) if affinity else None

    @lazy
    def preferred_nodes(self) -> tuple[tuple[int, NodeTerm], ...]:
        """The preferred node terms with their weights."""
        affinity = self.spec.affinity and self.spec.affinity.node_affinity
        if not affinity:
            return ()
        parsed = ((p.weight, parse_node_term(p.preference)) for p in affinity.preferred or () if p.weight)
        return tuple((weight, term) for weight, term in parsed if term is not None)

    @lazy
    def affinity(self) -> tuple[PodTerm, ...]:
        """The required pod affinity terms."""
        return self._required(self.spec.affinity.pod_affinity if self.spec.affinity else None)

    @lazy
    def anti_affinity(self) -> tuple[PodTerm, ...]:
        """The required pod anti-affinity terms."""
        return self._required(self.spec.affinity.pod_anti_affinity if self.spec.affinity else None)

    @lazy
    def preferred_pods(self) -> tuple[WeightedTerm, ...]:
        """The preferred pod affinity terms, and the preferred anti-affinity terms with negative weights."""
        affinity = self.spec.affinity
        if affinity is None:
            return ()
        return (*self._preferred(affinity.pod_affinity, 1), *self._preferred(affinity.pod_anti_affinity, -1))

    def _required(self, affinity: PodAffinity | None) -> tuple[PodTerm, ...]:
        return tuple(parse_term(t, self.namespace) for t in (affinity.required if affinity else None) or ())

    def _preferred(self, affinity: PodAffinity | None, sign: int) -> list[WeightedTerm]:
        terms = (affinity.preferred if affinity else None) or ()
        return [WeightedTerm(sign * t.weight, parse_term(t.pod_affinity_term, self.namespace)) for t in terms]

    @lazy
    def spread(self) -> tuple[SpreadConstraint, ...]:
        """The pod's own topology spread constraints."""
        return tuple(parse_spread(c) for c in self.spec.topology_spread_constraints or ())

    @lazy
    def watched_keys(self) -> frozenset[str]:
        """The pod label keys that this spec's own selectors read."""
        selectors = [t.selector for t in (*self.affinity, *self.anti_affinity, *(w.term for w in self.preferred_pods))]
        selectors += [c.selector for c in self.spread]
        extra = {key for c in self.spread for key in c.extra_keys}
        return frozenset(extra.union(*(s.keys for s in selectors)))


def parse_spread(constraint: TopologySpreadConstraint) -> SpreadConstraint:
    """Parse one topology spread constraint."""
    return SpreadConstraint(
        max_skew=constraint.max_skew,
        topology_key=constraint.topology_key,
        hard=constraint.when_unsatisfiable != "ScheduleAnyway",
        selector=parse_label_selector(constraint.label_selector),
        min_domains=1 if constraint.min_domains is None else constraint.min_domains,
        honor_affinity=(constraint.node_affinity_policy or "Honor") == "Honor",
        honor_taints=(constraint.node_taints_policy or "Ignore") == "Honor",
        extra_keys=tuple(sorted(constraint.match_label_keys or ())),
    )


class SpecRegistry:
    """All spec classes, by number and by key.

    A number is never used again, neither here nor in copies of the registry, so a cache with spec numbers as keys can
    be too large but never wrong. `generation` changes when classes were given back.
    """

    def __init__(self) -> None:
        self.classes: dict[int, SpecClass] = {}
        self.generation = 0
        self._known: dict[bytes, SpecClass] = {}
        self._numbers = count()

    def class_of(self, pod: Pod) -> SpecClass:
        """Return the pod's spec class; a new spec gets a new class."""
        key = spec_key(pod)
        known = self._known.get(key)
        if known is None:
            known = SpecClass(key, pod)
            known.check()  # before the class gets its number: a malformed spec must change nothing
            known.number = next(self._numbers)
            self._known[key] = self.classes[known.number] = known
        return known

    def drop(self, numbers: Iterable[int]) -> None:
        """Give back classes that no pod has."""
        for number in numbers:
            del self._known[self.classes.pop(number).key]
        self.generation += 1

    def copy(self) -> SpecRegistry:
        """Copy the registry; the classes are shared, and both registries take numbers from one counter."""
        clone = SpecRegistry()
        clone.classes, clone._known, clone._numbers = dict(self.classes), dict(self._known), self._numbers
        clone.generation = self.generation
        return clone


def spec_key(pod: Pod) -> bytes:
    """Return bytes that are equal for two pods exactly when the scheduler cannot tell their specs apart."""
    spec = pod.spec
    volumes = spec.volumes
    name = ""
    if volumes:
        # Volumes that do not limit placement have random names (service account tokens).
        volumes = [v for v in volumes if v.affects_scheduling]
        if any(v.ephemeral is not None for v in volumes):
            name = pod.metadata.name  # the claim's name contains the pod's name
    needs_namespace = needs_user_namespace_on_host_network(spec)
    relevant_spec = msgspec.structs.replace(
        spec, volumes=volumes or None, node_name=None, scheduler_name=None, scheduling_gates=None, priority=None,
        priority_class_name=None, preemption_policy=None, restart_policy=None, runtime_class_name=None,
        host_network=needs_namespace or None, host_users=False if needs_namespace else None,
        scheduling_group=None, termination_grace_period_seconds=None,
    )  # fmt: skip
    key = _encode(relevant_spec) + (pod.metadata.namespace or "").encode()
    amounts = resized_amounts(pod)
    return key + _encode((name, amounts)) if name or amounts is not None else key
