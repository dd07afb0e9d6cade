"""The merge of matchLabelKeys and mismatchLabelKeys into label selectors, as an API server does at creation.

Contract: pure. Each key that is a label of the pod becomes a requirement of the selector (``In``; for mismatchLabelKeys
``NotIn``), appended to the existing requirements. An existing requirement is not repeated, so the merge is idempotent.
A missing selector stays missing, because it selects nothing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from msgspec.structs import replace

from tutti.kube.objects import (
    LabelSelector,
    LabelSelectorRequirement,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
)

_Labels = dict[str, str]


def merge_label_keys(pod: Pod) -> Pod:
    """Return the pod with the label keys of affinity terms and spread constraints merged into their selectors."""
    spec = pod.spec
    labels = pod.metadata.labels or {}
    changes: dict[str, Any] = {}
    if (affinity := spec.affinity) is not None and (affinity.pod_affinity or affinity.pod_anti_affinity):
        changes["affinity"] = replace(
            affinity,
            pod_affinity=_merge_affinity(affinity.pod_affinity, labels),
            pod_anti_affinity=_merge_affinity(affinity.pod_anti_affinity, labels),
        )
    if spec.topology_spread_constraints:
        changes["topology_spread_constraints"] = [_merge_spread(c, labels) for c in spec.topology_spread_constraints]
    return replace(pod, spec=replace(spec, **changes)) if changes else pod


def _merge_affinity(affinity: PodAffinity | None, labels: _Labels) -> PodAffinity | None:
    if affinity is None:
        return None
    changes: dict[str, Any] = {}
    if affinity.required:
        changes["required"] = [_merge_term(term, labels) for term in affinity.required]
    if affinity.preferred:
        changes["preferred"] = [
            replace(preferred, pod_affinity_term=_merge_term(preferred.pod_affinity_term, labels))
            for preferred in affinity.preferred
        ]
    return replace(affinity, **changes)


def _merge_term(term: PodAffinityTerm, labels: _Labels) -> PodAffinityTerm:
    if term.label_selector is None or not (term.match_label_keys or term.mismatch_label_keys):
        return term
    requirements = [
        *_requirements(term.match_label_keys, labels, operator="In"),
        *_requirements(term.mismatch_label_keys, labels, operator="NotIn"),
    ]
    return replace(term, label_selector=_with_requirements(term.label_selector, requirements))


def _merge_spread(constraint: TopologySpreadConstraint, labels: _Labels) -> TopologySpreadConstraint:
    if constraint.label_selector is None or not constraint.match_label_keys:
        return constraint
    requirements = _requirements(constraint.match_label_keys, labels, operator="In")
    return replace(constraint, label_selector=_with_requirements(constraint.label_selector, requirements))


def _requirements(keys: Iterable[str] | None, labels: _Labels, *, operator: str) -> list[LabelSelectorRequirement]:
    return [
        LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for key in keys or ()
        if key in labels
    ]


def _with_requirements(selector: LabelSelector, requirements: Iterable[LabelSelectorRequirement]) -> LabelSelector:
    expressions = list(selector.match_expressions or ())
    expressions += [requirement for requirement in requirements if requirement not in expressions]
    return replace(selector, match_expressions=expressions or None)
