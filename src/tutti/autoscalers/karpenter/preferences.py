"""Preferences of a pod, which Karpenter treats as requirements and drops one by one while no node takes the pod."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tutti.cluster.counters.pod_terms import PodTerm
from tutti.cluster.spec_classes import SpecClass, SpreadConstraint
from tutti.kube.selectors import NodeTerm, labels_selector


class Preferences(NamedTuple):
    """The preferences of a pod that are not dropped yet."""

    required_node_terms: tuple[NodeTerm, ...]
    """Alternatives of the required node affinity; only the first is a requirement."""
    pod_affinity: tuple[PodTerm, ...]
    """Preferred terms by decreasing weight; all are requirements."""
    pod_anti_affinity: tuple[PodTerm, ...]
    node_affinity: tuple[NodeTerm, ...]
    """Preferred terms by decreasing weight; only the first is a requirement."""
    spread: tuple[SpreadConstraint, ...]
    tolerates_prefer_no_schedule: bool = False

    @classmethod
    def of(cls, spec: SpecClass, labels: Mapping[str, str]) -> Preferences:
        """Return all preferences of a spec, for pods with these labels."""
        preferred = sorted(spec.preferred_nodes, key=lambda each: -each[0])
        return cls(
            required_node_terms=spec.node_terms or (),
            pod_affinity=_heaviest_first(spec, 1),
            pod_anti_affinity=_heaviest_first(spec, -1),
            node_affinity=tuple(term for _, term in preferred),
            spread=tuple(_with_label_keys(each, labels) for each in spec.spread),
        )

    def relax(self, *, has_soft_taints: bool) -> Preferences | None:
        """Return the preferences without the next one in Karpenter's order; None when no preference can be dropped.

        The order: all but the last of several required node terms, preferred pod affinity, preferred pod anti-affinity,
        preferred node affinity, spreads that may be violated (ScheduleAnyway), and last PreferNoSchedule taints.
        """
        if len(self.required_node_terms) > 1:
            return self._replace(required_node_terms=self.required_node_terms[1:])
        for field in ("pod_affinity", "pod_anti_affinity", "node_affinity"):
            if terms := getattr(self, field):
                return self._replace(**{field: terms[1:]})
        soft = next((each for each in self.spread if not each.hard), None)
        if soft is not None:
            return self._replace(spread=tuple(each for each in self.spread if each is not soft))
        if has_soft_taints and not self.tolerates_prefer_no_schedule:
            return self._replace(tolerates_prefer_no_schedule=True)
        return None


def _heaviest_first(spec: SpecClass, sign: int) -> tuple[PodTerm, ...]:
    terms = [each for each in spec.preferred_pods if each.weight * sign > 0]
    return tuple(each.term for each in sorted(terms, key=lambda each: -abs(each.weight)))


def _with_label_keys(constraint: SpreadConstraint, labels: Mapping[str, str]) -> SpreadConstraint:
    """Return a constraint whose selector includes the values of its matchLabelKeys."""
    extra = {key: labels[key] for key in constraint.extra_keys if key in labels}
    if not extra:
        return constraint
    return constraint._replace(selector=constraint.selector.with_requirements(labels_selector(extra).requirements))
