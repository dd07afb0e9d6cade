"""PodTopologySpread: keep like pods evenly spread over zones, racks, hosts.

Hard constraints filter, soft ones score. Pods without constraints of their own are spread by the profile's default
constraints, whose selector comes from the Services that select the pod and the controller that owns it. Counting is per
domain; a node's answer is looked up by its domain.
"""

from __future__ import annotations

import numpy as np

from tutti.cluster.cluster import Cluster
from tutti.cluster.columns import Ints
from tutti.cluster.events import Event
from tutti.cluster.spec_classes import SpecClass, SpreadConstraint
from tutti.engine.plugins.attached_cache import AttachedCache
from tutti.engine.plugins.base import ClusterPlugin, IncomingPod, PreparedPlugin, Selection, controller
from tutti.engine.plugins.spread_counts import HOSTNAME, counted_view, soft_scores
from tutti.engine.plugins.verdict import Refusal, Variants
from tutti.kube.objects import Pod, ReplicaSet, ReplicationController, StatefulSet
from tutti.kube.selectors import NOTHING, Requirement, Selector, labels_selector, parse_label_selector

ZONE = "topology.kubernetes.io/zone"
_NEVER = 2**31 - 1
_Like = tuple[int, tuple[str, str, str] | None]
"""What pods with one default selector share: the class of their labels and their controller."""


def _default(key: str, max_skew: int) -> SpreadConstraint:
    return SpreadConstraint(max_skew, key, False, NOTHING, 1, True, False, ())


SYSTEM_DEFAULTS = (_default(HOSTNAME, 3), _default(ZONE, 5))


class PodTopologySpread(ClusterPlugin):
    """See the module."""

    name = "PodTopologySpread"
    cures = frozenset(
        (Event.NODE_ADDED, Event.NODE_LABELS, Event.NODE_TAINTS, Event.NODE_GONE, Event.POD_PLACED, Event.POD_GONE)
    )
    refusals = (
        Refusal("node(s) didn't match pod topology spread constraints (missing required label)", resolvable=False),
        Refusal("node(s) didn't match pod topology spread constraints", resolvable=True),
    )

    def __init__(self, defaults: tuple[SpreadConstraint, ...] | None = None) -> None:
        self._system = defaults is None
        self._defaults = SYSTEM_DEFAULTS if defaults is None else defaults
        self._selectors: AttachedCache[Cluster, dict[_Like, tuple[int, Selector]]] = AttachedCache(lambda _: {})
        """The default selectors of like pods, with the version of the workloads that they were made of."""

    def concerns(self, incoming: IncomingPod) -> bool:
        """Only pods with constraints, of their own or by default."""
        return bool(incoming.spec.spread) or (bool(self._defaults) and not self._default_selector(incoming).empty)

    # Constraints ------------------------------------------------------------------------------------------------------

    def constraints(self, incoming: IncomingPod, *, hard: bool) -> list[SpreadConstraint]:
        """Give the pod's own constraints, or the default ones, with their whole selectors."""
        own = incoming.spec.spread
        if own:
            return [_joined(c, incoming.labels.labels) for c in own if c.hard == hard]
        defaults = [c for c in self._defaults if c.hard == hard]
        if not defaults:
            return []
        selector = self._default_selector(incoming)
        return [] if selector.empty else [c._replace(selector=selector) for c in defaults]

    def _default_selector(self, incoming: IncomingPod) -> Selector:
        """Give what the pod's Services and its controller select by; it selects everything when there are none."""
        key = (incoming.labels.number, controller(incoming.pod))
        version = incoming.cluster.workloads_version
        kept = self._selectors.of(incoming.cluster)
        known = kept.get(key)
        if known is None or known[0] != version:
            known = kept[key] = (version, default_selector(incoming.cluster, incoming.pod))
        return known[1]

    # Filter -----------------------------------------------------------------------------------------------------------

    def prepare(self, incoming: IncomingPod) -> PreparedPlugin | None:
        """Count the pods in the domains of the hard constraints."""
        constraints = self.constraints(incoming, hard=True)
        if not constraints:
            return None
        keys = tuple(sorted({c.topology_key for c in constraints}))
        return _Spread(incoming, [_Counted(incoming, c, keys) for c in constraints])

    # Score ------------------------------------------------------------------------------------------------------------

    def score(self, incoming: IncomingPod, prepared: PreparedPlugin | None, rows: Selection) -> Ints | None:
        """Score the feasible nodes: the fewer like pods in their domains, the better."""
        constraints = self.constraints(incoming, hard=False)
        if not constraints:
            return None
        # Nodes without one of the keys are left out, but not where the system's default constraints apply.
        strict = bool(incoming.spec.spread) or not self._system
        return soft_scores(incoming, constraints, rows, strict=strict)


def _joined(constraint: SpreadConstraint, labels: dict[str, str]) -> SpreadConstraint:
    """Add the values of the extra label keys to the selector."""
    extra = [Requirement(k, "In", frozenset((labels[k],))) for k in constraint.extra_keys if k in labels]
    return constraint._replace(selector=constraint.selector.with_requirements(extra)) if extra else constraint


def default_selector(cluster: Cluster, pod: Pod) -> Selector:
    """Give what all Services that select the pod and its controller select by, together."""
    namespace = pod.metadata.namespace or "default"
    merged: dict[str, str] = {}
    for service in cluster.services.of(pod):
        merged |= service.spec.selector or {}
    owner = controller(pod)
    if owner is None:
        return labels_selector(merged)
    api_version, kind, name = owner
    found = cluster.objects.get(kind, {}).get(f"{namespace}/{name}")
    if isinstance(found, ReplicationController) and api_version == "v1":
        return labels_selector(merged | (found.spec.selector or {}))
    selector = labels_selector(merged)
    if isinstance(found, ReplicaSet | StatefulSet) and api_version == "apps/v1":
        # A missing selector selects nothing and adds nothing here.
        selector = selector.with_requirements(parse_label_selector(found.spec.selector).requirements)
    return selector


class _Counted:
    """One hard constraint with its counts per domain."""

    __slots__ = ("constraint", "counts", "own", "view")

    def __init__(self, incoming: IncomingPod, constraint: SpreadConstraint, keys: tuple[str, ...]) -> None:
        self.constraint = constraint
        self.view = counted_view(incoming, constraint, keys)
        self.counts = self.view.counts
        self.own = int(constraint.selector.matches(incoming.own_labels))

    def answers(self) -> Variants:
        """Give the answer for every domain, and last the one for nodes without the label."""
        view, constraint = self.view, self.constraint
        there = self.counts[view.nodes_in > 0]
        least = 0 if len(there) < constraint.min_domains else int(there.min()) if len(there) else _NEVER
        table = np.zeros(len(self.counts) + 1, dtype=np.uint8)
        table[:-1][self.counts + (self.own - least) > constraint.max_skew] = 2
        table[-1] = 1
        return table


class _Spread(PreparedPlugin):
    """The hard constraints of one pod."""

    def __init__(self, incoming: IncomingPod, counted: list[_Counted]) -> None:
        self._incoming, self._counted = incoming, counted

    def filter(self, rows: Selection) -> Variants:
        """Refuse nodes without a label (1) and domains that would get too far ahead (2)."""
        answers: Variants | None = None
        for counted in self._counted:
            said = counted.answers()[counted.view.domain[rows]]
            answers = said if answers is None else np.where(answers == 0, said, answers)
        assert answers is not None
        return answers

    def fork(self) -> _Spread:
        """Copy the counts."""
        twins = []
        for counted in self._counted:
            twin = object.__new__(_Counted)
            twin.constraint, twin.view, twin.own = counted.constraint, counted.view, counted.own
            twin.counts = counted.counts.copy()
            twins.append(twin)
        return _Spread(self._incoming, twins)

    def moved(self, pod: Pod, spec: SpecClass, row: int, number: int) -> None:
        """Count a pod in or out, as kube-scheduler does: an empty selector and terminating pods count here."""
        if spec.namespace != self._incoming.labels.namespace:
            return
        labels = pod.metadata.labels or {}
        for counted in self._counted:
            view = counted.view
            if view.mask[row] and counted.constraint.selector.matches(labels):
                counted.counts[view.domain[row]] += number
