"""Preferences that Karpenter treats as requirements until nothing takes the pod; then it relaxes them one by one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tutti.cluster.counters.pod_terms import PodTerm
from tutti.cluster.spec_classes import SpecClass, SpreadConstraint
from tutti.kube.selectors import NodeTerm, labels_selector


class Preferences(NamedTuple):
    """What of a pod's spec still holds."""

    required_node_terms: tuple[NodeTerm, ...]
    """Alternatives of the required node affinity; the first one holds."""
    pod_affinity: tuple[PodTerm, ...]
    """Preferred terms, the heaviest first."""
    pod_anti_affinity: tuple[PodTerm, ...]
    node_affinity: tuple[NodeTerm, ...]
    """Preferred terms; the first one holds."""
    spread: tuple[SpreadConstraint, ...]
    tolerates_prefer_no_schedule: bool = False

    @classmethod
    def of(cls, spec: SpecClass, labels: Mapping[str, str]) -> Preferences:
        """All preferences of a spec, for pods with these labels."""
        preferred = sorted(spec.preferred_nodes, key=lambda each: -each[0])
        return cls(
            required_node_terms=spec.node_terms or (),
            pod_affinity=_heaviest_first(spec, 1),
            pod_anti_affinity=_heaviest_first(spec, -1),
            node_affinity=tuple(term for _, term in preferred),
            spread=tuple(_with_label_keys(each, labels) for each in spec.spread),
        )

    def relax(self, *, has_soft_taints: bool) -> Preferences | None:
        """One preference less, in Karpenter's order; None when nothing can be relaxed.

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
    mine = [each for each in spec.preferred_pods if each.weight * sign > 0]
    return tuple(each.term for each in sorted(mine, key=lambda each: -abs(each.weight)))


def _with_label_keys(constraint: SpreadConstraint, labels: Mapping[str, str]) -> SpreadConstraint:
    """A constraint with the values of its matchLabelKeys in its selector."""
    extra = {key: labels[key] for key in constraint.extra_keys if key in labels}
    if not extra:
        return constraint
    return constraint._replace(selector=constraint.selector.with_requirements(labels_selector(extra).requirements))
