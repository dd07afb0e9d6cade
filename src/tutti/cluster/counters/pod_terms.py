"""Terms between pods: which pods one pod looks at.

A `PodTerm` is an affinity term as the scheduler reads it: the namespaces it looks into, the labels it looks for, and
the node label whose values are its domains. Terms are values: equal terms of different pods are one key.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from tutti.kube.objects import PodAffinityTerm
from tutti.kube.selectors import NOTHING, Selector, parse_label_selector


class Scope(NamedTuple):
    """The namespaces of a term: those named, and those that the selector selects by their labels."""

    names: frozenset[str]
    selector: Selector = NOTHING

    @property
    def by_labels(self) -> bool:
        """Whether the scope changes with the labels of namespaces."""
        return bool(self.selector.requirements)

    def holds(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Say whether the namespace, whose labels these are, is in the scope (None: there is no such namespace)."""
        return namespace in self.names or self.selector.matches(labels or {})

    def holds_known(self, namespace: str, labels: Mapping[str, str] | None) -> bool:
        """Say the same where a selector can only select namespaces that exist: in terms of the pod to be placed."""
        if namespace in self.names or self.selector.empty:
            return True
        return labels is not None and self.selector.matches(labels)


class PodTerm(NamedTuple):
    """An affinity or anti-affinity term."""

    scope: Scope
    selector: Selector
    topology_key: str


class WeightedTerm(NamedTuple):
    """A term that is wished for (or, with a negative weight, wished away)."""

    weight: int
    term: PodTerm


def parse_term(term: PodAffinityTerm, namespace: str) -> PodTerm:
    """Read a term of a pod in a namespace."""
    if not term.namespaces and term.namespace_selector is None:
        scope = Scope(frozenset((namespace,)))
    else:
        scope = Scope(frozenset(term.namespaces or ()), parse_label_selector(term.namespace_selector))
    return PodTerm(scope, parse_label_selector(term.label_selector), term.topology_key)
