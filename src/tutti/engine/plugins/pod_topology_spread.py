"""PodTopologySpread: keep matching pods evenly spread over zones, racks and hosts.

Hard constraints (DoNotSchedule) filter, soft constraints (ScheduleAnyway) score. A pod without constraints uses the
profile's default constraints, whose selector comes from the Services that select the pod and from its controller. Pods
are counted per domain; the result of a node is a lookup by its domain.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints
from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass, SpreadConstraint
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.engine.plugins.base import ClusterPlugin, IncomingPod, PreFilterState, Selection, controller
from tutti.engine.plugins.spread_counts import HOSTNAME, counted_view, soft_scores
from tutti.engine.plugins.verdict import Refusal, StatusCodes
from tutti.kube.objects import Pod, ReplicaSet, ReplicationController, StatefulSet
from tutti.kube.selectors import NOTHING, Requirement, Selector, labels_selector, parse_label_selector

ZONE = "topology.kubernetes.io/zone"
_NO_DOMAIN = 2**31 - 1
_MAX_SELECTORS = 20_000
"""Largest number of default selectors that are remembered: every Job is a controller of its own."""
_SelectorKey = tuple[int, tuple[str, str, str] | None]
"""The key of a default selector: the pod's label class and its controller."""


def _default(key: str, max_skew: int) -> SpreadConstraint:
    return SpreadConstraint(max_skew, key, False, NOTHING, 1, True, False, ())


SYSTEM_DEFAULTS = (_default(HOSTNAME, 3), _default(ZONE, 5))


class PodTopologySpread(ClusterPlugin):
    """kube-scheduler's PodTopologySpread: PreFilter, filter and score."""

    name = "PodTopologySpread"
    events_to_register = frozenset(
        (
            Event.NODE_ADDED,
            Event.NODE_LABELS,
            Event.NODE_TAINTS,
            Event.NODE_REMOVED,
            Event.POD_PLACED,
            Event.POD_REMOVED,
        )
    )
    refusals = (
        Refusal("node(s) didn't match pod topology spread constraints (missing required label)", resolvable=False),
        Refusal("node(s) didn't match pod topology spread constraints", resolvable=True),
    )

    def __init__(self, defaults: tuple[SpreadConstraint, ...] | None = None) -> None:
        self._system = defaults is None
        self._defaults = SYSTEM_DEFAULTS if defaults is None else defaults
        self._selectors: AttachedCache[Cluster, dict[_SelectorKey, tuple[int, Selector]]] = AttachedCache(lambda _: {})
        """Default selectors with the workloads version for which they were computed."""

    def applies_to(self, incoming: IncomingPod) -> bool:
        """Return whether the pod has constraints, its own or default constraints."""
        return bool(incoming.spec.spread) or (bool(self._defaults) and not self._default_selector(incoming).empty)

    # Constraints ------------------------------------------------------------------------------------------------------

    def constraints(self, incoming: IncomingPod, *, hard: bool) -> list[SpreadConstraint]:
        """Return the pod's own constraints, or the default constraints, with complete selectors."""
        own = incoming.spec.spread
        if own:
            return [_with_match_label_keys(c, incoming.labels.labels) for c in own if c.hard == hard]
        defaults = [c for c in self._defaults if c.hard == hard]
        if not defaults:
            return []
        selector = self._default_selector(incoming)
        return [] if selector.empty else [c._replace(selector=selector) for c in defaults]

    def _default_selector(self, incoming: IncomingPod) -> Selector:
        """Return the cached default selector; it is empty if the pod has neither a Service nor a controller with a
        selector.
        """
        key = (incoming.labels.number, controller(incoming.pod))
        version = incoming.cluster.workloads_version
        selectors = self._selectors.of(incoming.cluster)
        known = selectors.get(key)
        if known is None or known[0] != version:
            if len(selectors) >= _MAX_SELECTORS:
                selectors.clear()
            known = selectors[key] = (version, default_selector(incoming.cluster, incoming.pod))
        return known[1]

    # Filter -----------------------------------------------------------------------------------------------------------

    def pre_filter(self, incoming: IncomingPod) -> PreFilterState | None:
        """Count the matching pods in the domains of the hard constraints."""
        constraints = self.constraints(incoming, hard=True)
        if not constraints:
            return None
        keys = tuple(sorted({c.topology_key for c in constraints}))
        return _SpreadState(incoming, [_ConstraintCounts(incoming, c, keys) for c in constraints])

    # Score ------------------------------------------------------------------------------------------------------------

    def score(self, incoming: IncomingPod, state: PreFilterState | None, rows: Selection) -> Ints | None:
        """Score the feasible nodes: fewer matching pods in the node's domains are better."""
        constraints = self.constraints(incoming, hard=False)
        if not constraints:
            return None
        # Nodes without one of the keys score 0, except with the system default constraints.
        strict = bool(incoming.spec.spread) or not self._system
        return soft_scores(incoming, constraints, rows, strict=strict)


def _with_match_label_keys(constraint: SpreadConstraint, labels: dict[str, str]) -> SpreadConstraint:
    """Add the pod's values of `matchLabelKeys` to the selector."""
    extra = [Requirement(k, "In", frozenset((labels[k],))) for k in constraint.extra_keys if k in labels]
    return constraint._replace(selector=constraint.selector.with_requirements(extra)) if extra else constraint


def default_selector(cluster: Cluster, pod: Pod) -> Selector:
    """Return the combined selector of all Services that select the pod and of its controller."""
    namespace = pod.metadata.namespace or "default"
    merged: dict[str, str] = {}
    for service in cluster.services.selecting(pod):
        merged |= service.spec.selector or {}
    owner = controller(pod)
    if owner is None:
        return labels_selector(merged)
    api_version, kind, name = owner
    owner_object = cluster.objects.get(kind, {}).get(f"{namespace}/{name}")
    if isinstance(owner_object, ReplicationController) and api_version == "v1":
        return labels_selector(merged | (owner_object.spec.selector or {}))
    selector = labels_selector(merged)
    if isinstance(owner_object, ReplicaSet | StatefulSet) and api_version == "apps/v1":
        # A missing selector adds no requirements.
        selector = selector.with_requirements(parse_label_selector(owner_object.spec.selector).requirements)
    return selector


class _ConstraintCounts:
    """One hard constraint with its counts per domain."""

    __slots__ = ("constraint", "counts", "own", "view")

    def __init__(self, incoming: IncomingPod, constraint: SpreadConstraint, keys: tuple[str, ...]) -> None:
        self.constraint = constraint
        self.view = counted_view(incoming, constraint, keys)
        self.counts = self.view.counts
        self.own = int(constraint.selector.matches(incoming.own_labels))

    def status_codes(self) -> StatusCodes:
        """Return the status code per domain; the last entry is for nodes without the label."""
        view, constraint = self.view, self.constraint
        domain_counts = self.counts[view.nodes_in > 0]
        minimum = (
            0
            if len(domain_counts) < constraint.min_domains
            else int(domain_counts.min())
            if len(domain_counts)
            else _NO_DOMAIN
        )
        table = np.zeros(len(self.counts) + 1, dtype=np.uint8)
        table[:-1][self.counts + (self.own - minimum) > constraint.max_skew] = 2
        table[-1] = 1
        return table


class _SpreadState(PreFilterState):
    """The hard constraints of one pod, with their counts."""

    def __init__(self, incoming: IncomingPod, counted: list[_ConstraintCounts]) -> None:
        self._incoming, self._counted = incoming, counted

    def filter(self, rows: Selection) -> StatusCodes:
        """Refuse nodes without a topology label (1) and nodes in domains that would exceed maxSkew (2)."""
        result: StatusCodes | None = None
        for counted in self._counted:
            codes = counted.status_codes()[counted.view.domain[rows]]
            result = codes if result is None else np.where(result == 0, codes, result)
        assert result is not None
        return result

    def clone(self) -> _SpreadState:
        """Copy the counts."""
        clones = []
        for counted in self._counted:
            clone = object.__new__(_ConstraintCounts)
            clone.constraint, clone.view, clone.own = counted.constraint, counted.view, counted.own
            clone.counts = counted.counts.copy()
            clones.append(clone)
        return _SpreadState(self._incoming, clones)

    def update_with_pod(self, pod: Pod, spec: SpecClass, row: int, number: int) -> None:
        """Add (1) or remove (-1) a pod; as in kube-scheduler, an empty selector and terminating pods count here."""
        if spec.namespace != self._incoming.labels.namespace:
            return
        labels = pod.metadata.labels or {}
        for counted in self._counted:
            view = counted.view
            if view.mask[row] and counted.constraint.selector.matches(labels):
                counted.counts[view.domain[row]] += number

    def is_affected_by(self, pod: Pod, spec: SpecClass) -> bool:
        """Return whether a constraint counts the pod."""
        labels = pod.metadata.labels or {}
        return spec.namespace == self._incoming.labels.namespace and any(
            counted.constraint.selector.matches(labels) for counted in self._counted
        )
